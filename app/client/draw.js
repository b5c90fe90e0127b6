// What all panels share: building the DOM without ever parsing a token, numbers as text, colours, canvases.

export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'text') node.textContent = value;
    else if (name === 'title') node.dataset.tip = value;   // the card shows it
    else if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children);
  return node;
}

// Put children into an element, unless they are its children already: what is moved loses the focus.
export function arrange(element, children) {
  if (children.length !== element.children.length || children.some((child, k) => child !== element.children[k])) element.replaceChildren(...children);
}

export function icon(path) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg'), shape = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  svg.setAttribute('viewBox', '0 0 16 16');
  svg.setAttribute('aria-hidden', 'true');
  shape.setAttribute('d', path);
  svg.append(shape);
  return svg;
}

export const clamp = (x, low, high) => Math.max(low, Math.min(high, x));

const SIGNS = {' ': '␣', '\n': '⏎', '\t': '⇥', '\r': '␍'};
export const visible = text => text.replace(/[ \n\t\r]/g, c => SIGNS[c]);
export const cut = (text, limit) => text.length <= limit ? text : text.slice(0, limit - 1) + '…';

// Three significant digits; what is possible is never shown as 0.
export function number(x) {
  if (Number.isNaN(x)) return '–';
  if (!Number.isFinite(x)) return x > 0 ? '∞' : '−∞';
  x = Number(x.toPrecision(3));
  const size = Math.abs(x);
  if (size === 0) return '0';
  const digits = 2 - Math.floor(Math.log10(size) + 1e-9);   // behind the point, for three in all
  const text = size < 1e-4 || size >= 1e5 ? x.toExponential(1).replace('e+', 'e') : x.toFixed(clamp(digits, 0, 6));
  return text.replaceAll('-', '−');
}

export function probability(p) {
  if (p === 0) return '0';
  if (p < 1e-6) return '<1e−6';
  if (p < 1e-3) return p.toExponential(1).replace('e-', 'e−');
  if (p < 0.1) return p.toFixed(p < 0.00995 ? 5 : p < 0.0995 ? 4 : 3);   // three significant digits, as everywhere
  return p >= 0.9995 && p < 1 ? '>0.999' : p.toFixed(3);
}

// Cividis at ten points: one scale for every quantity, readable with any colour vision.
const CIVIDIS = [[0, 34, 78], [18, 53, 112], [59, 73, 108], [87, 93, 109], [112, 113, 115], [138, 134, 120],
  [165, 156, 116], [195, 179, 105], [225, 204, 85], [254, 232, 56]];

export function cividis(x) {
  const at = clamp(x, 0, 1) * (CIVIDIS.length - 1), low = Math.min(Math.floor(at), CIVIDIS.length - 2), f = at - low;
  return CIVIDIS[low].map((c, k) => Math.round(c + f * (CIVIDIS[low + 1][k] - c)));
}
export const CIVIDIS_CSS = `linear-gradient(90deg, ${CIVIDIS.map(c => `rgb(${c})`).join(',')})`;

export function inkOn([r, g, b]) {
  const linear = [r, g, b].map(c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] > 0.179 ? '#000' : '#fff';
}

export function palette(root) {
  const style = getComputedStyle(root), of = name => style.getPropertyValue(name).trim();
  return {ink: of('--ink'), muted: of('--muted'), line: of('--line'), paper: of('--paper'), wash: of('--wash'),
    parts: Array.from({length: 8}, (_, n) => of(`--part-${n}`)), q: of('--q'), p: of('--p'), error: of('--error'), mono: of('--mono'), sans: of('--sans')};
}

export const rgb = hex => [1, 3, 5].map(k => parseInt(hex.slice(k, k + 2), 16));
export const alpha = (hex, a) => `rgba(${rgb(hex)},${a})`;

// A colour in sixteen strengths, made once: building a colour from text for each of hundreds of cells takes longer than filling them.
const shades = new Map();
export function shade(hex, strength) {
  if (!shades.has(hex)) shades.set(hex, Array.from({length: 17}, (_, k) => alpha(hex, 0.12 + 0.88 * k / 16)));
  return shades.get(hex)[Math.round(clamp(strength, 0, 1) * 16)];
}

// Canvases that are being exported, each with what writes down how it is drawn.
export const recording = new Map();

// How much larger than they are drawn the page shows its panels: the style sheet's to say, measured where widths are.
let zoom = 1;
export function measureZoom(root) { zoom = Number(getComputedStyle(root).getPropertyValue('--zoom')) || 1; }

// Where an event is in a node's own pixels.
export function place(event, node) {
  const {left, top, width} = node.getBoundingClientRect(), shown = width / node.offsetWidth || 1;
  return {x: (event.clientX - left) / shown, y: (event.clientY - top) / shown};
}

// Where a part of a node, in its own pixels, is in the window.
export function boxIn(node, x, y, width, height) {
  const at = node.getBoundingClientRect(), shown = at.width / node.offsetWidth || 1;
  return new DOMRect(at.left + x * shown, at.top + y * shown, width * shown, height * shown);
}

// Size a canvas for the screen's pixels and return its context in CSS pixels.
export function prepare(canvas, width, height) {
  const ratio = (window.devicePixelRatio || 1) * zoom;
  const w = Math.max(1, Math.round(width * ratio)), h = Math.max(1, Math.round(height * ratio));
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return recording.get(canvas)?.over(context) ?? context;
}

// Diagonal lines: what stands for "masked, and no number here". Their colour is kept beside them, for what writes the drawing down.
export function hatch(context, colour) {
  const tile = document.createElement('canvas');
  tile.width = tile.height = 6;
  const c = tile.getContext('2d');
  c.strokeStyle = colour;
  c.lineWidth = 1;
  c.beginPath();
  for (const shift of [-6, 0, 6]) {
    c.moveTo(shift, 6);
    c.lineTo(shift + 6, 0);
  }
  c.stroke();
  return Object.assign(context.createPattern(tile, 'repeat'), {hatch: colour});
}

export function diamond(context, x, y, radius) {
  context.beginPath();
  context.moveTo(x, y - radius);
  context.lineTo(x + radius, y);
  context.lineTo(x, y + radius);
  context.lineTo(x - radius, y);
  context.closePath();
}

// White inside black: the only ring that keeps its contrast on the whole scale.
export function ring(context, x, y, w, h) {
  context.lineWidth = 1;
  context.strokeStyle = '#111';
  context.strokeRect(x - 0.5, y - 0.5, w + 1, h + 1);
  if (w > 5 && h > 5) {
    context.strokeStyle = '#fff';
    context.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1);
  }
}

// Positions on the x axis, the same for every panel that has one.
export function axis(length, width) {
  const left = 46, right = 20, cell = Math.min(64, (width - left - right) / length);
  return {left, right, cell, length, width, x: i => left + i * cell, at: x => clamp(Math.floor((x - left) / cell), 0, length - 1),
    boundaryAt: x => clamp(Math.round((x - left) / cell), 0, length)};
}

export function niceStep(count, room, least) {
  for (const step of [1, 2, 4, 5, 8, 10, 16, 20, 25, 32, 50, 64, 100, 128, 200, 256]) if (room / count * step >= least) return step;
  return 512;
}

export function niceTop(x) {
  if (!(x > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(x));
  return [1, 2, 3, 5, 7, 10].map(k => k * power).find(top => top >= x * 0.9999);
}
