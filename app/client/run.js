// A run in the browser: typed arrays per quantity that grow as steps arrive, and detail per step that arrives behind.

import {UNANSWERED} from './ask.js';

const TYPES = {u1: Uint8Array, i4: Int32Array, f4: Float32Array, f8: Float64Array};

export async function unpack(part) {
  const text = atob(part.data), bytes = new Uint8Array(text.length);
  for (let k = 0; k < text.length; k++) bytes[k] = text.charCodeAt(k);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  const buffer = await new Response(stream).arrayBuffer();
  const arrays = {};
  for (const [name, type, shape, offset] of part.index) {
    const size = shape.reduce((a, b) => a * b, 1);
    arrays[name] = {data: new TYPES[type](buffer, offset, size), shape};
  }
  return arrays;
}

const DETAIL_BYTES = 48 << 20;   // detail fetched ahead of the focus, per run; what the focus needs is always fetched

export class Run {
  static async open(id, server) {
    const head = await server.get_run({run: id});
    if (head.error) return head;
    const run = new Run(id, head, await unpack(head), server);
    await run.pull();
    return run;
  }

  // A small run whose parts came all at once.
  static async of(id, {head, steps, detail, window, messages}, server) {
    const run = new Run(id, head, await unpack(head), server);
    await run.append(steps);
    await run.keep(detail);
    if (window) run.windows.set('{}', window);
    run.messages = messages;
    return run;
  }

  constructor(id, head, arrays, server) {
    Object.assign(this, {id, server, head, config: head.config, status: head.status});
    this.length = head.config.length;
    this.steps = head.config.steps;
    this.states = head.states;
    this.accepting = arrays.accepting.data;
    this.order = arrays.order.data;
    this.origin = arrays.origin.data;   // of each state, a row of `head.origins`
    const {source} = this.config;
    this.characters = [...(Array.isArray(source) ? source.join('\n') : source ?? '')];   // spans count characters, not UTF-16 units
    // Equal lists of parts are one, so that neighbours of the same parts are known by it.
    const known = new Map();
    this.parts = head.origin_parts.map(numbers => { const key = numbers.join(); if (!known.has(key)) known.set(key, numbers); return known.get(key); });
    this.rank = new Int32Array(this.states);
    this.order.forEach((state, row) => { this.rank[state] = row; });
    this.count = 0;
    this.columns = {};
    this.texts = [];
    this.drawnTexts = [];
    this.drawnAccepted = [];
    this.tokens = new Map();
    this.special = new Map();
    this.commitCounts = new Uint16Array(this.steps);
    this.disputed = new Uint8Array(this.steps);
    this.filled = new Uint16Array(this.steps);   // most committed before a step, up to it
    this.commitStep = new Int32Array(this.length).fill(-1);
    this.details = [];
    this.detailBytes = 0;
    this.top = {entropy: 0, kl: 0};
    this.windows = new Map();
  }

  // Fetch the steps that are there and not here, and how far the run is; true when something changed. Who asks meanwhile waits for one more answer.
  pull() {
    this.asked = true;
    return this.pulling ??= (async () => {
      let changed = false;
      try {
        while (this.asked) { this.asked = false; changed = await this.ask() || changed; }
      } finally { this.pulling = null; }
      return changed;
    })();
  }

  async ask() {
    const part = await this.server.get_steps({run: this.id, first: this.count});
    if (part.error === UNANSWERED) return false;   // it may answer the next time
    const status = part.error ? 'gone' : part.status;
    if (part.count) await this.append(part);
    const changed = Boolean(part.count) || status !== this.status;
    this.status = status;
    this.asked ||= Boolean(part.more);
    return changed;
  }

