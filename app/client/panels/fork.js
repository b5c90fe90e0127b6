// What to change from a step on: edits are gathered, then a child run is asked for. The shown run never changes.

import {el, visible, cut, probability} from '../draw.js';

const SETTINGS = [['confidence', ['mar', 'mf']], ['sampler', ['midpoint', 'tree', 'chain', 'map', 'independent', 'local', 'reject']], ['remasking', null], ['temperature', Number], ['seed', Number]];
const MOST_TOKENS = 10;

export function create(trigger, choices) {
  const title = el('h3', {id: 'ds-fork-title'}), note = el('p', {class: 'ds-note'}), place = el('h4'), tokens = el('div', {class: 'ds-candidates'});
  const text = el('input', {type: 'text', class: 'ds-input ds-mono', id: 'ds-pin-text', placeholder: 'any text', autocomplete: 'off', spellcheck: 'false'});
  const button = (label, act, more = {}) => el('button', {type: 'button', class: 'ds-button', text: label, onclick: act, ...more});
  const pinText = button('Pin this text', () => { if (text.value) { add({kind: 'pin', position: at.position, text: text.value}); text.value = ''; } });
  const hurry = button('Commit now', () => add({kind: 'commit', position: at.position})), hold = button('Hold back', () => add({kind: 'hold', position: at.position})), undo = button('Un-commit', () => add({kind: 'uncommit', position: at.position}));
  const fields = el('div', {class: 'ds-settings'}), kind = el('select', {class: 'ds-select', id: 'ds-fork-kind'}), source = el('textarea', {class: 'ds-input ds-mono', rows: 3, id: 'ds-fork-source', spellcheck: 'false'});
  const staged = el('ul', {class: 'ds-staged'}), cost = el('p', {class: 'ds-note'});
  const run = button('Run the fork', () => send({}), {class: 'ds-button primary'}), now = button('Only this step, at once', () => send({instant: true}));
  const dialog = el('dialog', {class: 'ds-dialog wide ds-fork', 'aria-labelledby': 'ds-fork-title'}, title, note,
    el('div', {class: 'ds-fork-grid'},
      el('section', {}, place, tokens, el('div', {class: 'ds-inline'}, el('label', {class: 'ds-label', for: 'ds-pin-text', text: 'or write it'}), text, pinText), el('div', {class: 'ds-inline'}, hurry, hold, undo)),
      el('section', {}, el('h4', {text: 'From this step on'}), fields,
        el('details', {}, el('summary', {text: 'Another constraint'}), el('label', {class: 'ds-label', for: 'ds-fork-kind', text: 'kind'}), kind, el('label', {class: 'ds-label', for: 'ds-fork-source', text: 'source'}), source))),
    el('h4', {text: 'The fork changes'}), staged, cost,
    el('div', {class: 'ds-inline ds-end'}, button('Cancel', () => dialog.close()), now, run));
  dialog.addEventListener('click', event => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener('keydown', event => { if (event.key === 'Enter' && event.target === text) { event.preventDefault(); pinText.click(); } });
  let at = null, edits = [];

  function add(edit) {
    // A later word on the same thing takes the earlier one's place.
    edits = edits.filter(e => !(e.position === edit.position && e.name === edit.name && (e.kind === edit.kind || edit.position !== undefined && e.kind !== 'ban')) || edit.kind === 'ban' && e.token_id !== edit.token_id);
    edits.push(edit);
    list();
  }

  function told(edit) {
    if (edit.kind === 'set') return `${edit.name} is ${edit.value}`;
    if (edit.kind === 'constrain') return edit.name === null ? 'no constraint' : `another constraint: ${edit.name}`;
    const token = edit.text ?? (edit.token_id === undefined ? '' : at.run.text(edit.token_id));
    return {pin: `${visible(token)} is pinned at ${edit.position}`, ban: `${visible(token)} is banned at ${edit.position}`, commit: `position ${edit.position} is committed now`, hold: `position ${edit.position} is held back`, uncommit: `position ${edit.position} is un-committed`}[edit.kind];
  }

  function list() {
    staged.replaceChildren(...edits.map(edit => el('li', {}, el('span', {text: told(edit)}), el('button', {type: 'button', class: 'ds-icon', 'aria-label': `Don't: ${told(edit)}`, text: '×', onclick: () => { edits = edits.filter(e => e !== edit); list(); }}))));
    if (!edits.length) staged.replaceChildren(el('li', {class: 'ds-note', text: 'nothing yet; run it as it is to see that it replays exactly'}));
    const calls = at.run.steps - at.step, unseen = edits.some(e => e.kind === 'uncommit'), past = !at.run.at('recorded', at.step);
    cost.textContent = `Run the fork: the model is asked ${calls} ${calls === 1 ? 'time' : 'times'}. ${past ? 'The mean field of this step was not recorded' : 'Only this step: the recorded mean field is used, no model'}${edits.some(e => e.kind === 'pin') ? '; the model does not see the pin' : ''}.`;
    now.disabled = unseen || past;
    now.dataset.tip = unseen ? 'The mean field of an un-committed position was not recorded' : past ? 'The mean field of this step was not recorded: the model has to be asked' : '';
  }

  function send(more) {
    dialog.close();
    trigger('fork', {run: at.run.id, step: at.step, edits, ...more});
  }

  function open(view) {
    const {run: shown, step, position, detail} = view, masked = shown.masked(step, position);
    at = {run: shown, step, position};
    edits = [];
    title.textContent = `Fork at step ${step}`;
    note.textContent = `A child of this run with the same noise; steps before ${step} stay, and the run itself is never changed.`;
    place.textContent = `Position ${position}, ${masked ? 'masked' : `committed: ${cut(visible(shown.text(shown.drawn(step, position))), 30)}`}`;
    const tops = detail ? detail.tops(position).sort((a, b) => b.q - a.q || b.p - a.p).slice(0, MOST_TOKENS) : [];
    tokens.replaceChildren(...tops.map(({id, p, q}) => {
      const name = cut(visible(shown.text(id)), 18), forbidden = masked && q === 0;
      return el('div', {class: `ds-candidate ${forbidden ? 'forbidden' : ''}`}, el('span', {class: 'ds-name', text: name}), el('span', {class: 'ds-n q', text: probability(q)}), el('span', {class: 'ds-n p', text: probability(p)}),
        button('Pin', () => add({kind: 'pin', position, token_id: id}), {'aria-label': `Pin ${name}`, title: forbidden ? 'The constraint forbids it here: the fork would say so' : ''}),
        button('Ban', () => add({kind: 'ban', position, token_id: id}), {'aria-label': `Ban ${name}`}));
    }));
    for (const [b, off, why] of [[hurry, !masked, 'It is committed already'], [hold, !masked, 'It is committed already'], [undo, masked, 'It is masked']]) { b.disabled = off; b.dataset.tip = off ? why : ''; }
    fields.replaceChildren(...SETTINGS.map(([name, options]) => field(shown.config, name, options)));
    const kinds = [...choices.kinds, 'none'];
    kind.replaceChildren(...kinds.map(value => el('option', {value, text: value})));
    kind.value = shown.config.kind ?? 'none';
    source.value = Array.isArray(shown.config.source) ? shown.config.source.join('\n') : shown.config.source ?? '';
    list();
    dialog.showModal();
  }

  function field(config, name, options) {
    const id = `ds-set-${name}`, values = options === Number ? null : options ?? choices.remasking;
    const input = values ? el('select', {class: 'ds-select', id}, ...values.map(value => el('option', {value, text: value}))) : el('input', {type: 'number', class: 'ds-input', id, min: 0, step: name === 'seed' ? 1 : 0.1});
    input.value = config[name];
    input.addEventListener('change', () => {
      const value = values ? input.value : Number(input.value);
      edits = edits.filter(e => e.name !== name || e.kind !== 'set');
      if (value !== config[name] && input.value !== '') edits.push({kind: 'set', name, value});
      list();
    });
    return el('div', {class: 'ds-field'}, el('label', {class: 'ds-label', for: id, text: name}), input);
  }

  function constrain() {
    edits = edits.filter(e => e.kind !== 'constrain');
    const name = kind.value === 'none' ? null : kind.value, {config} = at.run;
    const value = name === null ? null : name === 'choices' ? source.value.split('\n').filter(Boolean) : source.value;
    const was = Array.isArray(config.source) ? config.source.join('\n') : config.source ?? '';
    if (name !== config.kind || (name !== null && source.value !== was)) edits.push({kind: 'constrain', name, value});
    list();
  }
  kind.addEventListener('change', constrain);
  source.addEventListener('input', constrain);

  return {dialog, open};
}
