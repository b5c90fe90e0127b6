"""Settings that no run can have, and the nearest canvas, blocks and steps that go together."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine import preparation
from engine.diagnosis.lengths import set_length
from engine.errors import ConfigError, Finding

if TYPE_CHECKING:
    from engine.trace import Config

Changes = dict[str, Any]


def findings(config: Config) -> list[Finding]:
    """Say what a run would refuse before it looks at its constraint."""
    try:
        preparation.check(config)
    except ConfigError as error:
        return [Finding("settings", "error", None, error.problem, (error.remedy,))]
    return []


def remedies(config: Config) -> list[tuple[str, Changes]]:
    """Return changes to blocks, steps or length after which they may divide each other, untried."""
    length, block, steps = config.length, config.block_length, config.steps
    if not (1 <= length <= preparation.MAX_LENGTH and block >= 1 and steps >= 1):
        return []
    if length % block:
        below = max((d for d in range(1, min(block, length)) if length % d == 0), default=length)
        multiple = max(round(length / block), 1) * block
        divided = [_blocks(config, b) for b in dict.fromkeys((length, below))]
        return [*divided, (f"Set the length to {multiple}", set_length(config, multiple))]
    blocks = length // block
    less = steps // blocks * blocks
    counts = [(f"Set the steps to {n}", {"steps": n}) for n in (less, less + blocks)]
    return [*counts, _blocks(config, length)] if steps % blocks else []


def _blocks(config: Config, block: int) -> tuple[str, Changes]:
    """Return the change to blocks of another length, with as many steps as they can share."""
    steps = set_length(replace(config, block_length=block), config.length)["steps"]
    changes = {"block_length": block} if steps == config.steps else {"block_length": block, "steps": steps}
    shared = f" and the steps to {steps}" if "steps" in changes else ""
    return f"Set the block length to {block}{shared}", changes