  async append(part) {
    const arrays = await unpack(part);
    if (part.first !== this.count) return;
    for (const [name, {data, shape}] of Object.entries(arrays)) {
      const width = shape.slice(1).reduce((a, b) => a * b, 1);
      const column = this.columns[name] ??= {data: new data.constructor(this.steps * width), width};
      column.data.set(data, part.first * width);
    }
    this.texts.push(...part.texts);
    this.drawnTexts.push(...part.drawn_texts);
    this.drawnAccepted.push(...part.drawn_accepted);
    this.learn(part);
    for (let t = part.first; t < part.first + part.count; t++) {
      const committed = this.row('committed', t), mf = this.row('committed_mf', t), mar = this.row('committed_mar', t), q = this.row('entropy_posterior', t), p = this.row('entropy_mean_field', t), kl = this.row('kl', t);
      const canvas = this.row('canvas', t);
      this.filled[t] = Math.max(t ? this.filled[t - 1] : 0, canvas.reduce((n, id) => n + (id !== this.head.mask_id), 0));
      for (let i = 0; i < this.length; i++) {
        if (committed[i]) { this.commitStep[i] = t; this.commitCounts[t]++; }
        if (mf[i] !== mar[i]) this.disputed[t] = 1;
        this.top.entropy = Math.max(this.top.entropy, q[i], p[i]);
        if (kl[i] < Infinity) this.top.kl = Math.max(this.top.kl, kl[i]);
      }
    }
    this.count += part.count;
  }

  learn({tokens, special}) {
    for (const [id, text] of Object.entries(tokens)) this.tokens.set(+id, text);
    for (const [id, name] of Object.entries(special)) this.special.set(+id, name);
  }

  row(name, t) {
    const {data, width} = this.columns[name];
    return data.subarray(t * width, (t + 1) * width);
  }
  at(name, t, i = 0) { const {data, width} = this.columns[name]; return data[t * width + i]; }

  masked(t, i) { return this.at('canvas', t, i) === this.head.mask_id; }
  fixedBefore(t, i) { return !this.masked(t, i); }
  // The other confidence would have committed this position now, and the run did not.
  rival(t, i) {
    const other = this.config.confidence === 'mar' ? 'committed_mf' : 'committed_mar';
    return this.at(other, t, i) === 1 && this.at('committed', t, i) === 0;
  }
  disagrees(t) { return this.disputed[t] === 1; }
  commits(t) { return this.commitCounts[t]; }
  // Of each step so far, at how many masked positions p and q prefer different tokens.
  flips() { return Array.from({length: this.count}, (_, t) => this.row('flip', t).reduce((n, flip, i) => n + (flip && this.masked(t, i)), 0)); }
  // The token that stands or, where masked, that the joint draw of this step has.
  drawn(t, i) { return this.at('drawn', t, i); }

  sourceText(start, stop) { return this.characters.slice(start, stop).join(''); }
  text(id) { return this.tokens.get(id) ?? this.special.get(id) ?? `id ${id}`; }
  isSpecial(id) { return this.special.has(id); }

  get finished() { return this.count === this.steps; }
  get last() { return Math.max(0, this.count - 1); }
  get accepted() { return this.finished && this.drawnAccepted[this.last]; }

  detail(t) { return this.details[t] ?? null; }

  // Fetch detail, the focus first and then what lies around it; calls back after each part. One request at a time.
  async fetchDetail(focus, ready) {
    this.wanted = focus;
    if (this.fetching) return;
    this.fetching = true;
    try {
      for (;;) {
        const first = this.nextMissing(this.wanted);
        if (first < 0) break;
        let count = 1;
        const most = Math.max(1, Math.min(32, Math.floor(4096 / this.length)));
        while (count < most && first + count < this.count && !this.details[first + count]) count++;
        const part = await this.server.get_detail({run: this.id, first, count});
        if (part.error) break;
        await this.keep(part);
        ready(first, part.count);
      }
    } finally { this.fetching = false; }
  }

  async keep(part) {
    this.detailBytes += part.data.length;
    const arrays = await unpack(part);
    this.learn(part);
    for (let k = 0; k < part.count; k++) this.details[part.first + k] = new Detail(this, part.first + k, arrays, k);
  }

  nextMissing(focus) {
    if (focus < this.count && !this.details[focus]) return focus;
    if (this.detailBytes > DETAIL_BYTES) return -1;
    for (let away = 1; away < this.count; away++) {
      for (const t of [focus + away, focus - away]) if (t >= 0 && t < this.count && !this.details[t]) return t;
    }
    return -1;
  }

  // A picture of the automaton: of a `group`, or of what lies around a `state`; of all of a small one.
  window(asked) {
    const key = JSON.stringify(asked);
    if (!this.windows.has(key)) this.windows.set(key, this.fetchWindow(key, asked));
    return this.windows.get(key);
  }
  // What failed is asked for again the next time.
  async fetchWindow(key, asked) {
    const part = await this.server.get_window({run: this.id, ...asked});
    if (part.error) this.windows.delete(key);
    return part;
  }
}

