// The chosen state at a boundary in numbers: both messages, what each adds up, and the posterior that they make. Asked for once the focus rests on it.

import {el, number, probability} from '../draw.js';
import {UNANSWERED} from '../ask.js';

const KEPT = 64;

// A mass given by its logarithm, which may lie far below what a number holds.
export function mass(log) {
  if (log === null) return '0';
  const ten = log / Math.LN10;
  if (ten > -5) return number(Math.exp(log));
  const power = Math.floor(ten);
  return `${Math.min(9.99, 10 ** (ten - power)).toFixed(2)}e−${-power}`;
}

export function create(go, server) {
  const title = el('h4'), sums = el('div', {class: 'ds-sums'}), element = el('section', {class: 'ds-cell', hidden: true, 'aria-live': 'polite'}, title, sums), known = new Map();
  let now = null, written = null;

  async function ask(key, {run, step}, boundary, state) {
    if (known.size >= KEPT) known.delete(known.keys().next().value);
    known.set(key, null);
    const answer = await server.get_cell({run: run.id, step, boundary, state});
    if (answer.error === UNANSWERED) known.delete(key); else known.set(key, answer);
    if (now?.key === key) write(answer);
  }

  const name = q => q === now.run.head.end ? 'end' : `${q}`;

  // A message as the sum that it is, a term a line: where it comes from, by which tokens, message × weight.
  function sum(sign, what, log, {count, rows}, way) {
    const lines = rows.map(([q, tokens, weight, message, term]) => el('tr', {}, el('td', {}, el('button', {type: 'button', class: 'ds-link-button', text: name(q), 'aria-label': `state ${name(q)}`, onclick: () => go({state: q, position: Math.max(0, Math.min(now.boundary + way, now.run.length - 1))})})),
      el('td', {class: 'ds-mono', text: tokens}), el('td', {class: 'ds-mono', text: `${mass(message)} × ${mass(weight)}`}), el('td', {class: 'ds-mono', text: `= ${mass(term)}`}), el('td', {class: 'ds-mono', text: log === null ? '' : probability(Math.exp(Math.min(0, term - log)))})));
    const shown = rows.reduce((all, [, , , , term]) => all + Math.exp(term - (log ?? 0)), 0);
    return el('div', {class: 'ds-sum-of'}, el('p', {}, el('b', {text: `${sign} = ${mass(log)}`}), ` ${what}`), ...(rows.length ? [el('table', {class: 'ds-table'}, el('thead', {}, el('tr', {}, ...[way < 0 ? 'from' : 'to', 'tokens', `${sign} there × weight`, '', 'share'].map(text => el('th', {scope: 'col', text})))), el('tbody', {}, ...lines))] : []),
      ...(count > rows.length ? [el('p', {class: 'ds-note', text: `and ${(count - rows.length).toLocaleString('en')} more terms, ${probability(Math.max(0, 1 - shown))} of it`})] : []));
  }

  function write(answer) {
    const {boundary, state, run} = now;
    element.classList.remove('waiting');
    title.textContent = `State ${name(state)} at boundary ${boundary}`;
    if (answer.error) return sums.replaceChildren(el('p', {class: 'ds-note', text: [answer.problem ?? 'The server does not answer, or holds this run no longer.', answer.remedy ?? ''].join(' ')}));
    const {log_forward: a, log_backward: b, log_partition: z, posterior, into, out} = answer;
    const product = z === null ? 'Nothing is accepted: Z is 0, and no state has a posterior.' : `γ = α β / Z = ${mass(a)} × ${mass(b)} / ${mass(z)} = `;
    sums.replaceChildren(el('p', {class: 'ds-mono ds-product'}, product, ...(z === null ? [] : [el('b', {text: probability(posterior)})])),
      el('div', {class: 'ds-two'}, sum('α', boundary ? 'all ways from the start to here' : a === null ? 'the start is another state' : 'the start', a, into, -1), sum('β', boundary < run.length ? 'all ways from here to acceptance' : b === null ? 'it does not accept' : 'it accepts', b, out, 1)));
    element.dataset.posterior = posterior;
  }

  function update({run, step, rested}, boundary, state) {
    element.hidden = state === null || run.config.kind === null;
    if (element.hidden) { now = written = null; return; }
    const key = [run.id, step, boundary, state].join();
    now = {run, step, boundary, state, key};
    const answer = known.get(key);
    if (answer && written !== answer) { written = answer; write(answer); }
    else if (!answer) {
      written = null;
      element.classList.add('waiting');
      if (rested && !known.has(key)) ask(key, now, boundary, state);
    }
  }
  return {element, update};
}
