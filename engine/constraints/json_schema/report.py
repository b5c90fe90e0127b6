"""What a schema's reader has to tell: approximations with their direction, and the policies in force."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from engine.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.constraints.json_schema.document import Document
    from engine.errors import Edit


class InexactError(Exception):
    """Under `Report.exactly`, something could only be approximated."""

    def __init__(self, pointer: str, what: str) -> None:
        super().__init__(what)
        self.pointer = pointer
        self.what = what


class Report:
    """The findings of one schema.

    Attributes:
        document: that they point into.
        exact: whether an approximation is of no use at the moment, since what it is part of will be complemented.
    """

    def __init__(self, document: Document) -> None:
        self.document = document
        self.exact = False
        self._found: dict[tuple[str, str], Finding] = {}

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found, each place and kind once."""
        return tuple(self._found.values())

    @contextmanager
    def exactly(self) -> Iterator[None]:
        """Let approximations raise `InexactError`."""
        before, self.exact = self.exact, True
        try:
            yield
        finally:
            self.exact = before

    def approximated(
        self,
        code: str,
        pointer: str,
        message: str,
        *fixes: str,
        accepts: Literal["too much", "too little"] = "too much",
        edits: tuple[Edit, ...] = (),
    ) -> None:
        """Tell of a part that is not enforced as written.

        Raises:
            InexactError: under `exactly`.
        """
        if self.exact:
            raise InexactError(pointer, message)
        place = self.document.place(pointer)
        finding = Finding(code, "warning", place, message, fixes, accepts, edits)
        self._found.setdefault((code, pointer), finding)

    def told(
        self,
        code: str,
        pointer: str,
        message: str,
        *fixes: str,
        severity: Literal["info", "warning", "error"] = "info",
        edits: tuple[Edit, ...] = (),
    ) -> None:
        """Tell of something that its author should know, and that leaves the set of values as written."""
        if (code, pointer) not in self._found:
            place = self.document.place(pointer)
            self._found[code, pointer] = Finding(code, severity, place, message, fixes, edits=edits)

    def add(self, finding: Finding) -> None:
        """Add a finding made elsewhere."""
        pointer = finding.where.pointer if finding.where else None
        self._found.setdefault((finding.code, pointer or finding.message), finding)
