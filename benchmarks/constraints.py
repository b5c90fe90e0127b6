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

from benchmarks import calls, fuzz
from benchmarks.instances import in_schema_order
from benchmarks.queries import normal
from engine import constraints, token_automaton
from engine.constraints import Constraint
from engine.constraints.sql import database
from engine.errors import InputError
from engine.vocabulary import Vocabulary

DATA = Path(__file__).parents[1] / "tests" / "data"
BFCL = ("bfcl/live.jsonl", "bfcl/nonlive.jsonl", "bfcl/sample.jsonl")
BROKEN = ("truths that break their own schema with all arguments", "and still where optional ones are left out")
"""Counts beside the outcomes; which truths these are is always printed."""
FUZZED = 2_000
"""Generated schemas, and as many regexes."""


@dataclass
class Tally:
    """What came out for one corpus.

    Attributes:
        name: of the corpus.
        counts: inputs by outcome.
        notes: one line for each input that is not plainly right.
        slowest: seconds and name.
    """

    name: str = ""
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
    yield schemas("suite", data / "jsonschema" / "suite_2020_12.jsonl")


def bench(data: Path) -> Iterator[Tally]:
    """Run the schemas of JSONSchemaBench."""
    yield schemas("bench", data / "jsonschema" / "bench.jsonl")


def schemas(name: str, path: Path) -> Tally:
    """Run a file of schemas with instances, whose keys are put into the order of the schema."""
    tally = Tally(name)
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
    """Run public bug reports: those on texts, and those on tokens."""
    texts, tokens = Tally("bugs"), Tally("bugs: tokens")
    for case in lines(data / "bugs" / "cases.jsonl"):
        if case["kind"] == "tokens":
            compiled = token_automaton.compile(constraints.read("regex", case["input"]["regex"]), vocabulary(case))
            wrong = [ids for ids in case["must_accept"] if not compiled.accepts(ids)]
            wrong += [ids for ids in case["must_reject"] if compiled.accepts(ids)]
            tokens.add("silently wrong" if wrong else "right", case["id"], str(wrong) if wrong else "")
        elif case["kind"] in constraints.KINDS:
            make = lambda case=case: constraints.read(case["kind"], case["input"])  # noqa: E731
            judge(texts, case["id"], make, case["must_accept"], case["must_reject"])
    yield from (texts, tokens)


def vocabulary(case: dict[str, Any]) -> Vocabulary:
    """Return the vocabulary of a report on tokens, whose markers of a blank write one, as a tokenizer's do."""
    given = case["input"]
    written = {bytes.fromhex(data): i for data, i in given.get("vocab_hex", {}).items()}
    shown = given.get("vocab_utf8", {}).items()
    pairs = [*written.items(), *((text.replace("▁", " ").replace("Ġ", " ").encode(), i) for text, i in shown)]
    tokens: list[bytes | None] = [None] * (max(i for _, i in pairs) + 1)
    for data, i in pairs:
        tokens[i] = data
    return Vocabulary(tuple(tokens), (given["eos"],), len(tokens))


def function_calls(data: Path) -> Iterator[Tally]:
    """Run BFCL's lists of functions with their ground truths, in both call syntaxes.

    A truth that breaks the schema of its own function, by `jsonschema`, has to be refused. Most of those that do give
    an argument the value that stands for leaving it out.
    """
    tally = Tally("bfcl")
    for case in [case for name in BFCL if (data / name).exists() for case in lines(data / name)]:
        variants = [calls.truths(case, short=short) for short in (False, True)]
        why = [next(filter(None, (calls.broken(case, call) for call in truth)), "") for truth in variants]
        for syntax in ("json", "python"):
            texts = [calls.written(truth, syntax) for truth in variants]
            make = lambda case=case, syntax=syntax: read_calls(case, syntax)  # noqa: E731
            accept, reject = (
                [t for t, w in zip(texts, why, strict=True) if bool(w) == wrong] for wrong in (False, True)
            )
            judge(tally, f"{case['id']} {syntax}", make, accept, reject)
        for which, reason in zip(BROKEN, why, strict=True):
            if reason:
                tally.add(which, case["id"], reason)
    yield tally


def read_calls(case: dict[str, Any], syntax: str) -> Constraint:
    """Read the functions of a case for as many calls as its truth has."""
    several = "several" if len(case["ground_truth"]) > 1 else "one"
    return constraints.read("tools", case["functions"], call_syntax=syntax, calls=several)


def regexes(data: Path) -> Iterator[Tally]:
    """Run regexes of public collections on texts of their language and near it, against `re`."""
    tally, rng = Tally("regex"), random.Random(0)
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
    schemas, regexes, rng = Tally("fuzz: schemas"), Tally("fuzz: regexes"), random.Random(0)

    fuzz.run(fuzz.cases(), lambda case: judge_schema(schemas, *case), FUZZED)
    yield schemas
    fuzz.run(fuzz.regex_cases(), lambda case: judge_regex(regexes, case[0], case[0], rng, case[1]), FUZZED)
    yield regexes


def queries(data: Path) -> Iterator[Tally]:
    """Run Spider's gold queries, rewritten in the one spelling that the constraint writes, over their schemas."""
    tally = Tally("sql")
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
    "bfcl": function_calls,
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
            out[tally.name] = dict(tally.counts) | {"slowest": tally.slowest}
            if not arguments.json:
                counts = ", ".join(f"{n} {what}" for what, n in sorted(tally.counts.items()))
                print(f"{tally.name}: {counts}; slowest {tally.slowest[0]:.2f} s ({tally.slowest[1][:60]})", flush=True)
                for note in tally.notes:
                    if arguments.verbose or note.startswith(BROKEN):
                        print("  ", note)
    if arguments.json:
        print(json.dumps(out))


if __name__ == "__main__":
    main()
