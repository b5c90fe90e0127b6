"""Groups of states: a partition at every level, by the source first; literals as one; never more than can be drawn."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import large
import numpy as np
import pytest
import synthetic

from engine import constraints
from engine.constraints.json_schema import document
from engine.trace import Header
from engine.vocabulary import Vocabulary
from viz import automaton, graph, groups, offline, outline, payload
from viz.automaton import Picture
from viz.groups import Atlas

SUITE = Path(__file__).parent / "data" / "jsonschema" / "suite_2020_12.jsonl"
WIDE = synthetic.trace(synthetic.ladder(40), 48, 12).header
SOURCES: dict[str, tuple[str, str | tuple[str, ...]]] = {
    "objects": ("json_schema", large.schema(10, 80)),
    "many": ("json_schema", large.schema(70, 4)),
    "one place": ("regex", r"[a-z]{0,20000}"),
    "hundreds of groups": ("regex", "".join(f"(w{n}-[a-z]{{100}})" for n in range(200))),
    "a loop": ("regex", "(" + "".join(chr(97 + n % 26) for n in range(3000)) + ")*"),
    "loops": ("regex", "-".join("(?:ab|c){2}(?:ab*c)*" * 9 for _ in range(9))),
    "choices": ("choices", tuple(f"the choice {n} of hundreds" for n in range(300))),
    "grammar": ("grammar", "start: NAME (SEP NAME)~0..40\nNAME: /[a-z]{1,9}/\nSEP: /, ?/\n"),
}


@cache
def atlas(name: str) -> Atlas:
    return automaton.atlas(large.header(*SOURCES[name]))


CASES = pytest.mark.parametrize("name", SOURCES)


def pictures(found: Atlas, most: int = 60) -> Iterator[Picture]:
    """Some pictures that lead down from the whole, the largest groups first."""
    waiting: list[tuple[int, ...]] = [()]
    for _ in range(most):
        if not waiting:
            return
        picture = automaton.opened(found, waiting.pop(0))
        yield picture
        inside = [box for box in picture.boxes if box.kind == "group"]
        waiting += [box.path for box in sorted(inside, key=lambda box: -box.states) if box.path is not None]


@CASES
def test_every_state_is_in_exactly_one_group_and_no_picture_is_larger_than_can_be_drawn(name: str) -> None:
    found = atlas(name)
    for picture in pictures(found):
        opened = picture.trail[-1]
        inside = [n for n, box in enumerate(picture.boxes) if box.kind != "outside"]
        np.testing.assert_array_equal(np.flatnonzero(np.isin(picture.box, inside)), opened.states)
        sizes = np.bincount(picture.box[picture.box >= 0], minlength=len(picture.boxes))
        assert sizes.tolist() == [box.states for box in picture.boxes]
        assert len(inside) <= (groups.GROUPS if picture.level == "groups" else groups.WINDOW_STATES)
        assert len(picture.boxes) - len(inside) <= automaton.NEIGHBOURS
        if picture.level == "groups":
            assert len(inside) > 1
            assert all(box.path is not None and box.states < opened.states.size for box in picture.boxes[: len(inside)])
        assert len({box.id for box in picture.boxes}) == len(picture.boxes)


@CASES
def test_the_class_edges_between_groups_and_inside_them_add_up_to_all(name: str) -> None:
    found = atlas(name)
    picture = automaton.opened(found, ())
    total = sum(int(found.graph.classes[edges].sum()) for _, _, edges in picture.arrows)
    assert total == int(found.graph.classes.sum())
    source, target = picture.box[found.graph.source], picture.box[found.graph.target]
    for a, b, edges in picture.arrows:
        np.testing.assert_array_equal(np.sort(edges), np.flatnonzero((source == a) & (target == b)))


def test_class_edges_are_those_of_the_automaton() -> None:
    header = large.header("regex", r"([a-f]x|[c-h]y){1,9}")
    classes = graph.of_tokens(header).classes
    assert int(classes.sum()) == header.automaton.class_source.size


@CASES
def test_the_way_to_a_state_leads_through_groups_that_hold_it_to_a_picture_that_shows_it(name: str) -> None:
    found = atlas(name)
    for state in (found.graph.start, found.graph.states // 3, found.graph.states - 1):
        path = automaton.path_to(found, state)
        trail = found.trail(path)
        assert len(trail) == len(path) + 1
        assert all(state in group.states for group in trail)
        picture = automaton.opened(found, path)
        assert picture.level == "chains"
        assert picture.boxes[picture.box[state]].kind in ("state", "chain")


def test_groups_of_a_schema_are_named_by_pointers_and_hold_what_comes_from_there() -> None:
    found = atlas("objects")
    text = str(SOURCES["objects"][1])
    read = document.read(text)
    seen = set()
    for picture in pictures(found, 30):
        for box in picture.boxes:
            if box.kind != "group" or not box.name or box.note:
                continue
            whole = read.place(box.name)
            assert box.span == (whole.start, whole.stop), box.name
            states = np.flatnonzero(picture.box == picture.boxes.index(box))
            for q in states.tolist():
                assert all(whole.start <= a and b <= whole.stop for a, b in found.graph.origins[q])
            seen.add(box.name)
    assert {"/properties/field_3", "/properties/field_9"} <= seen


def test_a_loop_is_kept_in_one_piece_where_it_fits() -> None:
    import networkx

    found = atlas("loops")
    loops = [sorted(loop) for loop in networkx.strongly_connected_components(found.graph.network) if len(loop) > 1]
    assert loops
    kept = 0
    for picture in pictures(found):
        if picture.level != "groups" or picture.trail[-1].sections:
            continue
        states = picture.trail[-1].states
        target = -(-states.size // max(2, -(-states.size // groups.WINDOW_STATES)))
        for loop in loops:
            inside = np.intersect1d(loop, states)
            if 1 < inside.size <= target:
                assert len(set(picture.box[inside].tolist())) == 1
                kept += 1
    assert kept


def texts_between(header: Header, first: int, last: int, inside: set[int]) -> set[bytes]:
    """What each path from one state to another writes that stays inside, by walking over single tokens."""
    table, vocabulary = header.automaton, header.vocabulary
    found: set[bytes] = set()
    waiting = [(first, b"")]
    while waiting:
        state, text = waiting.pop()
        if state == last:
            found.add(text)
            continue
        for v in range(vocabulary.size):
            to = table.move(state, v)
            if to in inside and to != state:
                waiting.append((to, text + (vocabulary.written(v) or b"?")))
    return found


def meant(text: str) -> str:
    """A chain's text as a regex: sets stand in brackets, blanks are signs."""
    words = re.split(r" ?\[([^\]]*)\](?:×(\d+))? ?", text.replace("␣", "\0"))
    parts = [re.escape(words[0].replace("\0", " "))]
    for members, times, literal in zip(words[1::3], words[2::3], words[3::3], strict=True):
        parts.append(
            f"(?:{'|'.join(map(re.escape, members.split(' ')))}){{{times or 1}}}"
            if "–" not in members
            else f"[{members.replace('–', '-')}]{{{times or 1}}}"
        )
        parts.append(re.escape(literal.replace("\0", " ")))
    return "".join(parts)


