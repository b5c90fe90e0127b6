"""Text that the user wrote -> pattern with origins and findings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from engine import automaton
from engine.constraints import choices, regex
from engine.errors import ConfigError

if TYPE_CHECKING:
    from engine.automaton import ByteAutomaton
    from engine.errors import Finding
    from engine.pattern import Pattern

KINDS = ("regex", "choices")


@dataclass(frozen=True)
class Constraint:
    """A language, as the user wrote it.

    Attributes:
        kind: one of `KINDS`.
        source: what was written; a tuple of strings for `choices`.
        pattern: its syntax tree.
        findings: what the author should know.
    """

    kind: str
    source: str | tuple[str, ...]
    pattern: Pattern
    findings: tuple[Finding, ...]

    @property
    def text(self) -> str:
        """The source as one text, which origins point into."""
        return self.source if isinstance(self.source, str) else "\n".join(self.source)

    @cached_property
    def automaton(self) -> ByteAutomaton:
        """The byte automaton; raises `SizeError` over the state budget."""
        return automaton.compile(self.pattern, self.text)

    def accepts(self, text: str) -> bool:
        """Whether the whole text is in the language, no tokenizer involved."""
        try:
            return self.automaton.accepts(text.encode())
        except UnicodeEncodeError:
            return False  # a lone surrogate: no UTF-8 holds it


def read(kind: str, source: Any) -> Constraint:
    """Read a constraint.

    Args:
        kind: `regex` or `choices`.
        source: a regular expression in Python's syntax; or a sequence of strings, or lines of one string, one choice
            each.

    Raises:
        InputError: the kind is unknown, or the source can't be read; says where.
    """
    if kind == "regex" and isinstance(source, str):
        return Constraint(kind, source, *regex.parse(source))
    if kind == "choices":
        listed = tuple(source.splitlines() if isinstance(source, str) else source)
        return Constraint(kind, listed, *choices.parse(listed))
    raise ConfigError(
        f"There is no constraint kind {kind!r} with a source of type {type(source).__name__}.",
        f"Choose one of {', '.join(KINDS)}, with text as source.",
    )
