// Breakpoints: predicates over the recording. Written as text or put together; each has its hits here, and in the lanes.

import {el, visible} from '../draw.js';

const HITS = 200;

export function create(go, trigger, server) {
  const input = el('input', {type: 'text', class: 'ds-input ds-mono', id: 'ds-break', placeholder: 'kl > 2 and token == "}"', autocomplete: 'off', spellcheck: 'false', 'aria-describedby': 'ds-break-error'});
  const name = el('select', {class: 'ds-select', 'aria-label': 'Quantity'}), sign = el('select', {class: 'ds-select', 'aria-label': 'Comparison'}), value = el('input', {type: 'text', class: 'ds-input ds-mono', 'aria-label': 'Value', size: 6});
  const meaning = el('span', {class: 'ds-note'}), wrong = el('div', {class: 'ds-break-error', id: 'ds-break-error', role: 'alert', hidden: true});
  const add = el('button', {type: 'button', class: 'ds-button', text: 'Add', onclick: () => take(input.value)});
  const put = el('button', {type: 'button', class: 'ds-button', text: 'Put in', onclick: () => { input.value = [input.value.trim(), built()].filter(Boolean).join(' and '); input.focus(); }});
  const list = el('ul', {class: 'ds-breaks'});
  const element = el('div', {}, el('div', {class: 'ds-inline'}, el('label', {class: 'ds-label', for: 'ds-break', text: 'stop where'}), input, add), wrong,
    el('div', {class: 'ds-inline'}, name, sign, value, put, meaning), list);
  const stops = [];   // {text, hits: Map(run id -> {count, hits} )}
  const opened = new Set();   // whose hits are written out
  let words = [], shown = null, filling = null;
  input.addEventListener('keydown', event => { if (event.key === 'Enter') take(input.value); });
  name.addEventListener('change', build);

  server.get_words({}).then(answer => {
    words = answer.words ?? [];
    name.replaceChildren(...words.map(([word]) => el('option', {value: word, text: word})));
    build();
  });

  function build() {
    const [, kind, what] = words.find(([word]) => word === name.value) ?? ['', 'flag', ''];
    const signs = {number: ['<', '<=', '==', '!=', '>=', '>', 'drops', 'rises'], text: ['==', '!='], flag: []}[kind];
    sign.replaceChildren(...signs.map(text => el('option', {value: text, text})));
    sign.hidden = value.hidden = !signs.length;
    meaning.textContent = what;
  }
  const built = () => {
    const [word, kind] = words.find(([w]) => w === name.value) ?? ['', 'flag'];
    return kind === 'flag' ? word : `${word} ${sign.value} ${kind === 'text' ? JSON.stringify(value.value) : value.value || 0}`;
  };

  async function take(text) {
    const run = shown?.run;
    if (!run || !text.trim()) return;
    const answer = await server.get_hits({run: run.id, text});
    if (answer.error) {
      wrong.replaceChildren(el('p', {text: answer.problem ?? 'This run is no longer held by the server, so it can’t be searched.'}), ...(answer.frame ? [el('pre', {text: answer.frame})] : []), el('p', {text: answer.remedy ?? ''}));
      wrong.hidden = false;
      return;
    }
    wrong.hidden = true;
    input.value = '';
    if (!stops.some(stop => stop.text === text)) stops.push({text, hits: new Map([[run.id, answer]])});
    changed();
  }

  function changed() {
    trigger('breaks', {texts: stops.map(stop => stop.text)});
    write();
    go({redraw: true});   // its hits are ticks in the lanes
  }

  const hitsOf = (stop, run) => stop.hits.get(run.id)?.hits ?? [];

  function write() {
    const run = shown?.run;
    list.replaceChildren(...stops.map(stop => {
      const hits = run ? hitsOf(stop, run) : [];
      const next = way => () => { const found = reach(hits, way); if (found) go(found); };
      return el('li', {}, el('code', {text: stop.text}), el('span', {class: 'ds-count', text: run && stop.hits.get(run.id)?.failed || `${hits.length} ${hits.length === 1 ? 'hit' : 'hits'}`}),
        el('button', {type: 'button', class: 'ds-icon', text: '‹', 'aria-label': 'Previous hit', title: hits.length ? null : 'It holds nowhere in this run', disabled: !hits.length, onclick: next(-1)}), el('button', {type: 'button', class: 'ds-icon', text: '›', 'aria-label': 'Next hit', title: hits.length ? null : 'It holds nowhere in this run', disabled: !hits.length, onclick: next(1)}),
        el('button', {type: 'button', class: 'ds-icon', text: '×', 'aria-label': `Remove the breakpoint ${stop.text}`, onclick: () => { stops.splice(stops.indexOf(stop), 1); changed(); input.focus(); }}), ...(hits.length ? [listed(stop, run, hits)] : []));
    }));
    element.dataset.hits = run ? stops.reduce((n, stop) => n + hitsOf(stop, run).length, 0) : 0;
  }

  // Every hit as a place to go to; a run of thousands is written out a part at a time.
  function listed(stop, run, hits) {
    const places = el('div', {class: 'ds-hits'}), details = el('details', {}, el('summary', {text: 'where'}), places);
    const fill = from => places.append(...hits.slice(from, from + HITS).map(([step, position]) => el('button', {type: 'button', class: 'ds-link-button', text: position < 0 ? `step ${step}` : `${step}, ${position}`, title: position < 0 ? `step ${step}` : `step ${step}, position ${position}: ${visible(run.text(run.drawn(step, position)))}`, onclick: () => go({step, ...(position < 0 ? {} : {position})})})),
      ...(from + HITS < hits.length ? [el('button', {type: 'button', class: 'ds-button', text: `${(hits.length - from - HITS).toLocaleString('en')} more`, onclick: event => { event.target.remove(); fill(from + HITS); }})] : []));
    details.open = opened.has(stop);
    details.addEventListener('toggle', () => { if (details.open) opened.add(stop); else opened.delete(stop); if (details.open && !places.childElementCount) fill(0); });
    if (details.open) fill(0);
    return details;
  }

  function reach(hits, way) {
    const at = shown.step * shown.run.length + shown.position;
    const places = hits.map(([step, position]) => ({x: step * shown.run.length + (position < 0 ? shown.position : position), step, ...(position < 0 ? {} : {position})})).sort((a, b) => a.x - b.x);
    const found = way > 0 ? places.find(p => p.x > at) : places.findLast(p => p.x < at);
    return found && {step: found.step, ...('position' in found ? {position: found.position} : {})};
  }

  // A run that grew, or another one: ask once it rests, never while moving.
  async function fill(run) {
    for (const stop of stops) {
      if (stop.hits.get(run.id)?.count === run.count) continue;
      const answer = await server.get_hits({run: run.id, text: stop.text});
      // What could not be searched is not asked for again until the run has grown.
      stop.hits.set(run.id, answer.error ? {count: run.count, hits: [], failed: answer.problem ?? 'not searched: the server holds this run no longer'} : answer);
    }
    write();
  }

  function update(view) {
    const other = shown?.run !== view.run || shown?.count !== view.run.count;
    shown = {run: view.run, step: view.step, position: view.position, count: view.run.count};
    if (view.rested && stops.some(stop => stop.hits.get(view.run.id)?.count !== view.run.count)) filling ??= fill(view.run).then(() => { filling = null; go({redraw: true}); });
    else if (other) write();
  }

  return {element, update,
    // The next hit of any breakpoint, or of one; the first where none follows.
    next(way, text = null) {
      const hits = shown ? stops.filter(stop => text === null || stop.text === text).flatMap(stop => hitsOf(stop, shown.run)) : [], found = reach(hits, way);
      if (found) go(found); else if (text !== null && hits.length) go({step: hits[0][0], ...(hits[0][1] < 0 ? {} : {position: hits[0][1]})});
    },
    ticks: run => new Set(stops.flatMap(stop => hitsOf(stop, run).map(([step]) => step))),
    texts: () => stops.map(stop => stop.text),
    hits: run => stops.flatMap(stop => hitsOf(stop, run))};
}
