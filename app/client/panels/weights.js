// The trellis of a small run in full: every arrow with its weight, every state with its messages, and what they sum to.

import {el, number} from '../draw.js';

const NS = 'http://www.w3.org/2000/svg', ROW = 78, TOP = 26, RADIUS = 17;
const MODES = [['posterior', 'γ posterior', 'posterior'], ['forward', 'α forward', 'forward message: probability that free draws lead here'], ['backward', 'β backward', 'backward message: probability that free draws lead from here to acceptance']];
export const small = run => run.length <= 8 && run.states <= 10 && run.steps <= 32;

function svg(tag, attributes, ...children) {
  const node = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null && value !== undefined) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

export function create(go, server) {
  const choose = el('span', {class: 'ds-modes', role: 'group', 'aria-label': 'What stands in the states'}), plot = el('div', {class: 'ds-weights-plot', tabindex: 0, role: 'group', 'aria-label': 'Trellis with weights'}), said = el('p', {class: 'ds-note', role: 'status'});
  const element = el('div', {}, choose, plot, said), known = new Map();
  let mode = 'posterior', now = null, shown = null, drawn = '', picked = null;
  choose.append(...MODES.map(([name, text, what]) => el('button', {type: 'button', class: 'ds-phase', 'data-mode': name, 'aria-pressed': String(name === mode), title: what, text, onclick: () => { mode = name; for (const b of choose.children) b.setAttribute('aria-pressed', String(b.dataset.mode === mode)); draw(); }})));

  async function update(view) {
    now = view;
    element.hidden = !small(view.run) || !server.get_messages;
    if (element.hidden || !element.clientWidth && !element.offsetParent) return;
    // A run's steps come in one answer, and again when it has more of them: moving through them asks nothing.
    const key = `${view.run.id} ${view.run.count}`;
    if (!known.has(key)) {
      if (known.size > 32) known.clear();
      known.set(key, server.get_messages({run: view.run.id}).catch(() => { known.delete(key); return {error: 'failed'}; }));
      if (!shown || shown.run !== view.run) { plot.replaceChildren(); said.textContent = 'The numbers of this step are on their way.'; }
    }
    const {edges, steps, error} = await known.get(key);
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

  function draw() {
    if (!shown) return;
    const {run, answer} = shown, {length} = run, order = Array.from(run.order).filter(q => q !== run.head.end || answer.posterior.some(row => row[q] > 0)), row = new Map(order.map((q, r) => [q, r]));
    const gap = Math.min(320, Math.max(98, (Math.max(element.clientWidth, 280) - 112) / length)), width = 112 + gap * length, height = TOP + ROW * order.length + 30;
    const x = b => 56 + gap * b, y = q => TOP + ROW * (row.get(q) + 0.5), value = answer[mode];
    const graph = svg('svg', {viewBox: `0 0 ${width} ${height}`, role: 'group', 'aria-label': 'Trellis'}), labels = [];
    // What the start reaches, whether or not acceptance can be reached from there.
    const reach = [new Set([run.head.start])], reached = (b, q) => reach[b].has(q);
    for (let i = 0; i < length; i++) reach.push(new Set(answer.edges.filter(([from], e) => reach[i].has(from) && answer.weight[i][e] > 0).map(([, to]) => to)));
    const live = (b, q) => answer.posterior[b][q] > 0;
    answer.edges.forEach(([from, to, tokens, count], e) => {
      for (let i = 0; i < length; i++) {
        const weight = answer.weight[i][e], on = live(i, from) && live(i + 1, to) && weight > 0;
        if (!reached(i, from) || !weight) continue;
        const flow = on ? answer.forward[i][from] * weight * answer.backward[i + 1][to] / answer.backward[0][run.head.start] : 0;
        const x0 = x(i) + RADIUS, x1 = x(i + 1) - RADIUS - 5, line = svg('path', {d: `M${x0} ${y(from)}L${x1} ${y(to)}`, class: `ds-arrow ${on ? 'live' : ''}`, 'stroke-width': on ? (1 + 5 * flow).toFixed(2) : 1, 'marker-end': `url(#ds-head-${on ? 'live' : 'off'})`});
        const about = `position ${i}, state ${name(from)} to ${name(to)}: ${tokens}`;
        const hit = svg('path', {d: `M${x0} ${y(from)}L${x1} ${y(to)}`, class: 'ds-arrow-hit', tabindex: 0, role: 'button', 'aria-label': `${about}, weight ${number(weight)}`});
        const tell = () => { picked = [i, e]; go({position: i}); feed(i, e); };
        hit.addEventListener('click', tell);
        hit.addEventListener('keydown', event => { if (event.key === 'Enter') { event.preventDefault(); event.stopPropagation(); tell(); } });
        graph.append(line, hit);
        // Where two arrows cross, their labels keep apart: a steep arrow has its own nearer to the source.
        const at = Math.abs(row.get(from) - row.get(to)) > 1 ? 0.36 : 0.5, lx = x0 + (x1 - x0) * at, ly = y(from) + (y(to) - y(from)) * at;
        const words = gap < 130 ? '' : `${count === 1 ? `“${tokens}”` : tokens} `, room = 7.6 * (words.length + number(weight).length) + 6;
        labels.push(svg('rect', {x: lx - room / 2, y: ly - 9, width: room, height: 18, class: 'ds-weight-ground'}), svg('text', {x: lx, y: ly + 4, class: `ds-weight ${on ? '' : 'off'}`, 'text-anchor': 'middle'}, svg('tspan', {class: 'ds-weight-tokens'}, words), svg('tspan', {}, number(weight))));
      }
    });
    graph.prepend(svg('defs', {}, ...['live', 'off'].map(kind => svg('marker', {id: `ds-head-${kind}`, viewBox: '0 0 8 8', refX: 2, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: 'userSpaceOnUse', orient: 'auto'}, svg('path', {d: 'M0 0L8 4L0 8z', class: `ds-head ${kind}`})))));
    graph.append(...labels);
    for (let b = 0; b <= length; b++) {
      graph.append(svg('text', {x: x(b), y: 14, class: 'ds-axis', 'text-anchor': 'middle'}, `boundary ${b}`));
      for (const q of order) {
        if (!reached(b, q)) continue;
        const v = value[b][q] ?? 0, gamma = answer.posterior[b][q];
        const node = svg('g', {class: `ds-state ${live(b, q) ? 'live' : ''}`}, svg('circle', {cx: x(b), cy: y(q), r: RADIUS, style: `--gamma: ${gamma}`}), ...run.accepting[q] ? [svg('circle', {cx: x(b), cy: y(q), r: RADIUS - 3.5, class: 'inner'})] : [], svg('text', {x: x(b), y: y(q) + 4.5, 'text-anchor': 'middle'}, name(q)), svg('text', {x: x(b), y: y(q) + RADIUS + 13, class: `ds-message-value ${mode}`, 'text-anchor': 'middle'}, number(v)));
        graph.append(node);
      }
      const sum = order.reduce((total, q) => total + (answer.forward[b][q] ?? 0) * (answer.backward[b][q] ?? 0), 0);
      graph.append(svg('text', {x: x(b), y: height - 8, class: 'ds-sum', 'text-anchor': 'middle', 'data-sum': sum}, `Σ αβ = ${number(sum)}`));
    }
    graph.style.width = `${width}px`;
    plot.replaceChildren(graph);
    feed(...picked && picked[0] < length ? picked : [0, answer.edges.findIndex(([from], e) => from === run.head.start && answer.weight[0][e] > 0)]);
  }

  // What an arrow's weight is summed from.
  function feed(i, e) {
    const {answer} = shown, [from, to, tokens, count] = answer.edges[e], weight = answer.weight[i][e];
    said.textContent = `Arrow ${name(from)} → ${name(to)} at position ${i}: ${count === 1 ? `p(“${tokens}”)` : `the sum of p over ${count} tokens (${tokens})`} = ${number(weight)}. Click another arrow to see its own.`;
  }

  function rows({run}) {
    if (shown?.run !== run) return null;
    const {answer} = shown;
    const body = [];
    for (let b = 0; b <= run.length; b++) for (let q = 0; q < run.states; q++) if (answer.forward[b][q]) body.push([b, name(q), answer.forward[b][q], answer.backward[b][q], answer.posterior[b][q]]);
    return {head: ['boundary', 'state', 'forward', 'backward', 'posterior'], body};
  }
  return {element, update, rows};
}
