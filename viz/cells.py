"""One cell of the trellis as the page writes it down: messages, and their largest terms with the tokens of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from viz import automaton, payload

if TYPE_CHECKING:
    from engine.diagnosis.cells import Cell, Terms
    from engine.trace import Header

LISTED = 6
"""Terms of a message that are written down; how many there are, and the share of those, is always said."""


def plain(header: Header, cell: Cell) -> dict[str, Any]:
    """Return a cell as data for JSON, impossible as null.

    Returns:
        `log_forward`, `log_backward`, `log_partition`, `posterior`, and of `into` and `out` the `count` of terms and
        rows `[state, tokens, log weight, log message, log term]`.
    """
    numbers = {name: getattr(cell, name) for name in ("log_forward", "log_backward", "log_partition", "posterior")}
    found: dict[str, Any] = payload.plain(
        {**numbers, "into": _terms(header, cell.into), "out": _terms(header, cell.out)}
    )
    return found


def _terms(header: Header, terms: Terms) -> dict[str, Any]:
    graph = automaton.atlas(header).graph
    rows = [
        [
            int(terms.state[n]),
            graph.label([int(terms.edge[n])]),
            float(terms.log_weight[n]),
            float(terms.log_message[n]),
            float(terms.log_term[n]),
        ]
        for n in range(min(LISTED, terms.edge.size))
    ]
    return {"count": int(terms.edge.size), "rows": rows}
