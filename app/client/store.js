// What is kept in this browser and nowhere else: what a learner did, and the size of the type. A browser that keeps nothing still has the page.

const KEY = 'denoiscope-lessons';

function read() {
  try { return JSON.parse(localStorage.getItem(KEY)) ?? {}; } catch { return {}; }
}

let kept = {bets: {}, done: [], large: false, last: null, ...read()};

export const get = name => kept[name];
export function set(name, value) {
  kept = {...kept, [name]: value};
  try { localStorage.setItem(KEY, JSON.stringify(kept)); } catch { /* it is remembered until the page is left */ }
}
export const bet = lesson => kept.bets[lesson];
export const keepBet = (lesson, guess) => set('bets', {...kept.bets, [lesson]: guess});
export const isDone = lesson => kept.done.includes(lesson);
export const finish = lesson => isDone(lesson) || set('done', [...kept.done, lesson]);
