// Step by position: how each position's numbers went until it was committed, and what was committed when.

import {el, arrange, recording, prepare, place, boxIn, axis, alpha, cividis, CIVIDIS_CSS, inkOn, hatch, ring, diamond, clamp, niceStep, niceTop, number, visible, cut} from '../draw.js';
import * as parts from '../parts.js';
import * as explain from '../explain.js';

export const QUANTITIES = {
  mar: {name: 'Mar', what: 'constrained confidence of the drawn token', top: () => 1, of: (run, t, i) => run.at('confidence_mar', t, i)},
  mf: {name: 'Mf', what: 'unconstrained confidence of the drawn token', top: () => 1, of: (run, t, i) => run.at('confidence_mf', t, i)},
  q: {name: 'Entropy of q', unit: 'nats', what: 'entropy of the posterior', top: run => niceTop(run.top.entropy), of: (run, t, i) => run.at('entropy_posterior', t, i)},
  p: {name: 'Entropy of p', unit: 'nats', what: 'entropy of the mean field', top: run => niceTop(run.top.entropy), of: (run, t, i) => run.at('entropy_mean_field', t, i)},
  kl: {name: 'KL(q‖p)', unit: 'nats', what: 'how far the constraint moved this position', top: run => niceTop(run.top.kl), of: (run, t, i) => run.at('kl', t, i)},
  forbidden: {name: 'Forbidden mass', what: 'mean-field mass of tokens that no accepted completion can use here', top: () => 1, of: (run, t, i) => run.at('forbidden_mass', t, i)},
  commit: {name: 'Commit time', unit: 'step', what: 'the step that committed the position', top: run => Math.max(1, run.steps - 1), of: (run, t, i) => run.commitStep[i]},
};

const COMMITTED = 0.22;   // strength of what was committed before: more would pass for a masked cell of a middling value, in either theme
const STRIP = 5, BAND = 15;   // px of the strip below the map, and of the parts of the source below that

