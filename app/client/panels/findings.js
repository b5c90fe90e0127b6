// What the diagnosis of the shown run found: severity in word and sign, evidence, where to look, changes that were tried.

import {el} from '../draw.js';
import {drawn} from './evidence.js';

const SIGNS = {error: '✕ error', warning: '▲ warning', info: 'i note'};

// One finding, of a run or of what is still to run: what it is, where, evidence, and changes that mend it.
export function item(found, {go = null, apply}) {
  const {step, position, state} = found.focus ?? {}, seen = Object.entries({step, position, state}).filter(([, value]) => value !== null && value !== undefined);
  const evidence = Object.entries(found.evidence ?? {}), frame = found.frame ? [{...found.where, frame: found.frame}] : [];
  const changes = el('div', {class: 'ds-inline ds-changes'}, ...(go && seen.length ? [el('button', {type: 'button', class: 'ds-link-button', text: 'show me', onclick: () => go(Object.fromEntries(seen))})] : []));
  const node = el('li', {class: `ds-finding ${found.severity}`, 'data-code': found.code ?? ''}, el('p', {}, el('b', {text: SIGNS[found.severity] ?? found.severity}), ' ', el('span', {text: found.message})),
    ...[...frame, ...(found.frames ?? [])].flatMap(lines),
    ...(found.evidence?.accepted && found.evidence.length ? [lengthLine(found.evidence)] : []),
    ...drawn(found, go),
    ...(found.fixes ?? []).map(text => el('p', {class: 'ds-remedy', text})),
    changes,
    ...(evidence.length ? [el('details', {}, el('summary', {text: `evidence · ${found.code}`}), el('pre', {tabindex: 0, text: evidence.map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`).join('\n').slice(0, 4000)}))] : []));
  if (found.may_mend) changes.append(el('span', {class: 'ds-note ds-trying', text: found.may_mend === 1 ? 'trying a change …' : `trying ${found.may_mend} changes …`}));
  else offer(node, found, apply);
  return node;
}

const lines = ({pointer, line, column, frame}) => [el('p', {class: 'ds-note', text: pointer ? `at ${pointer}` : `line ${line}, column ${column}`}), el('pre', {tabindex: 0, text: frame})];

// The changes that were tried and mend it, in the place of the word that they are being tried.
export function offer(node, {remedies = [], untried = 0}, apply) {
  const changes = node.querySelector('.ds-changes');
  changes.querySelector('.ds-trying')?.remove();
  changes.append(...remedies.map(({label, changes}) => el('button', {type: 'button', class: 'ds-button ds-mend', text: label, onclick: () => apply(changes)})),
    ...(untried ? [el('span', {class: 'ds-note', text: `${untried === 1 ? 'One change was' : `${untried} changes were`} not tried: that takes too long.`})] : []));
}

// The accepted lengths on a line, with the canvas's own.
function lengthLine({length, accepted, looked_up_to: last}) {
  const SVG = 'http://www.w3.org/2000/svg', svg = document.createElementNS(SVG, 'svg'), least = accepted[0]?.[0] ?? length;
  const low = Math.max(0, Math.min(length, least) - 2), high = Math.min(last, Math.max(length, least) + 8), x = n => 8 + 224 * (n - low) / Math.max(1, high - low);
  const add = (name, attributes, text = '') => { const node = document.createElementNS(SVG, name); for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value); node.textContent = text; svg.append(node); };
  for (const [key, value] of Object.entries({viewBox: '0 0 240 34', class: 'ds-lengths', role: 'img', 'aria-label': `Accepted lengths ${accepted.map(([a, b]) => a === b ? a : `${a} to ${b}`).join(', ') || 'none'}; the canvas has ${length}`})) svg.setAttribute(key, value);
  add('line', {x1: 4, x2: 236, y1: 14, y2: 14, class: 'axis'});
  for (const [from, to] of accepted) if (from <= high && to >= low) add('line', {x1: x(Math.max(from, low)) - 2, x2: x(Math.min(to, high)) + 2, y1: 14, y2: 14, class: 'fits'});
  add('path', {d: `M${x(length)} 9 l4 -7 h-8 z`, class: 'canvas'});
  for (const n of new Set([length, ...accepted.flat().filter(n => low <= n && n <= high).slice(0, 3)])) add('text', {x: x(n), y: 30, 'text-anchor': 'middle'}, String(n));
  return svg;
}

export function create(go, trigger, server) {
  const list = el('ul', {class: 'ds-findings'}), rest = el('ul', {class: 'ds-findings'}), summary = el('summary'), more = el('details', {class: 'ds-more', hidden: true}, summary, rest), ask = el('button', {type: 'button', class: 'ds-button', text: 'Diagnose this run', onclick: diagnose});
  const note = el('p', {class: 'ds-note'});
  const element = el('div', {}, el('div', {class: 'ds-inline'}, ask, note), list, more);
  const known = new Map();
  let run = null;

  async function diagnose() {
    const asked = run;
    note.textContent = 'looking…';
    ask.disabled = true;
    const answer = await server.get_findings({run: asked.id});
    ask.disabled = false;
    known.set(`${asked.id} ${asked.count}`, answer);
    const lost = answer.findings?.find(found => found.evidence?.conflict)?.evidence.conflict;
    asked.conflict = lost && new Set(lost.map(({position}) => position));   // in brackets on the canvas
    go({redraw: true});
    if (run === asked) write();
  }

  function write() {
    const answer = known.get(`${run.id} ${run.count}`);
    list.replaceChildren();
    more.hidden = true;
    note.textContent = '';
    if (!answer) return;
    if (answer.error) { note.textContent = [answer.problem ?? 'This run is no longer held by the server.', answer.remedy].filter(Boolean).join(' '); return; }
    if (!answer.findings.length) note.textContent = 'Nothing to report.';
    const items = answer.findings.map(found => item(found, {go, apply: changes => trigger('remedy', {run: run.id, changes})}));
    list.replaceChildren(...items.slice(0, 1));
    rest.replaceChildren(...items.slice(1));
    more.hidden = items.length < 2;
    summary.textContent = items.length === 2 ? 'one more finding' : `${items.length - 1} more findings`;
  }

  function update(view) {
    if (!view.changed || (run === view.run && !known.size)) { run ??= view.run; return; }
    run = view.run;
    write();
  }
  return {element, update};
}
