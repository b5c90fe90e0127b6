"""Traces made without the engine: small, exact, and slow enough to read. They feed the tests of pictures and page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from engine.token_automaton import TokenAutomaton
from engine.trace import (
    TOP_MIDPOINT_STATES,
    TOP_STATES,
    TOP_TOKENS,
    Config,
    Header,
    StepRecord,
    Trace,
    initial_canvas,
)
from engine.vocabulary import Vocabulary

DIGITS = tuple("0123456789")
HOSTILE = (
    '<img src=x onerror="window.hacked=1">',
    "${window.hacked=1}",
    "{{value}}",
    "<b>&amp;",
    "\n",
    '\\"|{}',
)


def automaton_of(
    move: Mapping[tuple[int, str], int], accepting: Sequence[int], vocabulary: Vocabulary
) -> TokenAutomaton:
    """Build a token automaton from moves by token text; EOS leads from accepting states to the end state."""
    states = max([*accepting, *(s for s, _ in move), *move.values()]) + 1
    has_eos = bool(vocabulary.eos_ids)
    end = states if has_eos else -1
    table = np.full((states + has_eos, vocabulary.size), -1)
    ids = {data: v for v, data in enumerate(vocabulary.token_bytes) if data is not None}
    for (state, text), target in move.items():
        table[state, ids[text.encode()]] = target
    for v in vocabulary.eos_ids:
        table[[*accepting, end], v] = end
    columns, token_class = np.unique(table, axis=1, return_inverse=True)
    dead = np.flatnonzero((columns < 0).all(axis=0))
    if dead.size:
        order = np.r_[dead, np.setdiff1d(np.arange(columns.shape[1]), dead)]
        token_class = np.argsort(order)[token_class]
        columns = columns[:, order]
    else:
        columns = np.c_[np.full(len(columns), -1), columns]
        token_class = token_class + 1
    sources = [np.flatnonzero(column >= 0).astype(np.int32) for column in columns.T]
    return TokenAutomaton(
        start=0,
        end=end,
        accepting=np.isin(np.arange(states + has_eos), [*accepting, end]),
        token_class=token_class.astype(np.int32),
        class_ptr=np.cumsum([0, *(s.size for s in sources)], dtype=np.int32),
        class_source=np.concatenate(sources),
        class_target=np.concatenate([c[s].astype(np.int32) for c, s in zip(columns.T, sources, strict=True)]),
        state_spans=((),) * (states + has_eos),
    )


def real_number(extra: Sequence[str] = (), *, eos: bool = True) -> tuple[Vocabulary, TokenAutomaton]:
    """Real numbers like `3.`, `.5`, `42` over single characters; tokens of `extra` may stand where a digit may."""
    texts = (*DIGITS, ".", *extra)
    dead = (None,) if eos else ()
    vocabulary = Vocabulary((*(t.encode() for t in texts), *dead), (len(texts),) if eos else (), len(texts) + len(dead))
    move = {(s, d): t for s, t in ((0, 1), (1, 1), (2, 3), (3, 3)) for d in (*DIGITS, *extra)}
    move |= {(0, "."): 2, (1, "."): 3}
    return vocabulary, automaton_of(move, (1, 3), vocabulary)


def ladder(rungs: int) -> tuple[Vocabulary, TokenAutomaton]:
    """A wide automaton of `2 * rungs + 1` states: digits climb one side of a ladder, dots cross it."""
    vocabulary = Vocabulary((*(t.encode() for t in (*DIGITS, ".")), None), (11,), 12)
    move = {}
    for n in range(rungs):
        move |= {(2 * n + s, d): 2 * (n + 1) + s for d in DIGITS for s in (0, 1)}
        move[2 * n, "."] = 2 * (n + 1) + 1
    return vocabulary, automaton_of(move, (2 * rungs, 2 * rungs + 1), vocabulary)


def trace(
    parts: tuple[Vocabulary, TokenAutomaton],
    length: int,
    steps: int,
    *,
    seed: int = 0,
    confidence: str = "mar",
    sampler: str = "midpoint",
    dot_logit: float = 1.0,
) -> Trace:
    """Denoise with random logits that sharpen step by step, by dense forward-backward."""
    vocabulary, automaton = parts
    config = Config(
        prompt="A real number, please.",
        kind="regex",
        source=r"[0-9]+(\.[0-9]*)?|\.[0-9]+",
        model="synthetic",
        length=length,
        steps=steps,
        block_length=length,
        temperature=1.0,
        confidence=confidence,
        sampler=sampler,
        seed=seed,
    )
    header = Header(config, {"name": "synthetic"}, vocabulary, automaton)
    rng = np.random.default_rng(seed)
    base = rng.normal(0, 1.5, (length, vocabulary.size))
    base[:, 10] += dot_logit
    canvas = initial_canvas(header)
    records = []
    for t in range(steps):
        base = base + rng.normal(0, 0.4, base.shape)
        left = int((canvas == vocabulary.mask_id).sum())
        count = -(-left // (steps - t))
        records.append(_step(header, canvas, base * (1 + t / steps), count, rng))
        canvas = records[-1].canvas_after
    return Trace(header, tuple(records))


def _step(header: Header, canvas: np.ndarray, logits: np.ndarray, count: int, rng: np.random.Generator) -> StepRecord:
    vocabulary, automaton, config = header.vocabulary, header.automaton, header.config
    length, states = canvas.size, automaton.states
    masked = canvas == vocabulary.mask_id
    log_p = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    for i in np.flatnonzero(~masked):
        log_p[i] = -np.inf
        log_p[i, canvas[i]] = 0.0
    p = np.exp(log_p)
    move = np.full((states, automaton.classes), -1)
    for k in range(automaton.classes):
        span = slice(automaton.class_ptr[k], automaton.class_ptr[k + 1])
        move[automaton.class_source[span], k] = automaton.class_target[span]
    mass = np.zeros((length, automaton.classes))
    np.add.at(mass.T, automaton.token_class, p.T)
    weight = np.zeros((length, states, states))
    for s, k in np.argwhere(move >= 0):
        weight[:, s, move[s, k]] += mass[:, k]
    alpha = np.zeros((length + 1, states))
    beta = np.zeros((length + 1, states))
    alpha[0, automaton.start] = 1
    beta[length] = automaton.accepting
    for i in range(length):
        alpha[i + 1] = alpha[i] @ weight[i]
    for i in reversed(range(length)):
        beta[i] = weight[i] @ beta[i + 1]
    z = beta[0, automaton.start]
    gamma = alpha * beta / z if z else np.zeros_like(alpha)
    lift = np.zeros((length, automaton.classes))
    for s, k in np.argwhere(move >= 0):
        lift[:, k] += alpha[:-1, s] * beta[1:, move[s, k]]
    lift = lift / z if z else lift
    q = p * lift[:, automaton.token_class]
    path, midpoints = _draw_path(weight, automaton, rng)
    drawn = canvas.copy()
    for i in np.flatnonzero(masked):
        row = p[i]
        if config.sampler != "independent":
            row = row * (move[path[i], automaton.token_class] == path[i + 1])
        drawn[i] = rng.choice(row.size, p=row / row.sum())
    if config.sampler == "independent":
        path = automaton.path(drawn.tolist())
        midpoints = [np.full_like(m, -1 if m.dtype == np.int32 else np.nan) for m in midpoints]
    chosen = {"mf": np.where(masked, p[np.arange(length), drawn], -np.inf)}
    chosen["mar"] = np.where(masked, q[np.arange(length), drawn], -np.inf)
    taken = {}
    for name, values in chosen.items():
        taken[name] = np.zeros(length, bool)
        taken[name][np.argsort(-values, kind="stable")[:count]] = True
        taken[name] &= masked
    return StepRecord(
        canvas=canvas,
        drawn=drawn.astype(np.int32),
        path=path.astype(np.int32),
        committed=taken[config.confidence],
        committed_mf=taken["mf"],
        committed_mar=taken["mar"],
        confidence_mf=chosen["mf"],
        confidence_mar=chosen["mar"],
        log_partition=np.float64(_log(z)),
        log_partition_model=np.float64(_log(z)),
        log_class_mass=_log(mass).astype(np.float32),
        log_lift=_log(lift).astype(np.float32),
        **_tops(p, q),
        entropy_mean_field=_entropy(p),
        entropy_posterior=_entropy(q),
        kl=np.sum(_plogp(q) - _plogp(q, p), axis=1).astype(np.float32),
        forbidden_mass=np.sum(p * (lift[:, automaton.token_class] == 0), axis=1).astype(np.float32),
        **_states(gamma),
        live=np.packbits(gamma > 0, axis=1),
        midpoint_log_probability=midpoints[0],
        midpoint_entropy=midpoints[1],
        midpoint_ids=midpoints[2],
        midpoint_probability=midpoints[3],
        tries=np.int32(1),
        model_ms=np.float64(1.0),
        engine_ms=np.float64(0.1),
    )


def _log(values: np.ndarray | float) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(values)


def _plogp(p: np.ndarray, other: np.ndarray | None = None) -> np.ndarray:
    """Return `p log other`, 0 where `p` is 0; `other` is `p` by default."""
    other = p if other is None else other
    return p * _log(np.where(p > 0, other, 1))


def _entropy(p: np.ndarray) -> np.ndarray:
    return -np.sum(_plogp(p), axis=1).astype(np.float32)


def _best(values: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    ids = np.argsort(-values, axis=-1, kind="stable")[..., :count].astype(np.int32)
    best = np.take_along_axis(values, ids, axis=-1)
    return np.where(best > 0, ids, -1).astype(np.int32), best.astype(np.float32)


def _tops(p: np.ndarray, q: np.ndarray) -> dict[str, np.ndarray]:
    width = min(TOP_TOKENS, p.shape[1])
    ids = np.full((len(p), 2, TOP_TOKENS), -1, np.int32)
    ids[:, 0, :width], _ = _best(p, width)
    ids[:, 1, :width], _ = _best(q, width)
    logs = [
        np.where(ids >= 0, _log(np.take_along_axis(a[:, None], np.maximum(ids, 0), axis=2)), -np.inf) for a in (p, q)
    ]
    return {
        "top_ids": ids,
        "top_log_mean_field": logs[0].astype(np.float32),
        "top_log_posterior": logs[1].astype(np.float32),
    }


def _states(gamma: np.ndarray) -> dict[str, np.ndarray]:
    ids, probability = _best(gamma, min(gamma.shape[1], TOP_STATES))
    return {"state_ids": ids, "state_probability": probability}


def _draw_path(
    weight: np.ndarray, automaton: TokenAutomaton, rng: np.random.Generator
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Draw the end, then midpoints level by level, from products of the span's matrices."""
    length, states = weight.shape[:2]
    width = min(states, TOP_MIDPOINT_STATES)
    log_probability = np.full(length + 1, np.nan, np.float32)
    entropy = np.full(length + 1, np.nan, np.float32)
    ids = np.full((length + 1, width), -1, np.int32)
    probability = np.zeros((length + 1, width), np.float32)
    path = np.full(length + 1, -1)
    path[0] = automaton.start

    def across(a: int, b: int) -> np.ndarray:
        product = np.eye(states)
        for i in range(a, b):
            product = product @ weight[i]
        return product

    def draw(boundary: int, law: np.ndarray) -> None:
        law = law / law.sum()
        path[boundary] = rng.choice(states, p=law)
        log_probability[boundary] = np.log(law[path[boundary]])
        entropy[boundary] = _entropy(law[None])[0]
        ids[boundary], probability[boundary] = _best(law, width)

    draw(length, across(0, length)[path[0]] * automaton.accepting)
    step = 1 << max(length - 1, 1).bit_length() - 1
    while step:
        for m in range(step, length, 2 * step):
            right = min(m + step, length)
            draw(m, across(m - step, m)[path[m - step]] * across(m, right)[:, path[right]])
        step //= 2
    return path, [log_probability, entropy, ids, probability]
