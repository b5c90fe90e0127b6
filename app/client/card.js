// The explain card: one anatomy for whatever a pointer rests on or the keyboard stands at. What it is, its value, why, what would
// change it, where to go from there. Panels say where their marks are and give each mark's content as plain data:
//
//   {what, value: [{name, text, unit, tone}], why: [line], change: [line], jumps: [{text, go} or {text, run}]}
//
// where a line is text, or a list of texts and pieces {code, part} of the source. One card passes with what is looked at; another stays where it was pinned.

import {el} from './draw.js';
import {badge} from './parts.js';

const DWELL_MS = 200;   // a pointer that only passes by calls up nothing
const GRACE_MS = 300;   // to get from a mark to its card
const GAP = 7, EDGE = 8;
const narrow = matchMedia('(max-width: 600px)');
// What a control says of itself, which a browser would show in a box of its own: `el` keeps an element's title for it.
const HINT = {tell: ({element}) => element.dataset.tip ? {what: element.dataset.tip} : null, pinnable: () => false};

export function create(root, go, view) {
  const sources = new Map();
  const passing = face('ds-card'), kept = face('ds-card-kept');
  let dwell = 0, leave = 0, wanted = null, refused = null, touch = false;

  // A card

  function face(id) {
    const element = el('section', {class: 'ds-explain', id, popover: 'manual', role: id === 'ds-card' ? 'tooltip' : 'dialog'});
    element.addEventListener('pointerenter', () => { clearTimeout(leave); clearTimeout(dwell); });
    element.addEventListener('pointerleave', event => { if (event.pointerType !== 'touch') later(); });
    return {id, element, mark: null, by: null};
  }

  function fill({element, id, mark: {side}}, {what, value = [], why = [], change = [], jumps = []}) {
    const focus = view() ?? {}, elsewhere = ({go: to}) => !to || Object.entries(to).some(([name, value]) => focus[name] !== value);
    const ways = jumps.filter(elsewhere), stops = () => [...element.querySelectorAll('button')], focused = stops().indexOf(document.activeElement);
    const pinned = id === kept.id, row = (label, lines) => lines.length ? [el('dt', {text: label}), ...lines.map(line => el('dd', {}, ...pieces(line)))] : [];
    const link = ({text, go: to, run}) => el('button', {type: 'button', class: 'ds-link-button', tabindex: pinned ? 0 : -1, text, onclick: () => { if (!pinned) hide(passing); if (run) run(); else go({...to, ...(side ? {side} : {})}); }});
    const close = el('button', {type: 'button', class: 'ds-icon', 'aria-label': 'Let go of the card', text: '×', onclick: () => release()});
    element.replaceChildren(el('header', {}, el('b', {text: what}), ...(pinned ? [close] : [])),
      ...(value.length ? [el('p', {class: 'ds-explain-value'}, ...value.map(one => el('span', {class: one.tone ?? ''}, one.name ? `${one.name} ` : '', el('data', {text: one.text}), one.unit ? ` ${one.unit}` : '')))] : []),
      el('dl', {}, ...row('why', why), ...row('change', change)), ...(ways.length ? [el('nav', {'aria-label': 'From here'}, ...ways.map(link))] : []));
    element.classList.toggle('hint', !value.length && !why.length);
    if (pinned) element.setAttribute('aria-label', what);
    if (focused >= 0) (stops()[focused] ?? stops().at(-1)).focus();
  }
  const pieces = line => (Array.isArray(line) ? line : [line]).map(piece => typeof piece === 'string' ? piece : el('span', {class: 'ds-explain-piece'}, ...(piece.part ? [badge(piece.part)] : []), el('code', {text: piece.code})));

  // Below its mark, above it where there is more room, and never across an edge of the window; a narrow one has it as a sheet.
  function place({element, mark}) {
    const at = mark.box();
    element.style.maxHeight = '';
    if (narrow.matches) {
      element.dataset.side = 'sheet';
      element.style.left = element.style.top = '';
      const hidden = at.bottom - element.getBoundingClientRect().top + GAP;
      if (hidden > 0 && touch) scrollBy(0, hidden);
      return;
    }
    const {width, height} = element.getBoundingClientRect(), below = innerHeight - at.bottom - GAP - EDGE, above = at.top - GAP - EDGE;
    const side = height <= below || below >= above ? 'below' : 'above', room = Math.min(height, side === 'below' ? below : above);
    element.dataset.side = side;
    element.style.maxHeight = `${room}px`;
    element.style.left = `${Math.max(EDGE, Math.min(at.left, innerWidth - width - EDGE))}px`;
    element.style.top = `${Math.max(EDGE, side === 'below' ? at.bottom + GAP : at.top - GAP - room)}px`;
  }

  function show(view, mark, by) {
    const said = mark.source.tell(mark), again = view.mark === mark;
    if (!said) return hide(view);
    if (view.mark?.element !== mark.element) untie(view);
    Object.assign(view, {mark, by});
    fill(view, said);
    if (!view.element.matches(':popover-open')) view.element.showPopover();
    if (!again || view.element.getBoundingClientRect().bottom > innerHeight) place(view);
    mark.element.setAttribute('aria-describedby', view.id);
  }

  function untie({mark, id}) { if (mark?.element.getAttribute('aria-describedby') === id) mark.element.removeAttribute('aria-describedby'); }
  function hide(view) {
    if (!view.mark) return;
    untie(view);
    view.mark = null;
    view.element.hidePopover();
  }

  // What is looked at

  const same = (one, other) => one === other || Boolean(one && other && one.source === other.source && one.key === other.key && one.element === other.element);
  const known = (source, found) => found ? {element: source.node, ...found, source} : null;
  // The innermost mark around an element: that of a panel, or a control's own hint.
  function around(target, find) {
    for (let node = target; node && node !== root.parentNode; node = node.parentNode) {
      const source = sources.get(node), mark = source ? known(source, find(source)) : node.dataset?.tip ? known(HINT, {key: node.dataset.tip, element: node, box: () => node.getBoundingClientRect()}) : null;
      if (mark) return mark;
    }
    return null;
  }
  const underPointer = event => around(event.target, source => source.at(event));
  const underKeys = (target = document.activeElement) => root.contains(target) ? around(target, source => source.here ? source.here(target) : source.at({target})) : null;

  // Rest on a mark, or on none: it is shown when nothing else was rested on for a while.
  function rest(mark, by) {
    if (same(mark, wanted)) return;
    wanted = mark;
    clearTimeout(dwell);
    if (!same(mark, refused)) refused = null;
    if (mark && !refused) dwell = setTimeout(() => { clearTimeout(leave); if (same(mark, kept.mark)) hide(passing); else show(passing, mark, by); }, DWELL_MS);
  }
  function later() {
    clearTimeout(leave);
    leave = setTimeout(() => { if (passing.by === 'pointer') hide(passing); }, GRACE_MS);
  }
  function refuse() {
    refused = passing.mark ?? wanted;
    clearTimeout(dwell);
    hide(passing);
  }

  const pinnable = mark => Boolean(mark?.source.pinnable(mark));
  function pin(mark) {
    hide(passing);
    clearTimeout(dwell);
    show(kept, mark, touch ? 'touch' : 'key');
  }
  // Also of what Enter has another meaning for.
  function pinHere() {
    const mark = passing.by === 'pointer' && passing.mark || underKeys();
    if (mark && mark.source !== HINT) { touch = false; pin(mark); }
  }
  function release() {
    const {mark, element} = kept, within = element.contains(document.activeElement);
    refused = mark;
    hide(kept);
    if (within) mark.element.focus();
  }

  const inCard = ({target}) => passing.element.contains(target) || kept.element.contains(target);
  root.addEventListener('pointermove', event => {
    if (event.pointerType === 'touch' || event.buttons || inCard(event)) return;
    const mark = underPointer(event);
    rest(mark, 'pointer');
    if (mark && same(mark, passing.mark)) clearTimeout(leave); else if (passing.by === 'pointer') later();
  });
  root.addEventListener('pointerleave', event => { if (event.pointerType !== 'touch') { rest(null); later(); } });
  root.addEventListener('pointerdown', event => {
    touch = event.pointerType === 'touch';
    if (!touch && !inCard(event)) { wanted = underPointer(event); refuse(); }
  }, true);
  root.addEventListener('click', event => {
    const mark = touch && event.detail && !inCard(event) ? underPointer(event) : null;
    if (pinnable(mark)) pin(mark);
  });
  root.addEventListener('focusin', event => {
    if (inCard(event) || !event.target.matches(':focus-visible')) return;
    hide(passing);
    wanted = refused = null;
    rest(underKeys(event.target), 'key');
  });
  root.addEventListener('focusout', event => { if (!inCard(event)) { rest(null); if (passing.by === 'key') hide(passing); } });

  // Take up the marks of a panel. `at(event)` finds the one under a pointer, `here(target)` the one that the keyboard is on, both as
  // {key, box, …}; `tell(mark)` is its content, null where it is gone. `move(dx, dy)` walks a picture with the arrow keys.
  function explain(node, {at, here = null, tell, move = null, pinnable = () => true}) {
    sources.set(node, {node, at, here, tell, pinnable});
    if (move) node.addEventListener('keydown', event => {
      const way = {ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1]}[event.key];
      if (!way || event.target !== node || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
      event.preventDefault();
      event.stopPropagation();
      move(...way);
      hide(passing);
      rest(underKeys(), 'key');
    });
  }

  // Keys: Enter pins, Escape dismisses, Tab goes into what is pinned.

  const idle = () => !document.activeElement || document.activeElement === document.body;

  function onKey(event) {
    if (!root.isConnected) return document.removeEventListener('keydown', onKey, true);
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const taken = () => { event.preventDefault(); event.stopPropagation(); };
    if (event.key === 'Escape' && (passing.mark || kept.mark) && !document.querySelector('dialog[open]')) {
      const hint = passing.mark && passing.element.classList.contains('hint');
      if (!hint || !event.target.closest?.('.ds-panel.large')) taken();   // there it says what the key does
      if (passing.mark) refuse(); else release();
    } else if (event.key === 'Enter' && !event.shiftKey && !kept.element.contains(event.target)) {
      touch = false;
      const mark = underKeys(), hovered = passing.by === 'pointer' && passing.mark;
      if (hovered && (mark || idle()) && hovered.source.pinnable(hovered)) { taken(); pin(hovered); } else if (pinnable(mark)) pin(mark);
    } else if (event.key === 'Tab' && kept.mark) tab(event);
  }
  function tab(event) {
    const stops = [...kept.element.querySelectorAll('button')], at = stops.indexOf(document.activeElement);
    if (at < 0 && !event.shiftKey && (idle() || document.activeElement === kept.mark.element)) { event.preventDefault(); (kept.element.querySelector('nav button') ?? stops[0]).focus(); }
    const back = at >= 0 && (event.shiftKey ? at === 0 : at === stops.length - 1);
    if (back) kept.mark.element.focus({preventScroll: true});   // and from there, forwards, the browser goes on
    if (back && event.shiftKey) event.preventDefault();
  }
  document.addEventListener('keydown', onKey, true);
  document.addEventListener('pointerdown', event => {
    if (kept.by === 'touch' && kept.mark && !kept.element.contains(event.target) && !(root.contains(event.target) && pinnable(underPointer(event)))) release();
  }, true);
  addEventListener('scroll', event => {
    if (!passing.mark || passing.element.contains(event.target)) return;
    if (passing.by === 'pointer') hide(passing); else place(passing);
  }, {capture: true, passive: true});

  // The focus moves: what is said is of another step now. Once it rests, it is said again where the keyboard is, and in what is pinned.
  function moved() { if (passing.mark) { if (passing.by === 'pointer') refuse(); else hide(passing); } }
  function rested() {
    if (kept.mark) { if (kept.mark.element.isConnected) show(kept, kept.mark, kept.by); else hide(kept); }
    const mark = document.activeElement?.matches(':focus-visible') ? underKeys() : null;
    if (passing.mark || !mark || same(mark, refused) || same(mark, kept.mark)) return;
    wanted = null;
    rest(mark, 'key');
  }

  return {elements: [passing.element, kept.element], explain, moved, rested, pinHere};
}
