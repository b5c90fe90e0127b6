// One position: what the model gives its tokens (p, hollow diamonds) against what the constraint leaves (q, filled discs).

import {el, prepare, number, probability, visible, cut, alpha, diamond} from '../draw.js';

const ROWS = 24;

export function create(go) {
  const heading = el('div', {class: 'ds-where'}), facts = el('dl', {class: 'ds-facts'}), rows = el('div', {class: 'ds-rows', role: 'table', tabindex: 0, 'aria-label': 'Probabilities of tokens'});
  const logScale = el('input', {type: 'checkbox', id: 'ds-log'}), order = el('select', {class: 'ds-select', 'aria-label': 'Order of the tokens'},
    ...[['q', 'by q'], ['p', 'by p'], ['change', 'by |q − p|']].map(([value, text]) => el('option', {value, text})));
  const spark = el('canvas', {class: 'ds-spark', 'aria-hidden': 'true'}), needle = el('i', {class: 'ds-needle'});
  const over = el('div', {}, el('div', {class: 'ds-label', text: 'over the steps: Mar solid, Mf dashed, KL dotted'}), el('div', {class: 'ds-plot', 'aria-hidden': 'true'}, spark, needle));
  let drawn = '', of = null;
  const key = el('div', {class: 'ds-key'}, el('span', {class: 'ds-mark q'}), 'q constrained', el('span', {class: 'ds-mark p'}), 'p model');
  const element = el('div', {class: 'ds-inspector'}, heading, facts,
    el('div', {class: 'ds-controls'}, key, el('span', {class: 'ds-grow'}), order, el('label', {class: 'ds-check'}, logScale, 'log')),
    rows, over);
  let last = null;
  const again = () => last && update(last);
  logScale.addEventListener('change', again);
  order.addEventListener('change', again);

  const nats = x => number(Math.abs(x) < 1e-9 ? 0 : x);   // what rounding leaves of 0
  const fact = {};
  for (const [name, label, what] of [['mar', 'Mar', 'constrained confidence of the drawn token, at temperature 1'], ['mf', 'Mf', 'unconstrained confidence of the drawn token, at temperature 1'],
    ['q', 'H(q)', 'entropy of the posterior, nats'], ['p', 'H(p)', 'entropy of the mean field, nats'], ['kl', 'KL', 'KL(q‖p), nats'], ['forbidden', 'forbidden', 'mass of tokens that no accepted completion can use here']]) {
    fact[name] = el('dd');
    facts.append(el('div', {class: name, title: what}, el('dt', {text: label}), fact[name]));
  }

  const pool = [];
  function line(k) {
    if (pool[k]) return pool[k];
    const name = el('span', {class: 'ds-name', role: 'cell'}), bar = el('i', {class: 'ds-link'}), p = el('i', {class: 'ds-mark p'}), q = el('i', {class: 'ds-mark q'});
    const track = el('span', {class: 'ds-dumbbell', 'aria-hidden': 'true'}, bar, p, q), qText = el('span', {class: 'ds-n q', role: 'cell'}), pText = el('span', {class: 'ds-n p', role: 'cell'});
    const row = el('div', {class: 'ds-row', role: 'row'}, name, track, qText, pText);
    return pool[k] = {row, name, bar, p, q, qText, pText};
  }

  function scaled(value) {
    if (!logScale.checked) return value;
    return value <= 0 ? 0 : Math.max(0, 1 + Math.log10(value) / 6);
  }

  function put(k, text, q, p, kind, title) {
    const r = line(k), a = 100 * scaled(p), b = 100 * scaled(q);
    r.row.className = `ds-row ${kind}`;
    r.name.textContent = text;
    r.name.title = title ?? '';
    r.p.style.left = `${a}%`;
    r.q.style.left = `${b}%`;
    r.bar.style.left = `${Math.min(a, b)}%`;
    r.bar.style.width = `${Math.abs(a - b)}%`;
    r.qText.textContent = probability(q);
    r.pText.textContent = probability(p);
    return r.row;
  }

  function update(view) {
    last = view;
    const {run, step, position: i, detail, colours} = view;
    const masked = run.masked(step, i), now = run.at('committed', step, i), id = run.drawn(step, i);
    const token = el('code', {class: 'ds-big', text: cut(visible(run.text(id)), 60)});
    const commit = run.commitStep[i];
    heading.replaceChildren(el('span', {class: 'ds-label', text: `position ${i}`}), token,
      el('span', {class: 'ds-note', text: !masked ? commit < 0 ? 'pinned' : `committed at step ${commit}` : now ? 'committed by this step' : run.rival(step, i) ? `drawn; ${run.config.confidence === 'mar' ? 'Mf' : 'Mar'} would commit it` : 'masked; drawn'}));
    if (!masked && commit >= 0) heading.append(el('button', {type: 'button', class: 'ds-link-button', text: 'go there', onclick: () => go({step: commit})}));
    const state = masked ? {mar: 'confidence_mar', mf: 'confidence_mf'} : {};
    for (const name of ['mar', 'mf']) {
      const value = state[name] ? run.at(state[name], step, i) : NaN;
      fact[name].textContent = value === -Infinity ? 'later block' : number(value);
    }
    for (const [name, of] of [['q', 'entropy_posterior'], ['p', 'entropy_mean_field'], ['kl', 'kl']]) fact[name].textContent = nats(run.at(of, step, i));
    fact.forbidden.textContent = probability(run.at('forbidden_mass', step, i));
    element.classList.toggle('waiting', !detail);
    if (!detail && of !== run) rows.replaceChildren();   // another run's numbers must not stand here
    of = run;
    if (detail) {
      const by = {q: (a, b) => b.q - a.q || b.p - a.p, p: (a, b) => b.p - a.p || b.q - a.q, change: (a, b) => Math.abs(b.q - b.p) - Math.abs(a.q - a.p)}[order.value];
      const tokens = detail.tops(i).sort(by).slice(0, ROWS), shown = [];
      let q = 0, p = 0, out = 0, allowed = 0;
      tokens.forEach((token, k) => {
        q += token.q;
        if (token.q > 0) { p += token.p; allowed++; } else out += token.p;
        const text = run.text(token.id);
        const kind = `${token.q > 0 ? '' : 'forbidden'} ${token.id === id ? 'drawn' : ''} ${run.isSpecial(token.id) ? 'special' : ''}`;
        shown.push(put(k, cut(visible(text), 26) || '∅', token.q, token.p, kind, `token ${token.id}${token.q > 0 ? '' : ', forbidden here'}`));
      });
      const forbidden = run.at('forbidden_mass', step, i), n = shown.length;
      if (masked) {
        const dead = run.at('log_partition', step) === -Infinity;
        const others = Math.max(0, detail.allowed(i) - allowed), none = run.head.vocab - detail.allowed(i);
        const rest = x => x < 2e-6 ? 0 : x;   // what float32 sums leave is not mass
        shown.push(put(n, `other allowed (${others.toLocaleString('en')})`, others ? rest(1 - q) : 0, others ? rest(1 - forbidden - p) : 0, 'rest'));
        shown.push(put(n + 1, `forbidden (${none.toLocaleString('en')})`, 0, forbidden, 'rest'));
        shown.push(put(n + 2, 'total', dead ? 0 : 1, 1, 'rest total'));
      }
      // The pool's rows stand in order already: only their number can change.
      while (rows.childElementCount > shown.length) rows.lastChild.remove();
      for (let k = rows.childElementCount; k < shown.length; k++) rows.append(shown[k]);
    }
    sparkline(view);
  }

  // Mf, Mar and KL of this position over the steps, the commit marked.
  function sparkline({run, step, position: i, colours, widths, theme}) {
    over.hidden = run.steps === 1;
    if (over.hidden) return;
    const width = Math.max(80, widths.right), height = 54, x = t => 3 + (t + 0.5) / run.steps * (width - 6), y = v => height - 4 - v * (height - 8);
    needle.style.transform = `translateX(${x(step)}px)`;
    const key = [run.id, run.count, i, width, theme].join();
    if (key === drawn) return;
    drawn = key;
    const c = prepare(spark, width, height);
    c.fillStyle = colours.line;
    c.fillRect(0, y(0), width, 1);
    const commit = run.commitStep[i];
    if (commit >= 0) { c.fillStyle = alpha(colours.muted, 0.12); c.fillRect(x(commit), 0, width - x(commit), height); }
    const top = run.top.kl || 1;
    for (const [name, colour, dash, scale] of [['kl', colours.muted, [1, 2], top], ['confidence_mf', colours.p, [4, 3], 1], ['confidence_mar', colours.q, [], 1]]) {
      c.strokeStyle = colour;
      c.lineWidth = 1.5;
      c.setLineDash(dash);
      c.beginPath();
      let pen = false, end = null;
      for (let t = 0; t < run.count; t++) {
        const v = run.at(name, t, i) / scale;
        if (!Number.isFinite(v) || !run.masked(t, i)) { pen = false; continue; }
        if (pen) c.lineTo(x(t), y(Math.min(1, v))); else c.moveTo(x(t), y(Math.min(1, v)));
        pen = true;
        end = [x(t), y(Math.min(1, v))];
      }
      c.stroke();
      c.setLineDash([]);
      if (end && name !== 'kl') {
        c.fillStyle = colour;
        if (name === 'confidence_mar') { c.beginPath(); c.arc(...end, 3, 0, 7); c.fill(); } else { diamond(c, ...end, 3.5); c.fillStyle = colours.paper; c.fill(); c.stroke(); }
      }
    }
  }
  function tabled({run, step, position: i, detail}) {
    return detail && {head: ['token', 'id', 'q', 'p'], body: detail.tops(i).sort((a, b) => b.q - a.q || b.p - a.p).map(({id, p, q}) => [visible(run.text(id)), id, q, p])};
  }
  return {element, update, rows: tabled};
}
