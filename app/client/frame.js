// A panel's frame: heading, controls, and what every panel can do: fill the page, be read as a table, be taken along.

import {el, recording} from './draw.js';
import {Recorder, text as svgText} from './svg.js';

const MOST_ROWS = 2000;

export function frame({name, title, content, controls = [], rows = null, lines = false, plain = false, redraw}) {
  const heading = el('h3', {text: title, id: `ds-title-${name}`}), table = el('div', {class: 'ds-as-table', hidden: true, tabindex: 0, role: 'region', 'aria-label': `${title} as a table`});
  const act = (label, run) => el('button', {type: 'button', role: 'menuitem', class: 'ds-menu-item', text: label, onclick: () => { menu.hidden = true; more.setAttribute('aria-expanded', 'false'); run(); }});
  const large = el('button', {type: 'button', class: 'ds-icon', title: 'Fill the page', 'aria-label': `${title}: fill the page`, 'aria-pressed': 'false', text: '⤢', onclick: maximise});
  const items = [...(rows ? [act('As a table', tabulate), act('Save as CSV', () => save('csv')), act('Save as JSON', () => save('json'))] : []), act('Save as SVG', () => save('svg')), act('Save as PNG', () => save('png'))];
  const menu = el('div', {class: 'ds-menu', role: 'menu', 'aria-label': `${title}: more`, hidden: true}, ...items);
  const more = el('button', {type: 'button', class: 'ds-icon', title: 'Table and export', 'aria-label': `${title}: table and export`, 'aria-haspopup': 'menu', 'aria-expanded': 'false', text: '⋯', onclick: () => { menu.hidden = !menu.hidden; more.setAttribute('aria-expanded', String(!menu.hidden)); if (!menu.hidden) items[0].focus(); }});
  const element = el('section', {class: `ds-panel ds-${name}`, 'aria-labelledby': heading.id}, el('header', {}, heading, el('span', {class: 'ds-grow'}), ...controls, ...(plain ? [] : [el('span', {class: 'ds-menu-holder'}, more, menu)]), large), content, table);
  menu.addEventListener('keydown', event => {
    const at = items.indexOf(document.activeElement), to = {ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1}[event.key];
    if (event.key === 'Escape') { menu.hidden = true; more.setAttribute('aria-expanded', 'false'); more.focus(); }
    if (to !== undefined) items[(to + items.length) % items.length].focus();
    if (to !== undefined || event.key === 'Escape') { event.preventDefault(); event.stopPropagation(); }
  });
  menu.addEventListener('focusout', event => { if (!menu.contains(event.relatedTarget) && event.relatedTarget !== more) { menu.hidden = true; more.setAttribute('aria-expanded', 'false'); } });

  function maximise() {
    const on = element.classList.toggle('large');
    large.setAttribute('aria-pressed', String(on));
    large.dataset.tip = on ? 'Back to its place (Esc)' : 'Fill the page';
    if (on) document.addEventListener('keydown', onKey); else document.removeEventListener('keydown', onKey);
    redraw();
  }
  const isLarge = () => element.classList.contains('large');
  element.addEventListener('keydown', event => { if (event.key === 'Escape' && isLarge()) { event.stopPropagation(); maximise(); } });
  // The focus may be nowhere, as behind a click on a picture; and it must not go on to what the panel covers.
  function onKey(event) { if (event.key === 'Escape' && !event.defaultPrevented && !document.querySelector('dialog[open]')) maximise(); }
  element.addEventListener('focusout', ({relatedTarget: to}) => { if (isLarge() && to && !element.contains(to) && !to.closest('dialog, [popover]')) maximise(); });

  let open = false;
  function tabulate() {
    open = !open;
    table.hidden = !open;
    items[0].textContent = open ? 'As a picture' : 'As a table';
    content.hidden = open;
    if (open) fill(); else redraw();
  }

  function fill() {
    const found = rows();
    if (!found) return table.replaceChildren(el('p', {class: 'ds-note', text: 'The numbers of this step are on their way.'}));
    const {head, body} = found;
    table.replaceChildren(el('table', {class: 'ds-table'}, el('thead', {}, el('tr', {}, ...head.map(text => el('th', {scope: 'col', text})))), el('tbody', {}, ...body.slice(0, MOST_ROWS).map(row => el('tr', {}, ...row.map(value => el('td', {text: shown(value)})))))),
      ...(body.length > MOST_ROWS ? [el('p', {class: 'ds-note', text: `${MOST_ROWS} of ${body.length} rows; the CSV has all.`})] : []));
  }
  const shown = value => typeof value !== 'number' || Number.isInteger(value) ? `${value ?? ''}` : Number.isFinite(value) ? Number(value.toPrecision(4)).toString() : Number.isNaN(value) ? '' : value > 0 ? '∞' : '−∞';

  function save(kind) {
    const found = rows?.();
    if (kind === 'csv' && found) return give(kind, [found.head, ...found.body].map(row => row.map(cell).join(',')).join('\n') + '\n', 'text/csv');
    if (kind === 'json' && found) return give(kind, JSON.stringify(found.body.map(row => Object.fromEntries(row.map((value, k) => [found.head[k], typeof value === 'number' && !Number.isFinite(value) ? String(value) : value]))), null, 1), 'application/json');
    const style = getComputedStyle(element), paper = style.getPropertyValue('--paper').trim(), graph = lines ? null : content.querySelector('svg[viewBox]:not([aria-hidden])');
    const canvases = lines ? [] : [...content.querySelectorAll('canvas')].filter(c => c.width > 1 && c.clientWidth);
    const svg = graph ? styled(graph, paper) : canvases.length ? record(canvases, paper) : page(paper);
    if (kind === 'svg') return give('svg', svgText(svg), 'image/svg+xml');
    const image = new Image(), size = svg.viewBox.baseVal, at = URL.createObjectURL(new Blob([svgText(svg)], {type: 'image/svg+xml'}));
    image.onload = () => {
      const whole = document.createElement('canvas');
      whole.width = 2 * size.width;
      whole.height = 2 * size.height;
      whole.getContext('2d').drawImage(image, 0, 0, whole.width, whole.height);
      URL.revokeObjectURL(at);
      whole.toBlob(blob => give('png', blob, 'image/png'));
    };
    image.src = at;
  }

  // All that the panel draws, each canvas where it stands.
  function record(canvases, paper) {
    const boxes = canvases.map(canvas => { const {left, top, width} = canvas.getBoundingClientRect(), zoom = width / canvas.offsetWidth; return {x: left / zoom, y: top / zoom, right: left / zoom + canvas.offsetWidth, bottom: top / zoom + canvas.offsetHeight}; });
    const x = Math.min(...boxes.map(box => box.x)), y = Math.min(...boxes.map(box => box.y));
    const recorder = new Recorder(Math.max(...boxes.map(box => box.right)) - x, Math.max(...boxes.map(box => box.bottom)) - y, paper);
    canvases.forEach((canvas, k) => recording.set(canvas, {over: context => recorder.over(context, boxes[k].x - x, boxes[k].y - y)}));
    try { redraw(); } finally { for (const canvas of canvases) recording.delete(canvas); }
    return recorder.svg;
  }

  // A graph's look is the page's style sheet: written into the copy, so that it looks the same elsewhere.
  function styled(graph, paper) {
    const copy = graph.cloneNode(true), box = graph.viewBox.baseVal, from = graph.querySelectorAll('*'), to = copy.querySelectorAll('*');
    from.forEach((node, k) => { const s = getComputedStyle(node); for (const name of ['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'opacity', 'font-family', 'font-size', 'font-weight']) to[k].style.setProperty(name, s.getPropertyValue(name)); });
    copy.setAttribute('width', box.width);
    copy.setAttribute('height', box.height);
    copy.style.background = paper;
    return copy;
  }

  // A panel of text: its table as lines.
  function page(paper) {
    const found = rows?.() ?? {head: [title], body: []}, lines = [found.head, ...found.body].slice(0, 200).map(row => row.map(shown).join('   '));
    const recorder = new Recorder(8 * Math.max(20, ...lines.map(line => line.length)) + 24, 18 * lines.length + 20, paper), ink = getComputedStyle(element).color;
    lines.forEach((line, k) => recorder.add('text', {x: 12, y: 24 + 18 * k, fill: ink, style: 'font: 13px monospace; white-space: pre'}, line));
    return recorder.svg;
  }

  const cell = value => { const text = value === null || value === undefined ? '' : String(value); return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text; };
  function give(kind, data, type) {
    const link = el('a', {download: `denoiscope-${name}.${kind}`, href: URL.createObjectURL(data instanceof Blob ? data : new Blob([data], {type}))});
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 5000);
  }

  return {element, refresh() { if (open) fill(); }, set title(text) { heading.textContent = text; }};
}
