// The lessons' words as nodes: `code`, *stress*, [[word]] of the glossary, {number} of the engine.

import {el, number} from '../draw.js';

const PARTS = /`([^`]+)`|\*([^*]+)\*|\[\[([A-Za-z][^\]|]*)(?:\|([^\]]+))?\]\]|\{([a-z][a-z0-9 .]*)(%?)\}/g;

// A text in paragraphs. `word(name, shown)` makes what stands for a word of the glossary.
export const paragraphs = (text, word) => text.trim().split(/\n\s*\n/).filter(Boolean).map(part => el('p', {}, ...inline(part.trim(), word)));

export function inline(text, word) {
  const out = [];
  let from = 0;
  for (const match of text.matchAll(PARTS)) {
    const [whole, code, stress, term, shown, name, percent] = match;
    if (match.index > from) out.push(text.slice(from, match.index));
    from = match.index + whole.length;
    if (code !== undefined) out.push(el('code', {}, ...inline(code, word)));
    else if (stress !== undefined) out.push(el('em', {}, ...inline(stress, word)));
    else if (term !== undefined) out.push(word(term, shown ?? term));
    else out.push(el('data', {class: 'ds-number', 'data-name': name, 'data-percent': percent ? 'yes' : null}));
  }
  if (from < text.length) out.push(text.slice(from));
  return out;
}

export function written(value, percent = false) {
  if (value === null) return '−∞';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value !== 'number') return value ?? '…';
  if (percent) return `${number(100 * value)} %`;
  return Number.isInteger(value) ? value.toLocaleString('en') : number(value);
}

// Put the engine's numbers into the places that wait for them.
export function fill(root, numbers, ofBet) {
  for (const node of root.querySelectorAll('data[data-name]')) {
    const {name, percent} = node.dataset, value = name.startsWith('bet.') ? ofBet[name.slice(4)] : numbers[name];
    node.value = value ?? '';
    node.textContent = written(value, percent === 'yes');
  }
}

// MathML of our own, parsed as XML: what is not well formed shows as nothing rather than as something else.
export function formula(source) {
  const parsed = new DOMParser().parseFromString(source.replace('<math', '<math xmlns="http://www.w3.org/1998/Math/MathML"'), 'application/xml').documentElement;
  for (const mo of parsed.querySelectorAll('mo')) if ('()'.includes(mo.textContent)) mo.setAttribute('stretchy', 'false');
  return parsed.localName === 'math' ? document.importNode(parsed, true) : el('span');
}
