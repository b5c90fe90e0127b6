"""A grammar in Lark's syntax, parsed by Lark itself: trees of rules and terminals, and the places of names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from lark import Token, Tree
from lark.exceptions import GrammarError, LarkError
from lark.grammar import NonTerminal
from lark.load_grammar import GrammarBuilder

from engine.errors import NotRegularError, PatternSyntaxError, Place
from engine.pattern import Origin

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_DEFINITION = re.compile(
    r"^[ \t]*(?:%(?:override|extend)[ \t]+)?[?!]*(\w+)(?:\{[^}\n]*\})?(\.-?\d+)?[ \t]*:", re.MULTILINE
)
_IMPORT = re.compile(r"^[ \t]*%import\b[^\n]*", re.MULTILINE)
_POSITION = re.compile(r"line (\d+)(?:,)? column (\d+)")
_NAMED = re.compile(r"(?:Rule|Terminal|Template)s? '?(\w+)'?|'(\w+)'")

MOST_RULES = 1_000
"""Rules that templates may make."""


@dataclass(frozen=True)
class Grammar:
    """A grammar whose templates are instances and whose imports are read.

    Attributes:
        text: what the user wrote.
        rules: the tree of each rule.
        terminals: the tree of each terminal.
        ignored: names of the terminals that may stand between any two.
        places: where each name is defined or imported.
        imported: tokens that stand in another file, by identity, with the place of the import.
    """

    text: str
    rules: Mapping[str, Tree[Any]]
    terminals: Mapping[str, Tree[Any]]
    ignored: tuple[str, ...]
    places: Mapping[str, Origin]
    imported: Mapping[int, Origin]

    def origin(self, token: Any) -> Origin:
        """Return the place of a token."""
        if id(token) in self.imported or token.start_pos is None or token.end_pos is None:
            return self.imported.get(id(token), Origin(0, 0))
        return Origin(token.start_pos, token.end_pos)

    def place(self, name: str) -> Place:
        """Return where a name is defined, for a finding."""
        origin = self.places.get(name.partition("{")[0], Origin(0, 0))
        return Place(self.text, origin.start, origin.stop)


def load(text: str) -> Grammar:
    """Parse a grammar.

    Raises:
        PatternSyntaxError: it can't be parsed, or a name is not defined; says where.
        NotRegularError: it imports a file of its own, or has a terminal that only a program can read.
    """
    _refuse_imports(text)
    builder = GrammarBuilder()
    try:
        builder.load_grammar(text, "<grammar>")
        found = builder.build()
    except (LarkError, OSError, AssertionError) as error:
        _refuse(text, error)
    places = {m[1]: Origin(m.start(1), m.end(1)) for m in _DEFINITION.finditer(text)}
    own = set(places)
    terminals = {str(name): tree for name, (tree, _) in found.term_defs}
    places |= {name: _import_of(text, name) for name in terminals if name not in own and not name.startswith("__")}
    for name, tree in terminals.items():
        if tree is None:
            _refuse_declared(text, name)
    foreign = [(name, tree) for name, tree in terminals.items() if name in places and name not in own]
    foreign += [(str(r[0]), r[2]) for r in found.rule_defs if str(r[0]) not in own]
    imported = {id(token): _import_of(text, name) for name, tree in foreign for token in _tokens(tree)}
    try:
        rules = _instances({str(r[0]): ([str(p) for p in r[1]], r[2]) for r in found.rule_defs})
    except (GrammarError, RecursionError) as error:
        _refuse(text, error)
    if "start" not in rules:
        raise PatternSyntaxError(
            "The grammar has no rule named 'start'.",
            "Name the rule that stands for the whole text 'start'.",
            Place(text, 0, 0),
        )
    return Grammar(text, rules, terminals, tuple(map(str, found.ignore)), places, imported)


def priorities(text: str) -> Iterable[Origin]:
    """Yield the places of the priorities of rules and terminals."""
    return (Origin(*m.span(2)) for m in _DEFINITION.finditer(text) if m[2])


def _tokens(tree: Tree[Any]) -> Iterable[Token]:
    return tree.scan_values(lambda value: isinstance(value, Token))


def _import_of(text: str, name: str) -> Origin:
    """Return the %import that brings a name; where it only came along, the first."""
    lines = list(_IMPORT.finditer(text))
    found = next((m for m in lines if re.search(rf"\b{re.escape(name)}\b", m[0])), lines[0] if lines else None)
    return Origin(*found.span()) if found else Origin(0, 0)


def _refuse_imports(text: str) -> None:
    for found in _IMPORT.finditer(text):
        if re.match(r"\s*%import\s+\.", found[0]):
            raise NotRegularError(
                f"The grammar imports a file of its own: {found[0].strip()!r}.",
                "Copy the definitions into this grammar; only Lark's own libraries, as common, can be imported.",
                Place(text, found.start(), found.end()),
            )


def _refuse_declared(text: str, name: str) -> NoReturn:
    start = max(text.find(name), 0)
    raise NotRegularError(
        f"The terminal {name} is declared but not defined: only a program could read it.",
        f"Define it, as in {name}: /…/.",
        Place(text, start, start + len(name)),
    )


def _refuse(text: str, error: Exception) -> NoReturn:
    """Say in the user's words what Lark found, and where."""
    message = str(error).partition("\n")[0].strip().rstrip(".")
    place = _place(text, str(error), message) if isinstance(error, (GrammarError, LarkError)) else None
    where = f" at line {place.line}, column {place.column}" if place else ""
    remedy = "Correct it there; the syntax is Lark's: rules in small letters, terminals in capitals, 'name: …'."
    if place and "::=" in text:
        remedy = "Write Lark's syntax, not GBNF's: 'name: …' for 'name ::= …', [x] for an option, /[x]/ for a class."
    message = _POSITION.sub("", message).rstrip(" ,at") if place else message
    raise PatternSyntaxError(f"The grammar can't be read{where}: {message}.", remedy, place) from error


