"""Trees of Lark's grammar -> patterns, and linear recursion solved as equations."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lark import Tree
from lark.grammar import NonTerminal, Terminal
from lark.load_grammar import eval_escaping

from engine.constraints import regex
from engine.errors import NotRegularError, PatternSyntaxError, Place
from engine.pattern import (
    EMPTY,
    Atomic,
    Chars,
    Intersection,
    Origin,
    Pattern,
    Repeat,
    Union,
    alternatives,
    looks,
    moved,
    nodes,
    nullable,
    sees_only_itself,
    sequence,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.constraints.grammar.source import Grammar

NOTHING = Union(())
_COUNTS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


@dataclass
class Terminals:
    """Writes terminals as patterns; in a rule each is preceded by what is ignored."""

    grammar: Grammar
    _known: dict[str, Pattern] = field(default_factory=dict)

    def ignored(self) -> Pattern:
        """Return what may stand between terminals."""
        names = self.grammar.ignored
        if not names:
            return EMPTY
        place = self.grammar.place(names[0])
        return Repeat(alternatives([self.token(Terminal(n)) for n in names]), 0, None, Origin(place.start, place.stop))

    def token(self, tree: Any) -> Pattern:
        """Return the pattern of a terminal that stands in a rule.

        A lazy quantifier makes it end as soon as it can: of its texts those remain that its regex matches as a whole
        when nothing stands behind, as the strings in quotes that have no quote inside.
        """
        key = tree.name if isinstance(tree, Terminal) else str(id(tree))
        if key not in self._known:
            pattern = self.pattern(tree)
            origin = self.grammar.places.get(key, Origin(0, 0))
            repeats = [node for node in nodes(pattern) if isinstance(node, Repeat)]
            own = sees_only_itself(pattern)
            if (
                own
                and any(not r.greedy for r in repeats)
                and not any(r.most != 1 and nullable(r.body) for r in repeats)
            ):
                pattern = Intersection((Atomic(pattern),), origin)
            elif own and looks(pattern):
                # A text of its own is made deterministic once, and what is around it needs no look-around.
                pattern = Intersection((pattern,), origin)
            self._known[key] = pattern
        return self._known[key]

    def pattern(self, tree: Any) -> Pattern:
        """Return the pattern of a tree without rules."""
        match tree:
            case Terminal(name=name):
                return self.pattern(self.grammar.terminals[name])
            case Tree(data="literal"):
                return self._literal(tree.children[0])
            case Tree(data="range"):
                low, high = tree.children
                first, last = self._text(low)[0], self._text(high)[0]
                return Chars(((ord(first), ord(last)),) if first <= last else (), self.grammar.origin(low))
            case _:
                return combined(tree, self.grammar, self.pattern)

    def _text(self, token: Any) -> str:
        """Return what a string token says, without quotes and flags."""
        escaped = eval_escaping(token[: token.rindex('"') + 1])  # type: ignore[no-untyped-call]
        return str(escaped[1:-1]).replace("\\\\", "\\")

    def _literal(self, token: Any) -> Pattern:
        origin = self.grammar.origin(token)
        if token.type == "REGEXP":
            stop = token.rindex("/")
            return self._regex(token[1:stop], token[stop + 1 :], origin, 1)
        text, flags = self._text(token), token[token.rindex('"') + 1 :]
        if flags:
            return self._regex(re.escape(text), flags, origin, None)
        exact = origin.stop - origin.start == len(text) + 2
        spans = [Origin(origin.start + n + 1, origin.start + n + 2) if exact else origin for n in range(len(text))]
        return sequence([Chars(((ord(c), ord(c)),), span) for c, span in zip(text, spans, strict=True)])

    def _regex(self, body: str, flags: str, origin: Origin, offset: int | None) -> Pattern:
        """Read a regular expression that stands `offset` behind the origin; None where it stands there escaped."""
        flags = "".join(dict.fromkeys(flags.replace("l", "")))
        prefix = f"(?{flags})" if flags else ""
        try:
            pattern, _ = regex.parse(prefix + body)
        except (PatternSyntaxError, NotRegularError) as error:
            place = Place(self.grammar.text, origin.start, origin.stop)
            raise type(error)(f"In the terminal's regex {body!r}: {error.problem}", error.remedy, place) from error
        if offset is None or origin.stop - origin.start < len(body):
            return moved(pattern, lambda _: origin)
        shift = origin.start + offset - len(prefix)
        return moved(pattern, lambda o: Origin(o.start + shift, o.stop + shift) if o.stop else o)


def combined(tree: Any, grammar: Grammar, part: Callable[[Any], Pattern]) -> Pattern:
    """Return the pattern of a tree that puts others together; `part` reads those."""
    match tree:
        case Tree(data="expansions"):
            return alternatives([part(child) for child in tree.children])
        case Tree(data="expansion"):
            return sequence([part(child) for child in tree.children])
        case Tree(data="value" | "alias"):
            return part(tree.children[0])
        case Tree(data="maybe"):
            return Union((part(tree.children[0]), EMPTY))
        case Tree(data="expr"):
            least, most, origin = counts(tree, grammar)
            return Repeat(part(tree.children[0]), least, most, origin)
    raise AssertionError(tree)


def counts(tree: Any, grammar: Grammar) -> tuple[int, int | None, Origin]:
    """Return how often an `expr` repeats its item, and where that is written."""
    operator, *numbers = tree.children[1:]
    origin = grammar.origin(operator)
    if not numbers:
        return *_COUNTS[str(operator)], origin
    return int(numbers[0]), int(numbers[-1]), Origin(origin.start, max(grammar.origin(numbers[-1]).stop, origin.stop))


class NotLinearError(Exception):
    """A recursive rule stands elsewhere than at the one end."""


Equation = dict[str | None, Pattern]
"""A sum of patterns, each behind (or in front of) a recursive rule; None: without one."""


@dataclass
class Linear:
    """Recursion at one end only, which is regular: solved exactly, by elimination.

    Attributes:
        right: whether recursive rules stand last in their alternatives, otherwise first.
        names: the recursive rules.
        part: reads what isn't recursive.
    """

    grammar: Grammar
    right: bool
    names: frozenset[str]
    part: Callable[[Any], Pattern]

    def solve(self) -> dict[str, Pattern]:
        """Return the pattern of each rule.

        Raises:
            NotLinearError: a rule is recursive in another way.
        """
        equations = {name: self.equation(self.grammar.rules[name]) for name in sorted(self.names)}
        for name, equation in equations.items():
            again = equation.pop(name, None)
            if again is not None:
                place = self.grammar.place(name)
                loop = Repeat(again, 0, None, Origin(place.start, place.stop))
                for key in equation:
                    equation[key] = self._chained(loop, equation[key])
            for other in equations.values():
                before = other.pop(name, None)
                if before is not None:
                    for key, pattern in equation.items():
                        _add(other, key, self._chained(before, pattern))
        return {name: equation.get(None, NOTHING) for name, equation in equations.items()}

    def equation(self, tree: Any) -> Equation:
        """Write a tree as a sum."""
        match tree:
            case NonTerminal(name=name) if name in self.names:
                return {name: EMPTY}
            case Tree(data="value" | "alias"):
                return self.equation(tree.children[0])
            case Tree(data="expansions" | "maybe"):
                total: Equation = {}
                for child in tree.children:
                    for key, pattern in self.equation(child).items():
                        _add(total, key, pattern)
                if tree.data == "maybe":
                    _add(total, None, EMPTY)
                return total
            case Tree(data="expansion"):
                return self._sequence(tree.children[::-1] if self.right else tree.children)
            case Tree(data="expr"):
                return self._repeat(tree)
        return {None: self.part(tree)}

    def _sequence(self, items: list[Any]) -> Equation:
        """Multiply out, beginning at the end where recursion may stand."""
        total: Equation | None = None
        for item in items:
            equation = self.equation(item)
            if total is None:
                total = equation
            elif equation.keys() == {None}:
                total = {key: self._chained(equation[None], pattern) for key, pattern in total.items()}
            else:
                raise NotLinearError
        return {None: EMPTY} if total is None else total

    def _repeat(self, tree: Tree[Any]) -> Equation:
        equation = self.equation(tree.children[0])
        least, most, origin = counts(tree, self.grammar)
        if equation.keys() <= {None}:
            return {None: Repeat(equation.get(None, NOTHING), least, most, origin)}
        if (least, most) != (0, 1):
            raise NotLinearError
        _add(equation, None, EMPTY)
        return equation

    def _chained(self, outer: Pattern, inner: Pattern) -> Pattern:
        """Put `outer` on the side that is away from recursion."""
        parts = [p for p in ((outer, inner) if self.right else (inner, outer)) if p != EMPTY]
        return sequence(parts) if parts else EMPTY


def _add(total: Equation, key: str | None, pattern: Pattern) -> None:
    total[key] = Union((total[key], pattern)) if key in total else pattern
