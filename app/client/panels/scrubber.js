// Steps as lanes under a playhead: log Z, commits, where the confidences disagree, draws that were not accepted.

import {el, icon, prepare, boxIn, alpha, diamond, number} from '../draw.js';
import * as explain from '../explain.js';

export function create(go, card) {
  const canvas = el('canvas', {class: 'ds-lanes', 'aria-hidden': 'true'});
  const range = el('input', {type: 'range', min: 0, max: 0, value: 0, class: 'ds-range', 'aria-label': 'Denoising step'});
  const track = el('div', {class: 'ds-track'}, canvas, range);
  const label = el('output', {class: 'ds-step'});
  const button = (path, title, act) => el('button', {type: 'button', class: 'ds-icon', title, 'aria-label': title, onclick: act}, icon(path));
  const element = el('div', {class: 'ds-transport'},
    el('div', {class: 'ds-buttons'},
      button('M2 3h2v10H2zM14 3v10L5 8z', 'First step (Home)', () => go({step: 0})), button('M12 3v10L4 8z', 'Step back (←)', () => go({by: -1})),
      button('M4 3v10l8-5z', 'Step on (→)', () => go({by: 1})), button('M12 3h2v10h-2zM2 3v10l9-5z', 'Last step (End)', () => go({step: Infinity}))),
    track, label);
  range.addEventListener('input', () => go({step: +range.value}));
  const THUMB = 11, height = 46;
  let now = null;
  const mark = t => ({key: `${t}`, t, element: range, box: () => boxIn(track, t * track.clientWidth / now.run.steps, 0, track.clientWidth / now.run.steps, height)});
  const under = event => { const box = track.getBoundingClientRect(); return Math.max(0, Math.min(Math.floor((event.clientX - box.left) / box.width * now.run.steps), now.run.last)); };
  card.explain(track, {at: event => now && mark(under(event)), here: () => now && mark(now.step), tell: ({t}) => explain.step(now.run, t, now)});

  function draw({run, other, colours, ticks}) {
    const width = track.clientWidth, cell = width / run.steps;
    const c = prepare(canvas, width, height);
    // The playhead's centre runs from the middle of the first cell to the middle of the last.
    range.style.left = `${cell / 2 - THUMB / 2}px`;
    range.style.width = `${width - cell + THUMB}px`;
    range.max = run.steps - 1;
    const base = height - 3, bars = 15, line = {top: 7, bottom: height - bars - 8};
    const most = Math.max(1, ...Array.from({length: run.count}, (_, t) => run.commits(t)));
    c.fillStyle = alpha(colours.muted, 0.4);
    for (let t = 0; t < run.count; t++) {
      const h = run.commits(t) / most * bars;
      c.fillRect(t * cell + Math.min(1, cell * 0.1), base - h, Math.max(1, cell - Math.min(2, cell * 0.2)), h);
    }
    c.fillStyle = colours.line;
    c.fillRect(0, base, width, 1);
    const shown = other ? [[other, colours.muted, true], [run, colours.q, false]] : [[run, colours.q, false]];
    let low = -1e-9;
    for (const [r] of shown) for (let t = 0; t < r.count; t++) { const z = r.at('log_partition', t); if (z > -Infinity) low = Math.min(low, z); }
    for (const [r, colour, dashed] of shown) {
      c.strokeStyle = colour;
      c.lineWidth = 1.5;
      c.setLineDash(dashed ? [4, 3] : []);
      c.beginPath();
      let pen = false;
      for (let t = 0; t < r.count; t++) {
        const z = r.at('log_partition', t), x = (t + 0.5) * width / r.steps;
        if (z === -Infinity) { pen = false; continue; }
        const y = line.top + z / low * (line.bottom - line.top);
        if (pen) c.lineTo(x, y); else c.moveTo(x, y);
        pen = true;
      }
      c.stroke();
    }
    c.setLineDash([]);
    // Largest KL of each step, dotted: where the constraint pushed hardest.
    const push = t => { let most = 0; const kl = run.row('kl', t); for (let i = 0; i < run.length; i++) if (kl[i] < Infinity && kl[i] > most) most = kl[i]; return most; };
    const top = run.top.kl || 1;
    c.strokeStyle = colours.muted;
    c.lineWidth = 1;
    c.setLineDash([1, 2]);
    c.beginPath();
    for (let t = 0; t < run.count; t++) c.lineTo((t + 0.5) * cell, line.bottom - push(t) / top * (line.bottom - line.top));
    c.stroke();
    c.setLineDash([]);
    // Where p and q prefer different tokens, a tick each step, as tall as many positions do.
    const flips = run.flips(), mostFlips = Math.max(1, ...flips);
    c.fillStyle = colours.p;
    flips.forEach((n, t) => { const h = n / mostFlips * 5; if (n) c.fillRect((t + 0.5) * cell - 0.75, base - bars + 1, 1.5, Math.max(2, h)); });
    c.fillStyle = colours.ink;
    for (const t of ticks) { const x = (t + 0.5) * cell; c.beginPath(); c.moveTo(x - 4, height); c.lineTo(x + 4, height); c.lineTo(x, height - 6); c.closePath(); c.fill(); }
    for (let t = 0; t < run.count; t++) {
      const x = (t + 0.5) * cell;
      if (run.disagrees(t)) { c.strokeStyle = colours.p; c.lineWidth = 1; diamond(c, x, base - bars - 4, 3); c.stroke(); }
      if (run.at('log_partition', t) === -Infinity || !run.drawnAccepted[t]) {
        c.strokeStyle = colours.error;
        c.lineWidth = 1.5;
        c.beginPath();
        c.moveTo(x - 3, 2); c.lineTo(x + 3, 8); c.moveTo(x + 3, 2); c.lineTo(x - 3, 8);
        c.stroke();
      }
    }
  }

  function update(view) {
    const {run, step} = view;
    now = view;
    if (view.changed) draw(view);
    range.value = step;
    range.setAttribute('aria-valuetext', `step ${step} of 0 to ${run.steps - 1}`);
    label.replaceChildren(el('b', {text: `${step}`}), ` / ${run.steps - 1}`,
      el('span', {class: 'ds-z', text: `log Z ${number(run.at('log_partition', step))}`, title: 'Log probability, in nats, that an unconstrained draw of this step would be accepted'}));
  }
  return {element, update};
}
