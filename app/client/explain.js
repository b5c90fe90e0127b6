// What the explain card says of a thing, from what is in the browser already: the packed run, and the detail that has been fetched.
// Nothing here claims what was not computed: what is unknown says so.

import {number, probability, visible, cut} from './draw.js';
import {spanOf} from './run.js';
import * as parts from './parts.js';
import * as find from './steps.js';

const AWAITED = 'The distributions of this step are not here yet.';
const named = (run, q) => q === run.head.end ? 'end' : `${q}`;
const token = (run, id, room = 40) => cut(visible(run.text(id)), room) || '∅';
const several = (n, one, many = `${one}s`) => `${n.toLocaleString('en')} ${n === 1 ? one : many}`;
const lost = (run, t) => run.at('log_partition', t) === -Infinity;
const nats = x => number(Math.abs(x) < 1e-9 ? 0 : x);   // what rounding leaves of 0
// Where the run lost its way, as a place to go.
const loss = run => { const at = find.hopeless(run); return at ? [{text: `step ${at.step}, which lost it`, go: at}] : []; };

// The source that can be written next at a state, piece by piece.
const piece = (run, [a, b], room = 32) => ({code: cut(run.sourceText(a, b), room), part: parts.innermost(run, a, b)});
function written(run, state) {
  const spans = state >= 0 ? run.head.origins[run.origin[state]] : [], pieces = spans.filter(([a, b]) => b > a).map(span => piece(run, span));
  return pieces.filter(({code, part}, k) => pieces.findIndex(one => one.code === code && one.part === part) === k);
}
function from(run, state) {
  const pieces = written(run, state), shown = pieces.slice(0, 4);
  if (!pieces.length) return state === run.head.end ? ['nothing: the text has ended'] : ['nothing: only the end may follow'];
  return [...shown.flatMap((one, k) => [k ? ' or ' : '', one]), ...(pieces.length > shown.length ? [` or ${pieces.length - shown.length} more`] : [])];
}

// A position at a step, with the quantity that a map colours it by.
export function position(run, t, i, {quantity = null, offline = false, hidden = false} = {}) {
  const masked = run.masked(t, i), now = run.at('committed', t, i) === 1, commit = run.commitStep[i], id = run.drawn(t, i);
  const stands = masked ? now ? 'committed by this step' : 'masked, drawn' : commit < 0 ? 'pinned' : `committed at step ${commit}`;
  const confidence = (of, tone, name) => { const x = run.at(`confidence_${of}`, t, i); return {name, text: x === -Infinity ? 'later block' : number(x), tone}; };
  const other = quantity && !['mar', 'mf', 'commit'].includes(quantity.key) && masked ? [{name: quantity.name, text: number(quantity.of(run, t, i)), unit: quantity.unit}] : [];
  return {
    what: `Position ${i} at step ${t}: ${stands}`,
    value: [hidden && masked ? {text: '▨', unit: 'not drawn yet in this phase'} : {text: token(run, id), tone: run.isSpecial(id) ? 'token special' : 'token'}, ...other, ...(masked ? [confidence('mar', 'q', 'Mar'), confidence('mf', 'p', 'Mf'), ...(quantity?.key === 'kl' ? [] : [{name: 'KL(q‖p)', text: nats(run.at('kl', t, i)), unit: 'nats'}])] : [])],
    why: whyPosition(run, t, i, masked),
    change: changePosition(run, t, i, masked),
    jumps: [...(masked || commit < 0 ? [] : [{text: `step ${commit}, which committed it`, go: {step: commit, position: i}}]), ...(masked && commit > t ? [{text: `step ${commit}, which commits it`, go: {step: commit, position: i}}] : []), {text: `step ${t}, position ${i}`, go: {step: t, position: i}},
      ...(run.at('path', t, i) >= 0 && run.config.kind !== null ? [{text: `state ${named(run, run.at('path', t, i))}`, go: {step: t, position: i, state: run.at('path', t, i)}}] : []), ...(lost(run, t) ? loss(run) : []), ...(offline ? [] : [{text: 'fork here', go: {step: t, position: i, fork: true}}])],
  };
}

