"""How far the constraint languages agree with their oracles on corpora of real inputs.

    python -m benchmarks.constraints [--data DIR] [--only NAME ...] [--verbose] [--json]

For each corpus: inputs that are right, wrong with a finding that says so, silently wrong, and refused.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import fuzz
from benchmarks.instances import in_schema_order
from benchmarks.queries import normal
from engine import constraints
from engine.constraints import Constraint
from engine.constraints.sql import database
from engine.errors import InputError

DATA = Path(__file__).parents[1] / "tests" / "data"
FUZZED = 2_000
"""Generated schemas, and as many regexes."""


@dataclass
class Tally:
    """What came out for one corpus.

    Attributes:
        counts: inputs by outcome.
        notes: one line for each input that is not plainly right.
        slowest: seconds and name.
    """

    counts: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    slowest: tuple[float, str] = (0.0, "")

    def add(self, outcome: str, name: str, note: str = "") -> None:
        """Count an input."""
        self.counts[outcome] += 1
        if note:
            self.notes.append(f"{outcome:18} {name}: {note}")


def lines(path: Path) -> list[dict[str, Any]]:
    """Read a file of one JSON object a line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def judge(
    tally: Tally, name: str, make: Callable[[], Constraint], accept: list[str], reject: list[str]
) -> Constraint | None:
    """Compile an input and count it by whether it accepts and rejects what it should."""
    started = time.process_time()
    try:
        constraint = make()
        wrong = [(text, "refused") for text in accept if not constraint.accepts(text)]
        wrong += [(text, "accepted") for text in reject if constraint.accepts(text)]
    except InputError as error:
        tally.add("refused", name, error.problem[:300])
        return None
    finally:
        tally.slowest = max(tally.slowest, (time.process_time() - started, name))
    directions = {f.accepts for f in constraint.findings} - {"as written"}
    told = {"refused": "too little" in directions, "accepted": "too much" in directions}
    silent = [pair for pair in wrong if not told[pair[1]]]
    outcome = "silently wrong" if silent else "wrong, and told" if wrong else "right"
    note = "; ".join(f"{how} {text[:100]}" for text, how in (silent or wrong)[:3])
    tally.add(outcome, name, note)
    if "too much" in directions:
        tally.add("with an over-approximation", name)
    return constraint


def suite(data: Path) -> Iterator[Tally]:
    """Run the official JSON Schema test suite."""
    yield schemas(data / "jsonschema" / "suite_2020_12.jsonl")


def bench(data: Path) -> Iterator[Tally]:
    """Run the schemas of JSONSchemaBench."""
    yield schemas(data / "jsonschema" / "bench.jsonl")


def schemas(path: Path) -> Tally:
    """Run a file of schemas with instances, whose keys are put into the order of the schema."""
    tally = Tally()
    for case in lines(path):
        tests = [t for t in case["tests"] if t["oracle"] == t["valid"]]
        texts = [
            (json.dumps(in_schema_order(case["schema"], t["data"]), ensure_ascii=False), t["valid"]) for t in tests
        ]
        options = {"format_assertion": case.get("format_assertion", True)}
        make = lambda schema=case["schema"], options=options: constraints.read("json_schema", schema, **options)  # noqa: E731
        judge(tally, case["id"], make, [t for t, v in texts if v], [t for t, v in texts if not v])
    return tally


def bugs(data: Path) -> Iterator[Tally]:
    """Run public bug reports."""
    tally = Tally()
    for case in lines(data / "bugs" / "cases.jsonl"):
        if case["kind"] == "tokens" or case["kind"] not in constraints.KINDS:
            continue
        make = lambda case=case: constraints.read(case["kind"], case["input"])  # noqa: E731
        judge(tally, case["id"], make, case["must_accept"], case["must_reject"])
    yield tally


def calls(data: Path) -> Iterator[Tally]:
    """Run BFCL's lists of functions with their ground truths, in both call syntaxes."""
    tally = Tally()
    for case in lines(data / "bfcl" / "live.jsonl") + lines(data / "bfcl" / "nonlive.jsonl"):
        for syntax in ("json", "python"):
            truths = [written(call, syntax) for truth in case["ground_truth"] for call in possible(case, truth)]
            make = lambda case=case, syntax=syntax: constraints.read("tools", case["functions"], call_syntax=syntax)  # noqa: E731
            judge(tally, f"{case['id']} {syntax}", make, truths, [])
    yield tally


