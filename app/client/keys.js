// Keys by their place on the keyboard (`code`), so that they work in every layout that has them; one table for handler, sheet and palette.

import {el} from './draw.js';

// [codes, shown, what, group]; a code with Shift in front needs it, one without takes both unless the shifted one is listed too.
export const KEYS = [
  ['back', 'ArrowLeft', '←', 'Step (or phase) back', 'Move'], ['over', 'ArrowRight', '→', 'Step (or phase) on', 'Move'], ['back10', 'Shift+ArrowLeft', '⇧ ←', 'Ten steps back', 'Move'], ['over10', 'Shift+ArrowRight', '⇧ →', 'Ten steps on', 'Move'],
  ['first', 'Home', 'Home', 'First step', 'Move'], ['last', 'End', 'End', 'Last step', 'Move'], ['into', 'ArrowDown', '↓', 'Into the phases of the step', 'Move'], ['out', 'ArrowUp', '↑', 'Out of the phases', 'Move'],
  ['left', 'BracketLeft', '[', 'Position to the left', 'Move'], ['right', 'BracketRight', ']', 'Position to the right', 'Move'], ['play', 'Space', 'Space', 'Play, pause', 'Move'],
  ['second', 'Shift+Enter', '⇧ Enter', 'Keep this position beside the one you go to (also ⇧ click)', 'Move'], ['secondLeft', 'Shift+BracketLeft', '⇧ [', 'The second position to the left', 'Move'], ['secondRight', 'Shift+BracketRight', '⇧ ]', 'The second position to the right', 'Move'], ['single', 'Escape', 'Esc', 'Drop the second position', 'Move'],
  ['commit', 'KeyN', 'n', 'Next commit', 'Go to'], ['commitBack', 'Shift+KeyN', '⇧ n', 'Previous commit', 'Go to'], ['flip', 'KeyD', 'd', 'Next disagreement of p and q: they prefer different tokens', 'Go to'], ['flipBack', 'Shift+KeyD', '⇧ d', 'Previous disagreement', 'Go to'],
  ['rival', 'KeyR', 'r', 'Next step at which Mf and Mar choose differently', 'Go to'], ['rivalBack', 'Shift+KeyR', '⇧ r', 'Previous such step', 'Go to'], ['forced', 'KeyF', 'f', 'Next forced position: a single token is allowed', 'Go to'],
  ['difference', 'KeyV', 'v', 'Next difference between the two runs', 'Go to'], ['differenceBack', 'Shift+KeyV', '⇧ v', 'Previous difference', 'Go to'], ['hopeless', 'KeyH', 'h', 'The step that made acceptance impossible', 'Go to'], ['hit', 'KeyC', 'c', 'Next hit of a breakpoint', 'Go to'], ['hitBack', 'Shift+KeyC', '⇧ c', 'Previous hit', 'Go to'],
  ['pin', 'KeyP', 'p', 'Pin the card of what the keyboard or the pointer is at (also Enter, where it does nothing else)', 'Do'], ['fork', 'KeyE', 'e', 'Change something here and fork', 'Do'], ['resume', 'KeyG', 'g', 'Let a stopped run go on', 'Do'], ['metric', 'KeyM', 'm', 'Next quantity of the map', 'Do'], ['side', 'KeyB', 'b', 'The other run of a comparison', 'Do'],
  ['lessons', 'KeyL', 'l', 'Lessons: open them, leave them', 'Do'], ['lessonOn', 'Period', '.', 'Next lesson', 'Do'], ['lessonBack', 'Comma', ',', 'Previous lesson', 'Do'],
  ['large', 'KeyT', 't', 'Large type, for a projector', 'Do'], ['gallery', 'KeyX', 'x', 'Examples', 'Do'], ['palette', 'Slash', '/', 'Find a token, a position, a step, a command (also Ctrl K)', 'Do'], ['help', 'Shift+Slash', '?', 'This list', 'Do']];

const byCode = new Map(KEYS.map(([name, code]) => [code, name]));

// The command of a key event, or null. `?` and `[` sit elsewhere on some keyboards: there the character counts.
export function commandOf(event) {
  if (event.key === '?') return 'help';
  if (event.key === '[' || event.key === ']') return event.key === '[' ? 'left' : 'right';
  if (event.key === '/') return 'palette';
  return byCode.get(`${event.shiftKey ? 'Shift+' : ''}${event.code}`) ?? null;
}

export function sheet() {
  const groups = [...new Set(KEYS.map(key => key[4]))];
  // It opens at its title: the only button, at its end, would scroll it there.
  const title = el('h3', {text: 'Keys', tabindex: -1, autofocus: true}), close = el('button', {class: 'ds-button', text: 'Close'});
  return el('dialog', {class: 'ds-dialog wide', 'aria-label': 'Keys'}, title,
   
    el('div', {class: 'ds-key-groups'}, ...groups.map(group => el('section', {}, el('h4', {text: group}), el('dl', {class: 'ds-keys'}, ...KEYS.filter(key => key[4] === group).map(([, , keys, what]) => el('div', {}, el('dt', {text: keys}), el('dd', {text: what}))))))),
    el('form', {method: 'dialog'}, close));
}
