// What the diagnosis of the shown run found: severity in word and sign, evidence, where to look, changes that were tried.

import {el} from '../draw.js';

const SIGNS = {error: '✕ error', warning: '▲ warning', info: 'i note'};

export function create(go, trigger, server) {
  const list = el('ul', {class: 'ds-findings'}), ask = el('button', {type: 'button', class: 'ds-button', text: 'Diagnose this run', onclick: diagnose});
  const note = el('p', {class: 'ds-note'});
  const element = el('div', {}, el('div', {class: 'ds-inline'}, ask, note), list);
  const known = new Map();
  let run = null;

  async function diagnose() {
    const asked = run;
    note.textContent = 'looking…';
    ask.disabled = true;
    const answer = await server.get_findings({run: asked.id});
    ask.disabled = false;
    known.set(`${asked.id} ${asked.count}`, answer);
    if (run === asked) write();
  }

  function write() {
    const answer = known.get(`${run.id} ${run.count}`);
    list.replaceChildren();
    note.textContent = '';
    if (!answer) return;
    if (answer.error) { note.textContent = answer.problem ?? 'This run is no longer held by the server.'; return; }
    if (!answer.findings.length) note.textContent = 'Nothing to report.';
    list.replaceChildren(...answer.findings.map(item));
  }

  function item(found) {
    const {step, position, state} = found.focus ?? {}, seen = Object.entries({step, position, state}).filter(([, value]) => value !== null && value !== undefined);
    const evidence = Object.entries(found.evidence ?? {});
    return el('li', {class: `ds-finding ${found.severity}`}, el('p', {}, el('b', {text: SIGNS[found.severity] ?? found.severity}), ' ', el('span', {text: found.message})),
      ...(found.fixes ?? []).map(text => el('p', {class: 'ds-remedy', text})),
      el('div', {class: 'ds-inline'}, ...(seen.length ? [el('button', {type: 'button', class: 'ds-link-button', text: 'show me', onclick: () => go(Object.fromEntries(seen))})] : []),
        ...(found.remedies ?? []).map(({label, changes}) => el('button', {type: 'button', class: 'ds-button', text: label, onclick: () => trigger('remedy', {run: run.id, changes})}))),
      ...(evidence.length ? [el('details', {}, el('summary', {text: `evidence · ${found.code}`}), el('pre', {tabindex: 0, text: evidence.map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`).join('\n')}))] : []));
  }

  function update(view) {
    if (!view.changed || (run === view.run && !known.size)) { run ??= view.run; return; }
    run = view.run;
    write();
  }
  return {element, update};
}
