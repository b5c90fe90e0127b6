// Under the editor: what is found in the form before a run, with changes that mend it, and texts held against the constraint.

import {el} from './draw.js';
import {answering} from './ask.js';
import {item, offer} from './panels/findings.js';
import * as tester from './tester.js';

const REST_MS = 150;   // changes are tried once the typing rests

export function mount({element, props, server: bare, watch, trigger}) {
  const server = answering(bare), root = element.querySelector('.ds'), list = el('ul', {class: 'ds-findings'}), rest = el('ul', {class: 'ds-findings'}), summary = el('summary'), more = el('details', {class: 'ds-more', hidden: true}, summary, rest), open = el('p', {class: 'ds-note'});
  const test = tester.create(server, props.graphviz);
  const apply = changes => { if (!root.querySelector('.stale')) trigger('apply', {changes}); };   // not those of an older text
  let asked = 0, timer = 0;
  root.replaceChildren(el('div', {class: 'ds-check-list', role: 'status'}, list, more, open), test.element);

  // The best explanation in full, the others folded; what mends them is filled in when it has been tried.
  function update() {
    const {findings = [], asked: form, open: unseen, constraint, shortest, sampled, message} = props.value ?? {};
    const refused = message ? [{severity: 'error', message: message.problem, fixes: [message.remedy], frame: message.frame}] : [];
    const shown = [...refused, ...findings], items = shown.map(found => item(found, {apply}));
    const best = shown[0] && shown[0].severity !== 'info' ? 1 : 0, left = items.length - best;   // a note alone needs no room
    list.parentElement.classList.remove('stale');
    list.replaceChildren(...items.slice(0, best));
    rest.replaceChildren(...items.slice(best));
    more.hidden = !left;
    summary.textContent = best ? `${left} more` : left === 1 ? 'one note' : `${left} notes`;
    open.textContent = unseen ?? '';
    test.update(constraint ?? null, {shortest, sampled});
    (element.closest('#checked') ?? element).dataset.checked = JSON.stringify([constraint?.kind, constraint?.source]);
    clearTimeout(timer);
    asked++;
    if (form) timer = setTimeout(() => mend(form, items.slice(refused.length)), REST_MS);
  }

  async function mend(form, items) {
    const number = asked, answer = await server.get_remedies(form);
    if (number !== asked) return;   // of an older text: its changes would write over the newer one
    items.forEach((node, k) => offer(node, answer.findings?.[k] ?? {}, apply));
  }
  watch('value', update);
  update();
}
