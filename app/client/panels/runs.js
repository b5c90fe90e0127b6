// The runs of this session as a tree: a fork hangs under its parent, with the step and what it changed.

import {el} from '../draw.js';

export function create(trigger, go) {
  const tree = el('ul', {class: 'ds-runs', 'aria-label': 'Runs of this session'}), more = el('div', {class: 'ds-inline'});
  const element = el('div', {}, tree, more);
  let key = '';

  function row(entry, parent, level, shown) {
    const side = shown.a === entry.id ? 'A' : shown.b === entry.id ? 'B' : '';
    const item = el('button', {type: 'button', 'aria-current': side ? 'true' : null, class: 'ds-run-row', title: 'Show it; with Shift beside the one shown', onclick: event => trigger('choose', event.shiftKey ? {a: shown.a, b: entry.id} : parent ? {a: parent, b: entry.id} : {a: entry.id, b: null})},
      el('span', {class: `ds-badge ${side ? '' : 'off'}`, text: side || '·'}), el('span', {class: 'ds-run-title', text: entry.parent ? `${entry.number} · step ${entry.step}: ${entry.what}` : entry.title}));
    return el('li', {style: `padding-left: ${14 * (level - 1)}px`}, item);
  }

  function update(value, shown, gallery) {
    const now = JSON.stringify([value.runs, shown]);
    if (now === key) return;
    key = now;
    const known = new Map([...gallery.flatMap(({title, runs}) => runs.map(id => [id, {id, title, example: true}])), ...value.runs.map(entry => [entry.id, entry])]);
    const children = new Map();
    for (const entry of value.runs) {
      const parent = known.has(entry.parent) ? entry.parent : null;
      if (!children.has(parent)) children.set(parent, []);
      children.get(parent).push(entry);
    }
    const rows = [], focused = [...tree.children].findIndex(item => item.contains(document.activeElement));
    const walk = (entry, parent, level) => { rows.push(row(entry, parent, level, shown)); for (const child of children.get(entry.id) ?? []) walk(child, entry.id, level + 1); };
    for (const [parent] of children) if (parent && known.get(parent).example) walk(known.get(parent), null, 1);
    for (const entry of children.get(null) ?? []) walk(entry, null, 1);
    tree.replaceChildren(...rows);
    if (focused >= 0) tree.children[focused]?.querySelector('button').focus();   // the keyboard stays where it was
    element.classList.toggle('empty', !rows.length);
    more.replaceChildren(...(rows.length ? [] : [el('p', {class: 'ds-note', text: 'Runs and forks of this session appear here. Press e, or right-click a position, to change something from a step on.'})]));
  }
  return {element, update};
}