def possible(case: dict[str, Any], truth: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return a call that a ground truth lists, its arguments in the order of the function."""
    ((name, listed),) = truth.items()
    schema = next(f for f in case["functions"] if f["name"] == name)["parameters"]
    return [(name, in_schema_order(schema, chosen(listed, schema)))]


def chosen(listed: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Take the first of the values that a ground truth allows for each argument; an empty text leaves one out."""
    properties, required = schema.get("properties", {}), schema.get("required", [])
    out = {}
    for key, values in listed.items():
        if "" in values and key not in required:
            continue
        # Where no value is listed, the only right one is an empty list.
        value = next((v for v in values if v != ""), "" if values else []) if isinstance(values, list) else values
        parts = value if isinstance(value, list) else [value]
        inner = properties.get(key, {}).get("items", {}) if isinstance(value, list) else properties.get(key, {})
        parts = [chosen(part, inner) if isinstance(part, dict) else part for part in parts]
        out[key] = parts if isinstance(value, list) else parts[0]
    return out


def written(call: tuple[str, dict[str, Any]], syntax: str) -> str:
    """Write a call."""
    name, arguments = call
    if syntax == "json":
        return json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def regexes(data: Path) -> Iterator[Tally]:
    """Run regexes of public collections on texts of their language and near it, against `re`."""
    tally, rng = Tally(), random.Random(0)
    for case in lines(data / "regex" / "regexes.jsonl"):
        letters = "".join(letter for letter in "imsxa" if case["flags"] & getattr(re, letter.upper()))
        source = f"(?{letters}){case['regex']}" if letters else case["regex"]
        if case["py_re_compiles"]:
            judge_regex(tally, case["id"], source, rng, [])
    yield tally


def judge_regex(tally: Tally, name: str, source: str, rng: random.Random, texts: list[str]) -> None:
    """Judge a regex on texts, and on those near its own language, by what `re` matches as a whole."""
    try:
        constraint = constraints.read("regex", source)
        texts = [*texts, *(fuzz.near(constraint.automaton, rng) if not constraint.automaton.is_empty else ())]
    except InputError as error:
        tally.add("refused", name, error.problem[:300])
        return
    matched = [text for text in texts if re.fullmatch(source, text)]
    judge(tally, name, lambda: constraint, matched, [text for text in texts if text not in matched])


def judge_schema(tally: Tally, schema: Any, instances: list[Any]) -> None:
    """Judge a schema on instances by what `jsonschema` says of them."""
    accept, reject = fuzz.texts(schema, instances)
    judge(tally, json.dumps(schema)[:300], lambda: constraints.read("json_schema", schema), accept, reject)


def fuzzed(_: Path) -> Iterator[Tally]:
    """Run generated schemas and generated regexes, each against its oracle."""
    schemas, regexes, rng = Tally(), Tally(), random.Random(0)

    fuzz.run(fuzz.cases(), lambda case: judge_schema(schemas, *case), FUZZED)
    yield schemas
    fuzz.run(fuzz.regex_cases(), lambda case: judge_regex(regexes, case[0], case[0], rng, case[1]), FUZZED)
    yield regexes


def queries(data: Path) -> Iterator[Tally]:
    """Run Spider's gold queries, rewritten in the one spelling that the constraint writes, over their schemas."""
    tally = Tally()
    schemas = json.loads((data / "sql" / "spider_schemas.json").read_text(encoding="utf-8"))
    gold = lines(data / "sql" / "spider.jsonl")
    for name in sorted({entry["db_id"] for entry in gold}):
        found, _ = database.read(schemas[name])
        constraint = constraints.read("sql", schemas[name])
        for entry in gold:
            if entry["db_id"] == name:
                text = normal(entry["gold_sql"], found)
                judge(tally, name, lambda constraint=constraint: constraint, [text], [])  # type: ignore[misc]
    yield tally


CORPORA = {
    "bugs": bugs,
    "suite": suite,
    "bench": bench,
    "bfcl": calls,
    "regex": regexes,
    "fuzz": fuzzed,
    "sql": queries,
}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder with bugs/, jsonschema/, bfcl/")
    parser.add_argument("--only", nargs="*", choices=sorted(CORPORA), default=sorted(CORPORA))
    parser.add_argument("--verbose", action="store_true", help="say what is not right")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    out = {}
    for name in arguments.only:
        for tally in CORPORA[name](arguments.data):
            out[name] = dict(tally.counts) | {"slowest": tally.slowest}
            if not arguments.json:
                counts = ", ".join(f"{n} {what}" for what, n in sorted(tally.counts.items()))
                print(f"{name}: {counts}; slowest {tally.slowest[0]:.2f} s ({tally.slowest[1]})")
                for note in tally.notes if arguments.verbose else ():
                    print("  ", note)
    if arguments.json:
        print(json.dumps(out))


if __name__ == "__main__":
    main()
