// The canvas as text: what stands, what was committed just now, what the joint draw has where it is still masked.

import {el, arrange, visible, cut} from '../draw.js';
import * as parts from '../parts.js';
import * as explain from '../explain.js';
import {knowsTokens} from './phases.js';

const LONGEST = 24;

// What this run was asked for and the other was not.
function differences(run, other) {
  const words = {confidence: c => `${c === 'mar' ? 'Mar' : 'Mf'} commits`, sampler: c => c, seed: c => `seed ${c}`, temperature: c => `temperature ${c}`, steps: c => `${c} steps`, model: c => `model ${cut(c, 40)}`};
  return Object.keys(words).filter(name => run.config[name] !== other.config[name]).map(name => words[name](run.config[name])).join(', ');
}

export function create(go, card, offline, point, hover) {
  const element = el('div', {class: 'ds-texts'});
  const sides = {}, shown = {};

  function side(name) {
    if (sides[name]) return sides[name];
    const grid = el('div', {class: 'ds-tokens', role: 'listbox', 'aria-label': `Canvas of run ${name.toUpperCase()}`});
    const text = el('span', {class: 'ds-value', tabindex: 0, role: 'group', 'aria-label': 'Joint draw as text'}), verdict = el('span', {class: 'ds-verdict'}), note = el('span', {class: 'ds-note'});
    const badge = el('span', {class: 'ds-badge', text: name.toUpperCase()});
    const box = el('div', {class: 'ds-text', 'data-side': name}, badge, grid, el('div', {class: 'ds-draw'}, el('span', {class: 'ds-label', text: 'joint draw'}), text, verdict, note));
    grid.addEventListener('click', event => {
      const chip = event.target.closest('[data-i]');
      if (chip) go(event.shiftKey ? {beside: +chip.dataset.i} : {position: +chip.dataset.i, side: name});
    });
    grid.addEventListener('pointerover', event => { const chip = event.target.closest('[data-i]'), position = chip ? +chip.dataset.i : null; point(position, name); hover(chip && {position, side: name}); });
    grid.addEventListener('pointerleave', () => { point(null, name); hover(null); });
    grid.addEventListener('contextmenu', event => {
      const chip = event.target.closest('[data-i]');
      if (!chip) return;
      event.preventDefault();
      go({position: +chip.dataset.i, side: name, fork: true});
    });
    const mark = chip => chip && {key: chip.dataset.i, i: +chip.dataset.i, side: name, element: chip, box: () => chip.getBoundingClientRect()};
    card.explain(grid, {at: event => mark(event.target.closest('[data-i]')), tell: ({i}) => shown[name] && i < shown[name].run.length ? explain.position(shown[name].run, shown[name].step, i, {offline, hidden: shown[name].hidden}) : null});
    return sides[name] = {name, grid, text, verdict, note, box, badge, chips: []};
  }

  function fill(s, run, view) {
    const {position, second, span} = view, beside = view.compare && (s.name === 'a' ? view.b : view.a);
    while (s.chips.length > run.length) { const chip = s.chips.pop(); chip.newline?.remove(); chip.remove(); }
    while (s.chips.length < run.length) {
      const chip = el('button', {type: 'button', class: 'ds-token', role: 'option', 'data-i': s.chips.length, tabindex: -1}, '', el('i'));
      s.chips.push(chip);
      s.grid.append(chip);
    }
    shown[s.name] = {run, step: view.steps[s.name], hidden: !knowsTokens(view.phase)};
    s.grid.classList.toggle('few', run.length <= 16);
    s.note.textContent = view.compare ? differences(run, s.name === 'a' ? view.b : view.a) : '';
    const t = view.steps[s.name], rows = {canvas: run.row('canvas', t), drawn: run.row('drawn', t), committed: run.row('committed', t)};
    for (let i = 0; i < run.length; i++) {
      const chip = s.chips[i], id = rows.drawn[i], masked = rows.canvas[i] === run.head.mask_id;
      const state = masked ? rows.committed[i] && (view.phase === null || view.phase === 'commit') ? 'now' : 'masked' : 'fixed';
      const other = beside && beside.count && i < beside.length ? beside.text(beside.drawn(view.steps[s.name === 'a' ? 'b' : 'a'], i)) : null;
      const text = run.text(id), hidden = masked && !knowsTokens(view.phase);
      const word = hidden ? '▨' : run.isSpecial(id) ? run.special.get(id) : cut(visible(text), LONGEST) || '∅';
      const flags = `${state}|${run.rival(t, i) ? 'rival' : ''}|${other !== null && other !== text ? 'differs' : ''}|${run.isSpecial(id) ? 'special' : ''}|${i === position ? 'here' : i === second ? 'second' : ''}|${run.conflict?.has(i) ? 'bracket' : ''}|${hidden}|${span && span.start <= i && i < span.stop}`;
      if (chip.shown !== word || chip.flags !== flags) {
        chip.shown = word;
        chip.flags = flags;
        chip.firstChild.data = word;
        chip.dataset.state = state;
        chip.classList.toggle('inside', Boolean(span && span.start <= i && i < span.stop));
        for (const name of ['rival', 'differs', 'special', 'here', 'second', 'bracket']) chip.classList.toggle(name, flags.split('|').includes(name));
        chip.tabIndex = i === position ? 0 : -1;
        chip.setAttribute('aria-selected', i === position);
        wrap(chip, !hidden && text.includes('\n'));
      }
    }
    number(s, run, run.row('path', t));
    s.text.textContent = visible(run.drawnTexts[t]) || '(nothing)';
    const accepted = run.drawnAccepted[t];
    s.verdict.textContent = run.config.kind === null ? 'no constraint' : accepted ? '✓ accepted' : '✕ not accepted';
    s.verdict.dataset.accepted = accepted;
    s.badge.hidden = !view.compare;
    s.box.classList.toggle('active', view.compare && view.side === s.name);
  }

  // A token that ends a line ends one here too.
  function wrap(chip, ends) {
    if (ends && !chip.newline) chip.after(chip.newline = el('i', {class: 'ds-newline', 'aria-hidden': 'true'}));
    else if (!ends && chip.newline) { chip.newline.remove(); chip.newline = null; }
  }

  // Under each token the parts of the source that it may be of, and their numbers where they begin.
  function number(s, run, path) {
    let begun = null;
    s.chips.forEach((chip, i) => {
      const numbers = parts.partsOf(run, path[i]);
      if (chip.numbers !== numbers) { chip.numbers = numbers; chip.lastChild.style.setProperty('--bar', parts.paint(numbers)); }
      const said = numbers === begun ? '' : parts.words(numbers);
      if (chip.said !== said) { chip.said = said; if (said) { chip.dataset.part = said; chip.dataset.hue = numbers.length === 1 ? parts.hue(numbers[0]) : 0; } else delete chip.dataset.part; }
      begun = numbers;
    });
  }

  function update(view) {
    const there = [['a', view.a], ['b', view.b]].filter(([, run]) => run && run.count);
    if (view.changed) arrange(element, there.map(([name]) => side(name).box));
    for (const [name, run] of there) fill(side(name), run, view);
  }
  function rows({run, step}) {
    const state = i => run.masked(step, i) ? run.at('committed', step, i) ? 'committed now' : 'masked' : 'committed';
    return {head: ['position', 'token', 'state', 'part of the source', 'committed at step'], body: Array.from({length: run.length}, (_, i) => [i, visible(run.text(run.drawn(step, i))), state(i), parts.words(parts.partsOf(run, run.at('path', step, i))), run.commitStep[i] < 0 ? null : run.commitStep[i]])};
  }
  function light(positions, name) {
    const lit = new Set(positions);
    for (const s of Object.values(sides)) for (const chip of s.chips) chip.classList.toggle('lit', s.name === name && lit.has(+chip.dataset.i));
  }
  let ghosts = [];
  function ghost(at) {
    for (const chip of ghosts) chip.classList.remove('ghost');
    ghosts = at ? Object.values(sides).filter(s => !at.side || s.name === at.side).flatMap(s => s.chips[at.position] ?? []) : [];
    for (const chip of ghosts) chip.classList.add('ghost');
  }
  return {element, update, rows, light, ghost};
}
