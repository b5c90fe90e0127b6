// Under the editor: what is found in the form before a run, with changes that mend it, and texts held against the constraint.

import {el} from './draw.js';
import {item} from './panels/findings.js';
import * as tester from './tester.js';

export function mount({element, props, server, watch, trigger}) {
  const root = element.querySelector('.ds'), list = el('ul', {class: 'ds-findings'}), rest = el('ul', {class: 'ds-findings'}), summary = el('summary'), more = el('details', {class: 'ds-more', hidden: true}, summary, rest), open = el('p', {class: 'ds-note'});
  const test = tester.create(server, props.graphviz);
  root.replaceChildren(el('div', {class: 'ds-check-list', role: 'status'}, list, more, open), test.element);

  // The best explanation in full, the others folded.
  function update() {
    const {findings = [], open: unseen, constraint, shortest, sampled, message} = props.value ?? {};
    const shown = [...(message ? [{severity: 'error', message: message.problem, fixes: [message.remedy], frame: message.frame}] : []), ...findings];
    const items = shown.map(found => item(found, {apply: changes => trigger('apply', {changes})}));
    const best = shown[0] && shown[0].severity !== 'info' ? 1 : 0, left = items.length - best;   // a note alone needs no room
    list.replaceChildren(...items.slice(0, best));
    rest.replaceChildren(...items.slice(best));
    more.hidden = !left;
    summary.textContent = best ? `${left} more` : left === 1 ? 'one note' : `${left} notes`;
    open.textContent = unseen ?? '';
    test.update(constraint ?? null, {shortest, sampled});
    (element.closest('#checked') ?? element).dataset.checked = JSON.stringify([constraint?.kind, constraint?.source]);
  }
  watch('value', update);
  update();
}
