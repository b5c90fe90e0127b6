// The conditional distribution of one midpoint given the two ends of its span, the drawn state marked.

import {el, number, probability} from '../draw.js';
import {spanOf} from '../run.js';

export function create() {
  const where = el('div', {class: 'ds-where'}), rows = el('div', {class: 'ds-rows'});
  const element = el('div', {class: 'ds-midpoint'}, where, rows);

  function update({run, step, node, detail, position}) {
    const m = node ?? Math.min(Math.max(position, 1), run.length), state = b => run.at('path', step, b), name = q => q === run.head.end ? 'end' : `${q}`;
    if (Number.isNaN(run.at('midpoint_entropy', step, m))) {
      where.replaceChildren(el('span', {class: 'ds-note', text: 'No midpoints were drawn.'}));
      rows.replaceChildren();
      return;
    }
    const {start, stop} = spanOf(m, run.length);
    where.replaceChildren(el('span', {class: 'ds-label', text: m === run.length ? `boundary ${m}, the end` : `boundary ${m} of span ${start}–${stop}`}),
      el('span', {class: 'ds-note', text: m === run.length ? `given state ${name(state(0))} at 0` : `given ${name(state(start))} at ${start} and ${name(state(stop))} at ${stop}`}),
      el('span', {class: 'ds-note', text: `entropy ${number(run.at('midpoint_entropy', step, m))} nats`}));
    if (!detail) return;
    let sum = 0;
    const lines = detail.midpoint(m).filter(([, p]) => p > 0).map(([q, p]) => {
      sum += p;
      const bar = el('i', {class: 'ds-bar'});
      bar.style.width = `${100 * p}%`;
      return el('div', {class: `ds-row state ${q === state(m) ? 'drawn' : ''}`}, el('span', {class: 'ds-name', text: `state ${name(q)}`}), el('span', {class: 'ds-dumbbell'}, bar), el('span', {class: 'ds-n q', text: probability(p)}));
    });
    if (sum < 1 - 1e-5) lines.push(el('div', {class: 'ds-row state rest'}, el('span', {class: 'ds-name', text: 'other states'}), el('span', {class: 'ds-dumbbell'}), el('span', {class: 'ds-n q', text: probability(1 - sum)})));
    rows.replaceChildren(...lines);
  }
  function tabled({run, step, node, position, detail}) {
    const m = node ?? Math.min(Math.max(position, 1), run.length);
    return detail && {head: ['state', 'probability', 'drawn'], body: detail.midpoint(m).filter(([, p]) => p > 0).map(([q, p]) => [q, p, q === run.at('path', step, m)])};
  }
  return {element, update, rows: tabled};
}
