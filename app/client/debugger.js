// The debugger: owns the focus (run, step, position, state, node) and redraws every panel from it. Moving the focus never calls Python.

import {el, palette, clamp} from './draw.js';
import {Run} from './run.js';
import * as scrubber from './panels/scrubber.js';
import * as tokens from './panels/tokens.js';
import * as loom from './panels/loom.js';
import * as tree from './panels/tree.js';
import * as trellis from './panels/trellis.js';
import * as inspector from './panels/inspector.js';
import * as midpoint from './panels/midpoint.js';
import * as automaton from './panels/automaton.js';
import * as commits from './panels/commits.js';

const REST_MS = 150;
const STREAM_MS = 60;
const KEYS = [['← →', 'step back, step on (with Shift by ten)'], ['Home End', 'first step, last step'], ['[ ] or ↑ ↓', 'position to the left, to the right'],
  ['n  N', 'next, previous commit'], ['d  D', 'next, previous step at which Mf and Mar choose differently'], ['v', 'next step at which the two runs differ'],
  ['m', 'next quantity of the map'], ['b', 'the other run of a comparison'], ['Space', 'play, pause'], ['e', 'examples'], ['?', 'this list']];

export function mount({element, props, server, watch, trigger}) {
  const root = element.querySelector('.ds');
  const runs = new Map();
  const focus = {step: 0, position: 0, state: null, node: null, side: 'a', metric: 'mar'};
  let shown = {a: null, b: null}, serial = null, following = false, frame = 0, rest = 0, changed = true, colours = null, widths = null, theme = 0, gallery = [], playing = 0;

  // Layout

  const tip = makeTip(root);
  const parts = {scrubber: scrubber.create(go, tip), tokens: tokens.create(go), loom: loom.create(go, tip), tree: tree.create(go, tip), trellis: trellis.create(go, tip),
    inspector: inspector.create(go), midpoint: midpoint.create(), automaton: automaton.create(go, tip, props.graphviz), commits: commits.create(go)};
  const pick = {a: el('select', {class: 'ds-select ds-pick', 'aria-label': 'Run shown'}), b: el('select', {class: 'ds-select ds-pick', 'aria-label': 'Run beside it'})};
  for (const side of ['a', 'b']) pick[side].addEventListener('change', () => trigger('choose', {a: pick.a.value || null, b: pick.b.value || null}));
  const button = (text, title, act, more = {}) => el('button', {type: 'button', class: 'ds-button', title, text, onclick: act, ...more});
  const stop = button('■ Stop', 'Stop the run; what it has finished stays', () => trigger('stop', {}), {hidden: true, class: 'ds-button stop'});
  const status = el('span', {class: 'ds-status', role: 'status'});
  const save = button('Save', 'Save the run as a trace file', () => trigger('save', {side: focus.side}));
  const bar = el('div', {class: 'ds-bar'}, el('span', {class: 'ds-badge', text: 'A'}), pick.a, el('span', {class: 'ds-badge b', text: 'B'}), pick.b, status, stop, el('span', {class: 'ds-grow'}),
    button('Examples', 'Recorded runs (e)', openGallery), save, button('?', 'Keys (?)', () => help.showModal(), {'aria-label': 'Keys'}));
  const alarm = el('div', {class: 'ds-message', role: 'alert', hidden: true});
  const live = el('p', {class: 'ds-live', 'aria-live': 'polite'});
  const configuration = el('p', {class: 'ds-config'});
  const panel = (name, title, content, ...controls) => el('section', {class: `ds-panel ds-${name}`, 'aria-label': title}, el('header', {}, el('h3', {text: title}), el('span', {class: 'ds-grow'}), ...controls), content);
  const main = el('div', {class: 'ds-main'},
    el('div', {class: 'ds-left'},
      panel('canvas', 'Canvas', parts.tokens.element, legend()),
      panel('map', 'Step × position', parts.loom.element, parts.loom.legend, parts.loom.select),
      panel('tree', 'Midpoint tree', parts.tree.element, el('span', {class: 'ds-note', text: 'darker: more entropy'})),
      panel('trellis', 'Trellis', parts.trellis.element, el('span', {class: 'ds-note', text: 'tint: live · blue: posterior · line: the draw'})),
      panel('automaton', 'Automaton', parts.automaton.element)),
    el('div', {class: 'ds-right'},
      panel('position', 'Position', parts.inspector.element),
      panel('midpoint', 'Midpoint', parts.midpoint.element),
      panel('order', 'Commits in order', parts.commits.element)));
  const blank = el('p', {class: 'ds-blank', text: 'Nothing is shown yet. Run what the form says, or open an example.'});
  const help = el('dialog', {class: 'ds-dialog'}, el('h3', {text: 'Keys'}), el('dl', {class: 'ds-keys'}, ...KEYS.map(([keys, what]) => el('div', {}, el('dt', {text: keys}), el('dd', {text: what})))),
    el('form', {method: 'dialog'}, el('button', {class: 'ds-button', text: 'Close'})));
  const cards = el('div', {class: 'ds-cards'});
  const examples = el('dialog', {class: 'ds-dialog wide'}, el('h3', {text: 'Examples'}), cards, el('form', {method: 'dialog'}, el('button', {class: 'ds-button', text: 'Close'})));
  for (const dialog of [help, examples]) dialog.addEventListener('click', event => { if (event.target === dialog) dialog.close(); });
  root.replaceChildren(bar, alarm, el('div', {class: 'ds-sticky'}, parts.scrubber.element), configuration, blank, main, live, help, examples, tip.element);
  main.hidden = true;

  function legend() {
    const item = (state, text) => el('span', {class: 'ds-legend-item'}, el('span', {class: `ds-token sample ${state === 'rival' ? 'rival' : ''}`, 'data-state': state === 'rival' ? 'masked' : state, text: 'a'}), text);
    return el('span', {class: 'ds-legend'}, item('fixed', 'committed'), item('now', 'committed now'), item('masked', 'masked, drawn'), item('rival', 'the other confidence would'));
  }

  // Focus

  const get = side => runs.get(shown[side]) ?? null;
  const active = () => (focus.side === 'b' && get('b')) || get('a');

  function go(change) {
    const a = get('a');
    if (!a || !a.count) return;
    if ('step' in change || 'by' in change) following = false;
    if ('by' in change) change = {...change, step: focus.step + change.by};
    for (const name of ['position', 'state', 'node', 'side', 'metric']) if (name in change) focus[name] = change[name];
    if ('step' in change) focus.step = change.step;
    if ('position' in change && !('state' in change)) focus.state = null;
    if ('position' in change && !('node' in change)) focus.node = null;
    if ('side' in change || 'metric' in change) changed = true;
    settle();
    if (focus.step === lastStep() && a.status === 'running') following = true;
    later();
  }

  const lastStep = () => Math.max(get('a')?.last ?? 0, get('b')?.last ?? 0);
  function settle() {
    const run = active();
    if (!run) return;
    focus.step = clamp(focus.step, 0, lastStep());
    focus.position = clamp(focus.position, 0, run.length - 1);
    if (!get('b')) focus.side = 'a';
  }

  function later() { frame ||= requestAnimationFrame(paint); }
  // A run may stream hundreds of steps a second, and redrawing its map for each would leave no time for the keys.
  let streamed = 0;
  function soon() { streamed ||= setTimeout(() => { streamed = 0; changed = true; later(); }, STREAM_MS); }

  function paint() {
    frame = 0;
    const run = active();
    main.hidden = !run?.count;
    blank.hidden = Boolean(run?.count);
    root.querySelector('.ds-transport').hidden = !run?.count;
    if (!run?.count) return;
    colours ??= palette(root);
    draw(false);
    clearTimeout(rest);
    rest = setTimeout(settled, REST_MS);
  }

  function draw(rested) {
    const run = active(), step = Math.min(focus.step, run.last), detail = run.detail(step);
    // Measured only when something else than the focus changed: reading a width in between would force a layout.
    if (changed) widths = {left: Math.floor(parts.tree.element.clientWidth), right: Math.floor(parts.inspector.element.clientWidth)};
    const view = {run, a: get('a'), b: get('b'), other: get('b') && (focus.side === 'b' ? get('a') : get('b')), compare: Boolean(get('b')), step, position: focus.position, node: focus.node,
      state: focus.state !== null && focus.state < run.states ? focus.state : null, side: focus.side, metric: focus.metric, detail, colours, theme, changed, rested, widths, dark: document.body.classList.contains('dark')};
    if (view.node > run.length) view.node = null;
    parts.scrubber.update(view);
    parts.tokens.update({...view, step: focus.step});
    parts.loom.update({...view, step: focus.step});
    parts.tree.update(view);
    parts.trellis.update(view);
    parts.inspector.update(view);
    parts.midpoint.update(view);
    parts.automaton.update(view, () => later());
    parts.commits.update(view);
    if (changed) configure(run);
    changed = false;
    Object.assign(element.dataset, {step: focus.step, position: focus.position, run: run.id, count: run.count, status: run.status, side: focus.side, detail: detail ? 'here' : 'awaited', compare: view.compare ? run.id === shown.a ? shown.b : shown.a : '', painted: 'yes'});
    if (!detail && !run.fetching) want();
    else run.wanted = step;
  }

  function want() {
    const run = active();
    run.fetchDetail(Math.min(focus.step, run.last), (first, count) => {
      const step = Math.min(focus.step, run.last);
      if (active() === run && step >= first && step < first + count) later();
    });
  }

  // What may wait until the focus rests: fetching, scrolling, the address, the spoken summary.
  function settled() {
    const run = active();
    if (!run?.count) return;
    draw(true);
    want();
    const step = Math.min(focus.step, run.last), i = focus.position, words = new URLSearchParams();
    for (const side of ['a', 'b']) if (shown[side]) words.set(side, shown[side]);
    words.set('step', focus.step);
    words.set('pos', i);
    words.set('map', focus.metric);
    if (focus.node !== null) words.set('node', focus.node);
    if (focus.state !== null) words.set('state', focus.state);
    history.replaceState(null, '', `#${words}`);
    live.textContent = `Step ${step + 1} of ${run.steps}: ${run.commits(step)} committed. Position ${i}: ${run.text(run.drawn(step, i))}, ${run.masked(step, i) ? 'masked' : 'committed'}.`;
  }

  function configure(run) {
    const {config} = run, accepted = run.finished ? run.accepted ? '✓ accepted' : '✕ not accepted' : run.status === 'running' ? 'running' : `stopped after ${run.count} of ${run.steps} steps`;
    configuration.replaceChildren(el('b', {text: config.kind === null ? 'no constraint' : accepted, class: run.accepted || config.kind === null ? 'good' : run.finished ? 'bad' : ''}),
      ...[`model ${run.head.model.name ?? config.model}`, `${config.sampler}, ${config.confidence === 'mar' ? 'Mar' : 'Mf'} commits`, `temperature ${config.temperature}`, config.remasking.replace('_', ' '), `seed ${config.seed}`,
        `${run.states.toLocaleString('en')} states, ${run.head.edges.toLocaleString('en')} edges, ${run.head.classes.toLocaleString('en')} token classes`,
        `model ${typical(run, 'model_ms')}, engine ${typical(run, 'engine_ms')} a step`].map(text => el('span', {text})));
    configuration.append(el('q', {class: 'ds-prompt', text: config.prompt, title: config.prompt, hidden: !config.prompt}));
  }
  // The median: the first step of a process may have compiled kernels.
  function typical(run, name) {
    const ms = Array.from({length: run.count}, (_, t) => run.at(name, t)).sort((a, b) => a - b)[run.count >> 1];
    return `${ms >= 10 ? ms.toFixed(0) : ms.toPrecision(2)} ms`;
  }

  // Runs

  async function open(id) {
    if (!id) return null;
    if (!runs.has(id)) runs.set(id, await Run.open(id, server));
    const run = runs.get(id);
    if (!run) runs.delete(id);
    while (runs.size > 8) {
      const old = [...runs.keys()].find(key => key !== id && key !== shown.a && key !== shown.b);
      if (!old) break;
      runs.delete(old);
    }
    return run;
  }

  // Python gave a new value: show its runs, fetch what is new of a run in progress, say its message.
  let syncing = false, againSync = false;
  async function sync() {
    if (syncing) { againSync = true; return; }
    syncing = true;
    try {
      do {
        againSync = false;
        await take(props.value ?? {});
      } while (againSync);
    } finally { syncing = false; }
  }

  async function take(value) {
    const fresh = value.serial !== serial;
    serial = value.serial;
    if (fresh && value.message) say(value.message);
    else if (fresh && value.running && value.running !== take.running) alarm.hidden = true;
    take.running = value.running;
    status.textContent = value.running ? 'running' : value.preparing ? 'preparing: reading the constraint, loading the model' : '';
    stop.hidden = !value.running;
    const before = {...shown}, a = await open(value.a), b = await open(value.b);
    shown = {a: a ? value.a : null, b: b ? value.b : null};
    const isNew = shown.a !== before.a || shown.b !== before.b;
    for (const run of [a, b]) if (run && (run.status === 'running' || value.running === run.id || !run.finished)) await run.pull();
    if (isNew) {
      changed = true;
      focus.side = 'a';
      if (shown.a !== before.a) { focus.node = focus.state = null; focus.step = value.running === value.a ? 0 : Infinity; }
      if (value.running === value.a) following = true;
      if (value.at) { focus.step = value.at.step < 0 ? Infinity : value.at.step; focus.position = value.at.position; }
    }
    if (following) focus.step = lastStep();
    if (!value.running) following = false;
    if (fresh && !value.running) changed = true;
    list(value);
    settle();
    root.dataset.running = value.running ? 'yes' : 'no';
    if (value.running && !isNew) soon(); else later();
  }

  // Python tells of each step and of the end; should it fail or be cut off, the run's own status says so.
  setInterval(async () => {
    const run = runs.get(take.running);
    if (!run || run.status !== 'running') return;
    if (await run.pull()) soon();
    if (run.status === 'running') return;
    take.running = null;
    stop.hidden = true;
    status.textContent = '';
    root.dataset.running = 'no';
    changed = true;
    later();
  }, 1500);

  function list(value) {
    const groups = [['This session', (value.runs ?? []).map(({id, title}) => [id, title])], ['Examples', gallery.flatMap(({title, runs: ids}) => ids.map((id, k) => [id, ids.length > 1 ? `${k + 1} of 2 · ${title}` : title]))]];
    const key = JSON.stringify([groups, shown]);
    if (list.key === key) return;
    list.key = key;
    for (const side of ['a', 'b']) {
      const options = groups.filter(([, items]) => items.length).map(([label, items]) => el('optgroup', {label}, ...items.map(([id, title]) => el('option', {value: id, text: title}))));
      pick[side].replaceChildren(...(side === 'b' ? [el('option', {value: '', text: 'none beside it'})] : []), ...options);
      pick[side].value = shown[side] ?? '';
    }
    bar.classList.toggle('compare', Boolean(shown.b));
  }

  function say(message) {
    const close = el('button', {type: 'button', class: 'ds-icon', 'aria-label': 'Dismiss', text: '×', onclick: () => { alarm.hidden = true; }});
    alarm.replaceChildren(el('p', {class: 'ds-problem'}, el('b', {text: '✕ '}), message.problem), close);
    if (message.frame) alarm.append(el('p', {class: 'ds-place', text: `line ${message.line}, column ${message.column}`}), el('pre', {text: message.frame}));
    alarm.append(el('p', {class: 'ds-remedy', text: message.remedy}));
    alarm.hidden = false;
    alarm.scrollIntoView({block: 'nearest'});
  }

  function openGallery() {
    cards.replaceChildren(...gallery.map(({name, title, what, runs: ids}) => el('button', {type: 'button', class: 'ds-card', 'data-name': name, onclick: () => { examples.close(); trigger('example', {name}); }},
      el('b', {text: title}), el('span', {text: what}), ids.length > 1 ? el('i', {text: 'two runs side by side'}) : '')));
    examples.showModal();
  }

  // Keys

  function nextCommit(way) {
    const run = active(), at = focus.step * run.length + focus.position, all = [];
    for (let t = 0; t < run.count; t++) for (let i = 0; i < run.length; i++) if (run.at('committed', t, i)) all.push(t * run.length + i);
    const found = way > 0 ? all.find(x => x > at) : all.findLast(x => x < at);
    if (found !== undefined) go({step: Math.floor(found / run.length), position: found % run.length});
  }
  function nextStep(way, wanted, position) {
    for (let t = focus.step + way; t >= 0 && t <= active().last; t += way) if (wanted(t)) return go({step: t, ...position(t)});
  }
  const first = test => { for (let i = 0; i < active().length; i++) if (test(i)) return {position: i}; return {}; };
  function disagreement(way) {
    const run = active();
    nextStep(way, t => run.disagrees(t), t => first(i => run.at('committed_mf', t, i) !== run.at('committed_mar', t, i)));
  }
  function divergence() {
    const a = get('a'), b = get('b');
    if (!b) return;
    const differs = (t, i) => t < b.count && i < b.length && (a.at('committed', t, i) !== b.at('committed', t, i) || a.text(a.drawn(t, i)) !== b.text(b.drawn(t, i)));
    nextStep(1, t => first(i => differs(t, i)).position !== undefined, t => first(i => differs(t, i)));
  }
  function play() {
    if (playing) { clearInterval(playing); playing = 0; return; }
    if (focus.step >= lastStep()) go({step: 0});
    playing = setInterval(() => { if (focus.step >= lastStep()) play(); else go({by: 1}); }, 250);
  }
  function metric() {
    const names = Object.keys(loom.QUANTITIES);
    go({metric: names[(names.indexOf(focus.metric) + 1) % names.length]});
  }
  const commands = {
    ArrowLeft: e => go({by: e.shiftKey ? -10 : -1}), ArrowRight: e => go({by: e.shiftKey ? 10 : 1}), Home: () => go({step: 0}), End: () => go({step: Infinity}), PageUp: () => go({by: -16}), PageDown: () => go({by: 16}),
    '[': () => go({position: focus.position - 1}), ']': () => go({position: focus.position + 1}), ArrowUp: () => go({position: focus.position - 1}), ArrowDown: () => go({position: focus.position + 1}),
    n: () => nextCommit(1), N: () => nextCommit(-1), d: () => disagreement(1), D: () => disagreement(-1), v: divergence, m: metric, b: () => get('b') && go({side: focus.side === 'a' ? 'b' : 'a'}),
    ' ': play, e: openGallery, '?': () => help.showModal()};
  function onKey(event) {
    if (!element.isConnected) return document.removeEventListener('keydown', onKey);
    const {target} = event, inside = root.contains(target) || target === document.body;
    if (event.ctrlKey || event.metaKey || event.altKey || help.open || examples.open) return;
    if ((/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) && target.type !== 'range') || target.isContentEditable || !inside) return;
    const command = commands[event.key];
    if (!command || (event.key === ' ' && target.tagName === 'BUTTON' && !target.dataset.i)) return;
    event.preventDefault();
    command(event);
    const chip = document.activeElement?.dataset?.i !== undefined && root.querySelector(`[data-side="${focus.side}"] [data-i="${focus.position}"]`);
    if (chip) chip.focus();
  }
  document.addEventListener('keydown', onKey);

  // Theme and size

  new MutationObserver(() => { colours = null; theme++; changed = true; later(); }).observe(document.body, {attributes: true, attributeFilter: ['class']});
  let width = 0;
  new ResizeObserver(([entry]) => {
    if (Math.abs(entry.contentRect.width - width) < 1) return;
    width = entry.contentRect.width;
    changed = true;
    later();
  }).observe(root);
  if (innerWidth < 768) document.querySelector('.sidebar.open .toggle-button')?.click();   // an open sidebar covers a phone

  // Start: what the address says, or what Python says.
  (async () => {
    gallery = (await server.get_gallery({})).cards ?? [];
    const words = new URLSearchParams(location.hash.slice(1));
    await sync();
    watch('value', sync);
    if (words.get('a') && (words.get('a') !== shown.a || words.get('b') !== shown.b)) {
      const a = await open(words.get('a'));
      if (a) trigger('choose', {a: words.get('a'), b: words.get('b')});
      shown.wanted = words;
      await new Promise(done => setTimeout(done, 400));
      await sync();
    }
    if (words.has('step') && words.get('a') === shown.a) {
      const whole = name => words.has(name) && /^\d+$/.test(words.get(name)) ? +words.get(name) : null;
      go({step: whole('step') ?? 0, position: whole('pos') ?? 0, node: whole('node'), state: whole('state'), metric: words.get('map') in loom.QUANTITIES ? words.get('map') : 'mar'});
    }
    element.dataset.ready = 'yes';
  })();
}

function makeTip() {
  const element = el('div', {class: 'ds-tip', hidden: true, role: 'tooltip'});
  return {
    element,
    show(event, lines) {
      element.replaceChildren(...lines.filter(Boolean).map(text => el('div', {text})));
      element.hidden = false;
      const {offsetWidth: w, offsetHeight: h} = element;
      element.style.left = `${Math.min(event.clientX + 14, innerWidth - w - 8)}px`;
      element.style.top = `${event.clientY + h + 22 > innerHeight ? event.clientY - h - 10 : event.clientY + 16}px`;
    },
    hide() { element.hidden = true; },
  };
}
