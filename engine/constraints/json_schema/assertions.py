"""What each keyword says about the values of its type: numbers, strings, arrays and objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.constraints.json_schema import ecma, edits, formats, numbers, patterns, texts
from engine.constraints.json_schema.contents import Names, Texts
from engine.constraints.json_schema.document import child
from engine.constraints.json_schema.goals import FALSE, TRUE, Goal, every
from engine.constraints.json_schema.shapes import Array, Contains, Field, Object, free_object
from engine.constraints.json_schema.values import Values
from engine.determinise import OverBudgetError
from engine.errors import NotRegularError

if TYPE_CHECKING:
    from engine.constraints.json_schema.expansion import Expansion
    from engine.constraints.json_schema.references import Place
    from engine.pattern import Origin, Pattern

NUMBER_KEYWORDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
LENGTH_LIMIT = 1_000
"""Characters that `minLength` and `maxLength` may count; beyond it the automaton has too many states."""


def typed(expansion: Expansion, place: Place) -> Values:
    """Return what the keywords say that speak of one type each."""
    schema, pointer = place.schema, place.pointer
    origins = {name: expansion.origin(pointer) for name in ("null", "boolean", "number", "string", "array", "object")}
    types = schema.get("type")
    named = [types] if isinstance(types, str) else types
    for i, name in enumerate(named or ()):
        where = child(pointer, "type") if isinstance(types, str) else child(pointer, "type", i)
        origins["number" if name == "integer" else name] = expansion.origin(where)
    integer = named is not None and "integer" in named and "number" not in named
    allowed = set(origins) if named is None else {"number" if name == "integer" else name for name in named}
    return Values(
        tuple(
            (word, origins[kind])
            for word, kind in (("null", "null"), ("true", "boolean"), ("false", "boolean"))
            if kind in allowed
        ),
        _numbers(expansion, place, origins["number"], integer) if "number" in allowed else (),
        _strings(expansion, place, origins["string"]) if "string" in allowed else (),
        _arrays(expansion, place, origins["array"]) if "array" in allowed else (),
        _objects(expansion, place, origins["object"]) if "object" in allowed else (),
    )


def _numbers(expansion: Expansion, place: Place, origin: Origin, integer: bool) -> tuple[Texts, ...]:
    # In draft 4 it is the spelling that makes an integer.
    integers = numbers.plain_integers if expansion.schemas.draft == 4 else numbers.integers
    parts: list[Pattern] = [integers(origin)] if integer else []
    for keyword in NUMBER_KEYWORDS:
        if keyword in place.schema:
            parts += _bound(expansion, place, keyword, place.schema[keyword])
    return (Texts("number", origin, None, tuple(parts)),)


def _bound(expansion: Expansion, place: Place, keyword: str, value: Any) -> list[Pattern]:
    pointer = child(place.pointer, keyword)
    origin = expansion.origin(pointer)
    if isinstance(value, bool):  # draft 4: it makes the other bound strict
        return []
    strict = keyword.startswith("exclusive")
    if expansion.schemas.draft == 4 and keyword in ("minimum", "maximum"):
        strict = place.schema.get(f"exclusive{keyword.capitalize()}") is True
    if keyword != "multipleOf":
        bound = numbers.at_least if keyword.endswith("inimum") else numbers.at_most
        return [bound(value, origin, strict=strict)]
    try:
        return [numbers.multiples(value, origin)]
    except OverflowError:
        expansion.report.approximated(
            "multiple-too-fine",
            pointer,
            f"multipleOf {value} at {pointer} is not enforced, since its remainders would take more than "
            f"{numbers.DIVISOR_LIMIT:,} states; every number is accepted there that the other keywords allow.",
            "Choose a rounder number.",
            edits=edits.offered(expansion.schemas.document, edits.removed, [pointer]),
        )
        return []


def _strings(expansion: Expansion, place: Place, origin: Origin) -> tuple[Texts, ...]:
    schema = place.schema
    parts: list[Pattern] = []
    if isinstance(schema.get("pattern"), str):
        parts += _pattern(expansion, schema["pattern"], child(place.pointer, "pattern"))
    if expansion.formats and isinstance(schema.get("format"), str):
        parts += _format(expansion, place, schema["format"])
    least, most = _lengths(expansion, place)
    if most is not None and least > most:
        return ()
    if parts and (least or most is not None):
        least, most = _counted(expansion, place, Texts("string", origin, None, tuple(parts), least, most))
    if (least or most is not None) and not parts:
        keyword = "maxLength" if most is not None else "minLength"
        origin = expansion.origin(child(place.pointer, keyword))
    return (Texts("string", origin, None, tuple(parts), least, most),)


def _lengths(expansion: Expansion, place: Place) -> tuple[int, int | None]:
    least, most = int(place.schema.get("minLength", 0)), place.schema.get("maxLength")
    most = int(most) if most is not None else None
    for keyword, limit in (("minLength", least), ("maxLength", most)):
        if limit is not None and limit > LENGTH_LIMIT:
            pointer = child(place.pointer, keyword)
            expansion.report.approximated(
                "length-too-large",
                pointer,
                f"{keyword} {limit:,} at {pointer} is not enforced: counting more than {LENGTH_LIMIT:,} characters "
                "takes too many states; "
                + ("any length is accepted." if keyword == "maxLength" else f"{LENGTH_LIMIT:,} are asked for."),
                f"Remove it, or lower it to {LENGTH_LIMIT:,} or less.",
                edits=(
                    *edits.offered(expansion.schemas.document, edits.removed, [pointer]),
                    *edits.offered(expansion.schemas.document, edits.replaced, [pointer], LENGTH_LIMIT),
                ),
            )
            least, most = (least, None) if keyword == "maxLength" else (LENGTH_LIMIT, most)
    return least, most


def _counted(expansion: Expansion, place: Place, strings: Texts) -> tuple[int, int | None]:
    """Return the lengths of strings, or none and say so where counting them beside their pattern is too much."""
    try:
        texts.compiled(strings.pattern())
    except OverBudgetError:
        keyword = "minLength" if strings.most is None else "maxLength"
        pointer = child(place.pointer, keyword)
        beside = "pattern" if "pattern" in place.schema else "format"
        expansion.report.approximated(
            "length-not-counted",
            pointer,
            f"{keyword} {place.schema[keyword]:,} at {pointer} is not enforced: counting characters beside the "
            f"'{beside}' takes too many states. Strings of any length are accepted that the other keywords allow.",
            f"Say it in the '{beside}', or lower it.",
            edits=edits.offered(expansion.schemas.document, edits.removed, [pointer]),
        )
        return 0, None
    return strings.least, strings.most


def _pattern(expansion: Expansion, source: str, pointer: str, *, name: bool = False) -> list[Pattern]:
    try:
        pattern = patterns.search(expansion.schemas.document, source, pointer, name=name)
        texts.compiled(pattern)
    except NotRegularError as error:
        expansion.report.approximated(
            "pattern-not-regular",
            pointer,
            f"{error.problem} It is not enforced; every string is accepted there.",
            error.remedy,
            edits=edits.offered(expansion.schemas.document, edits.removed, [pointer]),
        )
        return []
    except OverBudgetError as error:
        expansion.report.approximated(
            "pattern-too-large",
            pointer,
            f"The automaton of the pattern at {pointer} {error}; it is not enforced, and every string is accepted.",
            "Lower its repetition bounds.",
            edits=edits.offered(expansion.schemas.document, edits.removed, [pointer]),
        )
        return []
    _tell_dialect(expansion, source, pointer, name=name)
    return [pattern]


def _tell_dialect(expansion: Expansion, source: str, pointer: str, *, name: bool) -> None:
    """Tell where Python's `re`, which validators in Python use, reads a pattern otherwise than ECMA-262 does."""
    if ecma.has_end(source):
        expansion.ends.setdefault(pointer)
    different = ecma.differences(source)
    if not different:
        return
    anchored = source.replace(r"\A", "^").replace(r"\Z", "$").replace(r"\z", "$")
    expansion.report.told(
        "pattern-dialect",
        pointer,
        f"The pattern at {pointer} is read as ECMA-262, where Python's re differs: {', '.join(different)}.",
        severity="warning" if ecma.letters(source) else "info",
        edits=edits.offered(
            expansion.schemas.document,
            edits.renamed if name else edits.replaced,
            [pointer] if anchored != source else [],
            anchored,
        ),
    )


