// Small multiples of what lies around a position: the tokens that either side likes best there, q filled, p hollow.

import {el, probability, visible, cut} from '../draw.js';
import * as explain from '../explain.js';

const REACH = 2, TOKENS = 3;

export function create(go, card, hover, offline) {
  const cells = Array.from({length: 2 * REACH + 1}, (_, k) => {
    const lines = Array.from({length: TOKENS}, () => {
      const name = el('span', {class: 'ds-name'}), q = el('i', {class: 'ds-bar-q'}), p = el('i', {class: 'ds-bar-p'});
      return {row: el('span', {class: 'ds-tiny'}, name, el('span', {class: 'ds-bars'}, q, p)), name, q, p};
    });
    const place = el('span', {class: 'ds-label'}), token = el('code');
    return {button: el('button', {type: 'button', class: `ds-neighbour ${k === REACH ? 'here' : ''}`}, el('span', {class: 'ds-neighbour-head'}, place, token), ...lines.map(({row}) => row)), place, token, lines};
  });
  const element = el('div', {class: 'ds-neighbours', role: 'group', 'aria-label': 'Positions around it'}, ...cells.map(({button}) => button));
  let at = 0, shown = null;
  card.explain(element, {at: event => { const i = positionOf(event), button = event.target.closest('button'); return i === null ? null : {key: `${i}`, i, element: button, box: () => button.getBoundingClientRect()}; }, tell: ({i}) => shown && i >= 0 && i < shown.run.length ? explain.position(shown.run, shown.step, i, {offline}) : null});
  const positionOf = event => { const k = cells.findIndex(({button}) => button.contains(event.target)); return k < 0 ? null : at + k - REACH; };
  element.addEventListener('click', event => { const i = positionOf(event); if (i !== null) go(event.shiftKey ? {beside: i} : {position: i}); });
  element.addEventListener('pointerover', event => { const position = positionOf(event); hover(position === null ? null : {position}); });
  element.addEventListener('pointerleave', () => hover(null));

  function update({run, step, detail}, i) {
    at = i;
    shown = {run, step};
    element.hidden = run.length === 1;
    cells.forEach(({button, place, token, lines}, k) => {
      const j = i + k - REACH;
      button.style.visibility = j >= 0 && j < run.length ? '' : 'hidden';
      if (button.style.visibility) return;
      const state = run.masked(step, j) ? run.at('committed', step, j) ? 'now' : 'masked' : 'fixed', text = visible(run.text(run.drawn(step, j)));
      place.textContent = j;
      token.textContent = cut(text, 7) || '∅';
      button.dataset.state = state;
      button.setAttribute('aria-current', j === i);
      if (!detail) return;
      const best = detail.tops(j).sort((a, b) => b.q - a.q || b.p - a.p), likes = best.reduce((a, b) => b.p > a.p ? b : a, best[0]), shown = best.slice(0, TOKENS);
      if (likes && !shown.includes(likes)) shown[shown.length - 1] = likes;   // what the model likes best is always there
      lines.forEach((line, n) => {
        const one = shown[n];
        line.row.style.visibility = one ? '' : 'hidden';
        if (!one) return;
        line.row.classList.toggle('forbidden', !(one.q > 0));
        line.name.textContent = cut(visible(run.text(one.id)), 5) || '∅';
        line.q.style.width = `${100 * one.q}%`;
        line.p.style.width = `${100 * one.p}%`;
      });
      button.setAttribute('aria-label', `position ${j}, ${text}: ${shown.map(({id, q, p}) => `${visible(run.text(id))} q ${probability(q)}, p ${probability(p)}`).join('; ')}`);
    });
  }
  return {element, update};
}
