// The numbered parts of a constraint's source (`viz/parts.py`): a part has the same number, and as far as hues go the same hue, in every panel.

import {el} from './draw.js';

const HUES = 7, SHOWN = 3, NONE = [];

// Which parts a state writes next, by the run's own numbers.
export const partsOf = (run, state) => state >= 0 ? run.parts[run.origin[state]] : NONE;
export const hue = n => n <= HUES ? n : 0;
export const words = numbers => numbers.length > SHOWN ? `${numbers.slice(0, SHOWN - 1).join('·')}·…` : numbers.join('·');
// The innermost part that holds a span; 0 for none.
export const innermost = (run, from, to) => run.head.parts.findLastIndex(([, start, stop]) => start <= from && to <= stop) + 1;
// One colour for one part; stripes, in their order, for several.
export function paint(numbers) {
  const shown = numbers.slice(0, SHOWN), share = 100 / shown.length;
  if (shown.length < 2) return shown.length ? `var(--part-${hue(shown[0])})` : '';
  return `linear-gradient(90deg, ${shown.map((n, k) => `var(--part-${hue(n)}) ${k * share}% ${(k + 1) * share}%`).join(', ')})`;
}

export const badge = n => el('span', {class: 'ds-part', 'data-hue': hue(n), text: `${n}`});

// The same on a canvas: a bar of the parts' colours, and their numbers on one badge, which only a part of its own hue fills.
export function bar(context, colours, numbers, x, y, width, height, upright = false) {
  const shown = numbers.slice(0, SHOWN);
  shown.forEach((n, k) => {
    context.fillStyle = colours.parts[hue(n)];
    if (upright) context.fillRect(x, y + k * height / shown.length, width, height / shown.length); else context.fillRect(x + k * width / shown.length, y, width / shown.length, height);
  });
}
export const badgeWidth = numbers => 6 + 6.6 * words(numbers).length;
export function drawBadge(context, colours, numbers, x, y) {
  const width = badgeWidth(numbers);
  context.save();
  const filled = numbers.length === 1 && hue(numbers[0]);
  context.fillStyle = filled ? colours.parts[filled] : colours.paper;
  context.beginPath();
  context.roundRect(x, y - 6.5, width, 13, 3);
  context.fill();
  context.fillStyle = filled ? colours.paper : colours.muted;
  context.font = `600 10.5px ${colours.sans}`;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.fillText(words(numbers), x + width / 2, y + 0.5);
  context.restore();
}
