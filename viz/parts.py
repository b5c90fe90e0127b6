"""The parts of a constraint's source that have a number, and a hue where they are few, in every panel.

A part is a node of the outline (`viz.outline`): the schema of a property, a rule, a line; of a regex a group, an
alternative, or a run of sets of characters between literals. The whole has no number. Parts are taken as deep in the
nesting as there are hues for them; of a regex, whose copies of a group share states, where there first are several.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from viz import outline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from viz.outline import Section

    Spans = tuple[tuple[int, int], ...]

HUES = 7
"""Parts that a hue tells apart; further ones have their number alone."""
MOST = 99
"""Numbers that fit into a badge."""
_HOLDERS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords whose members are schemas."""
_SET = re.compile(r"\[|\.|\\[dDwWsSpP]|\(\?")
_QUANTIFIER = re.compile(r"(?:[*+?]|\{\d*,?\d*\})*", re.ASCII)


@dataclass(frozen=True)
class Parts:
    """The numbered parts of a source.

    Attributes:
        sections: part `n` is `sections[n - 1]`, in the order of the source; an outer one comes before its inner ones.
        places: for each set of spans that was asked for, the numbers of the parts that it lies in, ascending.
    """

    sections: tuple[Section, ...]
    places: tuple[tuple[int, ...], ...]


def of_source(kind: str | None, source: str | tuple[str, ...] | None, origins: Sequence[Spans]) -> Parts:
    """Number the parts of a source that states come from.

    Args:
        kind: of the constraint.
        source: what was written.
        origins: distinct sets of spans that can be written next at a state.
    """
    text = "\n".join(source) if isinstance(source, tuple) else source or ""
    written = sorted({span for spans in origins for span in spans if span[1] > span[0]})
    whole = outline.of_source(kind, source)
    if kind == "regex":
        whole = _with_slots(whole, text, written, is_whole=True)
    elif kind in ("json_schema", "tools", "all"):
        whole = replace(whole, parts=tuple(_nodes(whole, text)))
    ways = {span: _way(whole, span) for span in written}
    depth = _depth(list(ways.values()), deep=kind != "regex")
    owners = {span: way[: depth + 1][-1] for span, way in ways.items() if depth and len(way) > 1}
    found = {id(section): section for section in owners.values()}
    sections = sorted(found.values(), key=lambda section: (section.start, -section.stop))
    numbers = {id(section): n for n, section in enumerate(sections, 1)}
    places = (tuple(sorted({numbers[id(owners[s])] for s in spans if s in owners})) for spans in origins)
    return Parts(tuple(sections), tuple(places))


def _depth(ways: Sequence[Sequence[Section]], deep: bool) -> int:
    """Return how deep parts are taken: where there is more than one, and `deep` as far as hues suffice; 0 for none."""
    deepest = max((len(way) for way in ways), default=1) - 1
    counts = {d: len({id(way[: d + 1][-1]) for way in ways if len(way) > 1}) for d in range(1, deepest + 1)}
    several = [d for d, count in counts.items() if 1 < count <= MOST]
    few = [d for d in several if counts[d] <= HUES]
    if several:
        return few[-1] if deep and few else several[0]
    return deepest if counts.get(deepest) == 1 else 0


def _way(section: Section, span: tuple[int, int]) -> list[Section]:
    """Return the sections that hold a span, the whole first."""
    way = [section]
    while True:
        at = bisect_right(way[-1].parts, span[0], key=lambda part: part.start) - 1
        if at < 0 or way[-1].parts[at].stop < span[1]:
            return way
        way.append(way[-1].parts[at])


def _nodes(section: Section, text: str, named: bool = False) -> list[Section]:
    """Return the schemas inside a JSON value; keywords with a plain value belong to the one that they stand in.

    Args:
        section: the value.
        text: the source.
        named: each member is a schema by itself, as those of `properties` are.
    """
    found: list[Section] = []
    for part in section.parts:
        word = part.name.rpartition("/")[2]
        holder = not named and (word in _HOLDERS or text[part.stop - 1] == "]")
        inner = _nodes(part, text, named=holder and word in _HOLDERS)
        if named or (text[part.stop - 1] == "}" and not holder):
            found.append(replace(part, parts=tuple(inner)))
        else:
            found += inner
    return found


def _with_slots(section: Section, text: str, written: list[tuple[int, int]], is_whole: bool = False) -> Section:
    """Return a part of a regex with its runs of sets of characters as parts beside its groups."""
    inner = [span for span in written if section.start <= span[0] and span[1] <= section.stop]
    groups = [_with_slots(part, text, inner) for part in section.parts]
    own = [span for span in inner if not any(g.start <= span[0] and span[1] <= g.stop for g in groups)]
    slots: list[Section] = []
    for start, stop in (span for span in own if _SET.match(text, span[0])):
        end = _QUANTIFIER.match(text, stop).end()  # type: ignore[union-attr]
        start = slots.pop().start if slots and slots[-1].stop == start else start
        slots.append(outline.Section(text[start:end], start, end))
    parts = sorted([*groups, *slots], key=lambda part: part.start)
    # A literal and one set are read as one: `2[0-3]`.
    return replace(section, parts=tuple(parts) if is_whole or len(parts) > 1 or groups else ())
