// The automaton unrolled over the boundaries: posterior of each state, what is live, and the path of the draw.

import {el, prepare, place, boxIn, axis, alpha, clamp, rgb, hatch} from '../draw.js';
import * as explain from '../explain.js';
import * as parts from '../parts.js';
import {spanOf, unpack} from '../run.js';
import * as cell from './cell.js';

const MOST_ROWS = 200;

const MODES = [['posterior', 'Posterior'], ['live', 'Live'], ['forward', 'Forward'], ['backward', 'Backward']];
const WHAT = {posterior: 'tint: live · blue: posterior · line: the draw, discs: levels of the tree', live: 'states that some accepted completion passes', forward: 'blue: what the start reaches · hatched: what only reaches acceptance', backward: 'blue: what reaches acceptance · hatched: what only the start reaches'};

export function create(go, card, server, hover) {
  let mode = 'posterior', fronts = null, wanted = null;
  const what = el('span', {class: 'ds-note', text: WHAT.posterior}), choose = el('select', {class: 'ds-select', 'aria-label': 'What the trellis shows'}, ...MODES.map(([value, text]) => el('option', {value, text})));
  choose.addEventListener('change', () => { mode = choose.value; go({redraw: true}); });
  const bit = (data, width, b, q) => (data[b * width + (q >> 3)] >> (7 - (q & 7)) & 1) === 1;

  // Which states either front reaches at this step: asked for when the focus rests, and only in a mode that shows it.
  async function ask(run, step) {
    const key = `${run.id} ${step}`;
    if (wanted === key) return;
    wanted = key;
    const answer = await server.get_fronts({run: run.id, step});
    if (answer.error) wanted = null;
    if (wanted !== key) return;
    const arrays = await unpack(answer);
    fronts = {key, width: arrays.forward.shape[1], forward: arrays.forward.data, backward: arrays.backward.data};
    go({redraw: true});
  }

  const canvas = el('canvas', {class: 'ds-layer'}), pointed = el('i', {class: 'ds-ghost-mark', hidden: true}), image = document.createElement('canvas');
  const plot = el('div', {class: 'ds-plot', role: 'application', tabindex: 0, 'aria-roledescription': 'map', 'aria-label': 'Trellis of states by boundary; arrow keys move in it'}, canvas, pointed);
  const note = el('p', {class: 'ds-note'});
  const numbers = cell.create(go, server), element = el('div', {}, plot, note, numbers.element);
  let x, rowH, rows, now, last = false;   // the last boundary is behind the last position
  const top = 4;

  const find = event => {
    if (!now) return null;
    const at = place(event, plot), row = Math.floor((at.y - top) / rowH);
    return row >= 0 && row < rows.length ? {boundary: x.boundaryAt(at.x), state: rows[row]} : null;
  };
  canvas.addEventListener('click', event => {
    const found = find(event), position = found && Math.min(found.boundary, now.run.length - 1);
    if (found && !event.shiftKey) last = found.boundary === now.run.length;
    if (found) go(event.shiftKey ? {beside: position} : {state: found.state, position});
  });
  plot.addEventListener('mousedown', event => event.preventDefault());   // the arrow keys go on moving through steps
  const mark = ({boundary, state}) => ({key: `${boundary} ${state}`, boundary, state, box: () => boxIn(plot, x.x(boundary) - x.cell / 2, top + rows.indexOf(state) * rowH, x.cell, rowH)});
  // The keyboard stands on the chosen state, else on the draw's.
  function chosen() {
    const boundary = now.position + (last && now.position === now.run.length - 1), state = now.state ?? now.run.at('path', now.step, boundary);
    return {boundary, state: rows.includes(state) ? state : rows[0]};
  }
  function move(dx, dy) {
    const {boundary, state} = chosen(), to = clamp(boundary + dx, 0, now.run.length);
    last = to === now.run.length;
    go(dy ? {state: rows[clamp(rows.indexOf(state) + dy, 0, rows.length - 1)]} : {position: Math.min(to, now.run.length - 1)});
  }
  card.explain(plot, {at: event => { const found = find(event); return found && mark(found); }, here: () => now && mark(chosen()), tell: ({boundary, state}) => now && rows.includes(state) ? explain.state(now.run, now.step, boundary, state) : null, move});
  canvas.addEventListener('pointermove', event => { const found = find(event); hover(found && {position: Math.min(found.boundary, now.run.length - 1)}); });
  canvas.addEventListener('pointerleave', () => hover(null));
  function ghost(at) {
    pointed.hidden = !at || !now || at.position >= now.run.length;
    if (pointed.hidden) return;
    pointed.style.transform = `translate(${x.x(at.position)}px, ${top}px)`;
    pointed.style.width = `${Math.max(2, x.cell)}px`;
    pointed.style.height = `${rows.length * rowH}px`;
  }

  function rowsOf(run, detail, front) {
    if (run.states > MOST_ROWS && front) {
      const counts = Array.from({length: run.states}, () => 0);
      for (let b = 0; b <= run.length; b++) for (let q = 0; q < run.states; q++) if (bit(fronts[front], fronts.width, b, q)) counts[q]++;
      return Array.from(run.order).filter(q => counts[q]).sort((a, b) => counts[b] - counts[a]).slice(0, MOST_ROWS).sort((a, b) => run.rank[a] - run.rank[b]);
    }
    if (run.states <= MOST_ROWS) return Array.from(run.order);
    const mass = new Map();
    for (let b = 0; b <= run.length; b++) for (const [q, p] of detail.statesAt(b)) mass.set(q, (mass.get(q) ?? 0) + p);
    const best = [...mass].sort((a, b) => b[1] - a[1]).slice(0, MOST_ROWS).map(([q]) => q);
    return best.sort((a, b) => run.rank[a] - run.rank[b]);
  }

  function update({run, step, detail, colours, node, position, second, state, widths, rested}) {
    // Where nothing is live the fronts are all there is to see, in every mode.
    const lost = run.at('log_partition', step) === -Infinity, wants = mode === 'forward' || mode === 'backward' ? mode : lost ? 'forward' : null;
    if (wants && rested) ask(run, step);
    if (!detail) {
      if (now?.run === run) element.classList.add('waiting');
      else { canvas.width = canvas.width; now = null; }   // another run's states must not stand here
      return;
    }
    element.classList.remove('waiting');
    now = {run, step, detail, position, state};
    numbers.update({run, step, rested}, position + (last && position === run.length - 1), state);
    const front = fronts?.key === `${run.id} ${step}` ? wants : null;
    plot.dataset.front = front ?? '';
    what.textContent = WHAT[wants ?? mode];
    rows = rowsOf(run, detail, front);
    const width = widths.left, length = run.length, n = rows.length;
    x = axis(length, width);
    rowH = clamp((n > 60 ? 250 : 190) * widths.tall.trellis / n, 1, widths.tall.trellis > 1 ? 27 : 15);
    const height = top * 2 + n * rowH + 14, row = new Map(rows.map((q, r) => [q, r]));
    const c = prepare(canvas, width, height);
    image.width = length + 1;
    image.height = n;
    const pixels = new ImageData(length + 1, n), [r0, g0, b0] = rgb(colours.q);
    const put = (b, r, a) => { const at = 4 * (r * (length + 1) + b); pixels.data[at] = r0; pixels.data[at + 1] = g0; pixels.data[at + 2] = b0; pixels.data[at + 3] = a; };
    const apart = [];
    for (let b = 0; b <= length; b++) {
      if (wants) {
        if (!front) continue;
        for (let r = 0; r < n; r++) {
          const on = bit(fronts[front], fronts.width, b, rows[r]), other = bit(fronts[front === 'forward' ? 'backward' : 'forward'], fronts.width, b, rows[r]);
          if (on) put(b, r, other ? 230 : 110); else if (other) apart.push([b, r]);
        }
        continue;
      }
      const live = detail.liveAt(b);
      for (let r = 0; r < n; r++) if (live(rows[r])) put(b, r, mode === 'live' ? 150 : 22);
      if (mode === 'posterior') for (const [q, p] of detail.statesAt(b)) if (row.has(q) && p > 0) put(b, row.get(q), 40 + 215 * p);
    }
    const ic = image.getContext('2d');
    ic.putImageData(pixels, 0, 0);
    c.imageSmoothingEnabled = false;
    // States sit on boundaries, so a column is centred on the line between two positions.
    const columnW = x.cell >= 9 ? Math.min(18, Math.round(x.cell * 0.62)) : x.cell;
    if (columnW === x.cell) c.drawImage(image, x.x(0) - columnW / 2, top, columnW * (length + 1), n * rowH);
    else for (let b = 0; b <= length; b++) c.drawImage(image, b, 0, 1, n, x.x(b) - columnW / 2, top, columnW, n * rowH);
    if (apart.length) { c.fillStyle = hatch(c, alpha(colours.p, 0.9)); for (const [b, r] of apart) c.fillRect(x.x(b) - columnW / 2, top + r * rowH, columnW, Math.max(1, rowH)); }
    c.fillStyle = alpha(colours.ink, 0.12);
    c.fillRect(x.x(position), top, Math.max(2, x.cell), n * rowH);
    if (second !== null) {
      c.strokeStyle = colours.ink;
      c.setLineDash([4, 3]);
      c.strokeRect(x.x(second), top, Math.max(2, x.cell), n * rowH);
      c.setLineDash([]);
    }
    c.strokeStyle = colours.line;
    c.lineWidth = 1;
    c.strokeRect(Math.round(x.x(0) - columnW / 2) - 1.5, top - 1.5, Math.round(x.cell * length + columnW) + 3, Math.round(n * rowH) + 3);
    const y = q => top + (row.get(q) + 0.5) * rowH;
    if (node !== null && node <= length && node > 0) {
      const {start, stop} = spanOf(node, length);
      c.strokeStyle = colours.q;
      c.setLineDash([2, 2]);
      for (const b of [start, node, stop]) { c.beginPath(); c.moveTo(x.x(b), top); c.lineTo(x.x(b), top + n * rowH); c.stroke(); }
      c.setLineDash([]);
    }
    if (state !== null && row.has(state)) {
      c.fillStyle = alpha(colours.ink, 0.1);
      c.fillRect(x.left - columnW / 2, top + row.get(state) * rowH, x.cell * length + columnW, Math.max(1, rowH));
    }
    const path = run.row('path', step);
    c.lineJoin = 'round';
    for (const [colour, lineWidth] of [[colours.paper, 3.5], [colours.ink, 1.5]]) {
      c.strokeStyle = colour;
      c.lineWidth = lineWidth;
      c.beginPath();
      let pen = false;
      for (let b = 0; b <= length; b++) {
        if (path[b] < 0 || !row.has(path[b])) { pen = false; continue; }
        if (pen) c.lineTo(x.x(b), y(path[b])); else c.moveTo(x.x(b), y(path[b]));
        pen = true;
      }
      c.stroke();
    }
    const end = path.indexOf(-1);
    if (end > 0 && row.has(path[end - 1])) {
      c.strokeStyle = colours.error;
      c.lineWidth = 2;
      const cx = x.x(end - 0.5), cy = y(path[end - 1]);
      c.beginPath(); c.moveTo(cx - 4, cy - 4); c.lineTo(cx + 4, cy + 4); c.moveTo(cx + 4, cy - 4); c.lineTo(cx - 4, cy + 4); c.stroke();
    }
    if (x.cell >= 7 && rowH >= 4) {
      c.fillStyle = colours.ink;
      for (let b = 0; b <= length; b++) if (path[b] >= 0 && row.has(path[b])) { c.beginPath(); c.arc(x.x(b), y(path[b]), 2.5, 0, 7); c.fill(); }
    }
    if (x.cell >= 17 && !Number.isNaN(run.at('midpoint_entropy', step, length))) levels(c, run, path, row, y, colours);
    c.font = `11px ${colours.mono}`;
    c.fillStyle = colours.muted;
    c.textAlign = 'right';
    c.textBaseline = 'middle';
    const every = Math.max(1, Math.ceil(12 / rowH)), stripe = x.left - columnW / 2 - 6;
    const taken = number(c, run, colours, stripe);
    c.fillStyle = colours.muted;
    for (let r = 0; r < n; r += every) { const y = top + (r + 0.5) * rowH; if (!taken.some(at => Math.abs(at - y) < 11)) c.fillText(rows[r] === run.head.end ? 'end' : `${rows[r]}`, stripe - 3, y); }
    c.textAlign = 'left';
    note.textContent = lost ? `Nothing that the constraint accepts agrees with what is committed: no state is live.${front ? gap(c, run, y, columnW, colours) : ''}`
      : n < run.states ? `${n} of ${run.states.toLocaleString('en')} states, those ${front ? 'that the front reaches at most boundaries' : 'with the most posterior mass at this step'}.` : '';
    note.hidden = !note.textContent;
  }
  // Where nothing is live: the gap between what the start reaches and what acceptance reaches back to, drawn and in words.
  function gap(c, run, y, columnW, colours) {
    const states = (name, b) => rows.filter(q => bit(fronts[name], fronts.width, b, q)), {reached, needed, at, from, to} = explain.missed(run.length, b => states('forward', b), b => states('backward', b), y);
    if (to === undefined) return '';
    const x0 = x.x(reached) + columnW / 2 + 1, x1 = reached === at ? x0 + 7 : x.x(at) - columnW / 2 - 1;
    Object.assign(c, {strokeStyle: colours.error, fillStyle: colours.error, lineWidth: 2, font: `600 11px ${colours.sans}`, textAlign: 'left', textBaseline: 'middle'});
    c.setLineDash([2, 2]);
    c.beginPath();
    c.moveTo(x0, y(from));
    if (reached === at) { c.lineTo(x1, y(from)); c.lineTo(x1, y(to)); c.lineTo(x0, y(to)); } else c.lineTo(x1, y(to));
    c.stroke();
    c.setLineDash([]);
    c.fillText('gap', reached === at ? x1 + 4 : (x0 + x1) / 2 + 4, (y(from) + y(to)) / 2);
    Object.assign(plot.dataset, {reached, needed});
    return ` The start reaches boundary ${reached}; acceptance reaches back to boundary ${needed}, and no state is of both.`;
  }
  // The midpoints as discs with their level of the tree: those of one level were drawn at once.
  function levels(c, run, path, row, y, colours) {
    c.font = `10px ${colours.sans}`;
    c.textAlign = 'center';
    c.textBaseline = 'middle';
    for (let b = 1; b <= run.length; b++) {
      if (!row.has(path[b])) continue;
      c.fillStyle = colours.ink;
      c.beginPath();
      c.arc(x.x(b), y(path[b]), 7, 0, 7);
      c.fill();
      c.fillStyle = colours.paper;
      c.fillText(`${spanOf(b, run.length).level}`, x.x(b), y(path[b]) + 0.5);
    }
  }

  // Beside the rows the parts of the source that their states come from, a number where one begins.
  function number(c, run, colours, stripe) {
    const wide = [];   // where a badge leaves no room for a state's number
    let begun = '', last = -Infinity;
    rows.forEach((q, r) => {
      const numbers = parts.partsOf(run, q), said = parts.words(numbers), y = top + r * rowH;
      if (numbers.length) parts.bar(c, colours, numbers, stripe, y, 4, Math.max(1, rowH), true);
      const at = Math.max(7, y + rowH / 2);
      if (said && said !== begun && at - last >= 14) { parts.drawBadge(c, colours, numbers, 0, at); last = at; if (numbers.length > 1) wide.push(at); }
      begun = said;
    });
    return wide;
  }
  function tabled({run, detail}) {
    if (!detail) return null;
    const body = [];
    for (let b = 0; b <= run.length; b++) for (const [q, p] of detail.statesAt(b)) if (p > 0) body.push([b, q, parts.words(parts.partsOf(run, q)), p]);
    return {head: ['boundary', 'state', 'part of the source', 'posterior'], body};
  }
  return {element, update, ghost, rows: tabled, modes: [what, choose]};
}
