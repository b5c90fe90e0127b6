"""Pictures are pure values: what they say is read back out of them and compared with the trace."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import graphviz
import numpy as np
import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st

from engine import trace_file
from engine.trace import Trace
from engine.vocabulary import Vocabulary
from viz import automaton, graph, groups, labels, payload

ROOT = Path(__file__).parents[1]
HOSTILE_RUN = synthetic.trace(synthetic.real_number(synthetic.HOSTILE), 16, 8)
PAIR = synthetic.trace(synthetic.real_number(eos=False), 2, 2, sampler="independent", dot_logit=6.0)
WIDE = synthetic.trace(synthetic.ladder(40), 48, 12)
RUNS = pytest.mark.parametrize("run", [HOSTILE_RUN, PAIR, WIDE], ids=["hostile", "pair", "wide"])


def steps_part(run: Trace, first: int = 0, stop: int | None = None) -> payload.Part:
    return payload.steps(run.header, run.steps[first:stop], first)


@RUNS
def test_every_quantity_of_the_steps_reads_back_as_it_was_recorded(run: Trace) -> None:
    part = json.loads(json.dumps(steps_part(run), allow_nan=False))
    arrays = payload.unpack(part)
    derived = ("flip", "forced", "recorded")
    for name, array in arrays.items():
        if name in derived:
            continue
        recorded = run.column(name)
        wanted = recorded.astype(np.float32) if name.startswith("confidence") else recorded
        np.testing.assert_array_equal(array, wanted, err_msg=name)
    assert part["texts"][-1] == run.text
    assert part["drawn_accepted"][-1] == run.accepted
    assert part["count"] == len(run.steps)


@RUNS
def test_flips_and_forced_positions_are_those_of_the_record(run: Trace) -> None:
    arrays = payload.unpack(steps_part(run))
    sizes = np.bincount(run.header.automaton.token_class, minlength=run.header.automaton.classes)
    for t, record in enumerate(run.steps):
        for i in range(run.header.config.length):
            allowed = sum(int(n) for n, lift in zip(sizes, record.log_lift[i], strict=True) if lift > -np.inf)
            assert arrays["forced"][t, i] == (allowed == 1)
            free, constrained = record.top_ids[i, :, 0]
            assert arrays["flip"][t, i] == (constrained >= 0 and free != constrained)
        assert arrays["recorded"][t] == (record.log_mean_field is not None)


def test_impossible_stays_minus_infinity_on_its_way_to_the_browser() -> None:
    assert not PAIR.accepted
    arrays = payload.unpack(steps_part(PAIR))
    assert np.isneginf(arrays["confidence_mar"]).any()
    late = payload.unpack(payload.detail(PAIR.header, PAIR.steps, 0))
    assert np.isneginf(late["top_log_posterior"]).any()


def test_a_later_part_of_a_run_is_the_same_as_the_rows_of_the_whole() -> None:
    whole, part = (payload.unpack(steps_part(HOSTILE_RUN, first)) for first in (0, 5))
    for name in whole:
        np.testing.assert_array_equal(whole[name][5:], part[name])


@RUNS
def test_detail_has_the_distributions_of_the_masked_positions(run: Trace) -> None:
    arrays = payload.unpack(payload.detail(run.header, run.steps, 0))
    sizes = np.bincount(run.header.automaton.token_class)
    for t, record in enumerate(run.steps):
        masked = record.canvas == run.header.vocabulary.mask_id
        np.testing.assert_array_equal(arrays["top_row"][t] >= 0, masked)
        for i in np.flatnonzero(masked):
            row = arrays["top_row"][t, i]
            for name in ("top_ids", "top_log_mean_field", "top_log_posterior"):
                np.testing.assert_array_equal(arrays[name][row], getattr(record, name)[i])
            allowed = sum(sizes[k] for k in range(sizes.size) if record.log_lift[i, k] > -np.inf)
            assert arrays["allowed_tokens"][t, i] == allowed
        for name in ("state_ids", "state_probability", "live", "midpoint_ids"):
            np.testing.assert_array_equal(arrays[name][t], getattr(record, name))


@RUNS
def test_every_id_that_a_part_mentions_comes_with_its_text(run: Trace) -> None:
    vocabulary = run.header.vocabulary
    for part, names in (
        (steps_part(run), ("canvas", "drawn")),
        (payload.detail(run.header, run.steps, 0), ("top_ids",)),
    ):
        arrays = payload.unpack(part)
        ids = {v for name in names for v in np.unique(arrays[name]).tolist() if v >= 0}
        assert ids == {int(v) for v in (*part["tokens"], *part["special"])}
        for v, text in part["tokens"].items():
            assert text == (vocabulary.written(int(v)) or b"").decode()
        assert part["special"].get(str(vocabulary.mask_id), "mask") == "mask"


def test_a_token_that_writes_eos_is_not_taken_for_the_end() -> None:
    vocabulary = Vocabulary((b"eos", b"mask", None, None), (2,), 4)
    assert labels.special(vocabulary, 0) is None
    assert [labels.special(vocabulary, v) for v in (2, 3, 4)] == ["eos", "id 3", "mask"]


def test_what_cannot_be_printed_is_named() -> None:
    text = labels.readable(b"a\x1b\xff \xe2\x80\x8b\xc3\xa9\n")
    assert text == "a<0x1B><0xFF> <U+200B>é\n"
    assert labels.visible(text) == "a<0x1B><0xFF>␣<U+200B>é⏎"
    assert labels.visible("abcdef", 4) == "abc…"


@pytest.mark.parametrize(
    ("texts", "shown"),
    [
        (["3", "1", "2", "0"], "0–3"),
        (["a", "b"], "a b"),
        (["true", "false"], "true ┆ false"),
        (["-", "5", "6", "7", "."], "- . 5–7"),
        ([f"word{n}" for n in range(40)], "word0 ┆ word1 ┆ word2 … · 40"),
    ],
)
def test_a_set_of_tokens_is_summed_up(texts: list[str], shown: str) -> None:
    vocabulary = Vocabulary(tuple(t.encode() for t in texts), (), len(texts))
    assert labels.summary(vocabulary, range(len(texts))) == shown


def shown_labels(texts: list[str]) -> list[str]:
    """The text of each node's label as dot draws it; a node a label."""
    drawn = graphviz.Digraph(node_attr={"shape": "box"})
    for n, text in enumerate(texts):
        drawn.node(f"n{n}", label=labels.dot(text), id=f"n{n}")
    svg = automaton.layout(drawn.source, timeout_s=20)
    assert svg is not None
    assert "href" not in svg
    space = {"svg": "http://www.w3.org/2000/svg"}
    root = ElementTree.fromstring(svg.replace("&nbsp;", "\u00a0"))
    groups = {g.get("id"): g for g in root.iterfind(".//svg:g", space)}
    return ["".join(e.text or "" for e in groups[f"n{n}"].iterfind("svg:text", space)) for n in range(len(texts))]


