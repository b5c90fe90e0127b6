// The automaton as Graphviz laid it out; a step only changes classes and words. A small one is shown whole, a large one as groups, inside a group, or around a state.
// Beside it the source: where a state's tokens come from, and back.

import {el, cut, probability} from '../draw.js';
import * as explain from '../explain.js';
import * as parts from '../parts.js';
import {layouter, parse, reveal} from '../graph.js';
import {unpack} from '../run.js';

const SMALL = 60;   // states of an automaton that is shown whole

export function create(go, card, graphvizURL, light) {
  const source = el('code', {class: 'ds-source', tabindex: 0, role: 'region', 'aria-label': 'Source of the constraint'}), crumbs = el('nav', {class: 'ds-crumbs', 'aria-label': 'Where in the automaton', hidden: true});
  const scroll = el('div', {class: 'ds-graph', role: 'group', 'aria-label': 'Automaton'}), note = el('p', {class: 'ds-note'}), element = el('div', {}, source, crumbs, scroll, note);
  const layout = layouter(graphvizURL);
  // What is shown: the run and its picture, and of each box its node, what says how much of it is live, and where its states come from.
  let shown = null, asked = null, inserted = null, room = 0, fresh = false, nodes = [], edges = new Map(), marked = [], origins = [], counts = null, mass = null, farthest = 2, last = null, segments = [], kept = null, written = null, marks = null;

  // The picture

  const keyOf = (run, {state, group}) => run.states <= SMALL ? run.id : state !== null ? `${run.id} state ${state} ${farthest}` : `${run.id} group ${group ?? ''}`;

  async function want(run, {state, group}, again) {
    const key = keyOf(run, {state, group});
    if (asked === key) return;
    asked = key;
    element.classList.add('waiting');
    const part = await run.window(run.states <= SMALL ? {} : state !== null ? {state, farthest} : {group: group ?? ''});
    if (asked !== key) return;
    element.classList.remove('waiting');
    if (part.error) { shown = {run, key: null, part: null}; asked = inserted = null; scroll.replaceChildren(); note.textContent = part.remedy ?? 'The automaton could not be fetched.'; return; }
    part.svg ??= await layout(part.dot);
    part.map ??= (await unpack(part)).box.data;
    if (asked !== key) return;
    shown = {run, key, part, box: part.map};
    origins = part.boxes.map(() => new Set());
    for (let q = 0; q < run.states; q++) if (part.map[q] >= 0) origins[part.map[q]].add(run.origin[q]);
    // Runs of a lesson share one automaton; its graph stays where it is.
    if (part.svg && part.svg === inserted) { fresh = true; }
    else if (part.svg) insert(inserted = part.svg, part); else { scroll.replaceChildren(); nodes = []; note.textContent = 'This graph takes too long to lay out; the trellis shows the same states.'; }
    counts = new Int32Array(part.boxes.length);
    mass = new Float64Array(part.boxes.length);
    lead(run, part, state);
    again();
  }

  function insert(svg, {boxes, level}) {
    const within = scroll.contains(document.activeElement), graph = parse(svg, room = scroll.clientWidth, scroll.closest('.learning') ? 2 : 1.25);
    scroll.replaceChildren(graph);
    scroll.style.minHeight = scroll.style.height = '';
    fresh = true;
    marked = [];
    edges = new Map([...graph.querySelectorAll('g.edge')].map(g => [g.id, g]));
    nodes = boxes.map(box => {
      const node = graph.querySelector(`#${CSS.escape(box.id)}`);
      if (!node) return null;
      node.setAttribute('role', 'button');
      node.setAttribute('tabindex', '-1');
      node.setAttribute('aria-label', nameOf(box));
      return node;
    });
    scroll.dataset.level = level;
    boxes.forEach((box, k) => number(nodes[k], numbersOf(box, k)));
    if (nodes[0]) nodes[0].setAttribute('tabindex', '0');
    if (within) nodes[0]?.focus({preventScroll: true});
  }

  // The numbers of the parts that a box's states come from; a group that is of one part has that one's.
  function numbersOf({span}, k) {
    const {head} = shown.run, whole = span ? parts.innermost(shown.run, ...span) : 0;
    return whole ? [whole] : [...new Set([...origins[k]].flatMap(n => head.origin_parts[n]))].sort((a, b) => a - b);
  }
  // In front of what is drawn of the node, and beside it: what comes last of a group says how much of it is live.
  function number(node, numbers) {
    if (!node || !numbers.length) return;
    const {x, y, width} = node.getBBox(), text = parts.words(numbers), room = 5 + 5.6 * text.length, svg = (tag, attributes) => { const made = document.createElementNS(node.namespaceURI, tag); for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value); return made; };
    const left = x + width - 5, badge = svg('g', {class: 'ds-node-part', 'data-hue': numbers.length === 1 ? parts.hue(numbers[0]) : 0}), label = svg('text', {x: left + room / 2, y: y + 3.2});
    label.textContent = text;
    badge.append(svg('rect', {x: left, y: y - 5, width: room, height: 11, rx: 2.5}), label);
    node.prepend(badge);
  }

  const nameOf = ({kind, name, note, states}) => kind === 'state' ? `state ${name}` : `${{chain: 'writes ', group: '', outside: 'beside: '}[kind]}${name}${note ? `, ${note}` : ''}, ${states.toLocaleString('en')} state${states === 1 ? '' : 's'}`;
  const stateOf = box => shown.part.map.indexOf(shown.part.boxes.indexOf(box));
  const at = element => { const node = element.closest?.('g.node'); return node && shown?.part ? nodes.indexOf(node) : -1; };

  // Groups open, a state is what the picture is then around; what hides behind “…” shows around the state before it.
  function open(element) {
    const more = /^more(\d+)$/.exec(element.closest('g.node')?.id ?? ''), box = shown?.part?.boxes[more ? +more[1] : at(element)];
    if (!box) return;
    if (box.path && !more) go({group: box.path.join('.'), state: null}); else if (box.kind !== 'outside') go({state: stateOf(box)});
  }
  function up() {
    if (!shown?.part?.trail.length) return;
    const {trail, level} = shown.part, path = level === 'around' ? trail.at(-1).path : trail.at(-2)?.path;
    if (path) go({group: path.join('.'), state: null});
  }
  scroll.addEventListener('click', event => open(event.target));
  scroll.addEventListener('mousedown', event => { if (event.target.closest('g.node')) event.preventDefault(); });   // the arrow keys go on moving through steps
  scroll.addEventListener('keydown', event => {
    const from = nodes.indexOf(document.activeElement), way = {ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1]}[event.key];
    if (from < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    if (way) step(from, way); else if (event.key === 'Enter' || event.key === ' ') open(nodes[from]); else if (event.key === 'Backspace' || (event.key === 'Escape' && shown.part.trail.length && !element.closest('.large'))) up(); else return;
    event.preventDefault();
    event.stopPropagation();
  });
  // To the node that lies nearest in a direction, what is beside the way counting double.
  function step(from, [dx, dy]) {
    const middle = node => { const {left, top, width, height} = node.getBoundingClientRect(); return [left + width / 2, top + height / 2]; }, [x, y] = middle(nodes[from]);
    let best = Infinity, to = null;
    for (const node of nodes) {
      if (!node) continue;
      const [u, v] = middle(node), along = (u - x) * dx + (v - y) * dy, aside = Math.abs((u - x) * dy) + Math.abs((v - y) * dx);
      if (along > 1 && along + 2 * aside < best) { best = along + 2 * aside; to = node; }
    }
    if (!to) return;
    nodes[from].setAttribute('tabindex', '-1');
    to.setAttribute('tabindex', '0');
    to.focus({preventScroll: true});
    reveal(scroll, to, false);
  }

  // The way from all states to what is shown.
  function lead(run, {trail, level}, state) {
    crumbs.hidden = !trail.length;
    if (crumbs.hidden) return;
    const button = (text, title, onclick, current) => el('button', {type: 'button', class: 'ds-link-button', title, text, onclick, 'aria-current': current ? 'page' : null});
    const items = trail.map(({name, note, states, path}, k) => button(k ? cut(k > 1 && note ? note : [name || 'the whole', note].filter(Boolean).join(', '), 60) : `All ${states.toLocaleString('en')} states`, `${states.toLocaleString('en')} states`, () => go({group: path.join('.'), state: null}), level !== 'around' && k === trail.length - 1));
    if (level === 'around') items.push(button(`state ${state === run.head.end ? 'end' : state}`, 'What leads to this state, and from it', () => go({state}), true));
    const reach = el('select', {class: 'ds-select', 'aria-label': 'Moves around the state', onchange: event => { farthest = +event.target.value; go({redraw: true}); }}, ...[1, 2, 3].map(n => el('option', {value: n, text: `up to ${n} move${n > 1 ? 's' : ''} away`})));
    reach.value = farthest;
    reach.hidden = level !== 'around';
    crumbs.replaceChildren(...items.flatMap((item, k) => k ? [el('span', {'aria-hidden': 'true', text: '›'}), item] : [item]), el('span', {class: 'ds-grow'}), reach, button('The draw’s state', 'What lies around the state of the draw at this boundary', () => { const here = last.run.at('path', last.step, last.position); if (here >= 0) go({state: here}); }));
  }

  // A step

  const mark = (element, name) => { if (element) { element.classList.add(name); marked.push([element, name]); } };
  const edge = (from, to) => { const {boxes, map} = shown.part, a = boxes[map[from]], b = boxes[map[to]]; return a && b && (edges.get(`e${a.id}_${b.id}`) ?? edges.get(`e${b.id}_${a.id}`)); };

  // How many states of each box are live at a boundary, and the posterior of those that the step lists.
  function sum(detail, boundary) {
    const {map} = shown.part;
    counts.fill(0);
    mass.fill(0);
    detail.eachLive(boundary, q => { if (map[q] >= 0) counts[map[q]]++; });
    for (const [q, p] of detail.statesAt(boundary)) if (map[q] >= 0) mass[map[q]] += p;
  }

  function update(view, again) {
    const {run, step, position, detail, state} = last = view;
    const path = run.row('path', step), here = path[position], next = path[position + 1];
    if (shown?.key !== keyOf(run, view) || shown.run !== run) want(run, view, again);
    write(run, here);
    if (view.rested) uncover();
    if (!shown?.part || shown.run !== run) return;
    if (view.changed && inserted && Math.abs(scroll.clientWidth - room) > 40) insert(inserted, shown.part);
    const {boxes, map} = shown.part;
    for (const [element, name] of marked) element.classList.remove(name);
    marked = [];
    for (let b = 0; b < run.length; b++) if (path[b] >= 0 && path[b + 1] >= 0) mark(edge(path[b], path[b + 1]), 'path');
    if (detail) {
      sum(detail, position);
      boxes.forEach((box, k) => {
        if (!nodes[k]) return;
        if (counts[k]) mark(nodes[k], 'live');
        nodes[k].style.setProperty('--gamma', mass[k].toFixed(4));
        if (box.path) say(nodes[k], `${counts[k].toLocaleString('en')} live · ${probability(mass[k])}`);
      });
    }
    mark(nodes[map[here]], 'here');
    mark(nodes[map[next]], 'next');
    if (here >= 0 && next >= 0) mark(edge(here, next), 'taken');
    if (state !== null) mark(nodes[map[state]], 'chosen');
    note.textContent = words(view);
    const centre = nodes[map[state ?? (here >= 0 ? here : run.head.start)]];
    if (kept && (view.rested || fresh)) showUses(kept);
    if ((view.rested || fresh) && centre) { reveal(scroll, centre, fresh); fresh = false; }
  }

  function say(node, text) {
    const line = node.querySelector(':scope > text:last-of-type');
    if (line && line.textContent !== text) line.textContent = text;
  }

  function words({run, position, detail, state}) {
    const {level, boxes, map, trail} = shown.part, legend = `Filled by posterior at boundary ${position}; dashed ring: the draw at boundary ${position + 1}; heavy line: the token at position ${position}.`;
    const inside = trail.at(-1)?.states.toLocaleString('en');
    const what = {whole: '', groups: `${boxes.filter(({kind}) => kind === 'group').length} groups of ${inside} states; at an edge the moves of token classes that it stands for, there ⇄ back. `, chains: `${inside} state${inside === '1' ? '' : 's'}, literals as one. `, around: `${boxes.length} of ${run.states.toLocaleString('en')} states: what leads to ${state === run.head.end ? 'the end' : `state ${state}`}, and from it. `}[level];
    if (!detail || level === 'whole') return what + legend;
    let listed = 0, drawn = 0;
    for (const [q, p] of detail.statesAt(position)) { listed += p; if (map[q] >= 0) drawn += p; }
    const elsewhere = listed - drawn > 5e-4 ? ` ${probability(listed - drawn)} of it lies outside of this picture.` : '', unlisted = listed > 0 && 1 - listed > 5e-4 ? ` ${probability(1 - listed)} of it is in states too improbable to be recorded.` : '';
    return what + legend + elsewhere + unlisted;
  }

  // The source in the segments that origins cut it into, those marked that can be written next at the draw's state.
  function write(run, here) {
    if (written !== run.id) {
      written = run.id;
      source.hidden = run.config.kind === null;
      segments = cutUp(run);
      source.replaceChildren(...segments.map(({node}) => node));
      source.dataset.tip = 'A click on a place keeps lit what comes from it';
      kept = null;
    }
    const key = `${run.id} ${here}`;
    if (key === marks) return;
    marks = key;
    const spans = originsOf(run, here);
    for (const segment of segments) segment.node.classList.toggle('on', covered(segment, spans));
  }
  // In a long source what can be written next comes into view; only its frame scrolls.
  function uncover() {
    const first = source.scrollHeight > source.clientHeight && segments.find(({node}) => node.classList.contains('on'))?.node;
    if (first) source.scrollTop += first.getBoundingClientRect().top - source.getBoundingClientRect().top - 0.4 * source.clientHeight;
  }

  function cutUp(run) {
    const {length} = run.characters, {parts: all} = run.head, cuts = [...new Set([0, length, ...run.head.origins.flat(2), ...all.flatMap(([, start, stop]) => [start, stop])])].filter(at => at <= length).sort((a, b) => a - b);
    const begins = new Map(all.map(([, start], k) => [start, k + 1]));
    return cuts.slice(1).map((end, k) => ({start: cuts[k], end, node: el('span', {'data-k': k, 'data-hue': parts.innermost(run, cuts[k], end) ? parts.hue(parts.innermost(run, cuts[k], end)) : null, 'data-part': begins.get(cuts[k]), text: run.sourceText(cuts[k], end)})}));
  }

  const originsOf = (run, state) => state >= 0 ? run.head.origins[run.origin[state]] : [];
  const covered = ({start, end}, spans) => spans.some(([a, b]) => a <= start && end <= b);

  // Pointing at a box or a token lights its origins; pointing at a place of the source, the boxes and positions that come from it.
  function showSpans(spans) { for (const segment of segments) segment.node.classList.toggle('lit', covered(segment, spans)); }
  function showBox(box) {
    if (!box || !last) return showSpans([]);
    const k = shown.part.boxes.indexOf(box);
    showSpans(box.span ? [box.span] : [...origins[k]].flatMap(n => last.run.head.origins[n]));
  }
  function showUses(segment) {
    const {run, step} = last, path = run.row('path', step), from = new Set(run.head.origins.flatMap((spans, n) => segment && covered(segment, spans) ? [n] : []));
    nodes.forEach((node, k) => node?.classList.toggle('lit', [...origins[k] ?? []].some(n => from.has(n))));
    for (const other of segments) other.node.classList.toggle('lit', other === segment);
    light(Array.from({length: run.length}, (_, i) => i).filter(i => path[i] >= 0 && from.has(run.origin[path[i]])), last.side);
  }
  const boxAt = event => shown?.part?.boxes[at(event.target)] ?? null;
  scroll.addEventListener('pointerover', event => showBox(boxAt(event)));
  scroll.addEventListener('pointerleave', () => showBox(null));
  scroll.addEventListener('focusin', event => showBox(boxAt(event)));
  scroll.addEventListener('focusout', () => showBox(null));
  source.addEventListener('pointerover', event => last && showUses(segments[event.target.dataset.k] ?? null));
  source.addEventListener('pointerleave', () => last && showUses(kept));
  // A click keeps what comes from a place lit while the pointer and the focus go elsewhere; another lets go.
  source.addEventListener('click', event => { const segment = segments[event.target.dataset.k] ?? null; kept = kept === segment ? null : segment; if (last) showUses(segment); });
  function point(position, side) { showSpans(position === null || !last || side !== last.side ? [] : originsOf(last.run, last.run.at('path', last.step, position))); }

  // What the card says of a box or an edge. The keyboard comes to an edge from the card of one of its ends, and leaves it by the arrows.
  const spot = node => node && shown?.part && {key: `${shown.key} ${node.id}`, element: node, box: () => node.getBoundingClientRect()};
  card.explain(scroll, {at: ({target}) => spot(target.closest('g.edge[id]:not(#estart), g.node') ?? null), tell: ({element: node, key}) => last && key.startsWith(`${shown?.key} `) ? edges.has(node.id) ? tellEdge(node) : tellBox(shown.part.boxes[nodes.indexOf(node)]) : null,
    pinnable: ({element: node}) => !shown.part.boxes[nodes.indexOf(node)]?.path});
  function tellBox(box) {
    if (!box) return null;
    const {run, step, position, detail} = last, k = shown.part.boxes.indexOf(box), ways = edgesOf(box).map(([edge, text]) => ({text, run: () => visit(edge)}));
    if (box.kind === 'state') { const said = explain.state(run, step, position, stateOf(box)); return {...said, jumps: [said.jumps[0], ...ways.slice(0, 8)]}; }
    if (detail) sum(detail, position);
    return explain.gathered(run, step, position, {title: nameOf(box), span: box.span, live: counts[k], mass: mass[k], origins: [...origins[k]], jumps: [...(box.path ? [{text: 'open it', run: () => go({group: box.path.join('.'), state: null})}] : []), ...ways.slice(0, 8)]});
  }
  const ends = edge => { const {boxes} = shown.part, pair = boxes.flatMap((a, k) => edge.id.startsWith(`e${a.id}_`) ? boxes.flatMap((b, j) => edge.id === `e${a.id}_${b.id}` ? [[k, j]] : []) : []); return pair[0] ?? []; };
  function edgesOf(box) {
    const k = shown.part.boxes.indexOf(box), named = j => shown.part.boxes[j].name;
    return [...edges.values()].flatMap(edge => { const [a, b] = ends(edge); return a === k ? [[edge, b === k ? 'its loop' : `edge to ${cut(named(b), 20)}`]] : b === k ? [[edge, `edge from ${cut(named(a), 20)}`]] : []; });
  }
  function tellEdge(edge) {
    const [a, b] = ends(edge), {boxes, map} = shown.part, read = [...edge.querySelectorAll('text')].map(node => node.textContent.trim()).join(' ');
    if (a === undefined) return null;
    return explain.edge(last.run, last.step, {from: nameOf(boxes[a]), to: nameOf(boxes[b]), read, counted: [a, b].some(k => boxes[k].path), inside: q => map[q] === a, target: q => map[q] === b,
      state: boxes[a].kind === 'state' ? stateOf(boxes[a]) : null, jumps: [a, b].map(k => ({text: cut(nameOf(boxes[k]), 30), run: () => visit(nodes[k])}))});
  }
  function visit(element) {
    element.setAttribute('tabindex', element.getAttribute('tabindex') ?? '-1');
    element.setAttribute('role', 'button');
    if (edges.has(element.id)) element.setAttribute('aria-label', 'edge');
    element.focus({preventScroll: true});
    reveal(scroll, element, false);
  }

  function rows({detail, position}) {
    if (!shown?.part || !detail) return null;
    sum(detail, position);
    const {level, boxes} = shown.part, states = level === 'whole' || level === 'around';
    return {head: states ? ['state', 'part of the source', 'live', 'posterior'] : ['part', 'where', 'number', 'states', 'live', 'posterior'],
      body: boxes.map(({kind, name, note, states: size}, k) => states ? [name === 'end' ? name : +name, parts.words(numbersOf(boxes[k], k)), counts[k] > 0, mass[k]] : [[kind === 'state' ? `state ${name}` : name, note].filter(Boolean).join(', '), kind === 'outside' ? 'beside' : 'inside', parts.words(numbersOf(boxes[k], k)), size, counts[k], mass[k]])};
  }
  return {element, update, rows, point};
}
