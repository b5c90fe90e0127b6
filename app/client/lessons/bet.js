// A bet: the guess is kept before the answer is shown. Skipping shows the answer and keeps no guess.

import {el} from '../draw.js';
import {inline, paragraphs, written} from './text.js';
import * as store from '../store.js';

// `behind`: what is shown with the answer, behind its words.
export function create(lesson, word, settled, behind = []) {
  const {question, kind, options = [], answer} = lesson.bet, own = store.bet(lesson.name);
  const verdict = el('p', {class: 'ds-bet-verdict'}), reveal = el('div', {class: 'ds-reveal', role: 'status', hidden: true}, verdict, ...paragraphs(lesson.reveal, word), ...behind);
  const wrong = el('p', {class: 'ds-bet-error', role: 'alert', hidden: true});
  const form = el('form', {class: 'ds-bet-form'}, ...fields(), el('span', {class: 'ds-bet-buttons'}, el('button', {class: 'ds-button primary', text: 'Bet'}), el('button', {type: 'button', class: 'ds-link-button', text: 'Skip, show me', onclick: () => show(null)})), wrong);
  const element = el('section', {class: 'ds-bet', 'aria-label': 'Your bet'}, el('p', {class: 'ds-question'}, el('b', {text: 'Your bet. '}), ...inline(question, word)), form, reveal);
  let numbers = {};

  function fields() {
    if (kind === 'choice') return [el('fieldset', {class: 'ds-choices'}, el('legend', {class: 'ds-live', text: 'Your guess'}), ...options.map(value => el('label', {class: 'ds-option'}, el('input', {type: 'radio', name: 'ds-guess', value}), el('span', {}, ...inline(value, word)))))];
    const unit = kind === 'percent' ? '%' : '';
    return [el('label', {class: 'ds-guess'}, el('span', {class: 'ds-live', text: 'Your guess'}), el('input', {type: 'text', inputmode: 'decimal', class: 'ds-input ds-mono', name: 'ds-guess', autocomplete: 'off', size: 6}), el('span', {text: unit}))];
  }

  form.addEventListener('submit', event => {
    event.preventDefault();
    const guess = new FormData(form).get('ds-guess');
    const number = Number(String(guess ?? '').replace(',', '.'));
    const bad = kind === 'choice' ? guess === null : String(guess).trim() === '' || !Number.isFinite(number) || number < 0 || (kind === 'percent' && number > 100);
    wrong.hidden = !bad;
    wrong.textContent = bad ? kind === 'choice' ? 'Choose one first, or skip.' : `${guess ? `“${guess}” is no guess here. ` : ''}Write a number${kind === 'percent' ? ' from 0 to 100' : ''}, or skip.` : '';
    if (!bad) show(kind === 'choice' ? guess : number);
  });

  // The guess is in the browser's store before anything is revealed.
  function show(guess) {
    if (guess !== null) store.keepBet(lesson.name, guess);
    store.finish(lesson.name);
    form.hidden = true;
    judge(guess ?? store.bet(lesson.name) ?? null);
    reveal.hidden = false;
    settled();
  }

  function judge(guess) {
    const truth = numbers[answer], close = kind === 'choice' ? String(guess) === String(truth) : guess !== null && Math.abs(guess - (kind === 'percent' ? 100 : 1) * truth) <= (kind === 'percent' ? 2 : 0.5);
    verdict.hidden = guess === null;
    verdict.replaceChildren(...(guess === null ? [] : [el('b', {text: close ? '✓ ' : '≠ '}), 'You said ', ...(kind === 'choice' ? inline(String(guess), word) : [`${guess}${kind === 'percent' ? ' %' : ''}`]), close ? ', and so it is. ' : kind === 'choice' ? '. ' : `; it is ${written(truth, kind === 'percent')}. `]));
    verdict.dataset.close = close;
  }

  return {element, reveal, revealed: () => !reveal.hidden,
    // What the engine says of the bet's own settings; a bet made before stays revealed.
    know(found) {
      numbers = found;
      if (own === undefined || !reveal.hidden) return false;
      form.hidden = true;
      judge(own);
      reveal.hidden = false;
      return true;
    }};
}
