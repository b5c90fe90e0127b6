// One position: what the model gives its tokens (p, hollow diamonds) against what the constraint leaves (q, filled discs), what it was at every step, its neighbours, and why a token may stand there.

import {el, prepare, number, probability, visible, cut, alpha, diamond} from '../draw.js';
import * as explain from '../explain.js';
import * as neighbours from './neighbours.js';
import * as why from './why.js';

const ROWS = 24;
const LEAST = 1e-6;   // where the logarithmic axis begins

const ratio = ({q, p}) => Math.log(q) - Math.log(p);
const change = ({q, p}) => Math.abs(q - p);
// Orders of the tokens: what is said of each, and how it compares.
export const ORDERS = {q: ['by q', (a, b) => b.q - a.q || b.p - a.p], p: ['by p', (a, b) => b.p - a.p || b.q - a.q], change: ['by |q − p|', (a, b) => change(b) - change(a)],
  ratio: ['by log q/p', (a, b) => (ratio(b) === ratio(a) ? 0 : ratio(b) - ratio(a)) || b.p - a.p]};

const FACTS = [['mar', 'Mar'], ['mf', 'Mf'], ['q', 'H(q)'], ['p', 'H(p)'], ['kl', 'KL'], ['rank', 'rank q · p'], ['forbidden', 'forbidden']];

