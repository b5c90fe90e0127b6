"""Whether a text satisfies a constraint, by the standard tools of each language and never by our automata."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.trace import Config


def satisfies(config: Config, text: str) -> bool:
    """Tell whether a text satisfies a run's constraint: by Python's own `re`, or by comparison with the choices."""
    if isinstance(config.source, str):
        return re.fullmatch(config.source, text) is not None
    return text in (config.source or ())
