"""Trace + focus -> Plotly figures, for notebooks and papers; the page draws the same numbers itself, faster.

Plotly reads `<b>` and `&amp;` in text as markup: tokens are cut and escaped, and never enter a hover template.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from viz import labels

if TYPE_CHECKING:
    from engine.trace import Trace

CONSTRAINED = "#005FA3"
UNCONSTRAINED = "#B34700"
QUANTITIES = {
    "confidence_mar": ("Mar: confidence under the constraint", (0.0, 1.0)),
    "confidence_mf": ("Mf: confidence of the model alone", (0.0, 1.0)),
    "entropy_posterior": ("entropy of the posterior (nats)", None),
    "entropy_mean_field": ("entropy of the mean field (nats)", None),
    "kl": ("KL(q ‖ p) (nats)", None),
    "forbidden_mass": ("forbidden mass", (0.0, 1.0)),
}


def loom(trace: Trace, quantity: str = "confidence_mar") -> go.Figure:
    """Draw a quantity over step × position, with a mark where each position was committed.

    Args:
        trace: with at least one step.
        quantity: a key of `QUANTITIES`.
    """
    title, limits = QUANTITIES[quantity]
    values = trace.column(quantity).astype(float)
    # What isn't defined at a position, or isn't finite, is a gap and not a colour.
    values[~np.isfinite(values)] = np.nan
    steps, positions = np.nonzero(trace.column("committed"))
    figure = go.Figure(
        [
            go.Heatmap(
                z=values,
                colorscale="Cividis",
                zmin=None if limits is None else limits[0],
                zmax=None if limits is None else limits[1],
                colorbar={"title": title},
                hovertemplate="step %{y}, position %{x}: %{z:.3g}<extra></extra>",
            ),
            go.Scatter(
                x=positions,
                y=steps,
                mode="markers",
                marker={"symbol": "square-open", "size": 9, "color": "white", "line": {"width": 2}},
                name="committed",
                hoverinfo="skip",
            ),
        ]
    )
    figure.update_layout(xaxis_title="position", yaxis_title="step", yaxis_autorange="reversed", showlegend=False)
    return figure


def log_partition(*traces: Trace) -> go.Figure:
    """Draw log Z over the steps of one or more runs; a step at which nothing is accepted any more is a gap."""
    figure = go.Figure()
    for trace in traces:
        config = trace.header.config
        values = trace.column("log_partition").astype(float)
        figure.add_scatter(
            x=np.arange(values.size),
            y=np.where(np.isfinite(values), values, np.nan),
            mode="lines+markers",
            name=f"{config.sampler}, {config.confidence}, seed {config.seed}",
        )
    figure.update_layout(xaxis_title="step", yaxis_title="log Z (nats)")
    return figure


def position(trace: Trace, step: int, index: int) -> go.Figure:
    """Draw the shown tokens of one position: probability under the mean field `p` and under the posterior `q`."""
    record = trace.steps[step]
    seen: dict[int, tuple[float, float]] = {}
    for row in (1, 0):
        for token_id, log_p, log_q in zip(
            record.top_ids[index, row].tolist(),
            record.top_log_mean_field[index, row].tolist(),
            record.top_log_posterior[index, row].tolist(),
            strict=True,
        ):
            if token_id >= 0:
                seen[token_id] = (float(np.exp(log_p)), float(np.exp(log_q)))
    order = sorted(seen, key=lambda v: (-seen[v][1], -seen[v][0]))
    texts = [_text(labels.visible(labels.token(trace.header.vocabulary, v), 24)) for v in order]
    rows = list(range(len(order)))
    figure = go.Figure(
        [
            go.Scatter(
                x=[seen[v][which] for v in order],
                y=rows,
                mode="markers",
                name=name,
                marker={"symbol": symbol, "color": colour, "size": 10},
                hovertemplate="%{x:.3g}<extra></extra>",
            )
            for which, name, symbol, colour in (
                (1, "q, constrained", "circle", CONSTRAINED),
                (0, "p, the model", "diamond-open", UNCONSTRAINED),
            )
        ]
    )
    figure.update_layout(xaxis_title="probability", xaxis_range=[0, 1], yaxis_autorange="reversed")
    figure.update_yaxes(tickvals=rows, ticktext=texts)
    return figure


def _text(text: str) -> str:
    """Return text that Plotly shows as it is; cut first, since an escape must not be cut in half."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
