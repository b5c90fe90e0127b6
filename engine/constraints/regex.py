"""Python's `re` syntax -> pattern with origins.

`re` itself is the reference and is used as one: it checks the syntax first, so the reader below only ever sees patterns
that Python accepts, and every leaf's set of characters is found by running that leaf over all code points. What this
module adds is the tree with its spans, and the reason where a construct is not regular.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import NoReturn

from engine.constraints.alternatives import Branch, shadowed
from engine.errors import Finding, NotRegularError, PatternSyntaxError, Place
from engine.pattern import (
    ANY,
    EMPTY,
    Atomic,
    Chars,
    Concat,
    Look,
    Origin,
    Pattern,
    Ranges,
    Repeat,
    Union,
    alternatives,
    nodes,
    nullable,
    sequence,
)

_ESCAPE = re.compile(
    r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|N\{[^}]+\}|0[0-7]{0,2}|[0-3][0-7]{2}|[1-9][0-9]?|.)",
    re.DOTALL,
)
_GROUP = re.compile(r"\(\?(?:P<(?P<name>\w+)>|(?P<on>[aiLmsux]*)(?:-(?P<off>[imsx]+))?:|(?P<look><?[=!]))")
_FLAGS = re.compile(r"\(\?[aiLmsux]+\)")
_BRACES = re.compile(r"\{(\d*)(,?)(\d*)\}")
_LEAF_FLAGS = int(re.IGNORECASE | re.DOTALL | re.ASCII)  # masks by the enum take longer than the rest of a leaf
_FLAG_OF = {
    "a": re.ASCII, "i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "u": re.UNICODE, "x": re.VERBOSE,
}  # fmt: skip

_EXPECTED = {
    "missing ), unterminated subpattern": "This group is never closed; write a ')' where it ends, or '\\(' for one.",
    "unbalanced parenthesis": "There is no group to close here; remove the ')', or write '\\)' for the character.",
    "unterminated character set": "This class is never closed; write a ']' where it ends, or '\\[' for the character.",
    "nothing to repeat": "A quantifier needs something before it to repeat; put it there, or escape the quantifier.",
    "multiple repeat": "Only one quantifier can follow an item; put the item into '(?:…)' first, or escape one.",
    "min repeat greater than max repeat": "Write the smaller number first, as in {2,5}.",
    "bad escape (end of pattern)": "A backslash needs a character after it; write '\\\\' for the backslash itself.",
    "bad character range": "Write the lower character first, or put a '-' that is meant as one first or last.",
    "bad escape": "There is no such escape; write the character without the backslash, or '\\\\' for a backslash.",
    "missing >, unterminated name": "Close the group's name with '>'.",
    "unknown extension": "Known groups are (?:…) (?P<name>…) (?=…) (?!…) (?<=…) (?<!…) (?i:…).",
    "look-behind requires fixed-width pattern": "Give every alternative in the look-behind one fixed length.",
    "global flags not at the start": "Move the flags to the start, or limit them to a group: (?i:…).",
    "incomplete escape": "Give the escape all its digits: \\xhh, \\uhhhh or \\Uhhhhhhhh.",
}


def parse(source: str, *, compare: bool = False) -> tuple[Pattern, tuple[Finding, ...]]:
    """Read a regular expression, as `re.fullmatch` would.

    Args:
        source: the expression.
        compare: look for alternatives that others make superfluous.

    Returns:
        The pattern, and what may surprise its author.

    Raises:
        PatternSyntaxError: Python can't read it either; says where and what was expected.
        NotRegularError: it has a construct that no finite automaton decides, or one that is not supported.
    """
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", FutureWarning)
            flags = re.compile(source).flags
    except re.error as error:
        _refuse_syntax(source, error)
    except (OverflowError, RecursionError) as error:
        raise PatternSyntaxError(
            f"Python can't compile this regex: {error}.", "Use smaller repetition counts or less nesting."
        ) from error
    reader = _Reader(source)
    try:
        pattern, _ = reader.alternation(0, flags)
    except RecursionError as error:
        raise PatternSyntaxError("The regex nests its groups too deeply to be read.", "Use less nesting.") from error
    dialect = tuple(_dialect_finding(source, str(warning.message)) for warning in caught)
    shadows = (
        shadowed(source, reader.groups)
        if compare and not any(isinstance(node, Atomic) for node in nodes(pattern))
        else []
    )
    return pattern, (*dialect, *reader.findings, *shadows)


def _dialect_finding(source: str, message: str) -> Finding:
    """Python warns of class syntax that other dialects read otherwise, as in `[[:digit:]]`."""
    found = re.search(r"at position (\d+)", message)
    start = int(found[1]) if found else 0
    return Finding(
        "dialect",
        "warning",
        Place(source, start, start + 1),
        f"Python reads this class character by character ({message}); other dialects read more into it.",
        ("For a digit write [0-9]; escape a '[' that is meant as a character.",),
    )


def _refuse_syntax(source: str, error: re.error) -> NoReturn:
    start = min(error.pos or 0, len(source))
    place = Place(source, start, min(start + 1, len(source)))
    character = source[start : start + 1]
    found = (f"'{character}'" if character.isprintable() else repr(character)) if character else "the end"
    remedy = next(
        (text for word, text in _EXPECTED.items() if error.msg.startswith(word)),
        "Correct it there; the syntax is that of Python's re.",
    )
    raise PatternSyntaxError(
        f"The regex can't be read at line {place.line}, column {place.column}, at {found}: {error.msg}.", remedy, place
    ) from error


@dataclass
class _Reader:
    """Recursive descent over a source that `re` accepts; each method returns what it read and where it stopped."""

    source: str
    findings: list[Finding] = field(default_factory=list)
    groups: list[list[Branch]] = field(default_factory=list)

    def note(self, code: str, start: int, stop: int, message: str, *fixes: str) -> None:
        """Add a finding once for each text that it is about."""
        place = Place(self.source, start, stop)
        if all((f.code, f.message) != (code, message) for f in self.findings):
            self.findings.append(Finding(code, "info", place, message, fixes))

    def alternation(self, at: int, flags: int) -> tuple[Pattern, int]:
        branches: list[Branch] = []
        while True:
            start = at
            branch, at = self.branch(at, flags)
            branches.append((start, at, branch))
            if not self.source.startswith("|", at):
                break
            at += 1
        if len(branches) > 1:
            self.groups.append(branches)
        return alternatives([branch for _, _, branch in branches]), at

    def branch(self, at: int, flags: int) -> tuple[Pattern, int]:
        items: list[Pattern] = []
        while at < len(self.source) and self.source[at] not in "|)":
            skipped = self.skip(at, flags)
            if skipped > at:
                at = skipped
                continue
            start = at
            item, at = self.item(at, flags)
            item, at = self.quantified(item, start, at, flags)
            items.append(item)
        return sequence(items) if items else EMPTY, at

    def skip(self, at: int, flags: int) -> int:
        """Pass global flags, comments, and under (?x) white space."""
        char = self.source[at]
        if char == "(" and (found := _FLAGS.match(self.source, at)):
            return found.end()
        if char == "(" and self.source.startswith("(?#", at):
            return self.source.index(")", at) + 1
        # An enum's `&` takes longer than all else here, so the character is asked first.
        if char in " \t\n\r\v\f" and flags & re.VERBOSE:
            return at + 1
        if char == "#" and flags & re.VERBOSE:
            end = self.source.find("\n", at)
            return len(self.source) if end < 0 else end + 1
        return at

    def quantified(self, item: Pattern, start: int, at: int, flags: int) -> tuple[Pattern, int]:
        while (after := self.skip(at, flags) if at < len(self.source) else at) > at:
            at = after
        count = self.quantifier(at)
        if count is None:
            return item, at
        least, most, stop = count
        origin = Origin(start, stop)
        if self.source.startswith("+", stop):
            # Python's matcher never goes back into a copy either, so that `(?:b+){2}+` matches nothing.
            copies = Repeat(Atomic(item), least, most, origin)
            return self.atomic(copies, "possessive quantifier", start, stop + 1), stop + 1
        greedy = not self.source.startswith("?", stop)
        if not greedy:
            stop += 1
            message = "A lazy quantifier changes which match is found, not which whole texts match: it has no effect."
            self.note("lazy", start, stop, message)
        return Repeat(item, least, most, origin, greedy), stop

    def atomic(self, body: Pattern, what: str, start: int, stop: int) -> Pattern:
        """Keep only the first way to match; a lazy quantifier in there does have an effect."""
        for node in nodes(body):
            if isinstance(node, Repeat) and node.most != 1 and nullable(node.body):
                self.refuse(
                    f"a {what} around a repetition of what may be empty",
                    start,
                    stop,
                    "which way comes first there is an accident of Python's matcher, not a rule",
                    "Repeat only what is not empty, or let it give back: drop the last '+', or write '(?:' for '(?>'.",
                )
        self.findings = [
            f for f in self.findings if f.code != "lazy" or not (f.where and start <= f.where.start < stop)
        ]
        return Atomic(body)

    def quantifier(self, at: int) -> tuple[int, int | None, int] | None:
        simple = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(self.source[at : at + 1])
        if simple:
            return (*simple, at + 1)
        found = _BRACES.match(self.source, at)
        if not found or found[0] == "{}":
            return None
        least = int(found[1] or 0)
        if found[2]:
            return least, int(found[3]) if found[3] else None, found.end()
        return least, least, found.end()

    def item(self, at: int, flags: int) -> tuple[Pattern, int]:
        char = self.source[at]
        if char == "(":
            return self.group(at, flags)
        if char == "[":
            return self.leaf(at, self.class_end(at), flags)
        if char == "\\":
            return self.escape(at, flags)
        if char == "^":
            return _line_start(bool(flags & re.MULTILINE), Origin(at, at + 1)), at + 1
        if char == "$":
            return _line_end(bool(flags & re.MULTILINE), Origin(at, at + 1)), at + 1
        return self.leaf(at, at + 1, flags)

    def group(self, at: int, flags: int) -> tuple[Pattern, int]:
        found = _GROUP.match(self.source, at)
        if self.source.startswith("(?>", at):
            body, stop = self.alternation(at + 3, flags)
            return self.atomic(body, "atomic group", at, stop + 1), stop + 1
        if self.source.startswith("(?", at) and not found:
            self.refuse_group(at)
        if not found:
            body, stop = self.alternation(at + 1, flags)
        else:
            inner = flags
            for letter in found["on"] or "":
                inner = inner & ~re.ASCII & ~re.UNICODE if letter in "au" else inner
                inner |= _FLAG_OF[letter]
            for letter in found["off"] or "":
                inner &= ~_FLAG_OF[letter]
            body, stop = self.alternation(found.end(), inner)
            if found["look"]:
                body = Look(body, "<" not in found["look"], "!" in found["look"], Origin(at, stop + 1))
        return body, stop + 1

    def refuse_group(self, at: int) -> NoReturn:
        what = "a back-reference" if self.source.startswith("(?P=", at) else "a conditional group"
        self.refuse_memory(what, at, self.source.index(")", at) + 1)

    def refuse_memory(self, what: str, start: int, stop: int) -> NoReturn:
        reason = "a finite automaton can't remember what a group matched"
        self.refuse(what, start, stop, reason, "Write the possible texts out as alternatives, if they are few.")

    def refuse(self, what: str, start: int, stop: int, reason: str, remedy: str) -> NoReturn:
        place = Place(self.source, start, stop)
        where = f"'{self.source[start:stop]}', at line {place.line}, column {place.column}"
        raise NotRegularError(f"The regex has {what}, {where}: {reason}.", remedy, place)

    def escape(self, at: int, flags: int) -> tuple[Pattern, int]:
        # `re` accepted the source, so there is a character behind the backslash.
        stop = self.escape_end(at)
        letter = self.source[at + 1]
        if letter in "123456789" and stop - at < 4:
            self.refuse_memory("a back-reference", at, stop)
        if letter == "A":
            return _line_start(multiline=False, origin=Origin(at, stop)), stop
        if letter == "Z":
            return Look(_any(), ahead=True, negative=True, origin=Origin(at, stop)), stop
        if letter in "bB":
            return _boundary(_code_points(r"\w", flags & _LEAF_FLAGS), letter == "b", Origin(at, stop)), stop
        if letter == "d" and not flags & re.ASCII:
            message = "\\d also matches the digits of other scripts, as Python's does."
            self.note("unicode-digit", at, stop, message, "Write [0-9], or begin the regex with (?a).")
        return self.leaf(at, stop, flags)

    def leaf(self, start: int, stop: int, flags: int) -> tuple[Pattern, int]:
        text = self.source[start:stop]
        if len(text) == 1 and text in "{}]&~-#\"' \t\n\r\v\f" and flags & re.VERBOSE:
            text = re.escape(text)
        return Chars(_code_points(text, flags & _LEAF_FLAGS), Origin(start, stop)), stop

    def class_end(self, at: int) -> int:
        at += 1
        at += self.source.startswith("^", at)
        at += self.source.startswith("]", at)
        while self.source[at] != "]":
            at = self.escape_end(at) if self.source[at] == "\\" else at + 1
        return at + 1

    def escape_end(self, at: int) -> int:
        found = _ESCAPE.match(self.source, at)
        return found.end() if found else at + 2


@cache
def _all_code_points() -> str:
    return "".join(map(chr, range(0x110000)))


@lru_cache(maxsize=4096)
def _code_points(leaf: str, flags: int) -> Ranges:
    """Return the characters that a one-character pattern matches, by running it over all of them."""
    if len(leaf) == 1 and leaf not in ".^$*+?{}[]\\|()" and not flags & re.IGNORECASE:
        return ((ord(leaf), ord(leaf)),) if not 0xD800 <= ord(leaf) <= 0xDFFF else ()
    if leaf in ("{", "}", "]"):
        leaf = "\\" + leaf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        runs = re.compile(f"(?:{leaf})+", flags).finditer(_all_code_points())
    ranges: list[tuple[int, int]] = []
    for run in runs:
        low, high = run.start(), run.end() - 1
        # Surrogates have no UTF-8: cut 0xD800 … 0xDFFF out.
        ranges += [(a, b) for a, b in ((low, min(high, 0xD7FF)), (max(low, 0xE000), high)) if a <= b]
    return tuple(ranges)


def _any() -> Chars:
    return Chars(ANY, Origin(0, 0))


def _line_start(multiline: bool, origin: Origin) -> Pattern:
    """Nothing stands before, or under (?m) nothing but a newline."""
    before = Chars(((0, 9), (11, 0xD7FF), (0xE000, 0x10FFFF)), Origin(0, 0)) if multiline else _any()
    return Look(before, ahead=False, negative=True, origin=origin)


def _line_end(multiline: bool, origin: Origin) -> Pattern:
    """Nothing stands behind but perhaps one last newline, or under (?m) nothing but newlines."""
    if multiline:
        return Look(Chars(((0, 9), (11, 0xD7FF), (0xE000, 0x10FFFF)), origin), ahead=True, negative=True, origin=origin)
    end = Look(_any(), ahead=True, negative=True)
    newline = Repeat(Chars(((10, 10),), origin), 0, 1, origin)
    return Look(Concat((newline, end)), ahead=True, negative=False, origin=origin)


def _boundary(word: Ranges, wanted: bool, origin: Origin) -> Pattern:
    r"""Say that a word character stands on exactly one side (`\b`), or on both or none (`\B`).

    In Python before 3.14 `\B` does not match in the empty text.
    """

    def side(ahead: bool, is_word: bool) -> Pattern:
        return Look(Chars(word, Origin(0, 0)), ahead=ahead, negative=not is_word, origin=origin)

    if wanted:
        return Union(tuple(Concat((side(False, w), side(True, not w))) for w in (True, False)))
    inside = Concat((side(False, True), side(True, True)))
    outside = (side(False, False), side(True, False))
    if re.fullmatch(r"\B", ""):
        return Union((inside, Concat(outside)))
    not_empty = [Look(_any(), ahead=ahead, negative=False, origin=origin) for ahead in (True, False)]
    return Union((inside, *(Concat((*outside, some)) for some in not_empty)))
