"""Findings that say the same of several places, told once."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from engine.diagnosis.subject import named
from engine.errors import Edit, Finding, together

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_POINTER = re.compile(r"/[^\s,:;'\"]*")


def merged(found: Iterable[Finding]) -> list[Finding]:
    """Tell findings that differ in their place alone as one: at the deepest place, the first of those, with the others.

    A change of it is made at all its places at once.
    """
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in found:
        groups.setdefault((finding.code, finding.severity, _shape(finding)), []).append(finding)
    return [_as_one(group) if len(group) > 1 else group[0] for group in groups.values()]


def _shape(finding: Finding) -> str:
    """Return a message without its places; one that has no place is told by itself."""
    if finding.where is None or finding.where.pointer is None:
        return finding.message
    return _POINTER.sub("/", finding.message.replace(named(finding.where), "/"))


def _as_one(group: Sequence[Finding]) -> Finding:
    def depth(finding: Finding) -> tuple[int, int]:
        where = finding.where
        return (where.pointer.count("/") if where.pointer else 0, -where.start) if where else (0, 0)

    first = max(group, key=depth)
    others = [finding for finding in group if finding is not first]
    places = sorted((f.where for f in others if f.where), key=lambda place: place.start)
    message = f"{first.message.removesuffix('.')}; the same holds at {len(others)} more place{'s' * (len(others) > 1)}."
    return replace(
        first,
        message=message,
        related=(*first.related, *places),
        edits=_of_all(first.where.source if first.where else "", group),
        evidence={**first.evidence, "same_at": [place.pointer for place in places]},
    )


def _of_all(source: str, group: Sequence[Finding]) -> tuple[Edit, ...]:
    """Return the edits of all of them made together, as far as each has one of the kind and they don't overlap."""
    out = []
    for alike in zip(*(finding.edits for finding in group), strict=False):
        ordered = sorted(alike, key=lambda edit: (edit.start, edit.stop))
        if any(a.stop > b.start for a, b in pairwise(ordered)):
            continue
        out.append(together(source, ordered, f"{alike[0].label}, and so at {len(alike) - 1} more"))
    return tuple(out)
