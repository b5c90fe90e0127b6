// What may be moved in a lesson. Each control tells its new value; what a link says is read the same way.

import {el, number} from '../draw.js';

// The value that a link's text means for a control, or what it stands at first.
export function meant(control, text) {
  if (text === null || text === undefined) return control.value;
  if (control.kind === 'slider') return Number.isFinite(Number(text)) && text !== '' ? Math.min(control.high, Math.max(control.low, Number(text))) : control.value;
  if (control.kind === 'choice') return (control.options.find(([value]) => String(value) === text) ?? [control.value])[0];
  return text;
}

// What a link says that is none of a control's settings, in words; nothing where it is one.
export function strange(control, text) {
  const value = meant(control, text);
  if (text === null || text === undefined || String(value) === text || (text !== '' && Number(text) === value)) return '';
  return `The link has “${text.slice(0, 20)}” for “${control.label}”, which is no setting of it; this is “${control.options?.find(([key]) => key === value)?.[1] ?? value}”. `;
}

export function create(control, value, changed) {
  const make = {slider, choice, text, area}[control.kind];
  return make(control, value, changed);
}

function slider({name, label, low, high, step}, value, changed) {
  const shown = el('output', {class: 'ds-control-value', for: `ds-control-${name}`});
  const range = el('input', {type: 'range', id: `ds-control-${name}`, min: low, max: high, step, value});
  const tell = () => { shown.textContent = Number.isInteger(step) ? range.value : number(Number(range.value)); };
  range.addEventListener('input', () => { tell(); changed(Number(range.value)); });
  tell();
  return {element: el('label', {class: 'ds-control slider'}, el('span', {text: label}), range, shown), set(to) { range.value = to; tell(); }};
}

function choice({name, label, options}, value, changed) {
  const buttons = options.map(([key, text]) => {
    const radio = el('input', {type: 'radio', name: `ds-control-${name}`, value: key, checked: key === value});
    radio.addEventListener('change', () => changed(key));
    return {key, radio, element: el('label', {class: 'ds-option'}, radio, el('span', {text}))};
  });
  return {element: el('fieldset', {class: 'ds-control choice'}, el('legend', {text: label}), ...buttons.map(b => b.element)), set(to) { for (const b of buttons) b.radio.checked = b.key === to; }};
}

function text({name, label, length, try: tries = []}, value, changed) {
  const field = el('input', {type: 'text', class: 'ds-input ds-mono', id: `ds-control-${name}`, value, maxlength: length, autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false'});
  field.addEventListener('input', () => changed(field.value));
  const put = to => { field.value = to; changed(to); };
  return {element: el('div', {class: `ds-control text ${length > 40 ? 'long' : ''}`}, el('label', {}, el('span', {text: label}), field), el('span', {class: 'ds-tries'}, ...tries.map(to => el('button', {type: 'button', class: 'ds-button ds-mono', text: to, onclick: () => put(to)})))), set(to) { field.value = to; }};
}

function area({name, label, rows = 6}, value, changed) {
  const field = el('textarea', {class: 'ds-input ds-mono', id: `ds-control-${name}`, rows, spellcheck: 'false'});
  field.value = value;
  field.addEventListener('input', () => changed(field.value));
  return {element: el('label', {class: 'ds-control area'}, el('span', {text: label}), field), set(to) { field.value = to; }};
}
