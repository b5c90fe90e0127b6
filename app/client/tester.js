// A text held against the constraint while it is typed: how far it is read, marked in the text, in the source and in the automaton at once.

import {el, visible, clamp} from './draw.js';
import {layouter, parse, reveal} from './graph.js';

const PAUSE_MS = 80;
const AROUND = 48;   // characters shown on either side of where it dies

export function create(server, graphvizURL) {
  const box = el('textarea', {class: 'ds-test-text', rows: 1, 'aria-label': 'Test a text', placeholder: 'a text to hold against it', spellcheck: 'false', oninput: () => soon(PAUSE_MS)});
  const verdict = el('p', {class: 'ds-verdict-line', role: 'status'}), row = el('div', {class: 'ds-chars', role: 'group', 'aria-label': 'The text, character by character; arrow keys move'});
  const source = el('code', {class: 'ds-source', tabindex: 0, role: 'region', 'aria-label': 'Source of the constraint'}), scroll = el('div', {class: 'ds-graph', tabindex: 0, role: 'img', 'aria-label': 'Automaton over bytes'}), note = el('p', {class: 'ds-note'});
  const examples = el('div', {class: 'ds-examples'}), result = el('div', {class: 'ds-test-result', hidden: true}, verdict, row, source, scroll, note);
  const element = el('section', {class: 'ds-tester', 'aria-label': 'Text tester', hidden: true}, el('h3', {text: 'Test a text'}), box, result, examples);
  const layout = layouter(graphvizURL);
  let constraint = null, asked = 0, timer = 0, reading = null, chosen = 0, segments = [], nodes = new Map(), edges = new Map();

  function soon(ms) { clearTimeout(timer); timer = setTimeout(ask, ms); }

  async function ask() {
    const number = ++asked;
    if (!constraint || (!box.value && !reading && document.activeElement !== box)) { result.hidden = true; return; }
    const answer = await server.get_reading({...constraint, text: box.value});
    if (number !== asked) return;   // an older text's answer never replaces a newer one's
    reading = answer.error ? null : answer;
    result.hidden = false;
    result.dataset.text = box.value;
    if (!reading) { verdict.className = 'ds-verdict-line'; verdict.textContent = answer.problem; row.replaceChildren(); source.replaceChildren(); scroll.replaceChildren(); return; }
    reading.characters = [...box.value];
    chosen = reading.read;
    write();
    const svg = reading.graph.svg ?? await layout(reading.graph.dot);
    if (number === asked) draw(svg);
  }

  function write() {
    const {accepted, read, message, characters} = reading, dies = !accepted && read < characters.length;
    verdict.className = `ds-verdict-line ${accepted ? 'good' : 'bad'}`;
    verdict.textContent = `${accepted ? '✓' : '✕'} ${message}`;
    const first = Math.max(0, read - AROUND), last = Math.min(characters.length, read + AROUND);
    const chips = characters.slice(first, last).map((text, k) => chip(first + k, visible(text)));
    if (!dies) chips.push(chip(characters.length, '⟂', 'the end'));
    row.replaceChildren(...(first ? ['…'] : []), ...chips.filter(node => first <= +node.dataset.k), ...(last < characters.length ? ['…'] : []));
    cut();
    mark();
  }

  function chip(k, text, name = null) {
    const {read, accepted, characters} = reading, state = k < read ? 'read' : k > read ? 'unread' : k < characters.length ? 'dead' : accepted ? 'end' : 'early';
    return el('button', {type: 'button', class: 'ds-char', 'data-k': k, 'data-state': state, tabindex: -1, text, 'aria-label': `${name ?? `character ${k + 1}, ${text}`}: ${{read: 'read', unread: 'not reached', dead: 'dies here', end: 'accepted', early: 'too early'}[state]}`, onclick: () => choose(k)});
  }

  function choose(k) { chosen = k; mark(); row.querySelector('[aria-current]')?.focus(); }
  row.addEventListener('keydown', event => {
    const known = [...row.querySelectorAll('.ds-char')], at = known.findIndex(node => +node.dataset.k === chosen);
    const to = {ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: known.length - 1}[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    choose(+known[clamp(to, 0, known.length - 1)].dataset.k);
  });

  // The source in segments between all places that the reading names.
  function cut() {
    const text = [...(Array.isArray(constraint.source) ? constraint.source.join('\n') : constraint.source)], spans = [...reading.places.flat(), ...reading.expected_places];
    const cuts = [...new Set([0, text.length, ...spans.flatMap(({start, stop}) => [start, stop])])].filter(at => at <= text.length).sort((a, b) => a - b);
    segments = cuts.slice(1).map((end, k) => ({start: cuts[k], end, node: el('span', {text: text.slice(cuts[k], end).join('')})}));
    source.replaceChildren(...segments.map(({node}) => node));
  }

  // One choice, three places: the character, what it may come from (or what was expected), and the states around it.
  function mark() {
    const {read, states, places, expected_places: wanted} = reading, k = Math.min(chosen, read), spans = k < read ? places[k] : wanted;
    for (const node of row.querySelectorAll('.ds-char')) {
      const here = +node.dataset.k === chosen;
      node.tabIndex = here ? 0 : -1;
      here ? node.setAttribute('aria-current', 'true') : node.removeAttribute('aria-current');
    }
    for (const {start, end, node} of segments) node.classList.toggle('on', spans.some(span => span.start <= start && end <= span.stop));
    const lit = segments.find(({node}) => node.classList.contains('on'))?.node;
    if (lit) source.scrollTop = lit.offsetTop - source.offsetTop - 20;
    for (const node of [...nodes.values(), ...edges.values()]) node.classList.remove('here', 'next', 'taken', 'path', 'live');
    states.slice(0, read + 1).forEach((set, b) => {
      for (const q of set) nodes.get(`q${q}`)?.classList.add('live');
      for (const from of states[b - 1] ?? []) for (const to of set) edges.get(`eq${from}_q${to}`)?.classList.add('path');
    });
    for (const q of states[k]) nodes.get(`q${q}`)?.classList.add('here');
    for (const q of k < read ? states[k + 1] : []) {
      nodes.get(`q${q}`)?.classList.add('next');
      for (const from of states[k]) edges.get(`eq${from}_q${q}`)?.classList.add('taken');
    }
    const many = states[k].length > 1 ? `states ${states[k].slice(0, 6).join(', ')}${states[k].length > 6 ? ' …' : ''}` : `state ${states[k][0]}`;
    note.textContent = k < read ? `Read from ${many}; the source it may come from is marked.` : `In ${many}; what may stand next is marked in the source.`;
    reveal(scroll, nodes.get(`q${states[k][0]}`), true);
  }

  function draw(svg) {
    if (!svg) { scroll.replaceChildren(el('p', {class: 'ds-note', text: 'This graph takes too long to lay out.'})); return; }
    const graph = parse(svg, scroll.clientWidth);
    scroll.replaceChildren(graph);
    nodes = new Map([...graph.querySelectorAll('g.node')].map(g => [g.id, g]));
    edges = new Map([...graph.querySelectorAll('g.edge')].map(g => [g.id, g]));
    mark();
  }

  function update(now, {shortest = [], sampled = []}) {
    const changed = JSON.stringify(now) !== JSON.stringify(constraint);
    constraint = now;
    element.hidden = !now;
    const list = (label, texts) => texts.length ? [el('p', {class: 'ds-note', text: label}), ...texts.map(text => el('button', {type: 'button', class: 'ds-example', text: text === '' ? '(the empty text)' : visible(text), title: 'Test this text', onclick: () => { box.value = text; ask(); }}))] : [];
    examples.replaceChildren(...list('Shortest accepted', shortest), ...list('Accepted at random', sampled));
    if (changed && now && box.value) ask();
    if (!now) { asked++; reading = null; result.hidden = true; }
  }
  return {element, update};
}
