// The focus as the page's address has it: `#a=…&b=…&step=3&pos=7`, and only what is worth saying. `pos2` is the position beside it, `token` the one that is asked about.

export function write(shown, focus) {
  const words = new URLSearchParams();
  for (const side of ['a', 'b']) if (shown[side]) words.set(side, shown[side]);
  words.set('step', focus.step);
  words.set('pos', focus.position);
  if (focus.second !== null) words.set('pos2', focus.second);
  if (focus.token !== null) words.set('token', focus.token);
  words.set('map', focus.metric);
  if (focus.phase !== null) words.set('phase', focus.phase);
  if (focus.node !== null) words.set('node', focus.node);
  if (focus.span) words.set('span', `${focus.span.start}-${focus.span.stop}`);
  if (focus.state !== null) words.set('state', focus.state);
  if (focus.group) words.set('group', focus.group);
  if (focus.side === 'b') words.set('side', 'b');
  if (shown.b && focus.align !== 'step') words.set('align', focus.align);
  return `#${words}`;
}

export const ALIGNMENTS = {step: 'by step', committed: 'by number committed', position: 'by this position'};

export function read(hash) {
  const words = new URLSearchParams(hash.slice(1));
  const whole = name => words.has(name) && /^\d{1,9}$/.test(words.get(name)) ? Number(words.get(name)) : null;
  const [, start, stop] = /^(\d{1,6})-(\d{1,6})$/.exec(words.get('span') ?? '') ?? [];
  return {lesson: words.get('lesson'), controls: words, a: words.get('a') || null, b: words.get('b') || null, focus: {step: whole('step') ?? 0, position: whole('pos') ?? 0, second: whole('pos2'), token: whole('token'), node: whole('node'), span: start !== undefined && +start < +stop ? {start: +start, stop: +stop} : null, align: words.get('align') in ALIGNMENTS ? words.get('align') : 'step', state: whole('state'), group: /^\d{1,2}(\.\d{1,2}){0,20}$/.exec(words.get('group') ?? '')?.[0] ?? null, phase: words.get('phase'), side: words.get('side') === 'b' ? 'b' : 'a', metric: words.get('map')}};
}