class Detail {
  constructor(run, step, arrays, k) { Object.assign(this, {run, step, arrays, k}); }

  slice(name) {
    const {data, shape} = this.arrays[name], size = shape.slice(1).reduce((a, b) => a * b, 1);
    return data.subarray(this.k * size, (this.k + 1) * size);
  }

  // The tokens that are most probable under p or under q, each once: {id, p, q}.
  tops(i) {
    const row = this.slice('top_row')[i];
    if (row < 0) {
      const possible = this.run.at('log_partition', this.step) > -Infinity;
      return [{id: this.run.at('canvas', this.step, i), p: 1, q: possible ? 1 : 0}];
    }
    const size = this.arrays.top_ids.shape[1] * this.arrays.top_ids.shape[2];
    const of = name => this.arrays[name].data.subarray(row * size, (row + 1) * size);
    const ids = of('top_ids'), p = of('top_log_mean_field'), q = of('top_log_posterior'), seen = new Map();
    ids.forEach((id, k) => { if (id >= 0 && !seen.has(id)) seen.set(id, {id, p: Math.exp(p[k]), q: Math.exp(q[k])}); });
    return [...seen.values()];
  }
  allowed(i) { return this.slice('allowed_tokens')[i]; }
  // Rank of a token under p and under q among those listed, 1 for the most probable; null where the position is committed.
  ranks(i, id) {
    const row = this.slice('top_row')[i];
    if (row < 0) return null;
    const [, , width] = this.arrays.top_ids.shape;
    const rank = (side, name) => {
      const from = (2 * row + side) * width, ids = this.arrays.top_ids.data.subarray(from, from + width), log = this.arrays[name].data.subarray(from, from + width), at = ids.indexOf(id);
      return at < 0 || log[at] === -Infinity ? `>${ids.filter((v, k) => v >= 0 && log[k] > -Infinity).length}` : 1 + log.filter((x, k) => ids[k] >= 0 && x > log[at]).length;
    };
    return {p: rank(0, 'top_log_mean_field'), q: rank(1, 'top_log_posterior')};
  }

  // Most probable states at a boundary: [[state, probability], …].
  statesAt(b) {
    const width = this.arrays.state_ids.shape[2], ids = this.slice('state_ids'), p = this.slice('state_probability'), out = [];
    for (let k = b * width; k < (b + 1) * width; k++) if (ids[k] >= 0) out.push([ids[k], p[k]]);
    return out;
  }
  liveBits(b) { const width = this.arrays.live.shape[2]; return this.slice('live').subarray(b * width, (b + 1) * width); }
  isLive(b, state) { return this.liveAt(b)(state); }
  // The same for many states of one boundary.
  liveAt(b) { const bits = this.liveBits(b); return state => (bits[state >> 3] >> (7 - (state & 7)) & 1) === 1; }
  eachLive(b, visit) {
    const bits = this.liveBits(b);
    for (let k = 0; k < bits.length; k++) for (let byte = bits[k], bit = 0; byte; bit++, byte = byte << 1 & 255) if (byte & 128) visit(8 * k + bit);
  }
  midpoint(m) {
    const width = this.arrays.midpoint_ids.shape[2], ids = this.slice('midpoint_ids'), p = this.slice('midpoint_probability'), out = [];
    for (let k = m * width; k < (m + 1) * width; k++) if (ids[k] >= 0) out.push([ids[k], p[k]]);
    return out;
  }
}

// The span that each boundary was drawn in as a midpoint, and its level in the tree; boundary `length`, the end, comes first of all.
const trees = new Map();
export function spansOf(length) {
  if (!trees.has(length)) {
    let top = 1;
    while (top * 2 < length) top *= 2;
    trees.set(length, Array.from({length: length + 1}, (_, m) => {
      if (m === 0 || m === length) return {start: 0, stop: length, level: 0};
      const low = m & -m;
      return {start: m - low, stop: Math.min(m + low, length), level: 1 + Math.log2(top / low)};
    }));
  }
  return trees.get(length);
}
export const spanOf = (m, length) => spansOf(length)[m];