def names_matching(expansion: Expansion, source: str, pointer: str) -> Texts:
    """Return the names that an expression of `patternProperties` matches."""
    return Texts("string", expansion.key_origin(pointer), None, tuple(_pattern(expansion, source, pointer, name=True)))


def _format(expansion: Expansion, place: Place, name: str) -> list[Pattern]:
    pointer = child(place.pointer, "format")
    if name not in formats.FORMATS:
        if name in formats.STANDARD:
            expansion.report.approximated(
                "format-not-enforced",
                pointer,
                f"The format {name!r} at {pointer} is not enforced; every string is accepted there.",
                "Write it as a 'pattern'.",
                edits=edits.offered(expansion.schemas.document, edits.removed, [pointer]),
            )
        else:
            expansion.report.told(
                "format-unknown",
                pointer,
                f"The format {name!r} at {pointer} is not one of the standard's, so it says nothing here.",
                "Write it as a 'pattern' if it should be enforced.",
                severity="warning",
                edits=edits.offered(expansion.schemas.document, edits.removed, [pointer]),
            )
        return []
    if (
        name in formats.LOOSE
        and int(place.schema.get("maxLength", formats.LOOSE[name][0] + 1)) > formats.LOOSE[name][0]
    ):
        expansion.report.approximated(
            "format-loose", pointer, f"The format {name!r} at {pointer}: {formats.LOOSE[name][1]}."
        )
    origin = expansion.origin(pointer)
    return [texts.relocated(formats.pattern(name), lambda _: origin)]


