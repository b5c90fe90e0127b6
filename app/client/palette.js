// The command palette: a token's text, p:37, s:12, q:5, a part of the source, a breakpoint, an example, a command with its key.

import {el, visible, cut} from './draw.js';
import {KEYS} from './keys.js';
import {partsOf} from './parts.js';

const MOST = 12;

export function create({run, focus, act, go, examples, show, breaks}) {
  const input = el('input', {type: 'text', class: 'ds-input', role: 'combobox', 'aria-expanded': 'true', 'aria-controls': 'ds-palette-list', 'aria-label': 'Find', placeholder: 'Token, p:37, s:12, q:5, command', autocomplete: 'off', spellcheck: 'false'});
  const list = el('ul', {class: 'ds-palette-list', role: 'listbox', id: 'ds-palette-list', 'aria-label': 'Found'});
  const dialog = el('dialog', {class: 'ds-dialog ds-palette', 'aria-label': 'Find'}, input, list);
  let found = [], at = 0;
  dialog.addEventListener('click', event => { if (event.target === dialog) dialog.close(); });
  input.addEventListener('input', search);
  input.addEventListener('keydown', event => {
    const by = {ArrowDown: 1, ArrowUp: -1}[event.key];
    if (by) { event.preventDefault(); at = (at + by + found.length) % Math.max(1, found.length); mark(); }
    if (event.key === 'Enter') { event.preventDefault(); take(at); }
  });

  function search() {
    const text = input.value.trim(), low = text.toLowerCase(), now = run(), all = [];
    const place = /^([psq]):?\s*(\d+)$/.exec(low);
    if (place && now) {
      const n = Number(place[2]), [name, limit, change] = {p: ['Position', now.length - 1, {position: n}], s: ['Step', now.last, {step: n}], q: ['State', now.states - 1, {state: n}]}[place[1]];
      all.push(n <= limit ? {text: `${name} ${n}`, run: () => go(change)} : {text: `There is no ${name.toLowerCase()} ${n}: the last is ${limit}`, off: true});
    }
    for (const [name, , key, what] of KEYS) if (!low || what.toLowerCase().includes(low)) all.push({text: what, key, run: () => act(name)});
    for (const text of breaks.texts()) if (!low || text.toLowerCase().includes(low)) all.push({text: `Stop where ${text}`, key: 'breakpoint', run: () => breaks.next(1, text)});
    // A part of the source by its name or pointer: where the draw of this step writes it.
    if (now && text) now.head.parts.forEach(([name], k) => { if (name.toLowerCase().includes(low)) all.push(written(now, name, k + 1)); });
    for (const card of examples()) if (!low || card.title.toLowerCase().includes(low)) all.push({text: card.title, key: 'example', run: () => show(card.name)});
    if (now && text) {
      const seen = new Set();
      for (let t = 0; t < now.count && seen.size < 40; t++) for (let i = 0; i < now.length; i++) {
        if (!now.at('committed', t, i)) continue;
        const token = now.text(now.drawn(t, i));
        if (token.toLowerCase().includes(low) && !seen.has(i)) { seen.add(i); all.push({text: `${cut(visible(token), 30)} at position ${i}, committed at step ${t}`, key: 'token', run: () => go({step: t, position: i})}); }
      }
    }
    found = all;
    at = 0;
    list.replaceChildren(...all.slice(0, MOST).map((item, k) => el('li', {role: 'option', id: `ds-found-${k}`, class: item.off ? 'off' : '', onclick: () => take(k)}, el('span', {text: item.text}), el('kbd', {text: item.key ?? ''}))),
      ...(all.length ? all.length > MOST ? [el('li', {role: 'presentation', class: 'ds-note', text: `and ${all.length - MOST} more: write on`})] : [] : [el('li', {role: 'presentation', class: 'ds-note', text: 'Nothing by that name. Write p:37 for a position, s:12 for a step, q:5 for a state.'})]));
    found = all.slice(0, MOST);
    mark();
  }

  function written(now, name, number) {
    const {step, position} = focus(), path = now.row('path', Math.min(step, now.last)), places = Array.from({length: now.length}, (_, i) => i).filter(i => partsOf(now, path[i]).includes(number)), next = places.find(i => i > position) ?? places[0];
    const text = `${number} ${cut(visible(name), 40)}`;
    return next === undefined ? {text: `${text}: the draw of this step writes it nowhere`, off: true} : {text, key: `position ${next}`, run: () => go({position: next})};
  }

  function mark() {
    [...list.children].forEach((item, k) => item.getAttribute('role') === 'option' && item.setAttribute('aria-selected', k === at));
    input.setAttribute('aria-activedescendant', found.length ? `ds-found-${at}` : '');
  }
  function take(k) {
    const item = found[k];
    if (!item || item.off) return;
    dialog.close();
    item.run();
  }
  return {dialog, open() { input.value = ''; dialog.showModal(); search(); input.focus(); }};
}
