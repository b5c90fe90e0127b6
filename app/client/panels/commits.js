// What was committed, in which order, with both confidences, and what the other confidence would have taken.

import {el, number, visible, cut} from '../draw.js';

export function create(go) {
  const body = el('tbody'), other = el('th', {scope: 'col'});
  const element = el('div', {class: 'ds-commits', tabindex: 0}, el('table', {}, el('thead', {}, el('tr', {},
    el('th', {scope: 'col', text: 'step'}), el('th', {scope: 'col', text: 'pos'}), el('th', {scope: 'col', text: 'token'}), el('th', {scope: 'col', text: 'Mar'}), el('th', {scope: 'col', text: 'Mf'}), other)), body));
  let shown = null, groups = [], marked = null;
  body.addEventListener('click', event => {
    const row = event.target.closest('[data-step]');
    if (row) go({step: +row.dataset.step, position: +row.dataset.i});
  });

  function add(run, begin) {
    const rows = [];
    const rival = run.config.confidence === 'mar' ? 'Mf' : 'Mar';
    other.textContent = `${rival} would take`;
    for (let t = begin; t < run.count; t++) {
      const taken = [], instead = [];
      for (let i = 0; i < run.length; i++) {
        if (run.at('committed', t, i)) taken.push(i);
        else if (run.rival(t, i)) instead.push(i);
      }
      const same = taken.filter(i => run.at(run.config.confidence === 'mar' ? 'committed_mf' : 'committed_mar', t, i));
      groups.push([]);
      taken.forEach((i, k) => {
        const row = el('tr', {'data-step': t, 'data-i': i}, el('td', {text: k ? '' : `${t}`}), el('td', {text: `${i}`}),
          el('td', {class: 'ds-mono', text: cut(visible(run.text(run.drawn(t, i))), 16)}), el('td', {class: 'q', text: number(run.at('confidence_mar', t, i))}), el('td', {class: 'p', text: number(run.at('confidence_mf', t, i))}),
          el('td', {text: k ? '' : instead.length ? instead.join(', ') : same.length === taken.length ? '=' : ''}));
        groups[t].push(row);
        rows.push(row);
      });
    }
    body.append(...rows);
  }

  function update({run, step, changed, rested}) {
    if (changed && shown !== run) {
      shown = run;
      groups = [];
      marked = null;
      body.replaceChildren();
    }
    if (changed && groups.length < run.count) add(run, groups.length);
    if (marked !== step) {
      groups[marked]?.forEach(row => row.classList.remove('now'));
      groups[step]?.forEach(row => row.classList.add('now'));
      marked = step;
    }
    const first = rested && groups[step]?.[0];
    if (first) {
      const head = element.querySelector('thead').offsetHeight, y = first.offsetTop;
      if (y < element.scrollTop + head || y + first.offsetHeight > element.scrollTop + element.clientHeight) element.scrollTop = y - element.clientHeight / 2;
    }
  }
  function rows({run}) {
    const body = [];
    for (let t = 0; t < run.count; t++) for (let i = 0; i < run.length; i++) if (run.at('committed', t, i)) body.push([t, i, visible(run.text(run.drawn(t, i))), run.at('confidence_mar', t, i), run.at('confidence_mf', t, i)]);
    return {head: ['step', 'position', 'token', 'Mar', 'Mf'], body};
  }
  return {element, update, rows};
}