@pytest.mark.parametrize(
    ("source", "literals"),
    [
        (r'\{"name": "(alpha|beta)", "fields": (1|22)\}', {'"name": ', '": ', "lp"}),
        (r"(x|yy)phalanx(a|b)alphabet", set()),
        (r"fieldname|fieldnone", set()),
        (r"[ab]namename[ab]", set()),
        (r"(abcdef)*g", set()),
        (r"(acx|bdy)zzz", {"zzz"}),
    ],
)
def test_a_chain_writes_the_one_text_that_all_ways_through_it_write(source: str, literals: set[str]) -> None:
    header = large.header("regex", source)
    drawn = graph.of_tokens(header)
    found = groups.chains(drawn, np.arange(drawn.states))
    assert sorted(q for chain in found for q in chain.states) == list(range(drawn.states))
    longer = [chain for chain in found if len(chain.states) > 1]
    assert longer
    for chain in longer:
        ways = texts_between(header, chain.states[0], chain.states[-1], set(chain.states))
        assert all(re.fullmatch(meant(chain.text), way.decode()) for way in ways), (chain.text, ways)
        assert len(ways) == 1 or "[" in chain.text
        # Whatever comes in on the way has just written what the chain has there.
        for r in chain.states[1:]:
            entering = drawn.entering(r).tolist()
            ends = {text[-1:] for e in entering for text in drawn.texts(e) or [b"?"]}
            assert len(ends) == 1 or len(entering) == 1, (chain.text, r)
    assert {text for text in literals if not any(text in chain.text.replace("␣", " ") for chain in longer)} == set()


def test_a_chain_ends_where_the_text_may_end() -> None:
    endless = Vocabulary(large.BYTES.token_bytes[:256], (), 256)
    drawn = graph.of_tokens(large.header("regex", r"abc(def)?", vocabulary=endless))
    found = groups.chains(drawn, np.arange(drawn.states))
    assert [chain.text for chain in found if len(chain.states) > 1] == ["bc", "ef"]
    assert not any(drawn.accepting[q] for chain in found for q in chain.states[:-1])


def test_a_choice_is_never_hidden_in_a_chain() -> None:
    header = large.header("regex", r"aaaa(b|c)aaaa|dd?e")
    drawn = graph.of_tokens(header)
    for chain in groups.chains(drawn, np.arange(drawn.states)):
        for q in chain.states[:-1]:
            after = {header.automaton.move(q, v) for v in range(256)} - {-1}
            assert len(after) == 1


