// Both runs again with other seeds: what came of each as a strip, and the share that was accepted with its interval.

import {el, number} from '../draw.js';

const SEEDS = 20;

export function create(server) {
  const ask = el('button', {type: 'button', class: 'ds-button', text: `Run ${SEEDS} seeds of both`, title: 'The same seeds for both, in the background; the runs shown stay', onclick: start});
  const note = el('span', {class: 'ds-note', text: '1 seed is shown: one run says little'}), rows = el('div', {class: 'ds-seeds', hidden: true}), element = el('div', {}, el('div', {class: 'ds-inline'}, ask, note), rows);
  const known = new Map();
  let pair = null, busy = null;

  async function start() {
    if (busy) { busy = null; return; }
    const mine = busy = pair;
    ask.textContent = 'Stop';
    for (let count = 1; count <= SEEDS && busy === mine; count++) {
      for (const run of mine) {
        if (busy !== mine || (known.get(run.id)?.outcomes.length ?? 0) >= count) continue;
        const answer = await server.get_seeds({run: run.id, count});
        if (answer.error) { note.textContent = answer.problem ?? 'This run is no longer held by the server.'; busy = null; break; }
        known.set(run.id, answer);
        if (pair === mine) write();
      }
    }
    busy = null;
    ask.textContent = `Run ${SEEDS} seeds of both`;
  }

  function write() {
    const found = pair.map(run => known.get(run.id));
    rows.hidden = !found.some(Boolean);
    note.textContent = found.some(Boolean) ? `${Math.max(...found.map(one => one?.outcomes.length ?? 0))} of ${SEEDS} seeds` : '1 seed is shown: one run says little';
    rows.replaceChildren(...found.map((one, k) => one ? row('AB'[k], one) : ''));
  }

  function row(name, {outcomes, share}) {
    const squares = outcomes.map(({seed, accepted, text}) => el('span', {class: 'ds-seed', 'data-accepted': accepted ? 'yes' : 'no', title: `seed ${seed}: ${accepted ? 'accepted' : 'not accepted'} ${text}`, text: accepted ? '' : '✕'}));
    const said = `${share.successes} of ${share.trials} accepted, 95 %: ${number(share.low)} to ${number(share.high)}`;
    return el('div', {class: 'ds-seed-row'}, el('span', {class: `ds-badge ${name === 'B' ? 'b' : ''}`, text: name}), el('div', {class: 'ds-seed-strip', role: 'img', 'aria-label': `${name}: ${said}`}, ...squares), el('p', {class: 'ds-note', text: said}));
  }

  function update(a, b) {
    if (pair && pair[0] === a && pair[1] === b) return;
    pair = [a, b];
    busy = null;
    write();
  }
  return {element, update};
}