function whyPosition(run, t, i, masked) {
  const {config} = run, detail = run.detail(t), here = run.at('path', t, i), next = run.at('path', t, i + 1), forbidden = run.at('forbidden_mass', t, i), lines = [];
  if (config.kind === null) return ['There is no constraint: the model alone decides.'];
  if (lost(run, t)) return ['Nothing that the constraint accepts agrees with what is committed: no state is live.'];
  if (here >= 0) lines.push([`State ${named(run, here)}${next >= 0 ? ` → ${named(run, next)}` : ''}, where the source writes `, ...from(run, here)]);
  else lines.push('The draw has left the constraint before this position.');
  if (next < 0 && here >= 0) lines.push('Here the draw leaves the constraint.');
  if (!masked) return lines;
  if (run.at('forced', t, i)) lines.push('Forced: a single token is allowed here.');
  else if (detail) lines.push(`${several(detail.allowed(i), 'token')} of ${run.head.vocab.toLocaleString('en')} are allowed here.`);
  if (forbidden > 2e-6) lines.push(`Forbidden here: ${probability(forbidden)} of the model’s mass.`);
  if (run.rival(t, i)) lines.push(`${config.confidence === 'mar' ? 'Mf' : 'Mar'} would commit it now.`);
  return lines;
}

function changePosition(run, t, i, masked) {
  const {config} = run, here = run.at('path', t, i);
  if (!masked) return run.commitStep[i] < 0 ? ['Another pin: what is pinned stands from the first step on.'] : ['Committed tokens stay. A fork can un-commit it at a later step, or pin another before this one.'];
  if (config.kind !== null && lost(run, t)) return ['Other commits: a fork before the step that lost it.'];
  if (config.kind !== null && run.at('forced', t, i)) {
    const near = neighbours(run, t, i), loosen = here >= 0 ? ['Loosen ', ...from(run, here)] : ['Loosen the constraint'];
    return [[...loosen, near.length ? `, or take back what is committed at ${near.join(' and ')}: this step allows nothing else.` : `, or another length: this step allows nothing else.`]];
  }
  const decides = `${config.confidence === 'mar' ? 'Mar' : 'Mf'} decides which is next`;
  if (config.remasking === 'random' || config.remasking === 'origin') return [`The confidences are random numbers under “${config.remasking.replace('_', ' ')}”: another seed.`];
  return [`The token: a pin, a ban, another seed or temperature. Mar and Mf: commits elsewhere; ${decides}.`];
}
// The nearest committed positions on both sides.
function neighbours(run, t, i) {
  const seek = by => { for (let j = i + by; j >= 0 && j < run.length; j += by) if (!run.masked(t, j)) return [j]; return []; };
  return [...seek(-1), ...seek(1)];
}