export function create(go, card, offline, hover) {
  const element = el('div', {class: 'ds-looms'});
  const select = el('select', {class: 'ds-select', 'aria-label': 'Quantity of the map'},
    ...Object.entries(QUANTITIES).map(([key, {name}]) => el('option', {value: key, text: name})));
  select.addEventListener('change', () => go({metric: select.value}));
  const scale = el('span', {class: 'ds-scale'}), low = el('span', {text: '0'}), high = el('span');
  scale.style.background = CIVIDIS_CSS;
  const legend = el('span', {class: 'ds-legend'}, el('span', {text: '• forced', title: 'a single token is allowed there'}), el('span', {text: '◣ stop', title: 'a breakpoint hits there'}), low, scale, high);
  const sides = {a: one('a'), b: one('b')};

  function one(name) {
    const base = el('canvas', {class: 'ds-layer'}), band = el('canvas', {class: 'ds-band', 'aria-hidden': 'true'}), row = el('i', {class: 'ds-row-mark'}), column = el('i', {class: 'ds-column-mark'}), cell = el('i', {class: 'ds-cell-mark'}), span = el('i', {class: 'ds-span-mark', hidden: true}), second = el('i', {class: 'ds-second-mark', hidden: true}), ghost = el('i', {class: 'ds-ghost-mark', hidden: true});
    const box = el('div', {class: 'ds-plot', 'data-side': name, role: 'application', tabindex: 0, 'aria-roledescription': 'map'}, base, band, span, column, row, second, cell, ghost, el('span', {class: 'ds-badge', text: name.toUpperCase()}));
    const s = {name, base, band, row, column, cell, span, second, ghost, box, drawn: 0, key: '', geometry: null};
    const where = event => {
      const {x, y} = place(event, box);
      return {position: s.x.at(x), step: clamp(Math.floor((y - s.top) / s.rowH), 0, s.run.last)};
    };
    let dragging = false;
    base.addEventListener('pointerdown', event => { if (event.button !== 0 || !s.run) return; if (event.shiftKey) return go({beside: where(event).position}); dragging = true; base.setPointerCapture(event.pointerId); go({...where(event), side: name}); });
    base.addEventListener('pointerup', () => { dragging = false; });
    base.addEventListener('pointermove', event => {
      if (!s.run) return;
      if (dragging) go({...where(event), side: name});
      else hover({...where(event), side: name});
    });
    base.addEventListener('pointerleave', () => hover(null));
    box.addEventListener('mousedown', event => event.preventDefault());   // the arrow keys go on moving through steps
    const mark = ({step, position}) => ({key: `${step} ${position}`, side: name, step, position, box: () => boxIn(box, s.x.x(position), s.top + step * s.rowH, s.x.cell, s.rowH)});
    card.explain(box, {at: event => s.run && mark(where(event)), here: () => s.run && mark(s.at), tell: at => explain.position(s.run, at.step, at.position, {quantity: s.quantity, offline}),
      move: (dx, dy) => go({step: s.at.step + dy, position: s.at.position + dx, side: name})});
    base.addEventListener('contextmenu', event => { if (!s.run) return; event.preventDefault(); go({...where(event), side: name, fork: true}); });
    return s;
  }

  function draw(s, run, view, width) {
    const quantity = QUANTITIES[view.metric], {colours} = view;
    const compact = width < 500;
    s.run = run;
    s.quantity = {...quantity, key: view.metric};
    s.top = 4;
    s.x = axis(run.length, width);
    const tall = view.widths.tall.map;
    s.rowH = clamp(Math.floor(240 * tall / run.steps), 2, tall > 1 ? 36 : 20);
    if (run.steps > 120 * tall) s.rowH = Math.max(1, 260 * tall / run.steps);
    const height = s.top + run.steps * s.rowH + STRIP + BAND + 20;
    s.height = height;
    const top = view.compare ? Math.max(quantity.top(view.a), quantity.top(view.b)) : quantity.top(run);
    const hits = view.hits(run), key = [run.id, view.metric, top, width, tall, view.theme, view.metric === 'commit' ? run.count : 0, hits.join(' ')].join();
    let c;
    if (key !== s.key || s.drawn > run.count || recording.has(s.base)) {
      c = prepare(s.base, width, height);
      s.key = key;
      s.drawn = 0;
      s.pattern = hatch(c, alpha(colours.muted, 0.55));
      axes(c, s, run, colours, compact);
    } else c = s.base.getContext('2d');
    const {x, rowH} = s, label = x.cell >= 34 && rowH >= 14;
    c.font = `11px ${colours.mono}`;
    c.textBaseline = 'middle';
    for (let t = s.drawn; t < run.count; t++) {
      const y0 = Math.round(s.top + t * rowH), y1 = Math.round(s.top + (t + 1) * rowH);
      for (let i = 0; i < run.length; i++) {
        const x0 = Math.round(x.x(i)), x1 = Math.round(x.x(i + 1)), w = Math.max(1, x1 - x0), h = Math.max(1, y1 - y0);
        const gap = w > 5 && h > 4 ? 1 : 0;
        const masked = run.masked(t, i), now = run.at('committed', t, i);
        const commit = run.commitStep[i], at = masked ? t : commit;
        const value = view.metric === 'commit' ? masked && !now ? NaN : commit : at >= 0 ? quantity.of(run, at, i) : NaN;
        const colour = Number.isFinite(value) ? cividis(value / top) : value === Infinity ? cividis(1) : null;
        if (!masked) {
          if (colour) { c.fillStyle = `rgba(${colour},${COMMITTED})`; c.fillRect(x0, y0, w - gap, h - gap); }
          continue;
        }
        c.fillStyle = colour ? `rgb(${colour})` : s.pattern;
        c.fillRect(x0, y0, w - gap, h - gap);
        if (now) ring(c, x0 + 1, y0 + 1, w - gap - 2, h - gap - 2);
        else if (w > 6 && h > 6 && run.rival(t, i)) {
          c.strokeStyle = colour ? inkOn(colour) : colours.p;
          c.lineWidth = 1;
          diamond(c, x1 - gap - 4.5, y0 + 4.5, 2.5);
          c.stroke();
        }
        if (w > 5 && h > 5 && run.at('forced', t, i)) { c.fillStyle = colour ? inkOn(colour) : colours.ink; c.beginPath(); c.arc(label ? x1 - gap - 6 : (x0 + x1 - gap) / 2, (y0 + y1 - gap) / 2, 1.7, 0, 7); c.fill(); }
        if (label) {
          c.fillStyle = colour ? inkOn(colour) : colours.ink;
          const fits = Math.floor((w - 7) / 6.7);
          c.fillText(cut(visible(run.text(run.drawn(t, i))), fits), x0 + 4, y0 + h / 2 + 0.5);
        }
      }
    }
    stops(c, s, hits);
    margins(c, s, run, colours);
    s.drawn = run.count;
    s.box.setAttribute('aria-label', `${quantity.name} by step and position of run ${s.name.toUpperCase()}, below it when each position was committed, beside it how many each step did; arrow keys move in it`);
  }

  // Where breakpoints hit: a corner of a cell, or a tick where the whole step does.
  function stops(c, {x, rowH, top, run}, hits) {
    for (const [t, i] of hits) {
      if (t >= run.count) continue;
      const x0 = i < 0 ? x.left - 8 : Math.round(x.x(i)), y1 = Math.round(top + (t + 1) * rowH) - 1, size = i < 0 ? 5 : clamp(Math.min(x.cell, rowH) * 0.45, 2, 7);
      for (const [grow, colour] of [[1.5, '#fff'], [0, '#111']]) {
        c.fillStyle = colour;
        c.beginPath();
        c.moveTo(x0 - grow, y1 + grow);
        c.lineTo(x0 - grow, y1 - size - 1.5 * grow);
        c.lineTo(x0 + size + 1.5 * grow, y1 + grow);
        c.closePath();
        c.fill();
      }
    }
  }

  // Below the map when each position was committed, beside it how many each step committed.
  function margins(c, s, run, colours) {
    const {x, rowH, top} = s, bottom = top + run.steps * rowH + 3, right = x.x(run.length) + 4, most = Math.max(1, ...run.commitCounts.subarray(0, run.count));
    c.clearRect(right, top, x.right, run.steps * rowH);
    c.fillStyle = alpha(colours.muted, 0.55);
    for (let t = 0; t < run.count; t++) c.fillRect(right, top + t * rowH, Math.max(run.commits(t) ? 1 : 0, run.commits(t) / most * (x.right - 5)), Math.max(1, rowH - (rowH > 3 ? 1 : 0)));
    for (let i = 0; i < run.length; i++) {
      const x0 = Math.round(x.x(i)), w = Math.max(1, Math.round(x.x(i + 1)) - x0 - (x.cell > 5 ? 1 : 0)), commit = run.commitStep[i];
      c.clearRect(x0, bottom, w, STRIP);
      c.fillStyle = commit < 0 ? s.pattern : `rgb(${cividis(commit / Math.max(1, run.steps - 1))})`;
      c.fillRect(x0, bottom, w, STRIP);
    }
  }

  function axes(c, s, run, colours, compact) {
    const {x, rowH} = s, bottom = s.top + run.steps * rowH;
    c.strokeStyle = colours.line;
    c.lineWidth = 1;
    c.strokeRect(Math.round(x.x(0)) - 0.5, s.top - 0.5, Math.round(x.cell * run.length) + 1, Math.round(run.steps * rowH) + 1);
    c.font = `11px ${colours.sans}`;
    c.fillStyle = colours.muted;
    c.textBaseline = 'middle';
    c.textAlign = 'right';
    const every = niceStep(run.steps, run.steps * rowH, 15);
    for (let t = 0; t < run.steps; t += every) c.fillText(`${t}`, x.left - 13, s.top + (t + 0.5) * rowH);
    c.textAlign = 'center';
    c.textBaseline = 'top';
    const step = niceStep(run.length, run.length * x.cell, compact ? 34 : 26);
    for (let i = 0; i < run.length; i += step) c.fillText(`${i}`, x.x(i + 0.5), bottom + STRIP + BAND + 4);
    c.textAlign = 'left';
    const block = run.config.block_length;
    c.strokeStyle = colours.ink;
    for (let i = block; i < run.length; i += block) {
      c.beginPath();
      c.moveTo(Math.round(x.x(i)) - 0.5, s.top);
      c.lineTo(Math.round(x.x(i)) - 0.5, bottom);
      c.stroke();
    }
  }

  // Marks are elements that move: repainting a layer over the whole map at each step would take longer than all else.
  const put = (node, x, y, w, h) => { node.style.transform = `translate(${x}px, ${y}px)`; node.style.width = `${w}px`; node.style.height = `${h}px`; };
  // Of a position, and one step of it or all.
  const cellAt = ({x, rowH, top, run}, position, step = null) => [Math.round(x.x(position)), step === null ? top : Math.round(top + step * rowH), Math.max(2, Math.round(x.cell) - (x.cell > 5 ? 1 : 0)), step === null ? run.steps * rowH : Math.max(2, Math.round(rowH) - 1)];
  function cursor(s, view) {
    const {run, x, rowH, row, column, cell} = s, t = view.steps[s.name];
    s.at = {step: Math.min(t, run.last), position: Math.min(view.position, run.length - 1)};
    const left = Math.round(x.x(0)), y = Math.round(s.top + t * rowH), h = Math.max(2, Math.round(rowH) - 1);
    put(row, left - 1, y - 1, Math.round(x.cell * run.length) + 2, h + 2);
    const here = Math.min(view.position, run.length - 1);
    put(column, ...cellAt(s, here));
    put(cell, ...cellAt(s, here, t));
    s.second.hidden = view.second === null || view.second >= run.length;
    if (!s.second.hidden) put(s.second, ...cellAt(s, view.second, t));
    s.span.hidden = !view.span;
    if (view.span) put(s.span, Math.round(x.x(view.span.start)), s.top, Math.round(x.cell * (view.span.stop - view.span.start)), run.steps * rowH);
  }

  // Under the map the parts of the source that the step's draw is in.
  function under(s, view) {
    const {run, x, at, band} = s, path = run.row('path', at.step), key = [s.key, at.step].join(' ');
    if (band.key === key && !recording.has(band)) return;
    band.key = key;
    const c = prepare(band, x.width, BAND);
    band.style.top = `${s.top + run.steps * s.rowH + STRIP + 4}px`;
    for (let i = 0; i < run.length;) {
      const numbers = parts.partsOf(run, path[i]), begun = i;
      while (i < run.length && parts.partsOf(run, path[i]) === numbers || i === begun) i++;
      if (!numbers.length) continue;
      const left = Math.round(x.x(begun)), width = Math.round(x.x(i)) - left - 1;
      parts.bar(c, view.colours, numbers, left, 0, width, 3);
      if (width >= parts.badgeWidth(numbers)) parts.drawBadge(c, view.colours, numbers, left, 6.5);
    }
  }

  function update(view) {
    const shown = [['a', view.a], ['b', view.b]].filter(([, run]) => run && run.count);
    if (view.changed) {
      arrange(element, shown.map(([name]) => sides[name].box));
      element.classList.toggle('two', shown.length > 1);
      select.value = view.metric;
      const quantity = QUANTITIES[view.metric], top = Math.max(...shown.map(([, run]) => quantity.top(run)));
      high.textContent = `${top}${quantity.unit ? ` ${quantity.unit}` : ''}`;
      legend.dataset.tip = quantity.what;
      const stacked = matchMedia('(max-width: 900px)').matches;
      for (const [name, run] of shown) draw(sides[name], run, view, shown.length > 1 && !stacked ? Math.floor((view.widths.left - 14) / 2) : view.widths.left);
    }
    // A second run that just began has a step before its map is drawn.
    for (const [name] of shown) if (sides[name].run) { cursor(sides[name], view); under(sides[name], view); }
  }
  function rows({run, metric}) {
    const {of} = QUANTITIES[metric], body = [];
    for (let t = 0; t < run.count; t++) for (let i = 0; i < run.length; i++) if (run.masked(t, i)) body.push([t, i, visible(run.text(run.drawn(t, i))), of(run, t, i), run.at('committed', t, i) === 1]);
    return {head: ['step', 'position', 'drawn', QUANTITIES[metric].name, 'committed'], body};
  }
  // A cell where a step is pointed at, a whole column where only a position is.
  function ghost(at) {
    for (const s of Object.values(sides)) {
      s.ghost.hidden = !at || !s.run || (at.side && at.side !== s.name) || at.position >= s.run.length || at.step >= s.run.steps;
      if (!s.ghost.hidden) put(s.ghost, ...cellAt(s, at.position, at.step ?? null));
    }
  }
  return {element, update, select, legend, rows, ghost};
}
