// The position inspector: the focused position, beside it a second one, and what holds for both.

import {el, visible} from '../draw.js';
import * as column from './position.js';

const SIDE_BY_SIDE = 440;   // px that two positions need beside each other
const GAP = 18;

export function create(go, card, server, hover, offline) {
  const settings = {order: 'q', log: false};
  const logScale = el('input', {type: 'checkbox', id: 'ds-log'}), order = el('select', {class: 'ds-select', 'aria-label': 'Order of the tokens'}, ...Object.entries(column.ORDERS).map(([value, [text]]) => el('option', {value, text})));
  const key = el('div', {class: 'ds-key'}, el('span', {class: 'ds-mark q'}), 'q constrained', el('span', {class: 'ds-mark p'}), 'p model');
  const one = column.create(go, card, server, hover, settings, offline), other = column.create(go, card, server, hover, settings, offline), columns = el('div', {class: 'ds-columns'}, one.element);
  const element = el('div', {class: 'ds-inspector'}, el('div', {class: 'ds-controls'}, key, el('span', {class: 'ds-grow'}), order, el('label', {class: 'ds-check'}, logScale, 'log')), columns);
  const close = el('button', {type: 'button', class: 'ds-icon ds-drop', title: 'Drop the second position (Esc)', 'aria-label': 'Drop the second position', text: '×', onclick: () => go({second: null})});
  other.element.classList.add('second');
  other.element.prepend(close);
  let last = null;
  const again = () => { Object.assign(settings, {order: order.value, log: logScale.checked}); if (last) update(last); };
  for (const control of [logScale, order]) control.addEventListener('change', again);

  function update(view) {
    last = view;
    const {position, second, widths} = view, pair = second !== null, beside = pair && widths.right >= SIDE_BY_SIDE;
    const width = Math.max(80, beside ? Math.floor((widths.right - GAP) / 2) : widths.right);
    columns.classList.toggle('two', beside);
    if (!pair) other.element.remove(); else if (!other.element.isConnected) columns.append(other.element);
    one.update(view, position, width);
    if (pair) other.update(view, second, width);
  }

  function rows({run, position, second, detail}) {
    if (!detail) return null;
    const of = i => detail.tops(i).sort(column.ORDERS.q[1]).map(({id, p, q}) => [i, visible(run.text(id)), id, q, p]);
    return {head: ['position', 'token', 'id', 'q', 'p'], body: [...of(position), ...(second === null ? [] : of(second))]};
  }
  return {element, update, rows};
}
