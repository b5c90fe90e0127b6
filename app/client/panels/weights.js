// The trellis of a small run in full: every arrow with its weight, every state with its messages, and what they sum to.

import {el, number} from '../draw.js';
import * as explain from '../explain.js';
import {UNANSWERED} from '../ask.js';

const NS = 'http://www.w3.org/2000/svg', ROW = 78, TOP = 26, RADIUS = 17;
const MODES = [['posterior', 'γ posterior', 'posterior'], ['forward', 'α forward', 'forward message: probability that free draws lead here'], ['backward', 'β backward', 'backward message: probability that free draws lead from here to acceptance'], ['both', 'α × β', 'both messages: their product is the probability of all accepted texts that pass here']];
export const small = run => run.length <= 16 && run.states <= 10 && run.steps <= 32;

function svg(tag, attributes, ...children) {
  const node = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null && value !== undefined) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

export function create(go, card, server) {
  const choose = el('span', {class: 'ds-modes', role: 'group', 'aria-label': 'What stands in the states'}), plot = el('div', {class: 'ds-weights-plot', tabindex: 0, role: 'group', 'aria-label': 'Trellis with weights'}), said = el('p', {class: 'ds-note', role: 'status'});
  const element = el('div', {}, choose, plot, said), known = new Map();
  let mode = 'posterior', now = null, shown = null, drawn = '', marks = new Map();
  const mark = node => node && marks.has(node) ? {key: JSON.stringify(marks.get(node)), ...marks.get(node), element: node, box: () => node.getBoundingClientRect()} : null;
  card.explain(plot, {at: ({target}) => mark(target.closest('[role=button]')), tell: what => !shown || !marks.has(what.element) ? null : 'edge' in what ? explain.arrow(shown.run, shown.answer, what.position, what.edge) : explain.messages(shown.run, shown.answer, what.boundary, what.state)});
  choose.append(...MODES.map(([name, text, what]) => el('button', {type: 'button', class: 'ds-phase', 'data-mode': name, 'aria-pressed': String(name === mode), title: what, text, onclick: () => { mode = name; for (const b of choose.children) b.setAttribute('aria-pressed', String(b.dataset.mode === mode)); sweep.hidden = mode !== 'forward' && mode !== 'backward'; draw(); }})));
  const sweep = el('label', {class: 'ds-sweep', hidden: true}), range = el('input', {type: 'range', min: 0}), swept = el('output');
  sweep.append('Sweep', range, swept);
  range.addEventListener('input', () => draw());
  element.insertBefore(sweep, plot);

  async function update(view) {
    now = view;
    element.hidden = !small(view.run) || !server.get_messages;
    if (element.hidden || !element.clientWidth && !element.offsetParent) return;
    // A run's steps come in one answer, and again when it has more of them: moving through them asks nothing.
    const key = `${view.run.id} ${view.run.count}`;
    if (!known.has(key)) {
      if (known.size > 32) known.clear();
      known.set(key, view.run.messages ?? server.get_messages({run: view.run.id}));
      if (!shown || shown.run !== view.run) { plot.replaceChildren(); said.textContent = 'The numbers of this step are on their way.'; }
    }
    const {edges, steps, error} = await known.get(key);
    if (error === UNANSWERED) known.delete(key);
    if (now.run !== view.run || now.step !== view.step) return;
    const answer = error ? {error} : {edges, ...steps[view.step]};
    if (answer.error) { shown = null; plot.replaceChildren(); said.textContent = answer.error === 'too large' ? 'This run is too large to show every arrow.' : 'The server did not answer; move once more to ask again.'; return; }
    const seen = [key, view.step, element.clientWidth].join();
    if (seen === drawn && !view.changed) return;
    drawn = seen;
    shown = {run: view.run, answer};
    draw();
  }

  const name = q => q === shown.run.head.end ? 'end' : `${q}`;
  const list = states => states.length === 1 ? `state ${name(states[0])}` : `state ${states.slice(0, -1).map(name).join(', ')} or ${name(states.at(-1))}`;

  function draw() {
    if (!shown) return;
    const {run, answer} = shown, {length} = run, {forward, backward, posterior} = answer, dead = !(backward[0][run.head.start] > 0);
    // What a front that misses the other has of its own is drawn too, to show where it ends; else only what the start reaches.
    const seen = (b, q) => forward[b][q] > 0 || dead && backward[b][q] > 0, live = (b, q) => forward[b][q] > 0 && backward[b][q] > 0;
    const order = Array.from(run.order).filter(q => forward.some((_, b) => seen(b, q))), row = new Map(order.map((q, r) => [q, r]));
    const gap = Math.min(320, Math.max(length > 8 ? 84 : 98, (Math.max(element.clientWidth, 280) - 112) / length)), width = 112 + gap * length, height = TOP + ROW * order.length + 30;
    const x = b => 56 + gap * b, y = q => TOP + ROW * (row.get(q) + 0.5), side = (b, q) => live(b, q) ? 'live' : !dead ? '' : forward[b][q] > 0 ? 'ahead' : 'behind';
    marks = new Map();
    const graph = svg('svg', {viewBox: `0 0 ${width} ${height}`, role: 'group', 'aria-label': 'Trellis'}), labels = [];
    measureSweep(length);
    answer.edges.forEach(([from, to, tokens, count], e) => {
      for (let i = 0; i < length; i++) {
        const weight = answer.weight[i][e];
        if (!weight || !(forward[i][from] > 0 || dead && backward[i + 1][to] > 0)) continue;
        const on = live(i, from) && live(i + 1, to), flow = on ? forward[i][from] * weight * backward[i + 1][to] / backward[0][run.head.start] : 0;
        const kind = on ? 'live' : !dead ? '' : forward[i][from] > 0 ? 'ahead' : 'behind', line = {d: `M${x(i) + RADIUS} ${y(from)}L${x(i + 1) - RADIUS - 5} ${y(to)}`};
        const arrow = svg('path', {...line, class: `ds-arrow ${kind}`, 'stroke-width': on ? (1 + 5 * flow).toFixed(2) : 1, 'marker-end': `url(#ds-head-${kind || 'off'})`});
        graph.append(arrow, button({edge: e, position: i}, svg('path', {...line, class: 'ds-arrow-hit'}), `position ${i}, state ${name(from)} to ${name(to)}: ${tokens}, weight ${number(weight)}`, () => { go({position: i}); fed(i, e); }));
        labels.push(...weightLabel({x0: x(i) + RADIUS, x1: x(i + 1) - RADIUS - 5, y0: y(from), y1: y(to), steep: Math.abs(row.get(from) - row.get(to)) > 1, words: gap < 130 ? '' : `${count === 1 ? `“${tokens}”` : tokens} `, weight, on: kind !== ''}));
      }
    });
    graph.prepend(svg('defs', {}, ...['live', 'off', 'ahead', 'behind'].map(kind => svg('marker', {id: `ds-head-${kind}`, viewBox: '0 0 8 8', refX: 2, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: 'userSpaceOnUse', orient: 'auto'}, svg('path', {d: 'M0 0L8 4L0 8z', class: `ds-head ${kind}`})))));
    graph.append(...labels);
    for (let b = 0; b <= length; b++) {
      graph.append(svg('text', {x: x(b), y: 14, class: 'ds-axis', 'text-anchor': 'middle'}, gap < 90 ? `${b}` : `boundary ${b}`));
      for (const q of order.filter(q => seen(b, q))) {
        const node = svg('g', {class: `ds-state ${side(b, q)}`}, svg('circle', {cx: x(b), cy: y(q), r: RADIUS, style: `--gamma: ${posterior[b][q]}`}), ...run.accepting[q] ? [svg('circle', {cx: x(b), cy: y(q), r: RADIUS - 3.5, class: 'inner'})] : [], svg('text', {x: x(b), y: y(q) + 4.5, 'text-anchor': 'middle'}, name(q)), svg('text', {x: x(b), y: y(q) + RADIUS + 13, class: `ds-message-value ${mode}`, 'text-anchor': 'middle'}, value(b, q)));
        graph.append(button({boundary: b, state: q}, node, `boundary ${b}, state ${name(q)}`, () => summed(b, q)));
      }
      const sum = order.reduce((total, q) => total + forward[b][q] * backward[b][q], 0);
      graph.append(svg('text', {x: x(b), y: height - 8, class: 'ds-sum', 'text-anchor': 'middle', 'data-sum': sum}, `${gap < 90 ? 'Σ' : 'Σ αβ ='} ${number(sum)}`));
    }
    if (dead) graph.append(...missing(x, y));
    graph.style.width = `${width}px`;
    plot.replaceChildren(graph);
    if (dead) said.textContent = apart();
    else if (mode === 'forward' || mode === 'backward') said.textContent = `${mode === 'forward' ? 'α, from the left: each state adds up the arrows into it' : 'β, from the right: each state adds up the arrows out of it'}, each times the message at its other end. Choose a state to see its sum.`;
    else fed(0, answer.edges.findIndex(([from], e) => from === run.head.start && answer.weight[0][e] > 0));
  }

  function button(what, node, label, act) {
    marks.set(node, what);
    for (const [key, to] of Object.entries({tabindex: 0, role: 'button', 'aria-label': label})) node.setAttribute(key, to);
    node.addEventListener('click', act);
    node.addEventListener('keydown', event => { if (event.key === 'Enter') { event.preventDefault(); event.stopPropagation(); act(); } });
    return node;
  }

  // Where two arrows cross, their labels keep apart: a steep arrow has its own nearer to the source.
  function weightLabel({x0, x1, y0, y1, steep, words, weight, on}) {
    const at = steep ? 0.36 : 0.5, lx = x0 + (x1 - x0) * at, ly = y0 + (y1 - y0) * at, room = 7.6 * (words.length + number(weight).length) + 6;
    return [svg('rect', {x: lx - room / 2, y: ly - 9, width: room, height: 18, class: 'ds-weight-ground'}), svg('text', {x: lx, y: ly + 4, class: `ds-weight ${on ? '' : 'off'}`, 'text-anchor': 'middle'}, svg('tspan', {class: 'ds-weight-tokens'}, words), svg('tspan', {}, number(weight)))];
  }

  // How far a message has come, at first all the way; what it has not reached yet is left open.
  function measureSweep(length) {
    if (Number(range.max) !== length) { range.max = length; range.value = length; }
    const far = Number(range.value), to = mode === 'forward' ? far : length - far;
    swept.textContent = `to boundary ${to}`;
    range.setAttribute('aria-valuetext', swept.textContent);
  }
  const swept_ = b => mode === 'forward' ? b <= Number(range.value) : mode !== 'backward' || b >= Number(range.max) - Number(range.value);

  function value(b, q) {
    if (!swept_(b)) return '·';
    const {forward, backward} = shown.answer;
    return mode === 'both' ? `${number(forward[b][q])}×${number(backward[b][q])}` : number(shown.answer[mode][b][q]);
  }

  // Both fronts where they miss: how far the one comes, how far back the other goes, and what lies between.
  function fronts(y = () => 0) {
    const states = row => row.flatMap((v, q) => v > 0 ? [q] : []), {forward, backward} = shown.answer;
    return explain.missed(shown.run.length, b => states(forward[b]), b => states(backward[b]), y);
  }
  function missing(x, y) {
    const {reached, needed, behind, at, from, to} = fronts(y);
    if (!behind.length) return [];
    const [x0, y0, x1, y1] = [x(reached), y(from), x(at), y(to)], shift = reached === at ? RADIUS + 8 : 0;
    const line = shift ? `M${x0 + RADIUS} ${y0}h8V${y1}h-8` : `M${x0 + RADIUS} ${y0}L${x1 - RADIUS} ${y1}`;
    const label = svg('text', {x: (x0 + x1) / 2 + shift + (shift ? 6 : 0), y: (y0 + y1) / 2 + 4, class: 'ds-gap-label', 'text-anchor': shift ? 'start' : 'middle'}, 'gap');
    return [svg('path', {d: line, class: 'ds-gap', 'data-reached': reached, 'data-needed': needed}), label];
  }
  function apart() {
    const {reached, needed, ahead, behind, at} = fronts();
    const left = `Z is 0. From the left, draws come as far as boundary ${reached}, in ${list(ahead)}.`;
    return behind.length ? `${left} From the right, acceptance reaches back to boundary ${needed}; at boundary ${at} it would need ${list(behind)}. No state has both.` : `${left} Nothing leads from any state to acceptance.`;
  }

  // What an arrow's weight is summed from.
  function fed(i, e) {
    const [from, to] = shown.answer.edges[e];
    said.textContent = `Arrow ${name(from)} → ${name(to)} at position ${i}: ${explain.fed(shown.answer, i, e)}. Choose another arrow or a state to see its own.`;
  }

  // The arithmetic behind a state's number.
  function summed(b, q) {
    const {alpha, beta, gamma} = explain.arithmetic(shown.run, shown.answer, b, q);
    said.textContent = `State ${name(q)} at boundary ${b}: ${{forward: [alpha], backward: [beta], both: [alpha, beta], posterior: [gamma]}[mode].filter(Boolean).join('; ') || 'Z is 0, so that there is no posterior'}.`;
  }

  function rows({run}) {
    if (shown?.run !== run) return null;
    const {answer} = shown;
    const body = [];
    for (let b = 0; b <= run.length; b++) for (let q = 0; q < run.states; q++) if (answer.forward[b][q] > 0 || answer.backward[b][q] > 0) body.push([b, name(q), answer.forward[b][q], answer.backward[b][q], answer.posterior[b][q]]);
    return {head: ['boundary', 'state', 'forward', 'backward', 'posterior'], body};
  }
  return {element, update, rows};
}
