// Is the step's sampler exact? Many draws by it against the exact marginals: each cell's frequency, in its band or not.

import {el, prepare, probability, visible, cut, alpha} from '../draw.js';
import {unpack} from '../run.js';

export function create(go, server) {
  const ask = el('button', {type: 'button', class: 'ds-button', text: 'Draw many times', onclick: measure}), note = el('span', {class: 'ds-note'});
  const verdict = el('p', {class: 'ds-verdict-line', role: 'status'}), largest = el('p', {class: 'ds-note'}), plot = el('canvas', {role: 'img'});
  const legend = el('p', {class: 'ds-note', text: 'across: exact probability; up: share of the draws; stripe: band of an exact sampler'});
  const result = el('div', {hidden: true}, verdict, largest, plot, legend), element = el('div', {}, el('div', {class: 'ds-inline'}, ask, note), result);
  const known = new Map();
  let now = null, written = '', busy = false;

  const keyOf = ({run, step}) => `${run.id} ${step}`;

  async function measure() {
    const {run, step} = now, key = keyOf(now);
    busy = true;
    update(now);
    const answer = await server.get_exactness({run: run.id, step});
    if (!answer.error) { run.learn(answer); answer.cells = Object.fromEntries(Object.entries(await unpack(answer)).map(([name, {data}]) => [name, data])); }
    known.set(key, answer);
    busy = false;
    written = '';
    update(now);
  }

  function update(view) {
    now = view;
    const {run, step} = view, kept = run.at('recorded', step) === 1, answer = known.get(keyOf(view));
    ask.disabled = busy || !kept;
    const failed = answer?.error && (answer.problem ? `${answer.problem} ${answer.remedy}` : 'This run is no longer held by the server.');
    const said = !kept ? 'The mean field of this step was not kept, so it cannot be drawn again. Recorded examples leave it out and long runs have no room for it: press Run, with a shorter canvas if need be.' : busy ? 'drawing…' : failed || (answer ? '' : `step ${step}, by ${run.config.sampler}`);
    if (note.textContent !== said) note.textContent = said;
    const key = [keyOf(view), Boolean(answer), view.widths.right, view.theme].join();
    if (key === written && !view.changed) return;   // an export draws again what stands
    written = key;
    result.hidden = !answer || Boolean(answer.error);
    if (!result.hidden) write(view, answer);
  }

  function write({run, step, colours, widths}, answer) {
    const {cells, draws, accepted, outside} = answer, count = cells.expected.length, k = answer.largest, many = draws.toLocaleString('en');
    element.dataset.exact = answer.exact;
    const paths = answer.by_paths ? ' A sequence counts once for each of its paths.' : '';
    const refused = draws - accepted, parts = [refused && `the constraint refuses ${refused.toLocaleString('en')} of ${many} draws`, outside && `${outside} of ${count} frequencies leave their band`].filter(Boolean);
    verdict.replaceChildren(el('b', {class: answer.exact ? 'good' : 'bad', text: answer.exact ? '✓ Nothing speaks against it: ' : '✕ Not exact: '}), (answer.exact ? `all ${many} draws are accepted and all ${count} frequencies lie in their bands.` : `${parts.join(', and ')}.`) + paths);
    verdict.dataset.tip = `step ${step}, ${answer.sampler}, temperature ${answer.temperature}; an exact sampler leaves some band with probability at most ${answer.false_alarm}`;
    const at = cells.position[k], text = name(run, cells.token_id[k]);
    largest.replaceChildren(`Largest deviation ${probability(Math.abs(cells.observed[k] - cells.expected[k]))}: `, el('code', {text: cut(text, 20)}), ' at ', el('button', {type: 'button', class: 'ds-link-button', text: `position ${at}`, onclick: () => go({position: at})}),
      `, ${probability(cells.observed[k])} of the draws, exactly ${probability(cells.expected[k])}, band ${probability(cells.low[k])} to ${probability(cells.high[k])}.`);
    plot.setAttribute('aria-label', `${count} frequencies against exact probabilities; ${outside} outside of their bands`);
    dots(answer, colours, Math.max(120, Math.min(widths.right, 320)));
  }

  function dots({cells}, colours, width) {
    const height = 150, left = 28, low = 16, x = v => left + v * (width - left - 8), y = v => height - low - v * (height - low - 8), c = prepare(plot, width, height);
    c.font = `11px ${colours.sans}`;
    c.fillStyle = colours.muted;
    for (const v of [0, 0.5, 1]) {
      c.textAlign = 'right';
      c.fillText(v, left - 5, y(v) + 4);
      c.textAlign = 'center';
      c.fillText(v, x(v), height - 3);
    }
    c.strokeStyle = colours.line;
    c.strokeRect(x(0), y(1), x(1) - x(0), y(0) - y(1));
    c.beginPath();
    c.moveTo(x(0), y(0));
    c.lineTo(x(1), y(1));
    c.stroke();
    const order = Array.from(cells.expected, (_, k) => k), out = k => cells.observed[k] < cells.low[k] || cells.observed[k] > cells.high[k];
    c.fillStyle = alpha(colours.muted, 0.3);
    for (const k of order) c.fillRect(x(cells.expected[k]) - 1, y(cells.high[k]), 2, Math.max(1, y(cells.low[k]) - y(cells.high[k])));
    for (const k of order.sort((a, b) => out(a) - out(b))) {
      c.beginPath();
      c.fillStyle = c.strokeStyle = out(k) ? colours.error : colours.q;
      const a = x(cells.expected[k]), b = y(cells.observed[k]);
      if (out(k)) { c.moveTo(a - 3, b - 3); c.lineTo(a + 3, b + 3); c.moveTo(a - 3, b + 3); c.lineTo(a + 3, b - 3); c.lineWidth = 1.5; c.stroke(); } else { c.arc(a, b, 2, 0, 7); c.fill(); }
    }
  }

  const name = (run, id) => id < 0 ? 'all other tokens' : visible(run.text(id));
  function rows({run, step}) {
    const answer = known.get(`${run.id} ${step}`);
    if (!answer?.cells) return null;
    const {position, token_id: ids, expected, observed, low, high} = answer.cells;
    return {head: ['position', 'token', 'exact', 'drawn', 'low', 'high'], body: Array.from(position, (at, k) => [at, name(run, ids[k]), expected[k], observed[k], low[k], high[k]])};
  }
  // For a lesson, which measures what it shows by itself: whether this step is measured or being measured.
  function ensure() {
    if (busy) return false;
    if (now && !ask.disabled && !known.has(keyOf(now))) measure();
    return true;
  }
  return {element, update, rows, ensure};
}
