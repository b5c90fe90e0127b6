// Where to go next: each finder answers {step, position} or null, from the focus, one way or the other.

const first = (run, test) => { for (let i = 0; i < run.length; i++) if (test(i)) return i; return -1; };

// The next cell (step, position), in reading order, of which `test` holds.
export function cell(run, focus, way, test) {
  const size = run.count * run.length;
  for (let x = focus.step * run.length + focus.position + way; x >= 0 && x < size; x += way) {
    const step = Math.floor(x / run.length), position = x % run.length;
    if (test(step, position)) return {step, position};
  }
  return null;
}

// The next step of which `test` holds, at the first position of which `place` holds.
export function step(run, focus, way, test, place = () => false) {
  for (let t = focus.step + way; t >= 0 && t <= run.last; t += way) {
    if (!test(t)) continue;
    const i = first(run, j => place(t, j));
    return i < 0 ? {step: t} : {step: t, position: i};
  }
  return null;
}

export const commit = (run, focus, way) => cell(run, focus, way, (t, i) => run.at('committed', t, i) === 1);
export const flip = (run, focus, way) => cell(run, focus, way, (t, i) => run.at('flip', t, i) === 1 && run.masked(t, i));
export const forced = (run, focus, way) => cell(run, focus, way, (t, i) => run.at('forced', t, i) === 1 && run.masked(t, i));
export const rival = (run, focus, way) => step(run, focus, way, t => run.disagrees(t), (t, i) => run.at('committed_mf', t, i) !== run.at('committed_mar', t, i));

export function differs(a, b, t, i) {
  if (t >= a.count || t >= b.count || i >= a.length || i >= b.length) return false;
  return a.at('committed', t, i) !== b.at('committed', t, i) || (a.at('committed', t, i) === 1 && a.text(a.drawn(t, i)) !== b.text(b.drawn(t, i)));
}
export const difference = (a, b, focus, way) => step(a, focus, way, t => first(a, i => differs(a, b, t, i)) >= 0, (t, i) => differs(a, b, t, i));

// The step of the other run that stands beside a step: the same, the last that begins with no more committed, or the one
// that is as far from the commit of the focused position.
export function beside(run, other, step, position, by) {
  if (by === 'committed') {
    let t = 0;
    while (t + 1 < other.count && other.filled[t + 1] <= run.filled[Math.min(step, run.last)]) t++;
    return t;
  }
  const shift = by === 'position' && run.commitStep[position] >= 0 && other.commitStep[position] >= 0 ? other.commitStep[position] - run.commitStep[position] : 0;
  return Math.max(0, Math.min(step + shift, other.last));
}

// The step whose commits made acceptance impossible, at the first position that it committed: the last one at which something can be changed.
export function hopeless(run) {
  for (let t = 0; t < run.count; t++) {
    const lostAfter = t + 1 < run.count ? run.at('log_partition', t + 1) === -Infinity : run.finished && !run.accepted && run.config.kind !== null;
    if (run.at('log_partition', t) === -Infinity) return {step: t};
    if (lostAfter) { const i = first(run, j => run.at('committed', t, j) === 1); return i < 0 ? {step: t} : {step: t, position: i}; }
  }
  return null;
}
