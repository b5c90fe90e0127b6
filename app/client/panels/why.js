// Why a token may stand at a position, or what stands against it: the states that read it, and what they lead to. The engine is asked once the focus rests on a token that was chosen.

import {el, probability, visible, cut} from '../draw.js';
import {UNANSWERED} from '../ask.js';
import {badge, partsOf} from '../parts.js';

const KEPT = 64;

export function create(go, server) {
  const title = el('h4'), said = el('p'), found = el('div'), element = el('section', {class: 'ds-why-token', 'aria-live': 'polite'}, title, said, found);
  const known = new Map();
  let now = null, written = null;

  async function ask(key, {run, step, token}, position) {
    if (known.size >= KEPT) known.delete(known.keys().next().value);
    known.set(key, null);
    const answer = await server.get_reasons({run: run.id, step, position, token});
    if (answer.error === UNANSWERED) known.delete(key); else known.set(key, answer);
    if (answer.tokens) run.learn(answer);
    if (now?.key === key) write(answer);
  }

  const name = (run, q) => q === run.head.end ? 'end' : `${q}`;
  const token = (run, id) => el('code', {text: cut(visible(run.text(id)), 24) || '∅'});
  const states = (run, list) => list.flatMap((q, k) => [k ? k === list.length - 1 ? ' and ' : ', ' : '', el('button', {type: 'button', class: 'ds-link-button', text: name(run, q), 'aria-label': `state ${name(run, q)}`, onclick: () => go({state: q, position: now.position, token: now.view.token})})]);
  // Up to eight states by name, how many there are, and a verb that agrees.
  const some = (run, {count, rows}, one, many) => count === 1 ? ['State ', ...states(run, [rows[0][0]]), one] : [`${count.toLocaleString('en')} states (`, ...states(run, [...new Set(rows.map(([q]) => q))]), count > rows.length ? ', …)' : ')', many];
  const origin = (run, where, q) => where[q] ?? [...new Set(run.head.origins[run.origin[q]].map(([a, b]) => run.sourceText(a, b)))].join(' ┆ ');
  const value = p => el('span', {class: 'ds-n', text: p === null ? '–' : probability(p)});
  // The part of the source that a state writes next: its numbers, and its name or what it says.
  const place = (run, where, q) => [...partsOf(run, q).slice(0, 2).flatMap(n => [badge(n), ' ']), el('span', {class: 'ds-mono', text: ends(origin(run, where, q)), title: origin(run, where, q)})];
  const ends = text => text.length <= 22 ? text : text.startsWith('/') ? `…${text.slice(-21)}` : cut(text, 22);

  function table(columns, rows, more) {
    return el('div', {}, el('table', {class: 'ds-table'}, el('thead', {}, el('tr', {}, ...columns.map(([text, what]) => el('th', {scope: 'col', text, title: what})))), el('tbody', {}, ...rows.map(cells => el('tr', {}, ...cells.map(cell => el('td', {}, ...[cell].flat())))))),
      ...(more > 0 ? [el('p', {class: 'ds-note', text: `and ${more.toLocaleString('en')} more`})] : []));
  }
  const WRITES = ['writes next', 'the part of the constraint’s source that can be written from this state'], GAMMA = ['γ', 'posterior: probability that the text is in this state here'];

  // What may stand here instead, by state.
  function wanted({run}, {states: {count, rows}, where}) {
    if (!rows.length) return [];
    const list = rows.map(([q, p, words]) => [states(run, [q]), place(run, where, q), value(p || null), el('span', {class: 'ds-mono', text: words || 'nothing'})]);
    return [el('p', {class: 'ds-label', text: 'What may stand here instead'}), table([['state', ''], WRITES, GAMMA, ['wants', 'tokens after which something accepted follows']], list, count - rows.length)];
  }

  // Why no way goes on: how far those go that begin, from the place or to it.
  function wall({run, step}, stop, position) {
    if (stop >= run.length) { const left = run.length - position - 1; return [left ? `the ways through the ${left} position${left === 1 ? '' : 's'} behind it end in no accepting state.` : 'it does not accept there, and no position is left.']; }
    return ['no way gets past position ', el('button', {type: 'button', class: 'ds-link-button', text: `${stop}`, onclick: () => go({position: stop})}), ...(run.masked(step, stop) ? ['.'] : [', where ', token(run, run.drawn(step, stop)), ' stands.'])];
  }

  function explain(view, answer, position) {
    const {run, token: id} = view, {reason, accepting, dying, unreached, states: front} = answer;
    if (reason === 'accepted') {
      const rows = accepting.rows.map(([q, , share, p]) => [states(run, [q]), place(run, answer.where, q), value(p), value(answer.given ? share : null)]);
      const lead = answer.given ? [] : ['The constraint would allow it; the model, a ban, or top-p and top-k leave it no probability here. '];
      return [[...lead, ...some(run, accepting, ' reads it', ' read it'), ', and something accepted follows.'], [table([['state', ''], WRITES, GAMMA, ['share', 'of the accepted texts with this token here, how many pass this state: it sums to 1']], rows, accepting.count - rows.length)]];
    }
    if (reason === 'unread') return [['No state of the automaton reads this token, at any position.'], wanted(view, answer)];
    if (reason === 'lost') return [['Nothing leads to this position, whatever stands here: from the start ', ...wall(view, answer.stops_at, position)], []];
    if (reason === 'local') {
      const elsewhere = unreached.count ? [' ', ...some(run, unreached, ' would read it, and', ' would read it, and'), ' what stands to the left does not lead there.'] : [];
      return [[front.count === 1 ? 'The one state that is possible here does not read it.' : `None of the ${front.count.toLocaleString('en')} states that are possible here reads it.`, ...elsewhere], wanted(view, answer)];
    }
    const targets = [...new Set(dying.rows.map(([, to]) => to))];
    return [[...some(run, dying, ' reads it', ' read it'), targets.length === 1 ? ' and leads to ' : ' and lead to ', ...states(run, targets), ', but from there nothing accepted follows: ', ...wall(view, answer.stops_at, position)], wanted(view, answer)];
  }

  function write(answer) {
    const {view, position} = now, {run, token: id} = view;
    const mark = el('b', {class: answer.reason === 'accepted' ? 'good' : 'bad', text: answer.reason === 'accepted' ? '✓ ' : '✕ '});
    element.classList.remove('waiting');
    element.dataset.reason = answer.reason ?? 'unknown';
    title.replaceChildren('Why ', token(run, id), answer.error || answer.reason === 'accepted' ? ` may stand at ${position}` : ` may not stand at ${position}`);
    if (answer.error) {
      said.replaceChildren(answer.problem ?? 'The server does not answer, or holds this run no longer.', ' ', answer.remedy ?? '');
      return found.replaceChildren();
    }
    const [words, below] = explain(view, answer, position);
    said.replaceChildren(mark, ...words);
    found.replaceChildren(...below);
  }

  function update(view, position) {
    const {run, step, token: id} = view;
    if (id === null) {
      now = written = null;
      delete element.dataset.reason;
      element.classList.remove('waiting');
      title.replaceChildren();
      found.replaceChildren();
      said.replaceChildren(el('span', {class: 'ds-note', text: 'Choose a token to see why it may stand here, or not.'}));
      return;
    }
    const key = [run.id, step, position, id].join();
    now = {view, position, key};
    const answer = known.get(key);
    if (answer && written !== answer) { written = answer; write(answer); }
    else if (!answer) {
      written = null;
      element.classList.add('waiting');
      if (view.rested && !known.has(key)) ask(key, view, position);
    }
  }
  return {element, update};
}