// A token at a position, as the inspector lists it, or what it gathers under the listed ones.
export function candidate(run, t, i, which, {offline = false} = {}) {
  const tops = run.detail(t)?.tops(i) ?? [], found = tops.find(({id}) => id === +which), fork = offline ? [] : [{text: 'fork here', go: {step: t, position: i, fork: true}}];
  if (which in REST) return REST[which](run, t, i, tops, fork);
  if (!found) return null;
  const {id, q, p} = found, here = run.at('path', t, i), free = run.config.kind === null;
  const why = free ? 'There is no constraint: q is p.' : !run.masked(t, i) ? 'It is committed here.' : lost(run, t) ? 'Nothing is accepted any more, so q is 0 everywhere.'
    : q > 0 ? `Allowed: the constraint multiplies its probability by ${number(q / p)}, as that of every token of its class.` : 'Forbidden: it stands here on no way from the start to acceptance, with what is committed.';
  return {
    what: `Token ${id} at position ${i}${run.drawn(t, i) === id ? ', drawn' : ''}`,
    value: [{text: token(run, id), tone: run.isSpecial(id) ? 'token special' : 'token'}, {name: 'q', text: probability(q), tone: 'q'}, {name: 'p', text: probability(p), tone: 'p'}], why: [why],
    change: q > 0 || free || lost(run, t) ? ['Another answer of the model, to another prompt or after other commits; or a ban.'] : here >= 0 ? [['A constraint that is looser than ', ...from(run, here), ', or un-commit what rules it out.']] : ['A looser constraint.'],
    jumps: [{text: 'why, state by state', go: {step: t, position: i, token: id}}, ...fork],
  };
}
const wanted = (run, tops) => { const most = tops.filter(({q}) => q === 0).sort((a, b) => b.p - a.p)[0]; return most && most.p > 0 ? [`Of the listed ones the model wants ${token(run, most.id, 20)} most: p ${probability(most.p)}.`] : []; };
const loosen = (run, t, i) => { const here = run.at('path', t, i); return run.config.kind === null ? ['There is no constraint that could forbid a token.'] : here >= 0 ? [['Looser than ', ...from(run, here), '; or un-commit what rules them out.']] : ['A looser constraint, or other commits.']; };
const REST = {
  other: (run, t, i, tops, jumps) => ({what: `All other tokens that are allowed at position ${i}`, value: [{text: Math.max(0, run.detail(t).allowed(i) - tops.filter(({q}) => q > 0).length).toLocaleString('en'), unit: 'tokens'}], why: ['What the listed tokens leave of q and of p.'], change: ['The order by which tokens are listed; the sum stays.'], jumps}),
  forbidden: (run, t, i, tops, jumps) => ({what: `All tokens that are forbidden at position ${i}`, value: [{text: (run.head.vocab - run.detail(t).allowed(i)).toLocaleString('en'), unit: 'tokens'}, {name: 'p', text: probability(run.at('forbidden_mass', t, i)), tone: 'p'}], why: ['No accepted completion can use them here: q gives them 0.', ...wanted(run, tops)], change: loosen(run, t, i), jumps}),
  total: (run, t, i) => ({what: `All tokens at position ${i}`, value: [{name: 'q', text: lost(run, t) ? '0' : '1', tone: 'q'}, {name: 'p', text: '1', tone: 'p'}], why: [lost(run, t) ? 'Nothing is accepted any more: there is no q.' : 'What is listed and the two remainders sum to it.'], change: ['Nothing: both are distributions.']}),
};

// A number of a position, as the inspector has it.
const FORMULA = {low_confidence: '% of the drawn token, at temperature 1', threshold: '% of the drawn token, at temperature 1', factor: '% of the drawn token, at temperature 1', maskgit_plus: '% of the drawn token, tempered and filtered as it was drawn', topk_margin: '%(first) − %(second), tempered and filtered', entropy: 'Σ % log %, tempered and filtered', random: 'a uniform random number', origin: 'a uniform random number'};
export function fact(run, t, i, name) {
  const masked = run.masked(t, i), at = masked ? t : run.commitStep[i], detail = run.detail(t), ranks = (masked ? detail : run.detail(at))?.ranks(i, run.drawn(t, i)), confidence = (symbol, distribution) => ({
    what: `${name === 'mar' ? 'Mar, the constrained' : 'Mf, the unconstrained'} confidence of position ${i}${masked || at < 0 ? '' : `, when step ${at} committed it`}`,
    value: [{text: at < 0 ? '–' : run.at(`confidence_${name}`, at, i) === -Infinity ? 'later block' : number(run.at(`confidence_${name}`, at, i)), tone: symbol}], why: [`By “${run.config.remasking.replace('_', ' ')}”: ${FORMULA[run.config.remasking].replaceAll('%', symbol)}; ${symbol} is ${distribution}.`, run.config.confidence === name ? 'It decides what this run commits.' : 'The other confidence decides what this run commits.'],
    change: changePosition(run, t, i, masked)});
  const nothing = ['It is committed: a single token has all of the mass.'], answer = ['Another answer of the model, to another prompt or after other commits.'];
  return {
    mar: () => confidence('q', 'the mean field given that the text is accepted'), mf: () => confidence('p', 'the mean field, the model’s own answer'),
    q: () => ({what: `Entropy of the posterior at position ${i}`, value: [{text: nats(run.at('entropy_posterior', t, i)), unit: 'nats', tone: 'q'}], why: masked ? ['How open the position is under the constraint: −Σ q log q.', ...(detail ? [`${several(detail.allowed(i), 'token')} allowed: at most ${nats(Math.log(Math.max(1, detail.allowed(i))))} nats.`] : [])] : nothing, change: ['Commits and pins elsewhere, and what changes p.']}),
    p: () => ({what: `Entropy of the mean field at position ${i}`, value: [{text: nats(run.at('entropy_mean_field', t, i)), unit: 'nats', tone: 'p'}], why: masked ? [`How unsure the model is by itself: −Σ p log p, at most ${nats(Math.log(run.head.vocab))} nats.`] : nothing, change: answer}),
    kl: () => ({what: `KL(q‖p) at position ${i}`, value: [{text: nats(run.at('kl', t, i)), unit: 'nats'}], why: masked ? ['How far the constraint moves the model here: Σ q log(q/p), 0 where q is p.'] : nothing, change: ['A constraint, or commits, that ask for what the model prefers.']}),
    rank: () => ({what: `Rank of the drawn token at position ${i}`, value: [{text: token(run, run.drawn(t, i)), tone: 'token'}, ...(ranks ? [{name: 'under q', text: ranks.q, tone: 'q'}, {name: 'under p', text: ranks.p, tone: 'p'}] : [])], why: ['Its place among all tokens, the most probable first: under q, and under p.'], change: ['Another draw, by another seed or temperature; or another answer of the model.']}),
    forbidden: () => ({what: `Forbidden mass at position ${i}`, value: [{text: probability(run.at('forbidden_mass', t, i)), unit: 'of p', tone: 'p'}], why: masked ? ['Mass of the tokens that no accepted completion can use here.', ...wanted(run, detail?.tops(i) ?? [])] : nothing, change: loosen(run, t, i)}),
  }[name]?.() ?? null;
}

