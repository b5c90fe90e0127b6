"""A context-free grammar in Lark's syntax -> pattern with origins and findings.

The language is that of the rules: a text that some parse allows, however a lexer would cut it. Recursion at one end of
a rule is regular and read exactly; other recursion is cut at a depth, and that is said.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lark import Tree
from lark.grammar import NonTerminal, Terminal

from engine.constraints.grammar import source
from engine.constraints.grammar.expressions import NOTHING, Linear, NotLinearError, Terminals, combined
from engine.errors import ConfigError, Finding, Place
from engine.pattern import EMPTY, Concat, Origin, Pattern, Repeat, Union, sequence

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.constraints.grammar.source import Grammar

DEPTH = 4
"""How often a rule may stand inside itself, where its recursion isn't regular."""
_MOST_EQUATIONS = 12
"""Rules that are recursive together and are still solved as equations; elimination may double the pattern each time."""


def parse(text: str, depth: int = DEPTH) -> tuple[str, Pattern, tuple[Finding, ...]]:
    """Read a grammar; its rule `start` stands for the whole text.

    Args:
        text: in Lark's syntax, %import of Lark's own libraries included.
        depth: how often a rule may stand inside itself, where its recursion isn't regular.

    Returns:
        The text, the pattern, and what the author should know.

    Raises:
        PatternSyntaxError: it can't be read; says where.
        NotRegularError: it needs a program, another file, or a regex that isn't regular.
    """
    if depth < 1:
        raise ConfigError(f"A recursion depth of {depth} leaves nothing.", "Give 1 or more.")
    grammar = source.load(text)
    rules = _Rules(grammar, depth)
    pattern = sequence([rules.rule("start", depth), rules.terminals.ignored()])
    return text, pattern, (*rules.findings, *_notes(grammar, rules.seen))


@dataclass
class _Rules:
    """Writes rules as patterns.

    Attributes:
        depth: how often a rule may stand inside itself.
        seen: the rules that the text can come to.
        findings: a recursion that was cut.
    """

    grammar: Grammar
    depth: int
    seen: set[str] = field(default_factory=set)
    findings: list[Finding] = field(default_factory=list)
    _known: dict[tuple[str, int], Pattern] = field(default_factory=dict)
    _solved: dict[str, Pattern] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.terminals = Terminals(self.grammar)
        self._ignored = self.terminals.ignored()
        self._component, self._closing = _cycles(self.grammar)

    def rule(self, name: str, left: int) -> Pattern:
        """Return the pattern of a rule that may stand inside itself `left - 1` more times."""
        if name not in self._component:
            left = self.depth
        elif name not in self._solved and left == self.depth:
            self._solve(self._component[name])
        if name in self._solved:
            return self._solved[name]
        key = (name, left)
        if key not in self._known:
            self._known[key] = self._around_itself(name, left)
        self.seen.add(name)
        return self._known[key]

    def _solve(self, names: frozenset[str]) -> None:
        """Read rules that are recursive at one end only, exactly; leave others as they are."""
        if len(names) > _MOST_EQUATIONS:
            return
        for right in (True, False):
            try:
                self._solved |= Linear(self.grammar, right, names, lambda tree: self._part(tree, "", 0)).solve()
            except NotLinearError:
                continue
            self.seen |= names
            return

    def _around_itself(self, name: str, left: int) -> Pattern:
        """Read a rule: `X: X between X | X after | before X | other` is `before* other after*`, joined by `between`."""
        sorted_out = _ends(self.grammar.rules[name], name)
        read = {
            key: Union(tuple(sequence([self._part(i, name, left) for i in items]) for items in sorted_out[key]))
            for key in sorted_out
        }
        place = self.grammar.place(name)
        origin = Origin(place.start, place.stop)
        before, after = (
            Repeat(read[key], 0, None, origin) if read[key].parts else EMPTY for key in ("before", "after")
        )
        other = read["other"].parts[0] if len(read["other"].parts) == 1 else read["other"]
        once = sequence([part for part in (before, other, after) if part != EMPTY] or [EMPTY])
        if not read["between"].parts:
            return once
        return Concat((once, Repeat(Concat((read["between"], once)), 0, None, origin)))

    def _part(self, tree: Any, inside: str, left: int) -> Pattern:
        match tree:
            case NonTerminal(name=name):
                if (inside, name) in self._closing:
                    left -= 1
                    self._note_cut(name)
                elif self._component.get(inside) != self._component.get(name, ()):
                    left = self.depth
                return self.rule(name, left) if left else NOTHING
            case Terminal() | Tree(data="literal" | "range"):
                token = self.terminals.token(tree)
                return token if self._ignored == EMPTY else Concat((self._ignored, token))
        return combined(tree, self.grammar, lambda part: self._part(part, inside, left))

    def _note_cut(self, name: str) -> None:
        place = self.grammar.place(name)
        finding = Finding(
            "recursion-cut",
            "warning",
            place,
            f"The rule {name!r} stands inside itself; texts that do so more than {self.depth} deep are left out.",
            ("Raise the depth, or write the recursion at one end of the rule, or with '*'.",),
            accepts="too little",
            evidence={"depth": self.depth},
        )
        if finding not in self.findings:
            self.findings.append(finding)


