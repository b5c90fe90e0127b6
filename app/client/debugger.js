// The debugger: owns the focus (run, step, phase, position, node, state) and redraws every panel from it. Moving the focus never calls Python.

import {el, palette, clamp, measureZoom} from './draw.js';
import {UNANSWERED, answering} from './ask.js';
import {Run, spanOf} from './run.js';
import {build} from './layout.js';
import {commandOf} from './keys.js';
import * as finder from './palette.js';
import * as find from './steps.js';
import * as focusWords from './focus.js';
import {NOTHING, merge} from './told.js';
import * as store from './store.js';
import {QUANTITIES} from './panels/loom.js';
import {small} from './panels/weights.js';
import {phasesOf} from './panels/phases.js';

const REST_MS = 150;
const STREAM_MS = 60;
const PLAY_MS = 250;

export function mount({element, props, server: asked, watch, trigger}) {
  const server = answering(asked);
  const root = element.querySelector('.ds');
  const runs = new Map();
  const focus = {step: 0, phase: null, position: 0, second: null, token: null, state: null, group: null, node: null, span: null, side: 'a', metric: 'mar', align: 'step'};
  let paired = false, shown = {a: null, b: null}, told = {...NOTHING}, held = '', heard = {}, following = false, frame = 0, rest = 0, changed = true, colours = null, widths = null, theme = 0, gallery = [], playing = 0, last = null, chosen = null, refused = null;
  const layout = build({root, props, server, trigger, go, act, view: () => last, redraw});
  const {parts, card, alarm, live, configuration, status, stop, resume, main, blank} = layout;
  const search = finder.create({run: () => active(), focus: () => focus, act, go, examples: () => gallery, show: name => trigger('example', {name}), breaks: layout.parts.breaks});
  root.append(search.dialog);

  // Lessons: fetched when they are opened, shown by the same panels.

  let lessons = null;
  async function learn(words) {
    lessons ??= (await import('./lessons/lessons.js')).create({root, element, layout, server, parts, show, go, act, trigger, shown: () => shown, view: () => last});
    await lessons.open(words);
  }
  // A lesson's runs are no matter of Python's until the lesson is left.
  async function show({a, b = null, at = {}, parts: known = {}}) {
    for (const [id, part] of Object.entries(known)) if (!runs.has(id)) runs.set(id, await Run.of(id, part, server));
    const first = await open(a), second = await open(b);
    if (!first) return false;
    shown = {a, b: second ? b : null};
    focus.side = 'a';
    focus.node = focus.state = focus.group = focus.phase = focus.second = focus.token = null;
    Object.assign(focus, at);
    layout.frames.against.element.hidden = !second;
    changed = true;
    settle();
    cancelAnimationFrame(frame);
    paint();
    return true;
  }

  // Focus

  const get = side => runs.get(shown[side]) ?? null;
  function active() { return (focus.side === 'b' && get('b')) || get('a'); }

  function go(change) {
    const a = get('a');
    if (!a || !a.count) return;
    if (change.redraw) { changed = true; return later(); }
    if ('step' in change || 'by' in change) following = false;
    if ('by' in change) change = {...change, step: focus.step + change.by};
    if ('beside' in change) change = {...change, second: change.beside === focus.second ? null : change.beside};
    if (['side', 'metric', 'align'].some(name => name in change && change[name] !== focus[name])) changed = true;
    for (const name of ['position', 'second', 'token', 'state', 'group', 'node', 'span', 'side', 'metric', 'phase', 'align']) if (name in change) focus[name] = change[name];
    if ('step' in change) focus.step = change.step;
    if ('position' in change && !('state' in change)) focus.state = null;
    if ('position' in change && !('token' in change)) focus.token = null;
    if ('position' in change && !('node' in change)) focus.node = null;
    if ('node' in change && change.node !== null) focus.span = spanAt(change.node);
    else if ('position' in change && !('span' in change)) focus.span = null;
    settle();
    if (focus.step === lastStep() && a.status === 'running') following = true;
    if (change.fork) act('fork');
    later();
  }

  function spanAt(node) {
    const run = active();
    if (!run || node > run.length) return null;
    const {start, stop} = spanOf(node, run.length);
    return {start, stop};
  }
  const lastStep = () => Math.max(get('a')?.last ?? 0, get('b')?.last ?? 0);
  function settle() {
    const run = active();
    if (!run) return;
    focus.step = clamp(focus.step, 0, lastStep());
    focus.position = clamp(focus.position, 0, run.length - 1);
    if (!get('b')) focus.side = 'a';
    if (focus.span && focus.span.stop > run.length) focus.span = null;
    if (focus.second >= run.length) focus.second = null;
    if (focus.token >= run.head.vocab) focus.token = null;
    if (run.count && focus.phase !== null && !phasesOf(run).some(([name]) => name === focus.phase)) focus.phase = null;
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
    card.moved();
    clearTimeout(rest);
    rest = setTimeout(settled, REST_MS);
  }

  // At once, and wholly: what an export or another size needs.
  function redraw() { changed = true; draw(true); }

  function draw(rested) {
    const run = active(), step = Math.min(focus.step, run.last), detail = run.detail(step);
    // Measured only when something else than the focus changed: reading a width in between would force a layout.
    const second = focus.second === focus.position ? null : focus.second;
    if (root.classList.toggle('pair', second !== null) !== paired) { paired = !paired; changed = true; }   // the column of details is wider then
    if (changed) measureZoom(root);
    if (changed) widths = {left: wide([parts.tree, parts.trellis, parts.loom], 'tree', 'map', 'trellis'), right: wide([parts.inspector, parts.exact, parts.compare], 'against'), tall: {map: tall('map'), tree: tall('tree'), trellis: tall('trellis')}};
    const view = {run, a: get('a'), b: get('b'), other: get('b') && (focus.side === 'b' ? get('a') : get('b')), compare: Boolean(get('b')), step, position: focus.position, second, token: focus.token, node: focus.node, phase: focus.phase,
      state: focus.state !== null && focus.state < run.states ? focus.state : null, group: focus.group, side: focus.side, metric: focus.metric, detail, span: focus.span, align: focus.align, steps: stepsOf(run, step), colours, theme, changed, rested, widths, ticks: parts.breaks.ticks(run), hits: parts.breaks.hits};
    if (view.node > run.length) view.node = null;
    last = view;
    layout.frames.weights.element.hidden = !small(run) || !server.get_messages;
    parts.scrubber.update(view);
    // What a lesson leaves out is drawn when it comes back.
    const own = {...view, step: focus.step}, panels = {canvas: ['tokens', own], inside: ['phases', view], map: ['loom', own], tree: ['tree', view], trellis: ['trellis', view], weights: ['weights', view], position: ['inspector', view], exact: ['exact', view],
      midpoint: ['midpoint', view], automaton: ['automaton', view, later], order: ['commits', view], against: ['compare', view], stops: ['breaks', view], diagnosis: ['findings', view]};
    for (const [name, [part, ...of]] of Object.entries(panels)) if (!layout.frames[name].element.classList.contains('ds-off')) parts[part].update(...of);
    if (changed) configure(run);
    if (rested) for (const panel of Object.values(layout.frames)) panel.refresh();
    changed = false;
    Object.assign(element.dataset, {step: focus.step, position: focus.position, second: second ?? '', token: focus.token ?? '', phase: focus.phase ?? '', run: run.id, count: run.count, status: run.status, side: focus.side, detail: detail ? 'here' : 'awaited', compare: view.compare ? run.id === shown.a ? shown.b : shown.a : '', painted: 'yes'});
    if (!detail && !run.fetching) want();
    else run.wanted = step;
  }

  // The step that each of two runs is at, as they are aligned.
  function stepsOf(run, step) {
    const side = run === get('b') ? 'b' : 'a', rival = side === 'a' ? 'b' : 'a', other = get(rival);
    return {[side]: step, [rival]: other?.count ? find.beside(run, other, focus.step, focus.position, focus.align) : 0};
  }

  // A panel that fills the page has more room than its column.
  function wide(panels, ...names) {
    const node = panels.map(panel => panel.element).find(element => element.clientWidth) ?? panels[0].element;
    const large = root.querySelector('.ds-panel.large');
    const fills = large && names.some(name => large.classList.contains(`ds-${name}`));
    return Math.floor(fills ? large.clientWidth - 32 : node.clientWidth || node.parentElement.clientWidth);
  }

  // How many times as high as in its column.
  const tall = name => layout.frames[name].element.classList.contains('large') ? Math.max(1, (innerHeight - 150) / 260) : 1;

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
    card.rested();
    want();
    remember();
    const step = Math.min(focus.step, run.last), i = focus.position;
    live.textContent = `Step ${step} of 0 to ${run.steps - 1}: ${run.commits(step)} committed. Position ${i}: ${run.text(run.drawn(step, i))}, ${run.masked(step, i) ? 'masked' : 'committed'}.${run.at('log_partition', step) === -Infinity ? ' Nothing accepted is left.' : ''}`;
  }

  // The address holds the focus; where it came to rest is a place to go back to.
  function remember() {
    const words = lessons?.words(focus) ?? focusWords.write(shown, focus);
    if (words === location.hash || chosen || !element.dataset.ready) return;   // the address is still to be followed
    const away = lessons?.active || following || !location.hash;
    history[away ? 'replaceState' : 'pushState'](history.state, '', words);
  }
  addEventListener('popstate', () => { if (element.isConnected) recall(); });

  async function recall() {
    const words = focusWords.read(location.hash);
    if (words.lesson) return learn(words);
    lessons?.close();
    if (words.a && (words.a !== shown.a || (words.b ?? null) !== shown.b)) {
      if (!await open(words.a)) return gone(words.a);
      await both(words);
    }
    if (words.a && words.a === shown.a) go({...words.focus, metric: words.focus.metric in QUANTITIES ? words.focus.metric : focus.metric});
  }
  // The runs of an address are Python's to show; wait until it has, or has said why not.
  function choose({a, b}) {
    chosen?.done();
    return new Promise(done => { chosen = {a, done}; trigger('choose', {a, b: b ?? null}); });
  }
  // A second run that is gone is left out, and said so.
  async function both({a, b}) {
    const there = !b || await open(b);
    await choose({a, b: there ? b : null});
    if (!there) gone(b);
  }
  // Why the last run that was asked for isn't here.
  function gone(id) {
    const name = String(id).slice(0, 60);
    if (refused.error === UNANSWERED) layout.say({problem: `The server gave no answer about the run ${name}.`, remedy: 'What was shown stays. See whether the server still runs, and open the run again.'});
    else layout.say({problem: `This server does not hold the run ${name}.`, remedy: 'Runs are kept while their page is open. What was shown stays; open the saved trace, or run it again.'});
  }

  function configure(run) {
    const {config} = run, done = run.finished ? run.accepted ? '✓ accepted' : '✕ not accepted' : run.status === 'running' ? 'running' : `${run.status === 'paused' ? 'paused' : 'stopped'} after ${run.count} of ${run.steps} steps`;
    configuration.replaceChildren(el('b', {text: config.kind === null ? 'no constraint' : done, class: run.accepted || config.kind === null ? 'good' : run.finished ? 'bad' : ''}),
      ...[modelFacts(run.head.model, config), `${config.sampler}, ${config.confidence === 'mar' ? 'Mar' : 'Mf'} commits`, `temperature ${config.temperature}`, config.remasking.replace('_', ' '), `seed ${config.seed}`,
        `${run.states.toLocaleString('en')} states, ${run.head.edges.toLocaleString('en')} edges, ${run.head.classes.toLocaleString('en')} token classes`,
        `model ${typical(run, 'model_ms')}, engine ${typical(run, 'engine_ms')} a step`].map(text => el('span', {text})));
    configuration.append(el('q', {class: 'ds-prompt', text: config.prompt, title: config.prompt, hidden: !config.prompt}));
    resume.hidden = run.finished || run.status === 'running' || String(run.id).startsWith('example:') || Boolean(props.offline);
  }
  function modelFacts(model, config) {
    const size = model.parameters ? `${(model.parameters / 1e6).toLocaleString('en', {maximumFractionDigits: 1})} M parameters` : '';
    const facts = [model.family, size, model.device, model.dtype, model.context ? `context ${model.context}` : ''].filter(Boolean);
    return `model ${model.name ?? config.model}${facts.length ? ` (${facts.join(', ')})` : ''}`;
  }
  // The median: the first step of a process may have compiled kernels.
  function typical(run, name) {
    const ms = Array.from({length: run.count}, (_, t) => run.at(name, t)).sort((a, b) => a - b)[run.count >> 1];
    return `${ms >= 10 ? ms.toFixed(0) : ms.toPrecision(2)} ms`;
  }

  // Runs

  async function open(id) {
    if (!id) return null;
    const run = runs.get(id) ?? await Run.open(id, server);
    if (run.error) { refused = run; return null; }
    runs.set(id, run);
    while (runs.size > 8) {
      const old = [...runs.keys()].find(key => key !== id && key !== shown.a && key !== shown.b);
      if (!old) break;
      runs.delete(old);
    }
    return run;
  }

  // Python told something: say its message at once; show its runs, and fetch what is new of one in progress, in turn.
  function hear(said, isNews) {
    if (!said?.serial || said.serial === heard[isNews]) return;
    heard[isNews] = said.serial;
    said = JSON.parse(JSON.stringify(said));   // Gradio's own object watches what is done to it
    if (said.message) layout.say(said.message);
    else if (isNews && said.running && said.running !== told.running) alarm.hidden = true;
    else if ((said.claim ?? said.serial) > told.claim && (said.a !== told.a || said.b !== told.b)) alarm.hidden = true;
    if (told.running && !said.running) changed = true;
    if (told.serial && (said.claim ?? said.serial) > told.claim) lessons?.close();   // something else was chosen
    told = merge(told, said, isNews);
    hold();
    const shows = sync();
    const asked = !isNews && (said.message || said.a === chosen?.a) ? chosen : null;
    if (asked) shows.finally(() => { if (chosen === asked) chosen = null; asked.done(); });
    return shows;
  }
  // What the next event of the user says to Python.
  function hold() {
    const {at, preparing, serial, ...kept} = told;
    if (JSON.stringify(kept) !== held && !props.offline) props.value = JSON.parse(held = JSON.stringify(kept));
  }

  let syncing = null, againSync = false;
  function sync() {
    againSync = true;
    return syncing ??= (async () => {
      try {
        while (againSync) { againSync = false; await take(); }
      } finally { syncing = null; }
    })();
  }

  async function take() {
    const {running, paused, preparing, at} = told, before = {...shown}, a = await open(told.a), b = await open(told.b);
    told.at = null;
    status.textContent = paused ? `paused at step ${paused.step}` : running ? 'running' : typeof preparing === 'string' ? preparing : preparing ? 'preparing: reading the constraint, loading the model' : '';
    stop.hidden = !running && typeof preparing !== 'string';
    if (lessons?.active) return;
    if (told.a && !a) {   // what was shown stays, and is what the next event speaks of
      gone(told.a);
      Object.assign(told, shown);
      hold();
      return layout.list(told, shown, gallery);
    }
    if (told.b && !b) gone(told.b);
    shown = {a: a?.id ?? null, b: b?.id ?? null};
    const isNew = shown.a !== before.a || shown.b !== before.b;
    for (const run of [a, b]) if (run && (!run.finished || run.status === 'running')) await run.pull();   // its last step is told before its end
    if (isNew) {
      changed = true;
      focus.side = 'a';
      if (shown.a !== before.a) { focus.node = focus.state = focus.group = focus.span = focus.second = focus.token = null; focus.step = running === shown.a ? 0 : Infinity; }
      following = Boolean(running) && running === shown.a;
    }
    if (at) { following &&= isNew; focus.step = at.step < 0 ? Infinity : at.step; focus.position = at.position ?? focus.position; }
    if (following) focus.step = lastStep();
    if (!running) following = false;
    layout.list(told, shown, gallery);
    settle();
    root.dataset.running = running ? 'yes' : 'no';
    if (running && !isNew) soon(); else later();
  }

  // Python tells of each step and of the end; should it fail, be cut off, or tell another page, the run's own status says so.
  setInterval(async () => {
    for (const run of new Set([runs.get(told.running), get('a'), get('b')])) {
      if (!run || (run.status !== 'running' && run.id !== told.running)) continue;
      if (await run.pull()) soon();
      if (run.status === 'running' || told.running !== run.id) continue;
      told.running = null;
      changed = true;
      hold();
      sync();
    }
  }, 1500);

  document.addEventListener('denoiscope-edited', () => { if (alarm.dataset.of === 'form') alarm.hidden = true; });

  // Commands, by the names that the keys and the palette have for them.

  const jump = found => { if (found) go(found); };
  const over = by => {
    if (focus.phase === null || Math.abs(by) > 1) return go({by});
    const names = phasesOf(active()).map(([name]) => name), at = names.indexOf(focus.phase) + by;
    if (names[at]) return go({phase: names[at]});
    if (focus.step + by < 0 || focus.step + by > lastStep()) return;
    go({by, phase: by > 0 ? names[0] : names[names.length - 1]});
  };
  function play() {
    if (playing) { clearInterval(playing); playing = 0; return; }
    if (focus.step >= lastStep()) go({step: 0});
    playing = setInterval(() => { go({by: 1}); if (focus.step >= lastStep()) play(); }, PLAY_MS);
  }
  // Beside the focus: the position that it is at, and the focus goes on; or what is beside it, moved or dropped.
  const aside = by => go({second: clamp((focus.second ?? focus.position) + by, 0, active().length - 1)});
  const commands = {
    second: () => go({beside: focus.position}), secondLeft: () => aside(-1), secondRight: () => aside(1), single: () => go({second: null}),
    back: () => over(-1), over: () => over(1), back10: () => over(-10), over10: () => over(10), first: () => go({step: 0}), last: () => go({step: Infinity}),
    into: run => go({phase: phasesOf(run)[0][0]}), out: () => go({phase: null}), left: () => go({position: focus.position - 1}), right: () => go({position: focus.position + 1}), play,
    commit: run => jump(find.commit(run, focus, 1)), commitBack: run => jump(find.commit(run, focus, -1)), flip: run => jump(find.flip(run, focus, 1)), flipBack: run => jump(find.flip(run, focus, -1)),
    rival: run => jump(find.rival(run, focus, 1)), rivalBack: run => jump(find.rival(run, focus, -1)), forced: run => jump(find.forced(run, focus, 1)),
    difference: () => get('b') && jump(find.difference(get('a'), get('b'), focus, 1)), differenceBack: () => get('b') && jump(find.difference(get('a'), get('b'), focus, -1)), hopeless: run => jump(find.hopeless(run)), hit: () => parts.breaks.next(1), hitBack: () => parts.breaks.next(-1),
    fork: () => last && !props.offline && layout.fork.open(viewNow()), resume: run => !resume.hidden && trigger('go_on', {run: run.id}), side: () => get('b') && go({side: focus.side === 'a' ? 'b' : 'a'}),
    metric() { const names = Object.keys(QUANTITIES); go({metric: names[(names.indexOf(focus.metric) + 1) % names.length]}); },
    save: () => trigger('save', {side: focus.side})};
  const always = {lessons: () => !props.offline && (lessons?.active ? lessons.leave() : learn({})), lessonOn: () => lessons?.turn(1), lessonBack: () => lessons?.turn(-1), large: enlarge, pin: card.pinHere, gallery: () => !props.offline && layout.openGallery(gallery), palette: () => search.open(), help: () => layout.help.showModal()};
  // The focus may have moved since the last frame.
  function viewNow() { const run = active(), step = Math.min(focus.step, run.last); return {...last, run, step, position: focus.position, detail: run.detail(step)}; }
  function act(name) {
    if (always[name]) return always[name]();
    const run = active();
    if (run?.count) commands[name]?.(run);
  }

  function onKey(event) {
    if (!element.isConnected) return document.removeEventListener('keydown', onKey);
    const {target} = event, inside = root.contains(target) || target === document.body;
    if ((event.ctrlKey || event.metaKey) && event.code === 'KeyK' && !document.querySelector('dialog[open]')) { event.preventDefault(); return act('palette'); }
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
    if ((/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) && target.type !== 'range') || target.isContentEditable || !inside) return;
    const name = commandOf(event);
    const pressed = (event.code === 'Space' || event.code === 'Enter') && target.closest?.('button, a, summary, [role=button]') && !target.dataset.i;
    if (!name || pressed || (name === 'single' && focus.second === null) || target.closest?.('[role=menu]')) return;
    event.preventDefault();
    act(name);
    const chip = document.activeElement?.dataset?.i !== undefined && root.querySelector(`[data-side="${focus.side}"] [data-i="${focus.position}"]`);
    if (chip) chip.focus();
  }
  document.addEventListener('keydown', onKey);

  // Theme and size

  function enlarge() {
    store.set('large', root.classList.toggle('large-type'));
    lessons?.typed();
    go({redraw: true});
  }
  root.classList.toggle('large-type', Boolean(store.get('large')));

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
    const words = focusWords.read(location.hash);
    await hear(props.value, false);
    watch('value', () => hear(props.value, false));
    watch('news', () => hear(props.news, true));
    if (words.lesson) await learn(words);
    else if (words.a) {
      if (words.a !== shown.a || (words.b ?? null) !== shown.b) {
        if (await open(words.a)) await both(words);
        else gone(words.a);
      }
      if (words.a === shown.a) go({...words.focus, metric: words.focus.metric in QUANTITIES ? words.focus.metric : 'mar'});
    }
    element.dataset.ready = 'yes';
  })();
}