// A state at a boundary.
export function state(run, t, b, q) {
  const detail = run.detail(t), listed = detail?.statesAt(b) ?? [], found = listed.find(([state]) => state === q), live = detail?.isLive(b, q), drawn = run.at('path', t, b) === q;
  const flags = [q === run.head.start && 'start', run.accepting[q] && q !== run.head.end && 'accepting', drawn && 'the draw is here'].filter(Boolean);
  const posterior = !detail ? [] : found ? [{name: 'posterior', text: probability(found[1]), tone: 'q'}] : live ? [{name: 'posterior', text: `≤ ${probability(listed.at(-1)?.[1] ?? 0)}`, unit: `(not among the ${listed.length} recorded)`, tone: 'q'}] : [{name: 'posterior', text: '0', unit: '(not live)'}];
  const why = q === run.head.end ? ['The text has ended: only EOS follows.'] : [['The source writes ', ...from(run, q), ' next.']];
  if (!detail) why.push(AWAITED);
  else why.push(lost(run, t) ? 'No state is live: nothing accepted agrees with what is committed.' : live ? 'Live: some accepted completion passes here.' : 'Not live: no accepted completion passes here.');
  return {
    what: `State ${named(run, q)} at boundary ${b}${flags.length ? ` (${flags.join(', ')})` : ''}`, value: posterior, why,
    change: !detail ? [] : live ? ['Commits and pins that need other states, or another answer of the model.'] : lost(run, t) ? ['Other commits: a fork before the step that lost it.'] : ['Un-commit what leads elsewhere, another length, or a looser constraint.'],
    jumps: [{text: `position ${Math.min(b, run.length - 1)}`, go: {step: t, position: Math.min(b, run.length - 1)}}, {text: `state ${named(run, q)} in the automaton`, go: {position: Math.min(b, run.length - 1), state: q}}, ...(lost(run, t) ? loss(run) : [])],
  };
}

// States that a picture draws as one.
export function gathered(run, t, b, {title, span, live, mass, origins, jumps}) {
  const detail = run.detail(t), spans = [...new Map(origins.flatMap(n => run.head.origins[n]).map(one => [one.join(), one])).values()], pieces = (span ? [span] : spans.slice(0, 4)).map(one => piece(run, one, span ? 60 : 24));
  return {
    what: title, value: detail ? [{text: live.toLocaleString('en'), unit: `live at boundary ${b}`}, {name: 'posterior', text: probability(mass), tone: 'q'}] : [],
    why: [...(pieces.length ? [['They come from ', ...pieces.flatMap((one, k) => [k ? ', ' : '', one]), ...(!span && spans.length > 4 ? [` and ${spans.length - 4} more`] : [])]] : []), ...(detail ? [] : [AWAITED])],
    change: detail ? [live ? 'Commits and pins that need other states, or another answer of the model.' : 'Un-commit what leads elsewhere, another length, or a looser constraint.'] : [], jumps,
  };
}

