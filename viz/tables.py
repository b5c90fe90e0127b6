"""Rows of the papers' tables -> one SVG picture a task and temperature: accuracy against steps, a line an arm."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

WIDTH, HEIGHT = 400, 270
LEFT, RIGHT, TOP, BOTTOM = 40, 92, 14, 40
LINE = 13.0
"""Height of a label."""
STYLE = """
svg.tables { color-scheme: light dark; font: 12px system-ui, sans-serif; }
svg.tables text { fill: light-dark(#333, #ddd); }
svg.tables .grid { stroke: light-dark(#ddd, #444); }
svg.tables .arm { stroke: currentColor; fill: none; stroke-width: 1.6; }
svg.tables .mark { fill: currentColor; stroke: none; }
svg.tables .label { fill: currentColor; }
svg.tables [data-arm=independent] { color: light-dark(#A04000, #F0A35E); }
svg.tables [data-arm=local] { color: light-dark(#7A6A00, #D9C64A); }
svg.tables [data-arm=reject] { color: light-dark(#8A2D6B, #E38CC4); }
svg.tables [data-arm=lookahead] { color: light-dark(#555555, #B0B0B0); }
svg.tables [data-arm=map] { color: light-dark(#00705A, #4FC9A9); }
svg.tables [data-arm=Mf] { color: light-dark(#5B3FA8, #B7A1FF); }
svg.tables [data-arm=Mar] { color: light-dark(#005FA3, #6DB9F5); }
svg.tables [data-arm=Mar] .arm { stroke-width: 2.6; }
"""
"""Colours of both themes; the page includes the same text."""
MARKS = {
    "independent": "M-4-4L4 4M-4 4L4-4",
    "local": "M0-4.5L4.5 0L0 4.5L-4.5 0Z",
    "reject": "M-4 3.5L4 3.5L0-4.5Z",
    "lookahead": "M-4-3.5L4-3.5L0 4.5Z",
    "map": "M-4 0L4 0M0-4L0 4",
    "Mf": "M-3.5-3.5L3.5-3.5L3.5 3.5L-3.5 3.5Z",
    "Mar": "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0-4 0Z",
}
"""A shape an arm, so that no reader needs the colours."""


def chart(rows: Sequence[dict[str, Any]], title: str, style: str = STYLE) -> str:
    """Draw the share of right answers against the number of steps, on a logarithmic axis, with 95 % intervals.

    Args:
        rows: of one task and temperature: `arm`, `steps`, `right`, `right_low`, `right_high` and `count` of each cell.
        title: of the picture, for readers who don't see it.
        style: of the elements; empty where the page around it has it.
    """
    steps = sorted({row["steps"] for row in rows})
    arms = [arm for arm in MARKS if any(row["arm"] == arm for row in rows)]
    parts = list(_axes(steps))
    ends = {}
    for n, arm in enumerate(arms):
        points = sorted((row for row in rows if row["arm"] == arm), key=lambda row: int(row["steps"]))
        # Intervals of neighbours would cover each other: each arm stands a little beside the exact place.
        shift = 2.6 * (n - (len(arms) - 1) / 2)
        parts += [f'<g data-arm="{arm}">', *_line(arm, points, steps, shift), "</g>"]
        ends[arm] = _y(points[-1]["right"])
    parts += [
        f'<text class="label" data-arm="{arm}" x="{WIDTH - RIGHT + 16}" y="{y + 4:.1f}">{arm}</text>'
        for arm, y in _apart(ends).items()
    ]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="tables" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
    sheet = f"<style>{style}</style>" if style else ""
    return "".join((head, f"<title>{escape(title)}</title>", sheet, *parts, "</svg>\n"))


def _x(steps: int, all_steps: Sequence[int]) -> float:
    low, high = math.log2(all_steps[0]), math.log2(all_steps[-1])
    share = (math.log2(steps) - low) / (high - low) if high > low else 0.5
    return LEFT + 14 + share * (WIDTH - LEFT - RIGHT - 28)


def _y(share: float) -> float:
    return TOP + (1 - share) * (HEIGHT - TOP - BOTTOM)


def _axes(steps: Sequence[int]) -> Iterator[str]:
    for share in (0, 0.25, 0.5, 0.75, 1):
        y = _y(share)
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT + 8}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{100 * share:g}</text>'
    for count in steps:
        yield f'<text x="{_x(count, steps):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{count}</text>'
    middle = (LEFT + WIDTH - RIGHT) / 2
    yield f'<text x="{middle:.1f}" y="{HEIGHT - 6}" text-anchor="middle">denoising steps</text>'
    centre = f"12 {_y(0.5):.1f}"
    yield f'<text text-anchor="middle" transform="translate({centre}) rotate(-90)">right, %</text>'


def _line(arm: str, points: Iterable[dict[str, Any]], steps: Sequence[int], shift: float) -> Iterator[str]:
    places = [(_x(row["steps"], steps) + shift, _y(row["right"]), row) for row in points]
    yield '<path class="arm" d="M{}"/>'.format("L".join(f"{x:.1f} {y:.1f}" for x, y, _ in places))
    kind = "arm" if arm in ("independent", "map") else "mark"
    for x, y, row in places:
        low, high = row["right_low"], row["right_high"]
        said = f"{arm}, {row['steps']} steps: {100 * row['right']:.1f} % right ({100 * low:.0f}–{100 * high:.0f})"
        yield f'<path class="arm" d="M{x:.1f} {_y(low):.1f}V{_y(high):.1f}"/>'
        yield f'<path class="{kind}" d="{MARKS[arm]}" transform="translate({x:.1f} {y:.1f})">'
        yield f"<title>{said}, n = {row['count']}</title></path>"


def _apart(ends: dict[str, float]) -> dict[str, float]:
    """Move the labels at the ends of the lines apart, so that none covers another."""
    arms = sorted(ends, key=lambda arm: ends[arm])
    places = [ends[arm] for arm in arms]
    for n in range(1, len(places)):
        places[n] = max(places[n], places[n - 1] + LINE)
    lowest = HEIGHT - BOTTOM + 2.0
    for n in reversed(range(len(places))):
        places[n] = min(places[n], lowest)
        lowest = places[n] - LINE
    return dict(zip(arms, places, strict=True))