# Arrays.


def _arrays(expansion: Expansion, place: Place, origin: Origin) -> tuple[Array, ...]:
    schema = place.schema
    keyword = "prefixItems" if isinstance(schema.get("prefixItems"), list) else "items"
    listed = schema.get(keyword) if isinstance(schema.get(keyword), list) else []
    prefix = tuple(expansion.schemas.sub(place, keyword, i) for i in range(len(listed)))  # type: ignore[arg-type]
    further = "additionalItems" if keyword == "items" and listed else "items"
    rest = expansion.schemas.sub(place, further) if isinstance(schema.get(further), dict | bool) else TRUE
    most = schema.get("maxItems")
    shape = Array(
        origin,
        prefix,
        rest,
        int(schema.get("minItems", 0)),
        int(most) if most is not None else None,
        _contains(expansion, place),
        True if schema.get("uniqueItems") is True else None,
    ).settled()
    return (shape,) if shape else ()


def _contains(expansion: Expansion, place: Place) -> tuple[Contains, ...]:
    schema = place.schema
    if "contains" not in schema:
        return ()
    least, most = schema.get("minContains", 1), schema.get("maxContains")
    return (Contains(expansion.schemas.sub(place, "contains"), 0, int(least), int(most) if most is not None else None),)


# Objects.


def _objects(expansion: Expansion, place: Place, origin: Origin) -> tuple[Object, ...]:
    schema = place.schema
    classes = _name_classes(expansion, place, origin)
    fields = []
    for name in schema.get("properties", {}):
        goals = [goal for names, goal in classes if names.holds(name)]
        goal = every(expansion.schemas.sub(place, "properties", name), *goals)
        fields.append(Field(name, goal, False, expansion.key_origin(child(place.pointer, "properties", name))))
    others = _additional(expansion, place, classes)
    most = schema.get("maxProperties")
    shape: Object | None = Object(
        origin,
        tuple(fields),
        others,
        (),
        int(schema.get("minProperties", 0)),
        int(most) if most is not None else None,
    )
    for part in (*_required(expansion, place, origin), *_named(expansion, place, origin)):
        shape = shape.meet(part) if shape else None
    shape = shape.settled() if shape else None
    return (shape,) if shape else ()


def _name_classes(expansion: Expansion, place: Place, origin: Origin) -> list[tuple[Names, Goal]]:
    """Split all names by the patterns of `patternProperties` that they match; those that match none come last."""
    unmatched = Names((Texts("string", origin),))
    classes: list[tuple[Names, Goal]] = []
    for source in place.schema.get("patternProperties", {}):
        pointer = child(place.pointer, "patternProperties", source)
        goal = expansion.schemas.sub(place, "patternProperties", source)
        matched = Names((names_matching(expansion, source, pointer),))
        others = matched.complement(origin)
        split = [(names.meet(matched), every(known, goal)) for names, known in classes]
        split += [(names.meet(others), known) for names, known in classes]
        split.append((unmatched.meet(matched), goal))
        classes = [(names, known) for names, known in split if not names.is_empty()]
        unmatched = unmatched.meet(others)
    return [*classes, (unmatched, TRUE)]


def _additional(
    expansion: Expansion, place: Place, classes: list[tuple[Names, Goal]]
) -> tuple[tuple[Names, Goal], ...]:
    """Add what `additionalProperties` says to the names that no pattern matches."""
    *matched, (unmatched, goal) = classes
    if isinstance(place.schema.get("additionalProperties"), dict | bool):
        goal = expansion.schemas.sub(place, "additionalProperties")
    if goal == FALSE or (matched and unmatched.is_empty()):
        return tuple(matched)
    return (*matched, (unmatched, goal))


def _required(expansion: Expansion, place: Place, origin: Origin) -> list[Object]:
    """Return what `required` says, of all its names at once."""
    required = place.schema.get("required", [])
    if not isinstance(required, list) or not required:  # draft 3 had a truth value
        return []
    origins = {name: expansion.origin(child(place.pointer, "required", i)) for i, name in enumerate(required)}
    fields = (Field(name, TRUE, True, where, declared=False) for name, where in origins.items())
    return [Object(origin, tuple(fields), free_object(origin).others)]


def _named(expansion: Expansion, place: Place, origin: Origin) -> list[Object]:
    """Return what `propertyNames` says."""
    if not isinstance(place.schema.get("propertyNames"), dict | bool):
        return []
    allowed = Names(expansion.values(expansion.schemas.sub(place, "propertyNames")).strings)
    return [Object(origin, others=((allowed, TRUE),) if allowed.sets else ())]