// An edge, or all that join two boxes. `inside` and `target` say which states are at its ends.
export function edge(run, t, {from: a, to: b, read, counted, inside, target, state, jumps}) {
  const path = run.row('path', t), detail = run.detail(t), all = Array.from({length: run.length}, (_, i) => i), taken = all.filter(i => path[i] >= 0 && path[i + 1] >= 0 && inside(path[i]) && target(path[i + 1]));
  const some = (at, test) => { let found = false; detail.eachLive(at, q => { found ||= test(q); }); return found; }, open = detail ? all.filter(i => some(i, inside) && some(i + 1, target)) : [];
  return {
    what: `Edge from ${a} to ${b}`, value: [{text: read || '–', unit: counted ? 'token classes' : 'may be read', tone: 'token'}],
    why: [taken.length ? `The draw takes it at position${taken.length > 1 ? 's' : ''} ${list(taken)}: ${taken.slice(0, 4).map(i => token(run, run.drawn(t, i), 16)).join(' ')}${taken.length > 4 ? ' …' : ''}` : 'The draw of this step does not take it.', ...(state === null ? [] : [['At its beginning the source writes ', ...from(run, state), '.']]), ...(detail ? [] : [AWAITED])],
    change: !detail ? [] : open.length ? [`Both its ends are live around position${open.length > 1 ? 's' : ''} ${list(open)}: a pin or another seed there.`] : ['At no position are both its ends live: un-commit what leads elsewhere, or another length.'],
    jumps: [...(taken.length ? [{text: `position ${taken[0]}`, go: {step: t, position: taken[0]}}] : []), ...jumps],
  };
}
// Numbers in a few characters, neighbours as a range.
function list(numbers, most = 5) {
  const runs = [];
  for (const n of numbers) if (runs.length && n === runs.at(-1)[1] + 1) runs.at(-1)[1] = n; else runs.push([n, n]);
  return runs.slice(0, most).map(([x, y]) => x === y ? `${x}` : `${x}–${y}`).join(', ') + (runs.length > most ? ' …' : '');
}

// A midpoint of the tree of draws.
export function midpoint(run, t, m) {
  const {start, stop, level} = spanOf(m, run.length), end = m === run.length, path = b => named(run, run.at('path', t, b)), entropy = run.at('midpoint_entropy', t, m), detail = run.detail(t);
  const rivals = detail ? detail.midpoint(m).filter(([q, p]) => q !== run.at('path', t, m) && p > 0).slice(0, 3).map(([q, p]) => `${named(run, q)} (${probability(p)})`) : [];
  return {
    what: end ? `Boundary ${m}, the end of the draw` : `Boundary ${m}, midpoint of ${start}–${stop}, level ${level}`,
    value: [{text: `state ${path(m)}`, tone: 'token'}, {name: 'drawn with', text: probability(Math.exp(run.at('midpoint_log_probability', t, m))), tone: 'q'}, {name: 'entropy', text: nats(entropy), unit: 'nats'}],
    why: [end ? `Drawn among the accepting states, given state ${path(0)} at 0.` : `Drawn given state ${path(start)} at ${start} and state ${path(stop)} at ${stop}, with all midpoints of its level at once.`, ...(rivals.length ? [`Else: ${rivals.join(', ')}.`] : detail ? [] : [AWAITED])],
    change: [entropy > 1e-6 ? 'Another seed, or other states at the ends of its span.' : `A single state fits here: ${end ? 'another length or constraint' : 'other states at the ends of its span'}.`],
    jumps: [{text: `position ${Math.min(m, run.length - 1)}`, go: {step: t, position: Math.min(m, run.length - 1)}}, ...(end ? [] : [start, stop].filter(b => b > 0).map(b => ({text: `boundary ${b}`, go: {step: t, node: b, position: Math.min(b, run.length - 1)}})))],
  };
}

// Over a nondeterministic automaton Z counts a text once for each of its paths, and may pass 1.
const accepted = z => z > 1e-6 ? 'Z counts each accepted text once for each of its paths.' : `A draw of the model alone would be accepted with probability ${probability(Math.exp(z))}.`;

