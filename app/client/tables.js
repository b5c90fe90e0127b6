// The recorded tables: accuracy against steps as a chart, the same numbers as a table, and every cell opens one of its runs.

import {el} from './draw.js';
import {answering} from './ask.js';

const percent = share => (100 * share).toFixed(share === 1 || share === 0 ? 0 : 1);

export function mount({element, server: asked, trigger}) {
  const server = answering(asked), root = element.querySelector('.ds');
  root.replaceChildren(el('p', {class: 'ds-note', role: 'status', text: 'Reading the recorded results …'}));
  server.get_tables({}).then(found => root.replaceChildren(...(found.error ? nothing(found) : page(found, server, trigger))));
}

const nothing = found => [el('p', {class: 'ds-note', text: [found.problem, found.remedy].filter(Boolean).join(' ')})];

function page(found, server, trigger) {
  const {model, measured, tasks, stale} = found;
  const state = {task: tasks[0].name, temperature: tasks[0].temperatures[0], open: 'wrong_run'};
  const chart = el('div', {class: 'ds-tables-chart'}), table = el('div', {class: 'ds-tables-scroll', tabindex: 0, role: 'region', 'aria-label': 'Results as a table'}), told = el('p', {class: 'ds-note', role: 'status'});
  const task = el('select', {class: 'ds-select', id: 'tables-task', onchange: () => { state.task = task.value; update(); }}, ...tasks.map(t => el('option', {value: t.name, text: t.title})));
  const temperatures = el('fieldset', {class: 'ds-tables-radios'});
  const number = el('input', {type: 'number', class: 'ds-tables-number', min: 0, value: 0, 'aria-label': 'Number of the problem', oninput: () => { state.open = 'number'; opens.querySelector('[value=number]').checked = true; }});
  const choice = (value, text, ...more) => el('label', {}, el('input', {type: 'radio', name: 'tables-open', value, checked: value === state.open, onchange: () => { state.open = value; }}), ` ${text} `, ...more);
  const opens = el('fieldset', {class: 'ds-tables-radios'}, el('legend', {text: 'A cell opens'}),
    choice('wrong_run', 'its first wrong answer'), choice('right_run', 'its first right answer'), choice('number', 'problem', number));

  async function update() {
    const now = tasks.find(t => t.name === state.task);
    if (!now.temperatures.includes(state.temperature)) state.temperature = now.temperatures[0];
    // Those of another task; a choice among these keeps the keyboard on it.
    if (temperatures.dataset.task !== now.name) temperatures.replaceChildren(el('legend', {text: 'Temperature'}), ...now.temperatures.map(t => el('label', {},
      el('input', {type: 'radio', name: 'tables-temperature', value: t, checked: t === state.temperature, onchange: () => { state.temperature = t; update(); }}), ` ${t}`)));
    temperatures.dataset.task = now.name;
    const {task: name, temperature} = state;
    const answer = await server.get_table({task: name, temperature});
    if (name !== state.task || temperature !== state.temperature) return;
    if (answer.error) { told.textContent = [answer.problem, answer.remedy].filter(Boolean).join(' '); return; }
    // Made by the server from numbers and names of this project alone.
    chart.replaceChildren(document.importNode(new DOMParser().parseFromString(answer.chart, 'image/svg+xml').documentElement, true));
    table.replaceChildren(grid(answer.rows, open));
    root(table).dataset.shown = `${name} ${temperature}`;
  }
  const root = node => node.closest('.ds') ?? node;

  function open(row) {
    const problem = state.open === 'number' ? Number(number.value) : row[state.open] ?? row[state.open === 'wrong_run' ? 'right_run' : 'wrong_run'];
    if (!Number.isInteger(problem) || problem < 0 || problem >= row.count) {
      told.textContent = `This cell has the problems 0 to ${row.count - 1}.`;
      return;
    }
    told.textContent = `Opening ${row.arm}, ${row.steps} steps, problem ${problem} …`;
    trigger('open', {task: row.task, arm: row.arm, temperature: row.temperature, steps: row.steps, problem});
  }

  queueMicrotask(update);
  return [
    el('p', {class: 'ds-note', text: `${model.name}, revision ${model.revision ?? 'unknown'}, ${model.dtype ?? ''}; recorded with ${measured.command} at commit ${measured.commit} on ${measured.cpu}. A run is decoded again when it is opened: its noise is a function of seed, step and position.`}),
    ...(stale ? [el('p', {class: 'ds-tables-stale', text: '▲ The model or the way to draw is another here than when these results were recorded: a run that is opened may come out differently.'})] : []),
    el('div', {class: 'ds-tables-controls'}, el('label', {class: 'ds-label', for: 'tables-task', text: 'Task'}), task, temperatures, opens),
    chart, told, table,
    el('p', {class: 'ds-note', text: 'In a cell: right answers in any spelling, % (95 % interval, Wilson), and below texts that satisfy the constraint, %. At temperature 0, map is Mf and reject is independent. ⚠ marks a constrained arm below 100 %.'}),
  ];
}

// A row for each number of steps, a column an arm; each cell is a button.
function grid(rows, open) {
  const arms = [...new Set(rows.map(row => row.arm))], steps = [...new Set(rows.map(row => row.steps))].sort((a, b) => b - a);
  const head = el('tr', {}, el('th', {scope: 'col', text: 'steps'}), ...arms.map(arm => el('th', {scope: 'col', text: arm})));
  const body = steps.map(count => el('tr', {}, el('th', {scope: 'row', text: count}), ...arms.map(arm => {
    const row = rows.find(r => r.arm === arm && r.steps === count);
    return el('td', {}, ...(row ? [cell(row, open)] : ['–']));
  })));
  return el('table', {class: 'ds-tables-grid'}, el('thead', {}, head), el('tbody', {}, ...body));
}

function cell(row, open) {
  const right = percent(row.right), between = `${Math.round(100 * row.right_low)}–${Math.round(100 * row.right_high)}`, kept = percent(row.satisfied), broken = row.constrained && row.satisfied < 1;
  const label = `${row.arm}, ${row.steps} steps: ${right} % right, interval ${between}; ${kept} % satisfied. Open a run.`;
  return el('button', {type: 'button', 'aria-label': label, onclick: () => open(row)},
    el('b', {text: right}), el('span', {class: 'ds-note', text: ` ${between}`}), el('span', {class: 'ds-tables-kept', text: `${broken ? '⚠ ' : ''}${kept}`}));
}