def test_sets_that_follow_each_other_are_counted_in_a_chain() -> None:
    header = large.header("regex", r"x[0-9]{4}-[0-9]{2}y")
    drawn = graph.of_tokens(header)
    texts = [chain.text for chain in groups.chains(drawn, np.arange(drawn.states))]
    assert any("[0–9]×4 - [0–9]×2" in text for text in texts), texts


@pytest.mark.parametrize(
    ("kind", "source"), [(kind.name, kind.example) for kind in constraints.KINDS.values()], ids=list(constraints.KINDS)
)
def test_an_outline_has_parts_that_lie_inside_each_other_in_order(kind: str, source: str) -> None:
    whole = outline.of_source(kind, tuple(source.splitlines()) if kind == "choices" else source)
    assert (whole.start, whole.stop) == (0, len(source))
    assert bool(whole.parts) == (kind != "regex"), "each example but the regex has parts"
    waiting = [whole]
    while waiting:
        section = waiting.pop()
        edges = [section.start, *(at for part in section.parts for at in (part.start, part.stop)), section.stop]
        assert edges == sorted(edges)
        waiting += section.parts


def test_pointers_and_spans_of_an_outline_are_those_that_the_compiler_reads() -> None:
    checked = 0
    for line in SUITE.read_text(encoding="utf-8").strip().split("\n"):
        text = json.dumps(json.loads(line)["schema"], indent=1, ensure_ascii=False)
        if not text.startswith("{"):
            continue
        read = document.read(text)
        waiting = list(outline.of_source("json_schema", text).parts)
        while waiting:
            section = waiting.pop()
            place = read.place(section.name)
            assert (section.start, section.stop) == (place.start, place.stop)
            waiting += section.parts
            checked += 1
    assert checked > 500


@pytest.mark.parametrize("source", ["", "{", '{"a": [1, 2}', '{"a" 1}', "]", '{"\\ud800": {}}', "[" * 5000, "nonsense"])
def test_a_source_that_is_no_json_has_an_outline_all_the_same(source: str) -> None:
    for kind in ("json_schema", "tools", "all", "sql", "grammar", "choices", "regex", "unheard of"):
        whole = outline.of_source(kind, source)
        assert (whole.start, whole.stop) == (0, len(source))


def test_alternatives_and_groups_of_a_regex_are_parts() -> None:
    source = r"a(b|[)(]\)c)+|(?:d(e))"
    parts = outline.of_source("regex", source).parts
    assert [part.name for part in parts] == [r"a(b|[)(]\)c)+", "(?:d(e))"] == [source[p.start : p.stop] for p in parts]
    assert [part.name for part in parts[0].parts] == [r"(b|[)(]\)c)"]
    assert [part.name for part in parts[0].parts[0].parts] == ["b", r"[)(]\)c"]


def test_a_large_automaton_opens_with_little_to_send() -> None:
    header = large.twenty_thousand()
    assert header.automaton.states > 19_000
    part, words = payload.window(header), payload.header(header)
    assert part["level"] == "groups"
    assert len(json.dumps({**part, "svg": None})) < 60_000
    assert len(json.dumps(words)) < 100_000
    arrays = payload.unpack(words)
    for q in range(0, header.automaton.states, 97):
        told = [tuple(span) for span in words["origins"][arrays["origin"][q]]]
        assert tuple(told) == header.automaton.state_spans[q]


def test_a_small_automaton_is_shown_whole() -> None:
    header = large.header("regex", "(ab|cd)+[0-9]{3}")
    part = payload.window(header, [3, 1], state=None)
    assert part["level"] == "whole"
    assert not part["trail"]
    assert [box["kind"] for box in part["boxes"]] == ["state"] * header.automaton.states


@pytest.mark.parametrize("path", [[99], [0, 99], [0] * 30, [-1]])
def test_a_group_that_is_not_there_shows_the_last_that_is(path: list[int]) -> None:
    part = payload.window(WIDE, path)
    assert part["boxes"]
    assert len(part["trail"]) <= len(path)


def test_a_rendered_run_takes_the_groups_along_that_its_draws_pass_most() -> None:
    run = large.trace(large.twenty_thousand())
    page = offline.html(run, Path(offline.__file__).parents[1] / "app" / "client")
    runs = json.loads(page.partition('<script type="application/json" id="runs">')[2].partition("</script>")[0])
    pictures = runs["parts"]["run"]["windows"]
    assert '{"group":""}' in pictures
    assert 1 < len(pictures) <= offline.PICTURES
    found = automaton.atlas(run.header)
    here = automaton.path_to(found, int(run.steps[-1].path[len(run.steps[-1].path) // 2]))
    first = json.dumps({"group": str(here[0])}, separators=(",", ":"))
    assert pictures[first]["trail"][1]["states"] == found.trail(here)[1].states.size
