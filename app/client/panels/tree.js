// The midpoint tree as an icicle over the same positions: a row is a level, a segment the span whose midpoint was drawn.

import {el, prepare, place, boxIn, hatch, axis, alpha, shade, clamp} from '../draw.js';
import * as explain from '../explain.js';
import * as parts from '../parts.js';
import {spanOf, spansOf} from '../run.js';
import {levelOf} from './phases.js';

export function create(go, card, trigger) {
  const canvas = el('canvas', {class: 'ds-layer'});
  const plot = el('div', {class: 'ds-plot', role: 'application', tabindex: 0, 'aria-roledescription': 'tree of spans', 'aria-label': 'Midpoint tree; arrow keys move in it'}, canvas);
  const note = el('p', {class: 'ds-note', hidden: true});
  const element = el('div', {}, plot, note);
  // A slider over the levels goes through the same phases of the step as the keys do: before any draw, a level after the other, the whole step.
  const slider = el('input', {type: 'range', class: 'ds-level', min: -1, 'aria-label': 'Levels drawn', onkeydown: event => event.stopPropagation()}), drawnLevels = el('output', {class: 'ds-note'});
  slider.addEventListener('input', () => go({phase: +slider.value < 0 ? 'sweep' : slider.value === slider.max ? null : `level${slider.value}`}));
  const legend = el('span', {class: 'ds-note'});
  // The same step in the other order, as a fork: the law is the same, and so is the noise.
  const reorder = el('button', {type: 'button', class: 'ds-button', 'data-online': '', onclick: () => {
    const {run, step} = at, value = run.config.sampler === 'chain' ? 'midpoint' : 'chain';
    trigger('fork', {run: run.id, step, edits: [{kind: 'set', name: 'sampler', value}], instant: Boolean(run.at('recorded', step))});
  }});
  let x, rowH, now, at;

  const find = event => {
    if (!now) return null;
    const on = place(event, plot), level = Math.floor((on.y - 2) / rowH), at = (on.x - x.left) / x.cell;
    for (let m = 1; m <= now.length; m++) {
      const span = spanOf(m, now.length);
      if (span.level === level && at >= span.start && at < span.stop) return {m, ...span};
    }
    return null;
  };
  canvas.addEventListener('click', event => { const found = find(event); if (found) go({node: found.m, position: Math.min(found.m, now.length - 1)}); });
  plot.addEventListener('mousedown', event => event.preventDefault());   // the arrow keys go on moving through steps
  const mark = m => { const {start, stop, level} = spanOf(m, now.length); return {key: `${m}`, m, box: () => boxIn(plot, x.x(start), 2 + level * rowH, x.cell * (stop - start), rowH)}; };
  const chosen = () => now.node ?? clamp(now.position, 1, now.length);
  // To the neighbour on a level, to the span that this one is half of, or into its first half.
  function move(dx, dy) {
    const {start, stop, level} = spanOf(chosen(), now.length), on = Array.from({length: now.length}, (_, k) => k + 1).filter(m => spanOf(m, now.length).level === level + dy);
    const m = dy ? on.find(m => { const span = spanOf(m, now.length); return dy < 0 ? span.start <= start && stop <= span.stop : span.start >= start; }) : on[on.indexOf(chosen()) + dx];
    if (m) go({node: m, position: Math.min(m, now.length - 1)});
  }
  card.explain(plot, {at: event => { const found = find(event); return found && mark(found.m); }, here: () => now && mark(chosen()), tell: ({m}) => now && m <= now.length ? explain.midpoint(now.run, now.step, m) : null, move});

  function update({run, step, colours, node, position, widths, phase}) {
    const length = run.length, width = widths.left, spans = spansOf(length);
    const has = !Number.isNaN(run.at('midpoint_entropy', step, length));
    plot.hidden = !has;
    note.hidden = has;
    now = has ? {run, step, length, node, position} : null;
    slider.hidden = drawnLevels.hidden = !has;
    at = {run, step};
    const levels = spanOf(1, length).level + (length > 1 ? 1 : 0) || 1, {sampler, temperature} = run.config, inOrder = sampler === 'chain';
    reorder.hidden = !temperature || !['chain', 'midpoint', 'tree'].includes(sampler);
    reorder.textContent = inOrder ? 'Draw midpoints' : 'Draw left to right';
    reorder.dataset.tip = `The same step beside it, ${inOrder ? 'by a midpoint tree' : 'one boundary after the other'}, with the same noise${run.at('recorded', step) ? '' : '; its mean field was not recorded, so the model is asked from here on'}`;
    if (!has) {
      legend.textContent = '';
      note.textContent = inOrder && temperature ? `Drawn from left to right: ${length} states, each given the one before it. A midpoint tree draws as many in ${levels} rounds, all of a level at once.`
        : `The sampler “${sampler}” draws no midpoints. Choose midpoint or tree to see them.`;
      return;
    }
    x = axis(length, width);
    const padded = (length & length - 1) > 0;
    legend.textContent = `darker: more entropy${padded ? ' · hatched: no midpoint' : ''}`;
    slider.max = levels;
    slider.value = Math.min(levels, levelOf(phase));
    drawnLevels.textContent = +slider.value === levels ? 'all levels' : slider.value < 0 ? 'nothing drawn' : slider.value > 0 ? `down to level ${slider.value}` : 'the end drawn';
    slider.setAttribute('aria-valuetext', drawnLevels.textContent);
    rowH = Math.max(14, Math.min(widths.tall.tree > 1 ? 36 : 20, 130 * widths.tall.tree / levels));
    const c = prepare(canvas, width, levels * rowH + 4);
    c.font = `11px ${colours.mono}`;
    c.textBaseline = 'middle';
    c.textAlign = 'center';
    const entropies = run.row('midpoint_entropy', step), path = run.row('path', step);
    const drawnTo = levelOf(phase), unknown = drawnTo < levels ? hatch(c, alpha(colours.muted, 0.4)) : null;
    for (let m = 1; m <= length; m++) {
      const {start, stop, level} = spans[m];
      const x0 = Math.round(x.x(start)), x1 = Math.round(x.x(stop)), y = Math.round(2 + level * rowH), w = x1 - x0, h = Math.round(rowH) - 1;
      if (level > drawnTo) { c.fillStyle = unknown; c.fillRect(x0, y, Math.max(1, w - 1), h); continue; }   // not drawn yet in this phase
      const strength = Math.min(1, entropies[m] / Math.log(8));
      // A choice of one is plain, so that real choices stand out.
      c.fillStyle = strength > 1e-6 ? shade(colours.q, strength) : colours.wash;
      c.fillRect(x0, y, Math.max(1, w - 1), h);
      const middle = m === length ? (x0 + x1) / 2 : x.x(m);
      const state = path[m], text = state === run.head.end ? 'end' : `${state}`, numbers = parts.partsOf(run, state), badge = numbers.length ? parts.badgeWidth(numbers) + 4 : 0;
      if (numbers.length && w > 5) parts.bar(c, colours, numbers, x0, y, 3, h, true);
      if (w >= Math.max(22, 6.7 * text.length + 4)) {
        c.fillStyle = strength > 0.45 ? colours.paper : colours.ink;
        const room = 6.7 * text.length + 8, fits = badge && w >= room + badge + 4, at = Math.min(Math.max(middle, x0 + 9 + (fits ? badge : 0)), x1 - 9);
        c.fillText(text, at, y + h / 2 + 0.5);
        if (fits) parts.drawBadge(c, colours, numbers, at - room / 2 - badge + 4, y + h / 2);
      }
      if (node === m) {
        c.strokeStyle = colours.ink;
        c.lineWidth = 2;
        c.strokeRect(x0 + 1, y + 1, w - 3, h - 2);
      }
    }
    // A tree has the leaves of the next power of two: behind the length they are padding, and where a span is one position nothing is left to draw.
    if (padded && !unknown) {
      c.fillStyle = hatch(c, alpha(colours.muted, 0.45));
      for (let level = 1; level < levels; level++) {
        const from = Math.round(x.x(Math.max(...spans.slice(1, length).map(span => span.level === level ? span.stop : 0))));
        c.fillRect(from, Math.round(2 + level * rowH), Math.max(0, Math.round(x.x(length)) - from - 1), Math.round(rowH) - 1);
      }
    }
    c.fillStyle = alpha(colours.ink, 0.12);
    c.fillRect(Math.round(x.x(position)), 0, Math.max(2, Math.round(x.cell)), levels * rowH + 4);
    c.textAlign = 'right';
    c.fillStyle = colours.muted;
    c.font = `11px ${colours.sans}`;
    c.fillText('end', x.left - 6, 2 + rowH / 2);
    for (let level = 1; level < levels; level++) c.fillText(`${level}`, x.left - 6, 2 + (level + 0.5) * rowH);
    c.textAlign = 'left';
  }
  function rows({run, step}) {
    if (Number.isNaN(run.at('midpoint_entropy', step, run.length))) return {head: ['boundary'], body: []};
    return {head: ['boundary', 'level', 'start', 'stop', 'state', 'part of the source', 'log probability', 'entropy'], body: Array.from({length: run.length}, (_, k) => {
      const m = k + 1, {start, stop, level} = spanOf(m, run.length);
      return [m, level, start, stop, run.at('path', step, m), parts.words(parts.partsOf(run, run.at('path', step, m))), run.at('midpoint_log_probability', step, m), run.at('midpoint_entropy', step, m)];
    })};
  }
  return {element, update, rows, controls: [legend, slider, drawnLevels, reorder]};
}