def fuzzed(count: int) -> list[str]:
    rng = np.random.default_rng(7)
    pieces = [*"\\<>&\"'{}|[]$;ab0é漢 \n\t\r\x00\x07\x7f", "&lt;", "&#65;", "<b>", "\\N", "\\l", "${", "</svg>"]
    pieces += ["<br/>", "javascript:", "\u202e", "\u200b"]
    return ["".join(rng.choice(pieces, rng.integers(1, 7))) for _ in range(count)]


def test_a_graph_shows_any_label_as_it_is(require_program: Callable[[str], str]) -> None:
    require_program("dot")
    texts = [*fuzzed(300), *synthetic.HOSTILE, "<mask>", "<<b>x</b>>", "&amp;", "\\", '"', "<TABLE>"]
    wanted = [labels.visible(labels.readable(t.encode())).replace("␣", " ") for t in texts]
    shown = [text.replace("\u00a0", " ") for text in shown_labels(texts)]
    assert shown == wanted


@given(st.text(max_size=30))
def test_a_label_is_one_line_without_control_characters(text: str) -> None:
    label = labels.dot(text)
    assert not any(ord(c) < 32 for c in label)
    assert label.count("&") == label.count("&amp;")


def pairs_of(run: Trace) -> list[tuple[int, int]]:
    edges = run.header.automaton.edges
    sources = np.repeat(np.arange(run.header.automaton.states), np.diff(edges.ptr))
    return list(zip(sources.tolist(), edges.target.tolist(), strict=True))


