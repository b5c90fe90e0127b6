// The automaton as Graphviz laid it out, once per window; a step only changes classes.

import {el} from '../draw.js';

export function create(go, tip, graphvizURL) {
  const source = el('code', {class: 'ds-source', tabindex: 0, role: 'region', 'aria-label': 'Source of the constraint'}), scroll = el('div', {class: 'ds-graph', tabindex: 0, role: 'img', 'aria-label': 'Automaton'}), note = el('p', {class: 'ds-note'});
  const element = el('div', {}, source, scroll, note);
  let shown = null, fresh = false, nodes = new Map(), edges = new Map(), marked = [], asked = null, spansShown = null;

  // Only when the server has no `dot`: the same DOT, laid out off the main thread.
  let worker = null;
  function layout(dot) {
    worker ??= new Worker(URL.createObjectURL(new Blob([`
      import {Graphviz} from ${JSON.stringify(new URL(graphvizURL, document.baseURI).href)};
      const graphviz = Graphviz.load();
      onmessage = async event => { try { postMessage((await graphviz).dot(event.data)); } catch (error) { postMessage(null); } };`], {type: 'text/javascript'})), {type: 'module'});
    return new Promise(done => {
      const timer = setTimeout(() => { worker.terminate(); worker = null; done(null); }, 8000);
      worker.onmessage = event => { clearTimeout(timer); done(event.data); };
      worker.postMessage(dot);
    });
  }

  function insert(svg) {
    const parsed = new DOMParser().parseFromString(svg.slice(svg.indexOf('<svg')), 'image/svg+xml').documentElement;
    parsed.querySelectorAll('script,foreignObject,image,style,title').forEach(n => n.remove());
    parsed.querySelectorAll('a').forEach(n => n.replaceWith(...n.childNodes));
    for (const n of [parsed, ...parsed.querySelectorAll('*')]) {
      for (const {name} of [...n.attributes]) if (/^on|href$/i.test(name)) n.removeAttribute(name);
      // Colours are the page's; what Graphviz wrote would not follow the theme.
      for (const name of ['stroke', 'fill']) if (n.tagName !== 'svg' && n.getAttribute(name) !== 'none') n.removeAttribute(name);
    }
    const graph = document.importNode(parsed, true);
    const [, , width, height] = (graph.getAttribute('viewBox') ?? '0 0 100 100').split(/\s+/).map(Number);
    graph.removeAttribute('width');
    graph.removeAttribute('height');
    // As large as fits, down to four fifths; what is larger scrolls.
    const room = scroll.clientWidth / width;
    graph.style.width = `${Math.round(width * (room > 0.8 ? Math.min(1.25, room) : 1.1))}px`;
    graph.style.aspectRatio = `${width} / ${height}`;
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
    if (part.svg) insert(part.svg); else { scroll.replaceChildren(); note.textContent = 'This graph takes too long to lay out; the trellis shows the same states.'; }
    again();
  }

  const mark = (element, name) => { if (element) { element.classList.add(name); marked.push([element, name]); } };

  function update(view, again) {
    const {run, step, position, detail, state} = view;
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
    if (view.rested) reveal(nodes.get(`q${centre}`));
  }

  // Scroll the graph, never the page, so that a state is in view.
  function reveal(node) {
    if (!node) return;
    const centre = fresh;
    fresh = false;
    const at = node.getBoundingClientRect(), frame = scroll.getBoundingClientRect(), room = 40;
    if (centre || at.left < frame.left + room || at.right > frame.right - room) scroll.scrollLeft += at.left - frame.left - frame.width / 2;
    if (centre || at.top < frame.top || at.bottom > frame.bottom) scroll.scrollTop += at.top - frame.top - frame.height / 2;
  }

  // The source, with the places that can be written next at this state.
  function write(run, here) {
    const {kind, source: text} = run.config, spans = here >= 0 ? run.head.spans[here] ?? [] : [];
    const key = `${run.id} ${JSON.stringify(spans)}`;
    if (key === spansShown) return;
    spansShown = key;
    source.hidden = kind === null;
    if (kind === null) return;
    const whole = Array.isArray(text) ? text.join('\n') : text;
    const on = new Uint8Array(whole.length);
    // Spans count characters; JavaScript counts UTF-16 units.
    const units = [0];
    for (const c of whole) units.push(units[units.length - 1] + c.length);
    for (const [a, b] of spans) on.fill(1, units[a], units[b]);
    const parts = [];
    for (let k = 0; k < whole.length;) {
      let end = k;
      while (end < whole.length && on[end] === on[k]) end++;
      parts.push(on[k] ? el('mark', {text: whole.slice(k, end)}) : whole.slice(k, end));
      k = end;
    }
    source.replaceChildren(...parts);
  }
  function rows({detail, position}) {
    if (!shown || !detail) return null;
    const mass = new Map(detail.statesAt(position));
    return {head: ['state', 'live', 'posterior'], body: [...shown.states].map(q => [q, detail.isLive(position, q), mass.get(q) ?? 0])};
  }
  return {element, update, rows};
}
