// Two runs: what was changed, where they part and why, the order of commits as a slope chart, the map of differences, how it ended.

import {el, recording, prepare, place, boxIn, axis, number, visible, cut, alpha, niceStep} from '../draw.js';
import {UNANSWERED} from '../ask.js';
import * as explain from '../explain.js';
import {differs} from '../steps.js';
import {ALIGNMENTS} from '../focus.js';
import * as seeds from './seeds.js';

const NAMES = {accepted: 'accepted', steps: 'steps', model_calls: 'model calls', log_probability: 'log p of the commits', forbidden_mass: 'forbidden mass, mean', lost_at: 'lost at step'};

export function create(go, card, server, act) {
  const changed = el('p', {class: 'ds-changed'}), why = el('div', {class: 'ds-why'}), table = el('table', {class: 'ds-table'}), texts = el('div', {class: 'ds-diff'});
  const map = el('canvas', {class: 'ds-layer'}), pointer = el('i', {class: 'ds-row-mark'}), slope = el('canvas', {class: 'ds-layer'}), tau = el('p', {class: 'ds-note'});
  const mapPlot = el('div', {class: 'ds-plot', role: 'application', tabindex: 0, 'aria-roledescription': 'map', 'aria-label': 'Where the two runs differ, by step and position; arrow keys move in it'}, map, pointer), slopePlot = el('div', {class: 'ds-plot', role: 'application', tabindex: 0, 'aria-roledescription': 'chart', 'aria-label': 'Order of commits in both runs; arrow keys go from line to line'}, slope);
  const align = el('select', {class: 'ds-select', 'aria-label': 'How the two runs are aligned', onchange: () => go({align: align.value})}, ...Object.entries(ALIGNMENTS).map(([value, text]) => el('option', {value, text})));
  const jump = (text, title, name) => el('button', {type: 'button', class: 'ds-icon', text, title, 'aria-label': title, onclick: () => act(name)});
  const beside = el('span', {class: 'ds-note'}), again = seeds.create(server);
  const element = el('div', {class: 'ds-compare'}, el('div', {class: 'ds-align'}, el('span', {class: 'ds-label', text: 'Aligned'}), align, jump('‹', 'Previous difference (⇧ v)', 'differenceBack'), jump('›', 'Next difference (v)', 'difference'), beside), changed, why, el('h4', {text: 'Differences'}), el('p', {class: 'ds-legend'}, el('span', {class: 'ds-key-a', text: '◤ only A commits'}), el('span', {class: 'ds-key-b', text: '◢ only B commits'}), el('span', {text: '≠ both commit, other tokens'})), mapPlot,
    el('h4', {text: 'Order of commits'}), tau, slopePlot, el('h4', {text: 'Outcome'}), table, texts, el('h4', {text: 'Other seeds'}), again.element);
  const known = new Map();
  let x, rowH = 3, now = null, drawn = '', lines = [];

  const find = event => {
    if (!now) return null;
    const at = place(event, mapPlot);
    return {position: x.at(at.x), step: Math.min(Math.max(0, Math.floor((at.y - 2) / rowH)), Math.max(now.a.last, now.b.last))};
  };
  map.addEventListener('click', event => { const found = find(event); if (found) go(found); });
  mapPlot.addEventListener('mousedown', event => event.preventDefault());
  const mark = ({step, position}) => ({key: `${step} ${position}`, step, position, box: () => boxIn(mapPlot, x.x(position), 2 + step * rowH, x.cell, rowH)});
  card.explain(mapPlot, {at: event => { const found = find(event); return found && mark(found); }, here: () => now && x && mark(now), tell: ({step, position}) => explain.difference(now.a, now.b, step, position), move: (dx, dy) => go({step: now.step + dy, position: now.position + dx})});

  // The slopes: a pointer finds the line that it is nearest to, the arrows go through them in the order of A.
  slopePlot.addEventListener('mousedown', event => event.preventDefault());
  const slopeMark = line => line && {key: `${line.i}`, i: line.i, box: () => boxIn(slopePlot, line.x0, Math.min(line.y0, line.y1) - 4, line.x1 - line.x0, Math.abs(line.y1 - line.y0) + 8)};
  const nearest = event => {
    const at = place(event, slopePlot), away = ({x0, x1, y0, y1}) => Math.abs(y0 + (y1 - y0) * Math.min(1, Math.max(0, (at.x - x0) / (x1 - x0))) - at.y);
    return lines.reduce((best, line) => away(line) < (best ? away(best) : 7) ? line : best, null);
  };
  card.explain(slopePlot, {at: event => slopeMark(nearest(event)), here: () => slopeMark(lines.find(({i}) => i === now?.position) ?? lines[0]), tell: ({i}) => explain.order(now.a, now.b, i, lines.find(line => line.i === i)),
    move: (dx, dy) => { const at = lines.findIndex(({i}) => i === now.position), to = lines[Math.max(0, Math.min(lines.length - 1, at + dx + dy))]; if (to) go({position: to.i}); }});
  slopePlot.addEventListener('click', event => { const line = nearest(event); if (line) go({position: line.i}); });
  // A token of the final texts that differs.
  card.explain(texts, {at: ({target}) => { const token = target.closest('ins'); return token && {key: token.dataset.i, i: +token.dataset.i, element: token, box: () => token.getBoundingClientRect()}; }, tell: ({i}) => now && explain.difference(now.a, now.b, Math.max(now.a.last, now.b.last), i)});

  async function ask(a, b) {
    const key = `${a.id} ${b.id} ${a.count} ${b.count}`;
    if (known.has(key)) return known.get(key);
    known.set(key, null);
    const answer = await server.get_comparison({run: a.id, other: b.id});
    if (answer.error === UNANSWERED) known.delete(key); else { known.set(key, answer); go({redraw: true}); }
    return answer;
  }

  function write(answer, {a, b}) {
    if (answer.error) {
      changed.textContent = answer.problem ?? 'One of the runs is no longer held by the server.';
      why.replaceChildren(el('p', {text: answer.remedy ?? ''}));
      table.replaceChildren(); texts.replaceChildren(); tau.textContent = '';
      return;
    }
    const pairs = Object.entries(answer.changed).filter(([name]) => name !== 'source').map(([name, [one, other]]) => `${name} ${cut(`${one}`, 60)} → ${cut(`${other}`, 60)}`);
    changed.replaceChildren(el('b', {text: 'Changed: '}), pairs.join(', ') || (answer.changed.source ? 'the constraint' : 'nothing in the settings'), el('span', {class: 'ds-note', text: answer.shared_noise ? ' Both draw from the same noise.' : ' Different seeds: what differs may be chance.'}));
    why.replaceChildren(...parting(answer.divergence, a, b));
    tau.textContent = answer.tau === null ? 'Kendall’s τ needs two positions committed at different steps in both.' : `Kendall’s τ ${number(answer.tau)}: ${answer.tau > 0.99 ? 'the same order' : answer.tau > 0.3 ? 'mostly the same order' : answer.tau > -0.3 ? 'unrelated orders' : 'mostly the opposite order'}. First on top; solid: earlier in B, dashed: later.`;
    const [one, other] = answer.outcomes, said = (name, value) => value === null || value === undefined ? name === 'lost_at' ? 'never' : '–' : value === true ? '✓ yes' : value === false ? '✕ no' : Number.isInteger(value) ? `${value}` : number(value);
    table.replaceChildren(el('thead', {}, el('tr', {}, el('td'), el('th', {scope: 'col', text: 'A'}), el('th', {scope: 'col', text: 'B'}))),
      el('tbody', {}, ...Object.entries(NAMES).map(([name, text]) => el('tr', {}, el('th', {scope: 'row', text}), el('td', {text: said(name, one[name])}), el('td', {text: said(name, other[name])})))));
    texts.replaceChildren(...[['A', a, one], ['B', b, other]].map(([name, run, {text}]) => el('p', {}, el('span', {class: 'ds-badge', text: name}), ' ', ...marked(run, answer.different, text))));
  }

  // The final text token by token, what differs marked by weight and underline.
  function marked(run, different, text) {
    const set = new Set(different), parts = [];
    for (let i = 0; i < run.length; i++) {
      const id = run.at('committed', run.last, i) || !run.masked(run.last, i) ? run.drawn(run.last, i) : null;
      if (id === null || run.isSpecial(id)) continue;
      const shown = visible(run.text(id));
      parts.push(set.has(i) ? el('ins', {text: shown, 'data-i': i}) : shown);
    }
    return parts.length ? parts : [visible(text)];
  }

  function parting(found, a, b) {
    if (!found) return [el('p', {text: 'The runs never part: at every step that both have they do the same.'})];
    const {step, position, cause} = found, jump = el('button', {type: 'button', class: 'ds-link-button', text: 'go there', onclick: () => go({step, position})});
    const token = (run, i) => cut(visible(run.text(run.drawn(step, i))), 24);
    if (cause === 'canvas') return [el('p', {}, `They part at step ${step}: position ${position} stands differently before it. `, jump)];
    if (cause === 'draw') return [el('p', {}, `They part at step ${step}: at position ${position} A draws `, el('code', {text: token(a, position)}), ' and B ', el('code', {text: token(b, position)}), '. ', jump)];
    const rows = ['A', 'B'].map((name, k) => found.rivals[k] === null ? null : el('tr', {}, el('th', {scope: 'row'}, el('span', {class: 'ds-badge', text: name}), ` commits ${found.rivals[k]} `, el('code', {text: token(k ? b : a, found.rivals[k])})),
      ...['mar', 'mf'].map(which => el('td', {class: which === 'mar' ? 'q' : 'p', text: number(found.rival_confidences[which][k][k] ?? NaN)})))).filter(Boolean);
    return [el('p', {}, `They part at step ${step}: the same draw, and another choice. `, jump),
      el('table', {class: 'ds-table'}, el('thead', {}, el('tr', {}, el('td'), el('th', {scope: 'col', text: 'Mar'}), el('th', {scope: 'col', text: 'Mf'}))), el('tbody', {}, ...rows))];
  }

  function drawMap(view, width) {
    const {a, b, colours} = view, steps = Math.max(a.steps, b.steps), length = Math.min(a.length, b.length);
    x = axis(length, width);
    rowH = Math.max(2, Math.min(14, 180 / steps));
    const c = prepare(map, width, steps * rowH + 20);
    c.strokeStyle = colours.line;
    c.strokeRect(Math.round(x.left) - 0.5, 1.5, Math.round(x.cell * length) + 1, Math.round(steps * rowH) + 1);
    for (let t = 0; t < Math.min(a.count, b.count); t++) for (let i = 0; i < length; i++) {
      const one = a.at('committed', t, i), other = b.at('committed', t, i);
      if (!one && !other) continue;
      const x0 = x.x(i), y0 = 2 + t * rowH, w = Math.max(1.5, x.cell - 1), h = Math.max(1.5, rowH - 1);
      if (one && other) {
        c.fillStyle = alpha(colours.muted, 0.35);
        c.fillRect(x0, y0, w, h);
        if (differs(a, b, t, i)) { c.strokeStyle = colours.error; c.lineWidth = 1.5; c.beginPath(); c.moveTo(x0, y0 + h * 0.35); c.lineTo(x0 + w, y0 + h * 0.35); c.moveTo(x0, y0 + h * 0.65); c.lineTo(x0 + w, y0 + h * 0.65); c.moveTo(x0 + w * 0.7, y0); c.lineTo(x0 + w * 0.3, y0 + h); c.stroke(); }
        continue;
      }
      c.fillStyle = one ? colours.p : colours.q;   // blue: only the second run; orange: only the first
      c.beginPath();
      if (one) { c.moveTo(x0, y0); c.lineTo(x0 + w, y0); c.lineTo(x0, y0 + h); } else { c.moveTo(x0 + w, y0); c.lineTo(x0 + w, y0 + h); c.lineTo(x0, y0 + h); }
      c.fill();
    }
    c.fillStyle = colours.muted;
    c.font = `11px ${colours.sans}`;
    c.textAlign = 'center';
    c.textBaseline = 'top';
    for (let i = 0; i < length; i += niceStep(length, length * x.cell, 30)) c.fillText(`${i}`, x.x(i + 0.5), 6 + steps * rowH);
    c.textAlign = 'left';
  }

  function drawSlope(view, width) {
    const {a, b, colours} = view, length = Math.min(a.length, b.length), rank = run => {
      const order = Array.from({length}, (_, i) => i).filter(i => run.commitStep[i] >= 0).sort((i, j) => run.commitStep[i] - run.commitStep[j] || i - j);
      return {place: new Map(order.map((i, k) => [i, k])), n: order.length};
    };
    const left = rank(a), right = rank(b), n = Math.max(left.n, right.n, 1), row = Math.max(2, Math.min(16, 300 / n)), height = n * row + 22, labels = row >= 11;
    const c = prepare(slope, width, height), x0 = Math.min(150, width * 0.32), x1 = width - x0, y = k => 20 + (k + 0.5) * row;
    c.font = `11px ${colours.mono}`;
    c.textBaseline = 'middle';
    lines = [];
    for (let i = 0; i < length; i++) {
      if (!left.place.has(i) || !right.place.has(i)) continue;
      const from = left.place.get(i), to = right.place.get(i), here = i === view.position;
      c.strokeStyle = here ? colours.ink : from === to ? alpha(colours.muted, 0.35) : to < from ? colours.q : colours.p;
      lines.push({i, from, to, x0, x1, y0: y(from), y1: y(to)});
      c.lineWidth = here ? 2.5 : from === to ? 1 : 1.3;
      c.setLineDash(to > from ? [4, 3] : []);
      c.beginPath();
      c.moveTo(x0, y(from));
      c.lineTo(x1, y(to));
      c.stroke();
      c.setLineDash([]);
      if (!labels) continue;
      c.fillStyle = colours.ink;
      const name = run => `${i} ${cut(visible(run.text(run.drawn(Math.max(0, run.commitStep[i]), i))), 12)}`;
      c.textAlign = 'right';
      c.fillText(name(a), x0 - 6, y(from));
      c.textAlign = 'left';
      c.fillText(name(b), x1 + 6, y(to));
    }
    lines.sort((one, other) => one.from - other.from);
    c.fillStyle = colours.muted;
    c.font = `11px ${colours.sans}`;
    c.textAlign = 'right';
    c.fillText('A', x0 - 6, 8);
    c.textAlign = 'left';
    c.fillText('B', x1 + 6, 8);
  }

  function update(view) {
    const {a, b, compare, changed: fresh, widths, theme} = view;
    if (!compare || !b?.count || !a?.count) return;
    if (now?.a !== a || now?.b !== b) { changed.textContent = 'Comparing…'; why.replaceChildren(); table.replaceChildren(); texts.replaceChildren(); tau.textContent = ''; element.answer = null; }
    now = {a, b, step: view.step, position: Math.min(view.position, Math.min(a.length, b.length) - 1)};
    align.value = view.align;
    beside.textContent = `A at step ${view.steps.a}, B at ${view.steps.b}`;
    again.update(a, b);
    if (view.rested || fresh) ask(a, b).then(answer => { if (answer && element.answer !== answer) { element.answer = answer; write(answer, {a, b}); } });
    const key = [a.id, b.id, a.count, b.count, widths.right, theme, view.position, view.rested].join();
    if ((key !== drawn || recording.has(map)) && (view.rested || fresh)) {
      drawn = key;
      drawMap(view, widths.right);
      drawSlope(view, widths.right);
    }
    if (!x) return;
    pointer.style.transform = `translate(${Math.round(x.left) - 1}px, ${Math.round(2 + view.step * rowH) - 1}px)`;
    pointer.style.width = `${Math.round(x.cell * Math.min(a.length, b.length)) + 2}px`;
    pointer.style.height = `${Math.max(3, Math.round(rowH) + 1)}px`;
  }
  function rows({a, b}) {
    return {head: ['position', 'step in A', 'step in B', 'token in A', 'token in B'], body: Array.from({length: Math.min(a.length, b.length)}, (_, i) => [i, ...[a, b].map(run => run.commitStep[i] < 0 ? null : run.commitStep[i]), ...[a, b].map(run => visible(run.text(run.drawn(run.last, i))))])};
  }
  return {element, update, rows};
}