@RUNS
def test_a_picture_of_states_has_each_edge_between_them_once(run: Trace) -> None:
    part = payload.window(run.header, state=run.header.automaton.start)
    drawn = {int(box["name"]) for box in part["boxes"] if box["name"] != "end"}
    drawn |= {run.header.automaton.end} if any(box["name"] == "end" for box in part["boxes"]) else set()
    box = payload.unpack(part)["box"]
    assert {q for q in range(box.size) if box[q] >= 0} == drawn
    for q, r in pairs_of(run):
        assert len(re.findall(rf"id=eq{q}_q{r}\b", part["dot"])) == (q in drawn and r in drawn), (q, r)
    if part["svg"] is not None:
        assert all(f'id="{box["id"]}"' in part["svg"] for box in part["boxes"])


def test_the_picture_around_a_state_is_bounded_and_holds_its_nearest() -> None:
    wide = graph.of_tokens(WIDE.header)
    assert wide.states > groups.WINDOW_STATES
    near: dict[int, set[int]] = {q: {q} for q in range(wide.states)}
    for q, r in pairs_of(WIDE):
        near[q].add(r)
        near[r].add(q)
    for centre in (0, 17, wide.states - 1):
        picture = automaton.around(wide, centre)
        drawn = set(np.flatnonzero(picture.box >= 0).tolist())
        assert near[centre] <= drawn
        assert len(drawn) <= groups.WINDOW_STATES
        assert drawn != set(near)
    assert set(np.flatnonzero(automaton.around(wide, 17, 1).box >= 0).tolist()) == near[17]
    small = graph.of_tokens(HOSTILE_RUN.header)
    assert automaton.near(small, 1).box.tolist() == list(range(small.states))


@RUNS
def test_states_are_ordered_from_the_start_to_the_end_state(run: Trace) -> None:
    table = run.header.automaton
    order = graph.order(graph.of_tokens(run.header))
    assert sorted(order.tolist()) == list(range(table.states))
    assert order[0] == table.start
    if table.end >= 0:
        assert order[-1] == table.end
    depth = graph.of_tokens(run.header).depths
    sources = np.repeat(np.arange(table.states), np.diff(table.edges.ptr))
    assert (depth[table.edges.target] <= depth[sources] + 1).all()


def test_a_graph_that_dot_takes_too_long_for_is_left_to_the_browser(
    require_program: Callable[[str], str],
) -> None:
    require_program("dot")
    source = automaton.dot_source(automaton.whole(graph.of_tokens(WIDE.header)))
    assert automaton.layout(source, timeout_s=0.001) is None


def test_without_dot_the_page_gets_the_graph_unlaid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    automaton.layout.cache_clear()
    part = payload.window(PAIR.header)
    assert part["svg"] is None
    assert "q0 -> q1" in part["dot"]


def test_a_fresh_interpreter_draws_every_picture_of_a_saved_trace_without_torch(
    tmp_path: Path,
) -> None:
    saved = tmp_path / "run.trace"
    trace_file.save(HOSTILE_RUN, saved)
    script = """
import json, sys
from pathlib import Path
from engine import trace_file
from viz import payload
run = trace_file.load(Path(sys.argv[1]))
parts = [payload.header(run.header), payload.steps(run.header, run.steps, 0),
         payload.detail(run.header, run.steps, 0), payload.window(run.header)]
print(sum(len(json.dumps(part, allow_nan=False)) for part in parts))
loaded = {"torch", "numba", "scipy", "gradio", "transformers"} & set(sys.modules)
sys.exit(f"loaded {loaded}" if loaded else 0)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(saved)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 1000
