// The lessons: words beside the debugger's own panels. A lesson chooses panels, shows runs of the engine, and hands the rest to the page.

import {el} from '../draw.js';
import {inline, paragraphs, fill, formula, written} from './text.js';
import * as controlOf from './controls.js';
import * as bets from './bet.js';
import * as store from '../store.js';

const SETTLE_MS = 350;   // until what is slower than the eye, a thousand draws, is asked for

export function create(page) {
  const {root, layout, server, parts, go, act, trigger} = page;
  const head = el('header', {class: 'ds-lesson-head'}), text = el('article', {class: 'ds-lesson'}), more = el('div', {class: 'ds-lesson more'}), verdict = el('section', {class: 'ds-lesson ds-solving', role: 'status', 'aria-label': 'The check', hidden: true});
  let book = null, lesson = null, settings = {}, fields = [], bet = null, way = null, strange = '', pictured = null, asking = false, again = false, settle = 0, about = null;

  const link = name => `#lesson=${encodeURIComponent(name)}`;
  const word = (term, shown) => el('a', {class: 'ds-term', href: `#lesson=glossary&word=${encodeURIComponent(term)}`, title: book.glossary[term] ?? '', text: shown});

  async function open(words) {
    const answer = book ?? await server.get_lessons({});
    if (answer.error) return layout.say(answer);
    book = answer;
    const asked = words.lesson ?? store.get('last') ?? book.lessons[0].name;
    enter();
    if (asked === 'glossary') return glossary(words.controls?.get('word'));
    const found = book.lessons.find(one => one.name === asked);
    if (!found) return missing(asked);
    const same = lesson === found;
    lesson = found;
    settings = Object.fromEntries(lesson.controls.map(control => [control.name, controlOf.meant(control, words.controls?.get(control.name))]));
    strange = lesson.controls.map(control => controlOf.strange(control, words.controls?.get(control.name))).join('');
    if (same && words.controls) { fields.forEach((field, k) => field.set(settings[lesson.controls[k].name])); return ask(); }
    store.set('last', lesson.name);
    write();
    address('pushState');
    await ask(true);
  }

  // The page makes room: words on the left, the chosen panels on the right.
  function enter() {
    if (root.classList.contains('learning')) return;
    root.classList.add('learning');
    layout.main.before(head, text, more);
    layout.main.prepend(verdict);
    document.querySelector('.sidebar.open .toggle-button')?.click();
  }

  function close() {
    if (!root.classList.contains('learning')) return;
    root.classList.remove('learning');
    for (const name of ['lesson', 'revealed', 'readyFor']) delete root.dataset[name];
    for (const part of [head, text, verdict, more]) part.remove();
    for (const panel of Object.values(layout.frames)) panel.element.classList.remove('ds-off');
    lesson = pictured = null;
    go({redraw: true});
  }

  // To the debugger, with what was shown; Python is told, so that runs beside it and forks know it.
  function leave() {
    const {a, b} = page.shown();
    close();
    history.pushState(history.state, '', location.pathname + location.search);
    trigger('choose', {a, b});
    if (innerWidth >= 900) document.querySelector('.sidebar:not(.open) .toggle-button')?.click();
  }

  function panels(names) {
    for (const [name, panel] of Object.entries(layout.frames)) panel.element.classList.toggle('ds-off', !names.includes(name));
    root.classList.toggle('no-steps', !names.includes('steps'));
  }

  function write() {
    root.dataset.lesson = lesson.name;
    root.removeAttribute('data-revealed');
    panels(lesson.panels);
    heading(lesson.name);
    const title = el('h2', {class: 'ds-lesson-title', tabindex: -1}, el('span', {class: 'ds-lesson-number', text: lesson.name}), lesson.title);
    about = el('p', {class: 'ds-said', role: 'status'});
    fields = lesson.controls.map(control => controlOf.create(control, settings[control.name], value => { settings[control.name] = value; strange = ''; ask(); address('replaceState'); }));
    verdict.hidden = true;
    const reset = fields.length ? [el('button', {type: 'button', class: 'ds-link-button', text: 'Reset', onclick: restart}), ' ', el('button', {type: 'button', class: 'ds-link-button', text: 'Copy link', onclick: copy})] : [];
    text.replaceChildren(title, ...paragraphs(lesson.text, word), ...fields.length ? [el('div', {class: 'ds-controls-box'}, ...fields.map(field => field.element), about, ...reset)] : [about]);
    const numbers = el('details', {class: 'ds-again'}, el('summary', {text: 'Again with numbers'}), ...paragraphs(lesson.again, word));
    const table = lesson.bars.rows ? [bars(lesson.bars)] : [], after = lesson.bars.after;
    bet = lesson.bet.question ? bets.create(lesson, word, settled, after ? table : []) : null;
    way = Object.keys(lesson.solution).length ? wayOut() : null;
    more.replaceChildren(...after ? [] : table, ...lesson.formula ? [el('div', {class: 'ds-formula', tabindex: 0, role: 'group', 'aria-label': 'Formula'}, formula(lesson.formula))] : [], ...bet ? [bet.element] : [], ...way ? [way.element] : [], ...lesson.again ? [numbers] : [], turning());
    title.focus({preventScroll: true});
    scrollTo({top: 0});
  }

  async function copy({target}) {
    try { await navigator.clipboard.writeText(location.href); target.textContent = 'Copied'; } catch { target.textContent = 'Copy it from the address bar'; }
    setTimeout(() => { target.textContent = 'Copy link'; }, 2000);
  }

  function restart() {
    move(Object.fromEntries(lesson.controls.map(control => [control.name, control.value])));
  }

  // What a puzzle has for whoever skips it: one way to solve it, set at the controls, and why it is one.
  function wayOut() {
    const skip = el('button', {type: 'button', class: 'ds-link-button', text: 'Skip, show me', onclick: () => move(lesson.solution)}), why = el('div', {class: 'ds-reveal', role: 'status', hidden: true}, ...paragraphs(lesson.reveal, word));
    return {element: el('section', {class: 'ds-bet', 'aria-label': 'The way out'}, skip, why), solved(is) { skip.hidden = is; why.hidden = !is; }};
  }

  // Put controls somewhere, and show what is there.
  function move(change) {
    strange = '';
    settings = {...settings, ...change};
    fields.forEach((field, k) => field.set(settings[lesson.controls[k].name]));
    ask();   // before the address is written, which takes its time
    address('replaceState');
  }

  function revealed() { root.dataset.revealed = 'yes'; fillAll(); }

  // After a reveal the figure shows what was bet on.
  function settled() {
    revealed();
    const change = {...lesson.bet.at, ...lesson.bet.shows};
    heading(lesson.name);
    if (Object.keys(change).length || lesson.bet.alone) move(change);
    bet.reveal.scrollIntoView({block: 'nearest'});
  }

  // One request at a time; what was moved meanwhile is asked for afterwards, and only its last place.
  let numbers = {}, ofBet = {};
  async function ask(first = false) {
    root.removeAttribute('data-ready-for');
    if (asking) { again = true; return; }
    asking = true;
    const began = performance.now();
    try {
      do {
        again = false;
        const asked = lesson, answer = await server.get_scene({lesson: asked.name, controls: settings});
        if (lesson !== asked) { again = lesson !== null; continue; }
        if (again && !first) continue;
        if (answer.error) {
          said(answer.problem ? `${answer.problem} ${answer.remedy}` : 'The lesson could not be read.', true);
          if (pictured !== asked) panels([]);   // what stands there is another lesson's
          continue;
        }
        pictured = asked;
        ({numbers, bet: ofBet} = answer);
        fillAll();
        said(strange + answer.said, false);
        if (answer.check) check(answer.check);
        panels(answer.runs.length ? asked.panels : []);
        if (bet?.know(ofBet)) revealed();
        const both = !asked.bet.alone || bet?.revealed();
        if (answer.runs.length) await page.show({a: answer.runs[0], b: both ? answer.runs[1] ?? null : null, parts: answer.parts, at: {...first ? {step: 0, position: 0, ...asked.at} : {}, ...answer.at}});
      } while (again);
    } finally { asking = false; }
    root.dataset.reacted = (performance.now() - began).toFixed(1);
    root.dataset.readyFor = lesson?.name ?? '';
    clearTimeout(settle);
    settle = setTimeout(measure, SETTLE_MS);
  }

  // Draws that are still being made for what was shown before are waited for.
  function measure() {
    if (lesson?.panels.includes('exact') && !parts.exact.ensure()) settle = setTimeout(measure, SETTLE_MS);
  }

  function said(words, wrong) {
    about.textContent = words ?? '';
    about.classList.toggle('wrong', wrong);
  }

  // A puzzle is solved when the debugger's own check falls silent.
  const SIGNS = {error: '✕ error', warning: '▲ warning'};
  function check({findings, accepted, kept, keeps, solved}) {
    const item = (kind, sign, message, ...more) => el('li', {class: `ds-finding ${kind}`}, el('p', {}, el('b', {text: sign}), ' ', message), ...more);
    verdict.hidden = false;
    verdict.dataset.solved = solved;
    verdict.replaceChildren(el('h3', {text: solved ? '✓ The check has nothing to say' : 'The check says'}), el('ul', {class: 'ds-findings'},
      ...findings.map(({severity, message, frame, fixes}) => item(severity, SIGNS[severity], message, ...frame ? [el('pre', {text: frame, tabindex: 0})] : [], ...fixes.length ? [el('details', {}, el('summary', {text: 'A hint'}), ...fixes.map(text => el('p', {text})))] : [])),
      ...kept ? [] : [item('error', '✕ lost', 'The constraint does not accept what it is for: ', ...keeps.flatMap((text, k) => [k ? ' or ' : '', el('code', {text})]), '.')],
      ...accepted === false ? [item('error', '✕ not accepted', 'The run ended in a text that the constraint does not accept.')] : []));
    way?.solved(solved);
    if (solved && !store.isDone(lesson.name)) { store.finish(lesson.name); heading(lesson.name); }
  }

  function fillAll() { for (const part of [text, more]) { fill(part, numbers, ofBet); for (const bar of part.querySelectorAll('[data-bar]')) bar.style.width = `${100 * (numbers[bar.dataset.bar] ?? 0)}%`; } }

  function bars({rows, columns, head: over = 'text'}) {
    const cell = (row, {prefix, tone}) => el('td', {}, el('i', {class: `ds-bar-fill ${tone}`, 'data-bar': `${prefix} ${row}`}), el('data', {class: `ds-number ${tone}`, 'data-name': `${prefix} ${row}`}));
    return el('table', {class: 'ds-bars'}, el('thead', {}, el('tr', {}, el('th', {scope: 'col', text: over}), ...columns.map(({label}) => el('th', {scope: 'col', text: label})))),
      el('tbody', {}, ...rows.map(row => el('tr', {}, el('th', {scope: 'row'}, el('code', {text: row})), ...columns.map(column => cell(row, column))))));
  }

  // Around the lesson

  function heading(current) {
    const step = ({name, title}) => el('li', {}, el('a', {href: link(name), title: `${title}${store.isDone(name) ? ', done' : ''}`, 'aria-label': `Lesson ${name}: ${title}${store.isDone(name) ? ', done' : ''}`, 'aria-current': name === current ? 'step' : null, class: store.isDone(name) ? 'done' : '', text: name}));
    const large = el('button', {type: 'button', class: 'ds-button', 'aria-pressed': String(Boolean(store.get('large'))), title: 'Large type, for a projector (t); Page Down and Page Up then turn the lessons', text: 'Large type', onclick: () => act('large')});
    head.replaceChildren(el('nav', {'aria-label': 'Lessons'}, el('ol', {class: 'ds-lesson-steps'}, ...book.lessons.map(step))), el('a', {class: 'ds-glossary-link', href: link('glossary'), 'aria-current': current === 'glossary' ? 'page' : null, text: 'Glossary'}), el('span', {class: 'ds-grow'}), large,
      el('button', {type: 'button', class: 'ds-button', title: 'Leave the lessons (l)', text: 'Debugger', onclick: leave}));
  }

  addEventListener('keydown', event => {
    if (!lesson || !root.classList.contains('large-type') || !['PageDown', 'PageUp'].includes(event.code) || document.querySelector('dialog[open]')) return;
    event.preventDefault();   // what a presenter's clicker sends
    turn(event.code === 'PageDown' ? 1 : -1);
  });

  const neighbour = by => book.lessons[book.lessons.indexOf(lesson) + by];
  function turning() {
    const button = (by, label) => { const to = neighbour(by); return to ? [el('a', {class: `ds-turn ${by > 0 ? 'on' : 'back'}`, href: link(to.name)}, el('span', {text: label}), el('b', {text: to.title}))] : []; };
    const last = neighbour(1) ? [] : [el('button', {type: 'button', class: 'ds-turn on', onclick: leave}, el('span', {text: 'To the debugger ( l ) →'}), el('b', {text: 'Now with your own schema'}))];
    return el('nav', {class: 'ds-turns', 'aria-label': 'Neighbouring lessons'}, ...button(-1, '← Back ( , )'), ...button(1, 'Next ( . ) →'), ...last);
  }
  function turn(by) {
    if (!lesson) return;
    const to = neighbour(by);
    if (by > 0 && !lesson.bet.question) store.finish(lesson.name);
    if (to) location.hash = link(to.name);
  }

  function plain(title, ...content) {
    lesson = bet = way = pictured = null;
    verdict.hidden = true;
    root.dataset.lesson = 'plain';
    panels([]);
    text.replaceChildren(el('h2', {class: 'ds-lesson-title', tabindex: -1, text: title}), ...content);
    more.replaceChildren();
    text.querySelector('h2').focus({preventScroll: true});
  }

  function missing(name) {
    heading(null);
    plain('There is no such lesson', el('p', {class: 'ds-said wrong', role: 'alert', text: `The link names the lesson “${String(name).slice(0, 40)}”, and there is none. Choose one of these.`}),
      el('ul', {class: 'ds-contents'}, ...book.lessons.map(one => el('li', {}, el('a', {href: link(one.name)}, `${one.name} · ${one.title}`)))));
  }

  function glossary(chosen) {
    const back = store.get('last');
    heading('glossary');
    plain('Glossary', ...back ? [el('p', {}, el('a', {href: link(back), text: `Back to lesson ${back}`}))] : [],
      el('dl', {class: 'ds-words'}, ...Object.entries(book.glossary).flatMap(([term, what]) => [el('dt', {id: `ds-word-${term.replaceAll(' ', '-')}`, class: term === chosen ? 'chosen' : '', text: term}), el('dd', {text: what})])));
    if (chosen) root.querySelector('.ds-words .chosen')?.scrollIntoView({block: 'center'});
  }

  // The address: the lesson and what its controls stand at, where that is not where they stood first.
  function words(focus) {
    if (!root.classList.contains('learning')) return null;
    if (!lesson) return location.hash;
    const said = new URLSearchParams({lesson: lesson.name});
    for (const {name, value} of lesson.controls) if (settings[name] !== value) said.set(name, settings[name]);
    return `#${said}`;
  }
  function address(how) { const to = words(); if (to !== location.hash) history[how](history.state, '', to); }

  // The type became larger or smaller.
  const typed = () => { if (root.classList.contains('learning')) heading(lesson?.name ?? 'glossary'); };

  return {open, close, leave, turn, typed, words, get active() { return root.classList.contains('learning'); }};
}
