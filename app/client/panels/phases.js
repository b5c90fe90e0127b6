// The phases of one step, from the model's answer to the commits; a phase narrows what the other panels show.

import {el, number, visible, cut} from '../draw.js';
import {spanOf} from '../run.js';

// What this run's sampler does, in order: [key, name, what the step knows after it].
export function phasesOf(run) {
  const tree = !Number.isNaN(run.columns.midpoint_entropy.data[run.length]), levels = tree ? spanOf(1, run.length).level : 0, draws = {
    chain: [['states', 'States, left to right']], map: [['states', 'Best path']], independent: [], local: [], reject: []}[run.config.sampler] ?? (tree ? [] : [['states', 'States']]);
  return [['field', 'Mean field'], ['classes', 'Class masses'], ['sweep', tree ? 'Up-sweep' : 'Messages'],
    ...(tree ? [['level0', 'End'], ...Array.from({length: levels}, (_, k) => [`level${k + 1}`, `Level ${k + 1}`])] : draws),
    ['tokens', 'Tokens'], ['confidence', 'Confidences'], ['commit', 'Commits']];
}

export const levelOf = phase => phase === null ? Infinity : phase.startsWith('level') ? Number(phase.slice(5)) : ['field', 'classes', 'sweep'].includes(phase) ? -1 : Infinity;
export const knowsTokens = phase => phase === null || ['tokens', 'confidence', 'commit'].includes(phase);

export function create(go) {
  const chips = el('div', {class: 'ds-phases', role: 'toolbar', 'aria-label': 'Phases of the step'}), words = el('p', {class: 'ds-phase-words'});
  const element = el('div', {}, chips, words);
  let drawn = null;
  chips.addEventListener('click', event => { const chip = event.target.closest('[data-phase]'); if (chip) go({phase: chip.dataset.phase || null}); });

  function explain({run, step, position: i, phase}) {
    const at = name => run.at(name, step, i), masked = Array.from({length: run.length}, (_, k) => k).filter(k => run.masked(step, k)), mean = name => masked.reduce((sum, k) => sum + run.at(name, step, k), 0) / Math.max(1, masked.length);
    const token = cut(visible(run.text(run.drawn(step, i))), 20), tried = run.at('tries', step);
    if (phase === 'field') return `The model gives each of ${masked.length} masked positions a distribution, each by itself. Entropy here ${number(at('entropy_mean_field'))} nats, on average ${number(mean('entropy_mean_field'))}.`;
    if (phase === 'classes') return `Its mass is summed over ${run.head.classes.toLocaleString('en')} token classes. Forbidden here: ${number(at('forbidden_mass'))}.`;
    if (phase === 'sweep') return `Messages over ${run.states.toLocaleString('en')} states: log Z ${number(run.at('log_partition', step))} nats. At this position the constraint moves the model by KL ${number(at('kl'))} nats.`;
    if (phase === 'states') return `States are drawn one after the other; this position goes from ${run.at('path', step, i)} to ${run.at('path', step, i + 1)}.`;
    if (phase.startsWith('level')) {
      const level = Number(phase.slice(5)), nodes = Array.from({length: run.length}, (_, k) => k + 1).filter(m => spanOf(m, run.length).level === level);
      const entropy = nodes.reduce((sum, m) => sum + run.at('midpoint_entropy', step, m), 0);
      return level ? `${nodes.length} midpoints are drawn at once, each given the two ends of its span; together ${number(entropy)} nats of choice.` : `The end is drawn among the accepting states, given the start: ${number(entropy)} nats of choice.`;
    }
    if (phase === 'tokens') return `Every position draws a token ${['independent', 'local', 'reject'].includes(run.config.sampler) ? `by itself${tried > 1 ? `; ${tried} tries` : ''}` : 'given the states at its two ends'}: here ${token}.`;
    if (phase === 'confidence') return `The drawn token’s confidence decides: here Mar ${number(at('confidence_mar'))}, Mf ${number(at('confidence_mf'))}.`;
    return `${run.commits(step)} committed${run.disagrees(step) ? '; the other confidence would have chosen differently' : ''}.`;
  }

  function update(view) {
    const {run, phase} = view, list = phasesOf(run), key = list.map(([name]) => name).join();
    if (key !== drawn) {
      drawn = key;
      chips.replaceChildren(el('button', {type: 'button', class: 'ds-phase', 'data-phase': '', text: 'Whole step'}), ...list.map(([name, text]) => el('button', {type: 'button', class: 'ds-phase', 'data-phase': name, text})));
    }
    for (const chip of chips.children) { const on = (chip.dataset.phase || null) === phase; chip.setAttribute('aria-pressed', on); chip.tabIndex = on ? 0 : -1; }
    words.textContent = phase === null ? 'Press ↓ to go into the step, ← → from phase to phase, ↑ to come out.' : explain(view);
  }
  return {element, update};
}
