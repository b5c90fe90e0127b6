"""The constraint that is timed: a function call with five parameters, as a tool schema gives it.

Three free strings, an integer and a choice are among the commonest five-parameter signatures of the
Berkeley function calling leaderboard.
"""

from __future__ import annotations

STRING = r'"([^"\\\x00-\x1f]|\\(["\\/bfnrt]|u[0-9a-fA-F]{4}))*"'


def function_call(name: str = "search_flights") -> str:
    """Return a regex in the syntax that Python's `re`, outlines-core and we share."""
    return (
        rf'\{{"name": "{name}", "arguments": \{{'
        rf'"origin": {STRING}, '
        rf'"destination": {STRING}, '
        rf'"departure_date": {STRING}, '
        r'"passengers": (0|[1-9][0-9]*), '
        r'"cabin": "(economy|premium_economy|business|first)"\}\}'
    )
