// What Python told. It speaks on two sides that may overtake each other: answers to what the user chose, and news of a run in progress.
// News may bring a run into view only while nothing was chosen since it was begun: `claim` is when the user did what it comes from.

export const NOTHING = {a: null, b: null, runs: [], running: null, preparing: false, paused: null, breaks: [], at: null, claim: 0, serial: 0};

export function merge(known, said, isNews) {
  const claim = said.claim ?? said.serial, runs = new Map([...known.runs, ...said.runs ?? []].map(run => [run.id, run]));
  const progress = isNews ? said : known, answer = isNews ? known : said;
  return {...known, ...(claim >= known.claim ? {a: said.a, b: said.b, claim, at: said.at ?? known.at} : {}), runs: [...runs.values()].sort((x, y) => x.number - y.number).slice(-12),
    running: progress.running, preparing: progress.preparing, paused: progress.paused, breaks: answer.breaks, serial: Math.max(known.serial, said.serial)};
}