def _ends(tree: Tree[Any], name: str) -> dict[str, list[list[Any]]]:
    """Sort the alternatives of a rule by whether they begin and end with the rule itself, and take it off there."""
    out: dict[str, list[list[Any]]] = {"between": [], "after": [], "before": [], "other": []}
    for items in _alternatives(tree):
        first, last = (len(items) > 1 and _is(items[end], name) for end in (0, -1))
        if len(items) == 1 and _is(items[0], name):
            continue
        if len(items) == 2 and first and last:  # X X: joined by nothing
            out["between"].append([])
            continue
        key = {(True, True): "between", (True, False): "after", (False, True): "before", (False, False): "other"}
        out[key[first, last]].append(items[first : len(items) - last])
    return out


def _alternatives(tree: Any) -> Iterable[list[Any]]:
    match tree:
        case Tree(data="expansions"):
            for child in tree.children:
                yield from _alternatives(child)
        case Tree(data="alias"):
            yield from _alternatives(tree.children[0])
        case Tree(data="expansion"):
            yield list(tree.children)
        case _:
            yield [tree]


def _is(tree: Any, name: str) -> bool:
    while isinstance(tree, Tree) and tree.data == "value":
        tree = tree.children[0]
    return isinstance(tree, NonTerminal) and tree.name == name


def _cycles(grammar: Grammar) -> tuple[dict[str, frozenset[str]], set[tuple[str, str]]]:
    """Find the rules that are recursive together, and the uses that close a circle.

    Recursion at the ends of a rule's own alternatives closes none: `_around_itself` reads it.
    """
    uses = {}
    for name, tree in grammar.rules.items():
        inner = [item for items in _ends(tree, name).values() for part in items for item in part]
        uses[name] = list(dict.fromkeys(s.name for item in inner for s in _symbols(item)))
    everything = {name: {s.name for s in _symbols(tree)} for name, tree in grammar.rules.items()}
    reach = {name: _reached(everything, name) for name in everything}
    component = {
        name: frozenset(other for other in reach[name] if name in reach[other]) for name in reach if name in reach[name]
    }
    return component, _closing(uses)


def _symbols(tree: Any) -> Iterable[NonTerminal]:
    if isinstance(tree, NonTerminal):
        yield tree
    elif isinstance(tree, Tree):
        for child in tree.children[: 1 if tree.data == "alias" else None]:
            yield from _symbols(child)


def _reached(uses: dict[str, set[str]], name: str) -> set[str]:
    found: set[str] = set()
    stack = list(uses[name])
    while stack:
        other = stack.pop()
        if other not in found:
            found.add(other)
            stack.extend(uses[other])
    return found


def _closing(uses: dict[str, list[str]]) -> set[tuple[str, str]]:
    """Search depth first from `start`; uses of a rule that is still open close a circle."""
    closing, done, open_rules = set(), set(), ["start"]
    stack = [iter(uses["start"])]
    while stack:
        for other in stack[-1]:
            if other in open_rules:
                closing.add((open_rules[-1], other))
            elif other not in done:
                open_rules.append(other)
                stack.append(iter(uses[other]))
                break
        else:
            stack.pop()
            done.add(open_rules.pop())
    return closing


def _notes(grammar: Grammar, seen: set[str]) -> Iterable[Finding]:
    """Tell what may surprise: priorities, rules without use, alternatives written twice, blanks without end."""
    for origin in source.priorities(grammar.text):
        message = "A priority chooses between parses of one text, not which texts are allowed: it has no effect."
        yield Finding("priority", "info", Place(grammar.text, origin.start, origin.stop), message)
    for name, tree in grammar.rules.items():
        if name not in seen and "{" not in name:
            message = f"The rule {name!r} is never used; nothing of it is written."
            yield Finding("unused-rule", "info", grammar.place(name), message)
        written = [str(items) for items in _alternatives(tree)]
        if len(set(written)) < len(written):
            message = f"The rule {name!r} has an alternative twice; the language is the same with one."
            yield Finding("duplicate-alternative", "info", grammar.place(name), message, ("Remove one of them.",))
    for name in grammar.ignored:
        place = grammar.place(name)
        message = "What is ignored may stand anywhere and be as long as it likes: a model can write blanks for ever."
        fix = "Remove %ignore, and write the blanks that you want into the rules."
        yield Finding("unbounded-blanks", "warning", place, message, (fix,))
