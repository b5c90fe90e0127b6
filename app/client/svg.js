// A canvas context that also writes what is drawn as SVG, for export: the same code draws both.

const NS = 'http://www.w3.org/2000/svg';

export class Recorder {
  constructor(width, height, background) {
    this.svg = document.createElementNS(NS, 'svg');
    for (const [name, value] of Object.entries({xmlns: NS, viewBox: `0 0 ${width} ${height}`, width, height})) this.svg.setAttribute(name, value);
    this.hatches = new Map();
    this.into = this.svg;
    this.add('rect', {width, height, fill: background});
    this.path = '';
    this.dash = [];
  }

  add(tag, attributes, text) {
    const node = document.createElementNS(NS, tag);
    for (const [name, value] of Object.entries(attributes)) if (value !== undefined && value !== null) node.setAttribute(name, value);
    if (text !== undefined) node.textContent = text;
    this.into.append(node);
    return node;
  }

  // What a fill is in SVG: a hatch is a pattern there too.
  fill(style) {
    if (typeof style === 'string') return style;
    if (!this.hatches.has(style.hatch)) {
      const id = `hatch-${this.hatches.size}`, pattern = this.add('pattern', {id, width: 6, height: 6, patternUnits: 'userSpaceOnUse'});
      pattern.append(this.add('path', {d: 'M-6 6L0 0M0 6L6 0M6 6L12 0', stroke: style.hatch}));
      this.hatches.set(style.hatch, `url(#${id})`);
    }
    return this.hatches.get(style.hatch);
  }

  // What the calls that panels use become; `c` has the current colours.
  call(name, args, c) {
    const n = x => Math.round(x * 100) / 100, fill = this.fill(c.fillStyle), stroke = {stroke: c.strokeStyle, 'stroke-width': c.lineWidth, 'stroke-dasharray': this.dash.length ? this.dash.join(' ') : undefined};
    if (name === 'beginPath') this.path = '';
    else if (name === 'moveTo') this.path += `M${n(args[0])} ${n(args[1])}`;
    else if (name === 'lineTo') this.path += `L${n(args[0])} ${n(args[1])}`;
    else if (name === 'roundRect') { const [x, y, width, height] = args.map(n); this.path += `M${x} ${y}h${width}v${height}h${-width}Z`; }
    else if (name === 'closePath') this.path += 'Z';
    else if (name === 'arc') { const [x, y, r] = args.map(n); this.path += `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`; }
    else if (name === 'setLineDash') this.dash = args[0];
    else if (name === 'fill') this.add('path', {d: this.path, fill});
    else if (name === 'stroke') this.add('path', {d: this.path, fill: 'none', 'stroke-linejoin': c.lineJoin, ...stroke});
    else if (name === 'fillRect' || name === 'strokeRect') { const [x, y, width, height] = args.map(n); this.add('rect', {x, y, width, height, ...(name === 'fillRect' ? {fill} : {fill: 'none', ...stroke})}); }
    else if (name === 'fillText') this.add('text', {x: n(args[1]), y: n(args[2]), fill, style: `font: ${c.font}; white-space: pre`, 'text-anchor': {center: 'middle', right: 'end'}[c.textAlign] ?? 'start', 'dominant-baseline': {middle: 'central', top: 'hanging'}[c.textBaseline] ?? 'auto'}, args[0]);
    else if (name === 'drawImage') this.image(args);
  }

  image([source, ...box]) {
    const [sx, sy, sw, sh, x, y, width, height] = box.length > 4 ? box : [0, 0, source.width, source.height, ...box];
    const part = document.createElement('canvas');
    part.width = Math.max(1, sw);
    part.height = Math.max(1, sh);
    part.getContext('2d').drawImage(source, sx, sy, sw, sh, 0, 0, part.width, part.height);
    this.add('image', {href: part.toDataURL(), x, y, width, height, preserveAspectRatio: 'none', style: 'image-rendering: pixelated'});
  }

  // A context that draws on a canvas, which stands at (x, y) of the whole, and is written down.
  over(context, x, y) {
    const recorder = this, group = this.add('g', {transform: `translate(${x} ${y})`});
    return new Proxy(context, {
      get(target, name) {
        const value = target[name];
        if (typeof value !== 'function') return value;
        return (...args) => { recorder.into = group; recorder.call(name, args, target); recorder.into = recorder.svg; return value.apply(target, args); };
      },
      set(target, name, value) { target[name] = value; return true; },
    });
  }
}

export const text = svg => `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(svg)}`;
