// The automaton as Graphviz laid it out, once per window; a step only changes classes. Beside it the source: where a state's tokens come from, and back.

import {el} from '../draw.js';
import {layouter, parse, reveal} from '../graph.js';

export function create(go, tip, graphvizURL, light) {
  const source = el('code', {class: 'ds-source', tabindex: 0, role: 'region', 'aria-label': 'Source of the constraint'}), scroll = el('div', {class: 'ds-graph', tabindex: 0, role: 'img', 'aria-label': 'Automaton'}), note = el('p', {class: 'ds-note'});
  const element = el('div', {}, source, scroll, note);
  const layout = layouter(graphvizURL);
  let shown = null, fresh = false, nodes = new Map(), edges = new Map(), marked = [], asked = null, last = null, segments = [], written = null, marks = null, inserted = null;

  function insert(svg) {
    const graph = parse(svg, scroll.clientWidth, scroll.closest('.learning') ? 2 : 1.25);
    scroll.replaceChildren(graph);
    fresh = true;
    nodes = new Map([...graph.querySelectorAll('g.node')].map(g => [g.id, g]));
    edges = new Map([...graph.querySelectorAll('g.edge')].map(g => [g.id, g]));
    marked = [];
  }

  scroll.addEventListener('click', event => {
    const node = event.target.closest('g.node');
    if (node && /^q\d+$/.test(node.id)) go({state: +node.id.slice(1)});
  });

  async function want(run, state, again) {
    const key = run.states <= 60 ? run.id : `${run.id} ${state}`;
    if (asked === key) return;
    asked = key;
    const part = await run.window(state);
    if (asked !== key) return;
    if (part.error) { note.textContent = 'The automaton could not be fetched.'; return; }
    part.svg ??= await layout(part.dot);
    if (asked !== key) return;
    shown = {run, key, states: new Set(part.states)};
    // Runs of a lesson share one automaton; its graph stays where it is.
    if (part.svg && part.svg === inserted) fresh = true;
    else if (part.svg) insert(inserted = part.svg); else { scroll.replaceChildren(); note.textContent = 'This graph takes too long to lay out; the trellis shows the same states.'; }
    again();
  }

  const mark = (element, name) => { if (element) { element.classList.add(name); marked.push([element, name]); } };

  function update(view, again) {
    const {run, step, position, detail, state} = last = view;
    const path = run.row('path', step), here = path[position], next = path[position + 1];
    const centre = state ?? (here >= 0 ? here : run.head.start);
    if (!shown || shown.run !== run) want(run, centre, again);
    else if (!shown.states.has(centre) && view.rested) want(run, centre, again);
    write(run, here);
    if (!shown || shown.run !== run) return;
    for (const [element, name] of marked) element.classList.remove(name);
    for (const [element] of marked) element.style.removeProperty('--gamma');
    marked = [];
    for (let b = 0; b < run.length; b++) if (path[b] >= 0 && path[b + 1] >= 0) mark(edges.get(`e${path[b]}_${path[b + 1]}`), 'path');
    if (detail) {
      const mass = new Map(detail.statesAt(position));
      for (const q of shown.states) {
        const node = nodes.get(`q${q}`);
        if (!detail.isLive(position, q)) continue;
        mark(node, 'live');
        node?.style.setProperty('--gamma', mass.get(q) ?? 0);
      }
    }
    mark(nodes.get(`q${here}`), 'here');
    mark(nodes.get(`q${next}`), 'next');
    if (here >= 0 && next >= 0) mark(edges.get(`e${here}_${next}`), 'taken');
    if (state !== null) mark(nodes.get(`q${state}`), 'chosen');
    const count = run.states > shown.states.size ? `${shown.states.size} of ${run.states} states around ${centre}. ` : '';
    note.textContent = `${count}Filled by posterior at boundary ${position}; dashed ring: state of the draw at boundary ${position + 1}; heavy line: the token at position ${position}.`;
    if (view.rested && nodes.has(`q${centre}`)) { reveal(scroll, nodes.get(`q${centre}`), fresh); fresh = false; }
  }

  // The source in the segments that origins cut it into, those marked that can be written next at the draw's state.
  function write(run, here) {
    if (written !== run.id) {
      written = run.id;
      source.hidden = run.config.kind === null;
      segments = cutUp(run);
      source.replaceChildren(...segments.map(({node}) => node));
    }
    const key = `${run.id} ${here}`;
    if (key === marks) return;
    marks = key;
    const spans = originsOf(run, here);
    for (const segment of segments) segment.node.classList.toggle('on', covered(segment, spans));
  }

  function cutUp(run) {
    const {kind, source: text} = run.config;
    if (kind === null) return [];
    const characters = [...(Array.isArray(text) ? text.join('\n') : text)];   // spans count characters, not UTF-16 units
    const cuts = [...new Set([0, characters.length, ...run.head.spans.flat(2)])].filter(at => at <= characters.length).sort((a, b) => a - b);
    return cuts.slice(1).map((end, k) => ({start: cuts[k], end, node: el('span', {'data-k': k, text: characters.slice(cuts[k], end).join('')})}));
  }

  const originsOf = (run, state) => state >= 0 ? run.head.spans[state] ?? [] : [];
  const covered = ({start, end}, spans) => spans.some(([a, b]) => a <= start && end <= b);

  // Pointing at a state or a token lights its origins; pointing at a place of the source, the states and positions that come from it.
  function showOrigins(state) {
    const spans = state === null || !last ? [] : originsOf(last.run, state);
    for (const segment of segments) segment.node.classList.toggle('lit', covered(segment, spans));
  }
  function showUses(segment) {
    const {run, step} = last, path = run.row('path', step), uses = state => segment !== null && covered(segment, originsOf(run, state));
    for (const [id, node] of nodes) node.classList.toggle('lit', /^q\d+$/.test(id) && uses(+id.slice(1)));
    for (const other of segments) other.node.classList.toggle('lit', other === segment);
    light(Array.from({length: run.length}, (_, i) => i).filter(i => uses(path[i])), last.side);
  }
  scroll.addEventListener('pointerover', event => { const node = event.target.closest('g.node'); showOrigins(node && /^q\d+$/.test(node.id) ? +node.id.slice(1) : null); });
  scroll.addEventListener('pointerleave', () => showOrigins(null));
  source.addEventListener('pointerover', event => last && showUses(segments[event.target.dataset.k] ?? null));
  source.addEventListener('pointerleave', () => last && showUses(null));
  function point(position, side) {
    showOrigins(position === null || !last || side !== last.side ? null : last.run.at('path', last.step, position));
  }

  function rows({detail, position}) {
    if (!shown || !detail) return null;
    const mass = new Map(detail.statesAt(position));
    return {head: ['state', 'live', 'posterior'], body: [...shown.states].map(q => [q, detail.isLive(position, q), mass.get(q) ?? 0])};
  }
  return {element, update, rows, point};
}
