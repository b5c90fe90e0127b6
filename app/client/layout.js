// What stands where: bar, transport, panels in their frames, dialogs. Builds the parts and hands them out.

import {el} from './draw.js';
import {frame} from './frame.js';
import {sheet} from './keys.js';
import * as explainer from './card.js';
import * as scrubber from './panels/scrubber.js';
import * as tokens from './panels/tokens.js';
import * as loom from './panels/loom.js';
import * as tree from './panels/tree.js';
import * as trellis from './panels/trellis.js';
import * as weights from './panels/weights.js';
import * as inspector from './panels/inspector.js';
import * as exact from './panels/exact.js';
import * as midpoint from './panels/midpoint.js';
import * as automaton from './panels/automaton.js';
import * as commits from './panels/commits.js';
import * as phases from './panels/phases.js';
import * as compare from './panels/compare.js';
import * as findings from './panels/findings.js';
import * as breaks from './panels/breaks.js';
import * as forks from './panels/fork.js';
import * as runTree from './panels/runs.js';

export function build({root, props, server, trigger, go, act, view, redraw}) {
  const card = explainer.create(root, go, view), offline = Boolean(props.offline);
  // What the pointer is over, a transient second focus: panels mark it with dots, and nothing else follows it.
  const hover = at => { for (const part of [parts.tokens, parts.loom, parts.trellis]) part.ghost(at); };
  const parts = {scrubber: scrubber.create(go, card), tokens: tokens.create(go, card, offline, (position, side) => parts.automaton.point(position, side), hover), phases: phases.create(go), loom: loom.create(go, card, offline, hover), tree: tree.create(go, card, trigger), trellis: trellis.create(go, card, server, hover), weights: weights.create(go, card, server),
    inspector: inspector.create(go, card, server, hover, offline), exact: exact.create(go, server), midpoint: midpoint.create(), automaton: automaton.create(go, card, props.graphviz, (positions, side) => parts.tokens.light(positions, side)), commits: commits.create(go), compare: compare.create(go, card, server, act), breaks: breaks.create(go, trigger, server), findings: findings.create(go, trigger, server)};
  const choices = props.choices ?? {kinds: ['regex', 'choices'], remasking: ['low_confidence', 'random']};
  const fork = forks.create(trigger, choices), runs = runTree.create(trigger, go);
  const button = (text, title, run, more = {}) => el('button', {type: 'button', class: 'ds-button', title, text, onclick: run, ...more});
  const pick = {a: el('select', {class: 'ds-select ds-pick', 'aria-label': 'Run shown'}), b: el('select', {class: 'ds-select ds-pick', 'aria-label': 'Run beside it'})};
  for (const side of ['a', 'b']) pick[side].addEventListener('change', () => trigger('choose', {a: pick.a.value || null, b: pick.b.value || null}));
  const stop = button('■ Stop', 'Stop the run; what it has finished stays', () => trigger('stop', {}), {hidden: true, class: 'ds-button stop', 'data-online': ''});
  const resume = button('▶ Go on', 'Let this run go on behind its last step (g)', () => act('resume'), {hidden: true, 'data-online': ''});
  const status = el('span', {class: 'ds-status', role: 'status'});
  const bar = el('div', {class: 'ds-bar'}, el('span', {class: 'ds-badge', text: 'A'}), pick.a, el('span', {class: 'ds-badge b', text: 'B'}), pick.b, status, stop, resume, el('span', {class: 'ds-grow'}),
    button('Fork…', 'Change something at this step and position (e)', () => act('fork'), {'data-online': ''}), button('Lessons', 'Why the constraint works, step by step (l)', () => act('lessons'), {'data-online': ''}), button('Examples', 'Recorded runs (x)', () => act('gallery'), {'data-online': ''}), button('Find', 'A token, a position, a step, a command (/)', () => act('palette')),
    button('Save', 'Save the run as a trace file', () => act('save'), {'data-online': ''}), button('?', 'Keys (?)', () => act('help'), {'aria-label': 'Keys'}));
  const alarm = el('div', {class: 'ds-message', role: 'alert', hidden: true}), live = el('p', {class: 'ds-live', 'aria-live': 'polite'}), configuration = el('p', {class: 'ds-config'});
  const frames = {};
  const panel = (name, title, content, options = {}) => {
    frames[name] = frame({name, title, content: content.element ?? content, rows: content.rows && (() => { const now = view(); return now && content.rows(now); }), redraw, ...options});
    return frames[name].element;
  };
  const left = el('div', {class: 'ds-left'},
    panel('canvas', 'Canvas', parts.tokens, {controls: [legend()], lines: true}),
    panel('inside', 'Inside the step', parts.phases, {plain: true}),
    panel('map', 'Step × position', parts.loom, {controls: [parts.loom.legend, parts.loom.select]}),
    panel('tree', 'Midpoint tree', parts.tree, {controls: parts.tree.controls}),
    panel('trellis', 'Trellis', parts.trellis, {controls: parts.trellis.modes}),
    panel('weights', 'Trellis with its weights', parts.weights),
    panel('automaton', 'Automaton', parts.automaton, {controls: parts.automaton.controls ?? []}));
  const right = el('div', {class: 'ds-right', tabindex: 0, role: 'region', 'aria-label': 'Details'},
    panel('position', 'Position', parts.inspector, {lines: true}), panel('exact', 'Is this exact?', parts.exact, {lines: true}), panel('against', 'A against B', parts.compare), panel('midpoint', 'Midpoint', parts.midpoint, {lines: true}), panel('order', 'Commits in order', parts.commits, {lines: true}),
    panel('diagnosis', 'Findings', parts.findings, {plain: true}), panel('stops', 'Breakpoints', parts.breaks, {plain: true}), panel('family', 'Runs and forks', runs, {plain: true}));
  frames.against.element.hidden = true;
  const main = el('div', {class: 'ds-main', hidden: true}, left, right);
  const blank = el('p', {class: 'ds-blank', text: 'Nothing is shown yet. Run what the form says, or open an example.'});
  const hint = el('p', {class: 'ds-hint', 'data-online': ''}, el('b', {text: 'New here? '}), 'Open a run that failed, press ', el('kbd', {text: 'h'}), ' for the step that lost it, ', el('kbd', {text: 'e'}), ' to pin another token there, and see the fork succeed. ',
    el('button', {type: 'button', class: 'ds-link-button', text: 'Open it', onclick: () => { dismiss(); trigger('example', {name: 'no-such-hour'}); }}), ' ', el('button', {type: 'button', class: 'ds-link-button', text: 'Take the lessons instead', onclick: () => act('lessons')}), ' ', el('button', {type: 'button', class: 'ds-link-button', text: 'Not now', onclick: dismiss}));
  function dismiss() { hint.hidden = true; try { localStorage.setItem('denoiscope-hint', 'seen'); } catch { /* a page without storage shows it again */ } }
  try { hint.hidden = Boolean(props.offline) || localStorage.getItem('denoiscope-hint') === 'seen'; } catch { hint.hidden = true; }
  const help = sheet(), cards = el('div', {class: 'ds-cards'});
  const examples = el('dialog', {class: 'ds-dialog wide', 'aria-label': 'Examples'}, el('h3', {text: 'Examples'}), cards, el('form', {method: 'dialog'}, el('button', {class: 'ds-button', text: 'Close'})));
  for (const dialog of [help, examples]) dialog.addEventListener('click', event => { if (event.target === dialog) dialog.close(); });
  root.replaceChildren(bar, hint, alarm, el('div', {class: 'ds-sticky'}, parts.scrubber.element), configuration, blank, main, live, help, examples, fork.dialog, ...card.elements);

  function say(message) {
    const close = el('button', {type: 'button', class: 'ds-icon', 'aria-label': 'Dismiss', text: '×', onclick: () => { alarm.hidden = true; }});
    alarm.replaceChildren(el('p', {class: 'ds-problem'}, el('b', {text: '✕ '}), message.problem), close);
    if (message.frame) alarm.append(el('p', {class: 'ds-place', text: `line ${message.line}, column ${message.column}`}), el('pre', {text: message.frame}));
    alarm.append(el('p', {class: 'ds-remedy', text: message.remedy}));
    if (message.positions?.length) alarm.append(el('p', {}, 'Show ', ...message.positions.map(position => el('button', {type: 'button', class: 'ds-link-button', text: `position ${position}`, onclick: () => go({position})}))));
    alarm.dataset.of = message.of ?? '';
    alarm.hidden = false;
    alarm.scrollIntoView({block: 'nearest'});
  }

  function openGallery(gallery) {
    const card = ({name, title, what, failure, runs: ids}) => el('button', {type: 'button', class: 'ds-card', 'data-name': name, onclick: () => { examples.close(); trigger('example', {name}); if (!ids.length) showForm(); }},
      el('b', {text: title}), el('span', {text: what}), ids.length > 1 ? el('i', {text: 'two runs side by side'}) : failure ? el('i', {text: ids.length ? `${failure} · diagnose the run` : `${failure} · in the form`}) : '');
    const group = (title, found) => found.length ? [el('h4', {class: 'ds-cards-title', text: title}), ...found.map(card)] : [];
    cards.replaceChildren(...group('Runs', gallery.filter(({failure}) => !failure)), ...group('Why did it fail?', gallery.filter(({failure}) => failure).sort((x, y) => x.failure.slice(1) - y.failure.slice(1))));
    examples.showModal();
  }
  // What can't run is said beside its constraint, which a phone has out of sight.
  function showForm() {
    document.querySelector('.sidebar:not(.open) .toggle-button')?.click();
    document.querySelector('#checked')?.scrollIntoView({block: 'center'});
  }

  // The two lists of runs, by session and examples.
  let listed = '';
  function list(value, shown, gallery) {
    const groups = [['This session', (value.runs ?? []).map(({id, title, number, parent, step, what}) => [id, parent ? `${number} · fork at ${step}: ${what}` : title])], ['Examples', gallery.flatMap(({title, runs: ids}) => ids.map((id, k) => [id, ids.length > 1 ? `${k + 1} of 2 · ${title}` : title]))]];
    const taught = [shown.a, shown.b].filter(id => id?.startsWith('recipe:'));
    if (taught.length) groups.push(['Lessons', taught.map((id, k) => [id, k ? 'beside it, from a lesson' : 'from a lesson'])]);
    const key = JSON.stringify([groups, shown]);
    runs.update(value, shown, gallery);
    if (listed !== key) for (const side of ['a', 'b']) {
      const options = groups.filter(([, items]) => items.length).map(([label, items]) => el('optgroup', {label}, ...items.map(([id, title]) => el('option', {value: id, text: title}))));
      pick[side].replaceChildren(...(side === 'b' ? [el('option', {value: '', text: 'none beside it'})] : []), ...options);
    }
    listed = key;
    for (const side of ['a', 'b']) pick[side].value = shown[side] ?? '';
    bar.classList.toggle('compare', Boolean(shown.b));
    frames.against.element.hidden = !shown.b;
  }

  return {parts, frames, card, fork, alarm, live, configuration, status, stop, resume, main, blank, help, examples, say, openGallery, list, dialogs: [help, examples, fork.dialog]};
}

function legend() {
  const item = (state, text) => el('span', {class: 'ds-legend-item'}, el('span', {class: `ds-token sample ${state === 'rival' ? 'rival' : ''}`, 'data-state': state === 'rival' ? 'masked' : state, text: 'a'}), text);
  return el('span', {class: 'ds-legend'}, item('fixed', 'committed'), item('now', 'committed now'), item('masked', 'masked, drawn'), item('rival', 'the other confidence would'));
}