// A step, as the lanes show it.
export function step(run, t, {other = null, side = 'a', ticks = null} = {}) {
  const z = r => number(r.at('log_partition', t)), kl = run.row('kl', t), taken = [], all = [];
  for (let i = 0; i < run.length; i++) { if (run.at('committed', t, i)) taken.push(i); if (kl[i] < Infinity) all.push(i); }
  const flips = run.row('flip', t).reduce((n, flip, i) => n + (flip && run.masked(t, i)), 0), most = all.reduce((best, i) => kl[i] > kl[best] ? i : best, all[0]), of = name => other ? ` of ${name}` : '';
  return {
    what: `Step ${t} of 0 to ${run.steps - 1}${ticks?.has(t) ? ': a breakpoint hits' : ''}`,
    value: [{name: `log Z${of(side.toUpperCase())}`, text: z(run), unit: 'nats', tone: 'q'}, ...(other && t < other.count ? [{name: `log Z${of(side === 'a' ? 'B' : 'A')}`, text: z(other), unit: 'nats'}] : []), {text: `${taken.length}`, unit: 'committed'}],
    why: [lost(run, t) ? 'Z is 0: nothing accepted is left.' : accepted(run.at('log_partition', t)),
      ...(most === undefined || lost(run, t) || !(kl[most] > 1e-9) ? [] : [`The constraint moves position ${most} most: KL ${number(kl[most])} nats.`]), ...(run.flips()[t] ? [`At ${several(run.flips()[t], 'position')} p and q prefer different tokens.`] : []), ...(run.disagrees(t) ? ['Mf and Mar choose differently here.'] : []), ...(flips ? [`p and q prefer different tokens at ${several(flips, 'position')}.`] : []), ...(run.config.kind !== null && !run.drawnAccepted[t] ? ['The draw of this step is not accepted.'] : [])],
    change: [lost(run, t) ? 'Other commits before it.' : 'Its commits, its pins, and what the model answers to them.'],
    jumps: [{text: `step ${t}`, go: {step: t}}, ...taken.slice(0, 3).map(i => ({text: `position ${i}, committed here`, go: {step: t, position: i}})), ...(lost(run, t) ? loss(run) : [])],
  };
}

// A line of the slope chart: a position in the order of commits of two runs.
export function order(a, b, i, line) {
  if (!line) return null;
  const side = (run, name, place) => { const t = run.commitStep[i]; return {name: `${name}, at step ${t}`, text: `${place + 1}.`, tone: name === 'A' ? 'p' : 'q'}; };
  const said = (run, name) => { const t = run.commitStep[i]; return `${name} commits ${token(run, run.drawn(t, i), 20)}: Mar ${number(run.at('confidence_mar', t, i))}, Mf ${number(run.at('confidence_mf', t, i))}.`; };
  return {
    what: `Position ${i} in the order of commits`, value: [side(a, 'A', line.from), side(b, 'B', line.to)],
    why: [said(a, 'A'), said(b, 'B'), line.from === line.to ? 'Both take it at the same place.' : `B takes it ${several(Math.abs(line.to - line.from), 'place')} ${line.to < line.from ? 'earlier' : 'later'}.`],
    change: ['What the runs were asked for differently; the noise where the seeds differ.'],
    jumps: [{text: `step ${a.commitStep[i]} in A`, go: {step: a.commitStep[i], position: i, side: 'a'}}, {text: `step ${b.commitStep[i]} in B`, go: {step: b.commitStep[i], position: i, side: 'b'}}],
  };
}

