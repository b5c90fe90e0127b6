"""Which schema a `$ref` means: drafts, base URIs, anchors, and the standard's own schemas."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jsonschema import validators
from jsonschema.exceptions import SchemaError, best_match
from jsonschema_specifications import REGISTRY
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT4, DRAFT6, DRAFT7, DRAFT201909, DRAFT202012

from engine.constraints.json_schema.document import Document, child
from engine.constraints.json_schema.goals import FALSE, TRUE, Goal
from engine.errors import NotRegularError, PatternSyntaxError

if TYPE_CHECKING:
    from referencing import Specification
    from referencing._core import Resolver
_DRAFTS: dict[str, tuple[int, Specification[Any]]] = {
    "https://json-schema.org/draft/2020-12/schema": (2020, DRAFT202012),
    "https://json-schema.org/draft/2019-09/schema": (2019, DRAFT201909),
    "http://json-schema.org/draft-07/schema": (7, DRAFT7),
    "http://json-schema.org/draft-06/schema": (6, DRAFT6),
    "http://json-schema.org/draft-04/schema": (4, DRAFT4),
}
TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
"""The types that a schema may name."""
_LATEST = "https://json-schema.org/draft/2020-12/schema"

ANNOTATIONS = frozenset({
    "title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "$comment",
    "$schema", "$defs", "definitions", "contentEncoding", "contentMediaType", "contentSchema",
})  # fmt: skip
"""Keywords that say nothing about which values are valid."""

SINCE = {
    "const": 6, "contains": 6, "propertyNames": 6, "if": 7, "then": 7, "else": 7,
    "minContains": 2019, "maxContains": 2019, "dependentRequired": 2019, "dependentSchemas": 2019,
    "unevaluatedItems": 2019, "unevaluatedProperties": 2019, "$recursiveRef": 2019, "prefixItems": 2020,
    "$dynamicRef": 2020,
}  # fmt: skip
"""The first draft that has a keyword, where it is not draft 4."""
UNTIL = {"dependencies": 7, "additionalItems": 2019, "$recursiveRef": 2019}
"""The last draft that has a keyword."""


def draft_uri(draft: int) -> str:
    """Return how a schema names a draft, by its year or number."""
    return next(uri for uri, (number, _) in _DRAFTS.items() if number == draft)


@dataclass(frozen=True)
class Place:
    """A schema and what its references are relative to.

    Attributes:
        schema: the keywords.
        pointer: where it stands in the user's document; for a part of a standard schema, where it was referred to.
        resolver: of references in it.
        foreign: keywords that another draft has and this one ignores; they are not in `schema`.
    """

    schema: dict[str, Any]
    pointer: str
    resolver: Resolver[Any]
    foreign: dict[str, Any] = field(default_factory=dict)


class Schemas:
    """The schemas of one document.

    Attributes:
        document: the JSON text.
        draft: year or number of the draft that the document follows.
        known: whether `$schema` names it, or nothing.
    """

    def __init__(self, document: Document) -> None:
        self.document = document
        root = document.value
        declared = root.get("$schema") if isinstance(root, dict) else None
        uri = declared.rstrip("#") if isinstance(declared, str) else _LATEST
        self.known = uri in _DRAFTS
        self.draft, self._specification = _DRAFTS.get(uri, _DRAFTS[_LATEST])
        self._scoped = "$dynamicRef" in document.text or "json-schema.org" in document.text
        self._roots: set[int] = set()
        self._checked: set[int] = set()

    def check(self, schema: Any, pointer: str) -> None:
        """Check a schema of the document against the schema of its draft.

        Raises:
            PatternSyntaxError: it is no schema; says where and why.
        """
        validator = validators.validator_for({"$schema": draft_uri(self.draft)})
        error = best_match(validator(validator.META_SCHEMA).iter_errors(_tolerant(schema, self.draft)))
        if error is not None:
            where = child(pointer, *error.absolute_path)
            reason = re.sub(r"Decimal\('([^']*)'\)", r"\1", error.message)  # how this reader keeps a fraction
            if re.search(r"(?<!/properties)/type(/\d+)?$", where):
                reason = f"{json.dumps(error.instance, default=float)} is no type; those are {', '.join(TYPES)}"
            elif error.validator == "type":
                wanted = [error.validator_value] if isinstance(error.validator_value, str) else error.validator_value
                reason = f"{json.dumps(error.instance, default=float)} is not of type {' or '.join(wanted)}"
            raise PatternSyntaxError(
                f"The schema is not one of draft {self.draft_name} at {where or 'its root'}: {reason}.",
                "Correct it there, or name the draft that it follows in '$schema'.",
                self.document.place(where),
            )

    def _check_apart(self, schema: Any, pointer: str) -> None:
        """Check a schema of the document, once, that stands where the draft's own schema need not have looked."""
        if isinstance(schema, dict) and (id(schema) in self._checked or id(schema) not in self.document.pointers):
            return
        self._checked.add(id(schema))
        self.check(schema, pointer)

    def root(self, schema: Any, pointer: str) -> Goal:
        """Return the goal of a schema that its own references are relative to."""
        if isinstance(schema, bool):
            return self.goal(schema, pointer, REGISTRY.resolver())
        resource = self._specification.create_resource(schema)
        identity = resource.id() or ""
        self._roots.add(id(schema))
        registry: Registry[Any] = REGISTRY.with_resource("", resource).with_resource(identity, resource)
        return self.goal(schema, pointer, registry.resolver(identity))

    def goal(self, schema: Any, pointer: str, resolver: Resolver[Any]) -> Goal:
        """Return the goal of a schema that stands at a pointer; one that only refers to another is that other.

        So a schema that is inside itself is found to be, by whichever of its references.
        """
        goal = self._own_goal(schema, pointer, resolver)
        passed: list[Goal] = []
        while goal not in passed and self._only_refers(goal):
            passed.append(goal)
            goal = self._own_goal(*self._lookup(goal.value, "$ref"))
        return goal

    def _only_refers(self, goal: Goal) -> bool:
        if goal.key[0] != "schema" or goal.value.foreign:
            return False
        schema = goal.value.schema
        hidden = self.draft <= 7 and "$ref" in schema
        return hidden or schema.keys() - ANNOTATIONS == {"$ref"}

    def _own_goal(self, schema: Any, pointer: str, resolver: Resolver[Any]) -> Goal:
        if isinstance(schema, bool):
            return TRUE if schema else FALSE
        if schema.keys() <= ANNOTATIONS:
            return TRUE
        if self._identified(schema) and id(schema) not in self._roots:
            resolver = resolver.in_subresource(self._specification.create_resource(schema))
        scope = tuple(dict.fromkeys(uri for uri, _ in resolver.dynamic_scope())) if self._scoped else ()
        foreign = {name: value for name, value in schema.items() if self._is_foreign(schema, name)}
        own = {name: value for name, value in schema.items() if name not in foreign} if foreign else schema
        return Goal(("schema", id(schema), scope), value=Place(own, pointer, resolver, foreign))

    def _is_foreign(self, schema: dict[str, Any], name: str) -> bool:
        """Whether a keyword is one of another draft; where `items` is a list, so is what goes with it."""
        if name == "additionalItems" and isinstance(schema.get("items"), list):
            return False
        return not SINCE.get(name, 0) <= self.draft <= UNTIL.get(name, self.draft)

    def _identified(self, schema: dict[str, Any]) -> bool:
        return isinstance(schema.get("id" if self.draft == 4 else "$id"), str)

    @property
    def draft_name(self) -> str:
        """The name that its readers know the draft by."""
        return {2019: "2019-09", 2020: "2020-12"}.get(self.draft, str(self.draft))

    def sub(self, place: Place, *names: object) -> Goal:
        """Return the goal of a schema inside another, by the names that lead to it."""
        schema: Any = place.schema
        for name in names:
            schema = schema[name]
        pointer = child(place.pointer, *names)
        if (len(names) == 2 and names[0] == "items") or names[0] == "additionalItems":  # of older drafts, read in all
            self._check_apart(schema, pointer)
        return self.goal(schema, pointer, place.resolver)

    def referred(self, place: Place, keyword: str) -> Goal:
        """Return the goal that a reference means.

        Raises:
            NotRegularError: it leads out of the document, or nowhere.
            PatternSyntaxError: what stands there is no schema.
        """
        return self.goal(*self._lookup(place, keyword))

    def _lookup(self, place: Place, keyword: str) -> tuple[Any, str, Resolver[Any]]:
        """Return the schema that a reference means, its pointer, and the resolver of its own references."""
        reference = place.schema[keyword]
        try:
            found = place.resolver.lookup(reference)
        except (Unresolvable, ValueError) as error:
            remote = not reference.startswith("#")
            pointer = child(place.pointer, keyword)
            raise NotRegularError(
                f"The reference {reference!r} at {pointer} "
                + ("leads out of this document, and nothing is fetched." if remote else "leads nowhere."),
                "Copy what it means into '$defs' and refer to it there."
                if remote
                else "Correct it, or add what it means to '$defs'.",
                self.document.place(pointer),
            ) from error
        pointer = self.document.pointers.get(id(found.contents), child(place.pointer, keyword))
        self._check_apart(found.contents, pointer)
        return found.contents, pointer, found.resolver


def _tolerant(schema: Any, draft: int) -> Any:
    """Return the schema as its draft's own schema sees it; lists of item schemas are read in every draft."""
    if draft != 2020:
        return schema
    if isinstance(schema, dict):
        return {k: True if k == "items" and isinstance(v, list) else _tolerant(v, draft) for k, v in schema.items()}
    return [_tolerant(part, draft) for part in schema] if isinstance(schema, list) else schema


def allows(schema: dict[str, Any], value: Any) -> bool:
    """Whether a schema without references allows a value; true where it is no schema of the latest draft."""
    validator = validators.validator_for({"$schema": _LATEST})
    try:
        return bool(validator(schema).is_valid(value))
    except (SchemaError, TypeError, ValueError, ArithmeticError, RecursionError, re.error):
        return True
