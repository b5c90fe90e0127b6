// What a finding of a run rests on, drawn: where belief was lost, what each alternative had, the way out of a loop, the nearest answer.

import {el, visible} from '../draw.js';

const MOST = 6;

export function drawn({evidence = {}}, go) {
  const {parts, branches, exit_chances: chances, start, conflict, nearest} = evidence;
  return [
    ...(parts?.[0]?.nats !== undefined ? [bars('Nats lost, by part of the source', parts, part => ({name: part.name, share: part.share, text: `${part.nats.toFixed(2)} · ${percent(part.share)}`, title: `at position ${part.position} the model wanted ${part.wanted} (${percent(part.wanted_probability)})`, go: go && (() => go({step: 0, position: part.position, state: part.state}))}))] : []),
    ...(branches?.length ? [bars('Belief at the start, by alternative', branches, ({name, probability, died, killer}) => ({name, share: probability, text: `${percent(probability)} · ${died === null ? 'won' : `died at step ${died}`}`, title: died === null ? 'what was written' : killer === null ? 'by several commits together' : `by the commit at ${killer}`, go: go && died !== null && (() => go(killer === null ? {step: died} : {step: died, position: killer}))}))] : []),
    ...(chances?.length ? [bars('Chance to leave, by position', chances.map((chance, k) => ({chance, at: start + k})).filter(({chance}) => chance !== null).sort((a, b) => b.chance - a.chance), ({chance, at}) => ({name: `at ${at}`, share: chance, text: percent(chance), go: go && (() => go({position: at}))}))] : []),
    ...(conflict?.length && conflict[0].text !== undefined ? [el('p', {class: 'ds-note', text: 'Together impossible, in brackets on the canvas'}), el('div', {class: 'ds-inline'}, ...conflict.map(({text, position, committed_at: step, impossible_alone: alone}) => el('button', {type: 'button', class: 'ds-link-button', text: `${text} at ${position}`, title: alone ? 'no accepted answer has it there' : 'impossible only because of the others', onclick: () => go?.(step < 0 ? {position} : {step, position})})))] : []),
    ...(nearest ? [el('p', {class: 'ds-note', text: `Nearest accepted answer, ${nearest.changes.length} ${nearest.changes.length === 1 ? 'position' : 'positions'} changed`}), el('pre', {tabindex: 0, text: visible(nearest.text)}), el('ul', {class: 'ds-changed'}, ...nearest.changes.slice(0, MOST).map(({position, from, to}) => el('li', {}, `${position}: `, el('del', {text: from}), ' → ', el('ins', {text: to}))), ...rest(nearest.changes))] : []),
  ];
}

const percent = share => share >= 0.9995 ? '100%' : share >= 0.001 ? `${(100 * share).toFixed(1)}%` : share > 0 ? share.toExponential(1) : '0';
const rest = list => list.length > MOST ? [el('li', {text: `and ${list.length - MOST} more`})] : [];

// Rows of a name, a bar and a number; a click looks at what it is about.
function bars(title, list, row) {
  const rows = list.slice(0, MOST).map(row);
  return el('div', {class: 'ds-shares', role: 'group', 'aria-label': title}, el('p', {class: 'ds-note', text: title}),
    ...rows.map(({name, share, text, title: more = '', go}) => el(go ? 'button' : 'div', {...(go ? {type: 'button', onclick: go} : {}), class: 'ds-share-row', title: more}, el('span', {class: 'name', text: name}), el('span', {class: 'bar', 'aria-hidden': 'true'}, filled(share)), el('span', {class: 'number', text}))),
    ...(list.length > MOST ? [el('p', {class: 'ds-note', text: `and ${list.length - MOST} more`})] : []));
}

function filled(share) {
  const node = el('i');
  node.style.width = `${Math.max(1, 100 * Math.min(1, share))}%`;
  return node;
}