export function create(go, card, server, hover, settings, offline) {
  const heading = el('div', {class: 'ds-where'}), facts = el('dl', {class: 'ds-facts', tabindex: 0, 'aria-label': 'Numbers of the position; arrow keys move in them'}), fact = {}, atCommit = {};
  for (const [name, label] of FACTS) {
    const term = el('dt', {text: label});
    if (['mar', 'mf', 'rank'].includes(name)) atCommit[name] = term;
    facts.append(el('div', {class: name, 'data-fact': name}, term, fact[name] = el('dd')));
  }
  const low = el('span'), high = el('span', {text: '1'});
  const head = el('div', {class: 'ds-row head', role: 'row'}, el('span', {role: 'columnheader', text: 'token'}), el('span', {class: 'ds-axis-ends', 'aria-hidden': 'true'}, low, high), el('span', {class: 'ds-n q', role: 'columnheader', text: 'q'}), el('span', {class: 'ds-n p', role: 'columnheader', text: 'p'}));
  const body = el('div', {class: 'ds-rows', role: 'rowgroup'}), table = el('div', {role: 'table', 'aria-label': 'Probabilities of tokens'}, el('div', {role: 'rowgroup'}, head), body);
  const spark = el('canvas', {class: 'ds-spark', 'aria-hidden': 'true'}), needle = el('i', {class: 'ds-needle'}), plot = el('div', {class: 'ds-plot', role: 'img'}, spark, needle);
  const over = el('div', {class: 'ds-over'}, el('div', {class: 'ds-label', text: 'over the steps: Mar solid, Mf dashed, KL dotted, ▾ commit'}), plot);
  const around = neighbours.create(go, card, hover, offline), reasons = why.create(go, server);
  const element = el('div', {class: 'ds-position-column'}, heading, facts, table, reasons.element, around.element, over);
  let drawn = '', of = null, last = null, position = 0;

  // What the card says of a number, and of a token; the keyboard goes through the numbers by the arrows.
  let chosen = 0;
  const box = (node, part) => ({key: part, part, element: node, box: () => node.getBoundingClientRect()});
  const factMark = node => node && {key: node.dataset.fact, element: facts, box: () => node.getBoundingClientRect()};
  function move(dx, dy) {
    facts.children[chosen].classList.remove('at');
    chosen = Math.max(0, Math.min(FACTS.length - 1, chosen + dx + dy));
    facts.children[chosen].classList.add('at');
  }
  card.explain(facts, {at: ({target}) => factMark(target.closest('[data-fact]')), here: () => factMark(facts.children[chosen]), move, tell: ({key}) => last && explain.fact(last.run, last.step, position, key)});
  card.explain(body, {at: ({target}) => { const row = target.closest('.ds-row'), name = row?.querySelector('.ds-name'); return name ? box(name, row.dataset.id ?? row.dataset.rest) : null; }, tell: ({part}) => last?.detail ? explain.candidate(last.run, last.step, position, part, {offline}) : null});

  // Rows

  const pool = [], rest = ['other', 'forbidden', 'total'].map(name => line(el('span', {class: 'ds-name', role: 'rowheader', tabindex: -1}), name));
  function line(name, remainder = null) {
    const bar = el('i', {class: 'ds-link'}), p = el('i', {class: 'ds-mark p'}), q = el('i', {class: 'ds-mark q'}), qText = el('span', {class: 'ds-n q', role: 'cell'}), pText = el('span', {class: 'ds-n p', role: 'cell'});
    const held = name.tagName === 'BUTTON' ? el('span', {role: 'rowheader', class: 'ds-name-cell'}, name) : name;
    return {row: el('div', {class: 'ds-row', role: 'row', 'data-rest': remainder}, held, el('span', {class: 'ds-dumbbell', 'aria-hidden': 'true'}, bar, p, q), qText, pText), name, bar, p, q, qText, pText};
  }
  const token = k => pool[k] ??= line(el('button', {type: 'button', class: 'ds-name', tabindex: -1}));
  const scaled = value => settings.log ? value <= 0 ? 0 : Math.max(0, 1 - Math.log10(value) / Math.log10(LEAST)) : value;

  function put(r, text, {q, p}, kind) {
    const a = 100 * scaled(p), b = 100 * scaled(q);
    r.row.className = `ds-row ${kind}`;
    r.name.textContent = text;
    r.p.style.left = `${a}%`;
    r.q.style.left = `${b}%`;
    r.bar.style.left = `${Math.min(a, b)}%`;
    r.bar.style.width = `${Math.abs(a - b)}%`;
    r.qText.textContent = probability(q);
    r.pText.textContent = probability(p);
    return r.row;
  }

  body.addEventListener('click', event => {
    const id = event.target.closest('[data-id]')?.dataset.id;
    if (id !== undefined) go({token: last.token === +id ? null : +id});
  });
  // One stop for the table; the arrow keys go from token to token.
  body.addEventListener('keydown', event => {
    const by = {ArrowDown: 1, ArrowUp: -1}[event.key], names = [...body.querySelectorAll('.ds-name')], at = names.indexOf(document.activeElement);
    if (!by || at < 0) return;
    event.preventDefault();
    event.stopPropagation();
    const to = names[Math.max(0, Math.min(names.length - 1, at + by))];
    for (const name of names) name.tabIndex = name === to ? 0 : -1;
    to.focus();
  });

  function list({run, step, detail, token: chosen}, i) {
    const masked = run.masked(step, i), id = run.drawn(step, i), tokens = detail.tops(i).sort(ORDERS[settings.order][1]).slice(0, ROWS);
    const sum = {q: 0, p: 0, allowed: 0}, shown = tokens.map((one, k) => {
      sum.q += one.q;
      if (one.q > 0) { sum.p += one.p; sum.allowed++; }
      const r = token(k), kind = [one.q > 0 ? '' : 'forbidden', one.id === id ? 'drawn' : '', run.isSpecial(one.id) ? 'special' : '', one.id === chosen ? 'chosen' : ''].join(' ');
      r.row.dataset.id = one.id;
      r.name.setAttribute('aria-pressed', one.id === chosen);
      r.name.tabIndex = one.id === chosen || (chosen === null || !tokens.some(other => other.id === chosen)) && k === 0 ? 0 : -1;
      return put(r, cut(visible(run.text(one.id)), 26) || '∅', one, kind);
    });
    if (masked) {
      const forbidden = run.at('forbidden_mass', step, i), dead = run.at('log_partition', step) === -Infinity;
      const others = Math.max(0, detail.allowed(i) - sum.allowed), none = run.head.vocab - detail.allowed(i), left = x => x < 2e-6 ? 0 : x;   // what float32 sums leave is not mass
      const said = [[`other allowed (${others.toLocaleString('en')})`, {q: others ? left(1 - sum.q) : 0, p: others ? left(1 - forbidden - sum.p) : 0}, 'rest'], [`forbidden (${none.toLocaleString('en')})`, {q: 0, p: forbidden}, 'rest'], ['total', {q: dead ? 0 : 1, p: 1}, 'rest total']];
      said.forEach((of, k) => shown.push(put(rest[k], ...of)));
    }
    // Rows that stand in order already stay where they are: moving one would take the keyboard's focus from it.
    shown.forEach((row, k) => { if (body.children[k] !== row) body.insertBefore(row, body.children[k] ?? null); });
    while (body.childElementCount > shown.length) body.lastChild.remove();
  }

  // Header

  const nats = x => number(Math.abs(x) < 1e-9 ? 0 : x);   // what rounding leaves of 0

  function say({run, step, detail}, i) {
    const masked = run.masked(step, i), now = run.at('committed', step, i), id = run.drawn(step, i), commit = run.commitStep[i];
    const state = !masked ? commit < 0 ? 'pinned' : `committed at step ${commit}` : now ? 'committed by this step' : run.rival(step, i) ? `drawn; ${run.config.confidence === 'mar' ? 'Mf' : 'Mar'} would commit it` : 'masked; drawn';
    heading.replaceChildren(el('span', {class: 'ds-label', text: `position ${i}`}), el('code', {class: 'ds-big', text: cut(visible(run.text(id)), 60)}), el('span', {class: 'ds-note', text: state}));
    if (!masked && commit >= 0) heading.append(el('button', {type: 'button', class: 'ds-link-button', text: 'go there', onclick: () => go({step: commit})}));
    // Of what is committed, as it was when it was.
    const at = masked ? step : commit, when = masked || commit < 0 ? '' : ` at ${commit}`, ranks = (masked ? detail : run.detail(commit))?.ranks(i, id);
    for (const [name, label] of FACTS) if (name in atCommit) atCommit[name].textContent = `${label}${when}`;
    for (const name of ['mar', 'mf']) {
      const value = at < 0 ? NaN : run.at(`confidence_${name}`, at, i);
      fact[name].textContent = value === -Infinity ? 'later block' : number(value);
    }
    for (const [name, from] of [['q', 'entropy_posterior'], ['p', 'entropy_mean_field'], ['kl', 'kl']]) fact[name].textContent = nats(run.at(from, step, i));
    fact.forbidden.textContent = probability(run.at('forbidden_mass', step, i));
    fact.rank.textContent = ranks ? `${ranks.q} · ${ranks.p}` : '–';
  }

  function update(view, i, width) {
    last = view;
    position = i;
    const {run, detail} = view;
    say(view, i);
    low.textContent = settings.log ? '10⁻⁶' : '0';
    element.classList.toggle('waiting', !detail);
    if (!detail && of !== run) body.replaceChildren();   // another run's numbers must not stand here
    of = run;
    if (detail) list(view, i);
    around.update(view, i);
    reasons.update(view, i);
    sparkline(view, i, width);
  }

  // Mf, Mar and KL of this position over the steps, the commit marked.
  function sparkline({run, step, colours, theme}, i, width) {
    over.hidden = run.steps === 1;
    if (over.hidden) return;
    const height = 54, x = t => 3 + (t + 0.5) / run.steps * (width - 6), y = v => height - 4 - v * (height - 8);
    needle.style.transform = `translateX(${x(step)}px)`;
    const key = [run.id, run.count, i, width, theme].join();
    if (key === drawn) return;
    drawn = key;
    const c = prepare(spark, width, height), commit = run.commitStep[i], top = run.top.kl || 1;
    plot.setAttribute('aria-label', `Mar, Mf and KL of position ${i} over the steps${commit < 0 ? '' : `; committed at step ${commit}`}`);
    c.fillStyle = colours.line;
    c.fillRect(0, y(0), width, 1);
    if (commit >= 0) {
      c.fillStyle = alpha(colours.muted, 0.12);
      c.fillRect(x(commit), 0, width - x(commit), height);
      c.fillStyle = colours.ink;
      c.fillRect(x(commit) - 0.5, 0, 1, height);
      c.beginPath(); c.moveTo(x(commit) - 4, 0); c.lineTo(x(commit) + 4, 0); c.lineTo(x(commit), 6); c.closePath(); c.fill();
    }
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
  return {element, update};
}
