"""How far the constraint languages agree with their oracles on corpora of real inputs.

    python -m benchmarks.constraints [--data DIR] [--only NAME ...] [--verbose] [--json]

For each corpus: inputs that are right, wrong with a finding that says so, silently wrong, and refused.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.instances import in_schema_order
from engine import constraints
from engine.constraints import Constraint
from engine.errors import InputError

DATA = Path(__file__).parents[1] / "tests" / "data"
SECONDS = 5.0
"""What an over-budget input may take."""


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
        value = next((v for v in values if v != ""), "") if isinstance(values, list) else values
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


CORPORA = {"bugs": bugs, "suite": suite, "bench": bench, "bfcl": calls}


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