// The trellis with its weights: what each number is summed from.
export function fed({edges, weight}, i, e) {
  const [, , tokens, count] = edges[e];
  return `${count === 1 ? `p(“${tokens}”)` : `the sum of p over ${count} tokens (${tokens})`} = ${number(weight[i][e])}`;
}
export function arithmetic(run, {forward, backward, posterior, edges, weight}, b, q) {
  const z = backward[0][run.head.start], sum = (terms, ends, total) => terms.length ? `${terms.join(' + ')} = ${number(total)}` : ends ? '1' : '0';
  const into = edges.flatMap(([from, to], e) => b && to === q && weight[b - 1][e] * forward[b - 1][from] > 0 ? [`α(${named(run, from)}) ${number(forward[b - 1][from])} × ${number(weight[b - 1][e])}`] : []);
  const out = edges.flatMap(([from, to], e) => b < run.length && from === q && weight[b][e] * backward[b + 1][to] > 0 ? [`${number(weight[b][e])} × β(${named(run, to)}) ${number(backward[b + 1][to])}`] : []);
  return {alpha: `α = ${sum(into, b === 0 && q === run.head.start, forward[b][q])}`, beta: `β = ${sum(out, b === run.length && run.accepting[q], backward[b][q])}`,
    gamma: z > 0 ? `γ = α × β ÷ Z = ${number(forward[b][q])} × ${number(backward[b][q])} ÷ ${number(z)} = ${number(posterior[b][q])}` : ''};
}
export function messages(run, answer, b, q) {
  const {alpha, beta, gamma} = arithmetic(run, answer, b, q), at = name => number(answer[name][b][q]);
  return {what: `State ${named(run, q)} at boundary ${b}`, value: [{name: 'γ', text: gamma ? at('posterior') : '–', tone: 'q'}, {name: 'α', text: at('forward')}, {name: 'β', text: at('backward')}], why: [alpha, beta, gamma || 'Z is 0, so that there is no posterior.'],
    change: ['The mean field at the positions that α and β sum over, or another constraint.'], jumps: [{text: `position ${Math.min(b, run.length - 1)}`, go: {position: Math.min(b, run.length - 1)}}, {text: `state ${named(run, q)} in the automaton`, go: {position: Math.min(b, run.length - 1), state: q}}]};
}
export function arrow(run, answer, i, e) {
  const [a, b] = answer.edges[e];
  return {what: `Arrow from state ${named(run, a)} to state ${named(run, b)} at position ${i}`, value: [{name: 'weight', text: number(answer.weight[i][e])}], why: [`It is ${fed(answer, i, e)}.`],
    change: [`The mean field at position ${i}, or the tokens that the edge reads.`], jumps: [{text: `position ${i}`, go: {position: i}}]};
}

// One place of two runs.
export function difference(a, b, t, i) {
  const side = (run, name) => t < run.count ? `${name} ${run.at('committed', t, i) ? 'commits' : run.masked(t, i) ? 'draws' : 'has'}` : null;
  const value = [[a, 'A', 'p'], [b, 'B', 'q']].filter(([run]) => t < run.count).map(([run, name, tone]) => ({name: side(run, name), text: token(run, run.drawn(t, i), 24), tone: `token ${tone}`}));
  const numbers = [[a, 'A'], [b, 'B']].filter(([run]) => t < run.count && run.masked(t, i)).map(([run, name]) => `${name}: Mar ${number(run.at('confidence_mar', t, i))}, Mf ${number(run.at('confidence_mf', t, i))}`);
  const when = run => run.commitStep[i] < 0 ? 'never or pinned' : `at step ${run.commitStep[i]}`;
  return {
    what: `Step ${t}, position ${i} in both runs`, value, why: [...numbers, `Committed ${when(a)} in A, ${when(b)} in B.`],
    change: ['What the runs were asked for differently, listed above; and the noise where the seeds differ.'],
    jumps: [{text: 'this place in A', go: {step: t, position: i, side: 'a'}}, {text: 'in B', go: {step: t, position: i, side: 'b'}}],
  };
}

// Where the two fronts miss each other: how far the one comes, how far back the other goes, and the states of both where they should meet,
// nearest ones first. Given are the states of each front at a boundary, and where a state stands.
export function missed(length, forward, backward, y) {
  let reached = length, needed = 0;
  while (reached > 0 && !forward(reached).length) reached--;
  while (needed < length && !backward(needed).length) needed++;
  const at = Math.max(reached, needed), ahead = forward(reached), behind = backward(at);
  const [from, to] = ahead.flatMap(q => behind.map(r => [q, r])).reduce((best, pair) => !best || Math.abs(y(pair[0]) - y(pair[1])) < Math.abs(y(best[0]) - y(best[1])) ? pair : best, null) ?? [];
  return {reached, needed, at, ahead, behind, from, to};
}