def _place(text: str, whole: str, message: str) -> Place | None:
    at = _POSITION.search(whole)
    if at:
        line, column = int(at[1]), int(at[2])
        start = min(sum(map(len, text.splitlines(keepends=True)[: line - 1])) + column - 1, len(text))
        return Place(text, start, min(start + 1, len(text)))
    for name in (n for groups in _NAMED.findall(message) for n in groups if n):
        found = list(re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text))
        if found:
            return Place(text, found[-1].start(), found[-1].end())
    return None


def _instances(definitions: dict[str, tuple[list[str], Tree[Any]]]) -> dict[str, Tree[Any]]:
    """Make a rule of every use of a template, its parameters replaced by what they are given."""
    rules: dict[str, Tree[Any]] = {}

    def used(tree: Any, given: Mapping[str, Any]) -> Any:
        if not isinstance(tree, Tree):
            return given.get(getattr(tree, "name", ""), tree)
        children = [used(child, given) for child in tree.children]
        if tree.data == "value" and isinstance(children[0], Tree) and children[0].data == "value":
            return children[0]  # what stood for a parameter
        if tree.data != "template_usage":
            return Tree(tree.data, children)
        template, *arguments = children
        instance = f"{template.name}{{{', '.join(map(_written, arguments))}}}"
        if instance not in rules:
            if len(rules) >= MOST_RULES or len(instance) > MOST_RULES:
                raise GrammarError(f"Template {template.name} makes more than {MOST_RULES:,} rules")
            rules[instance] = Tree("expansions", [])  # stands here while the body is read, which may use it again
            parameters, body = definitions[template.name]
            rules[instance] = used(body, dict(zip(parameters, arguments, strict=True)))
        return NonTerminal(instance)

    for name, (parameters, tree) in definitions.items():
        if not parameters:
            rules[name] = used(tree, {})
    return rules


def _written(tree: Any) -> str:
    return str(tree) if not isinstance(tree, Tree) else f"{tree.data}({','.join(map(_written, tree.children))})"
