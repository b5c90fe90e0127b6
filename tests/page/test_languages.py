"""Every language in the constraint editor, in Chromium: its example, a mistake shown at its place, a text marked in the source."""

from __future__ import annotations

import re

from conftest import Debugger
from playwright.sync_api import expect

from engine.constraints import KINDS

LISTS = '[{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "boolean"}}}}]'
WRONG = [
    ("regex", "(a|b", "line 1, column 1", "(", "Close it"),
    ("json_schema", '{"type": "strnig"}', "/type", '"type"', 'Write "string"'),
    (
        "json_schema",
        '{"type": "array", "items": {"type": "integer"}, "uniqueItems": true}',
        "/uniqueItems",
        "uni",
        "Remove",
    ),
    ("tools", LISTS.replace("boolean", "bolean"), "/0/parameters/properties/a/type", '"bolean"', 'Write "boolean"'),
    ("grammar", 'start: "a" b\n', "line 1, column 12", "b", None),
]
READ = [
    ("regex", "[0-9]{4}x", "2024x", 2, "[0-9]"),
    ("choices", ["yes", "no"], "no", 0, "n"),
    ("json_schema", '{"enum": ["on", "off"]}', '"off"', 3, "off"),
    ("tools", LISTS, '{"name": "f", "arguments": {"a": true}}', 34, "boolean"),
    ("grammar", 'start: "a" | "b" start\n', "ba", 1, "a"),
    ("sql", "CREATE TABLE t (a int);", "SELECT a FROM t", 7, "a"),
    (
        "all",
        '[{"kind": "regex", "source": "[a-z]{2}"}, {"kind": "choices", "source": ["if"], "but_not": true}]',
        "ab",
        0,
        "a-z",
    ),
]


def test_every_language_is_offered_with_an_example_that_has_no_mistake(debugger: Debugger) -> None:
    page = debugger.open().page
    first, *others = KINDS.values()
    debugger.fill("source", "")  # what someone wrote is not replaced by an example
    for kind in (*others, first):
        debugger.fill("kind", kind.name)
        expect(page.locator("#source textarea")).to_have_value(kind.example)
        debugger.wait_checked(kind.name, kind.example.splitlines() if kind.name == "choices" else kind.example)
        expect(page.locator("#checked .ds-finding.error")).to_have_count(0)
        expect(page.locator("#checked .ds-examples").first).to_be_visible()


def test_a_mistake_is_shown_where_it_stands_and_what_mends_it_can_be_applied(debugger: Debugger) -> None:
    page = debugger.open().page
    for kind, source, place, marked, remedy in WRONG:
        debugger.fill("kind", kind)
        debugger.fill("source", source)
        found = page.locator("#checked .ds-findings li").first
        expect(found).to_contain_text(place)
        expect(found.locator("pre").first).to_contain_text(marked)
        expect(found.locator("pre").first).to_contain_text("^")
        if remedy is not None:
            found.get_by_role("button", name=re.compile(re.escape(remedy))).first.click()
            expect(page.locator("#source textarea")).not_to_have_value(source)


def test_each_character_of_a_text_lights_up_the_part_of_the_source_that_writes_it(debugger: Debugger) -> None:
    page = debugger.open().page
    for kind, source, text, at, lit in READ:
        debugger.fill("kind", kind)
        debugger.fill("source", source if isinstance(source, str) else "\n".join(source))
        debugger.wait_checked(kind, source)
        page.locator("#checked .ds-test-text").fill(text)
        expect(page.locator(f"#checked .ds-test-result[data-text='{text}'] .ds-verdict-line")).to_have_class(
            re.compile("good")
        )
        page.locator("#checked .ds-char").nth(at).click()
        lights = page.locator("#checked .ds-source .on")
        expect(lights.first).to_be_visible()
        assert lit in "".join(lights.all_inner_texts()), kind


def test_what_is_said_of_the_form_is_dimmed_only_while_it_is_checked_again(debugger: Debugger) -> None:
    page = debugger.open().page
    debugger.fill("kind", "json_schema")
    debugger.fill("source", '{"type": "string", "format": "email"}')
    said = page.locator("#checked .ds-check-list")
    expect(said.locator(".ds-finding").first).to_contain_text("email")
    # The same is said of the same constraint on a longer canvas.
    for length in (64, 128):
        debugger.fill("length", length)
        debugger.fill("block", length)
        expect(said).not_to_have_class(re.compile("stale"))
        expect(said.locator(".ds-finding").first).to_contain_text("email")
