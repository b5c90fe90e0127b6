"""Many requests, each with its own seed, under both confidences: data in place of a verdict.

`python -m app.lessons.seeds` runs the embedded model and writes `assets/lessons/seeds.json`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.trace import Config

if TYPE_CHECKING:
    from engine.models import Denoiser
    from engine.tasks.problem import Problem

ASSETS = Path(__file__).parents[2] / "assets"
FILE = ASSETS / "lessons" / "seeds.json"
WEIGHTS = ASSETS / "model" / "model.safetensors"
FAMILY = "call-json"
CONFIDENCES = ("mf", "mar")
SEEDS = 96
COMMITS = 4
"""Positions that a step commits."""


def config(problem: Problem, length: int, confidence: str, seed: int) -> Config:
    """Return one run: a held-out request for a call in JSON, at temperature 1."""
    return Config(
        prompt=problem.prompt,
        kind=problem.kind,
        source=problem.source,
        length=length,
        steps=length // COMMITS,
        block_length=length,
        temperature=1.0,
        confidence=confidence,
        sampler="chain",
        seed=seed,
    )


def answer(denoiser: Denoiser, config: Config) -> str:
    """Return the text that a run comes to."""
    from engine import decode, preparation

    _, header = preparation.prepare(config, load=lambda *_: denoiser)
    *_, last = decode.denoise(denoiser, header.automaton, header.config)
    return denoiser.vocabulary.decode(last.canvas_after.tolist())


def record(path: Path = FILE, count: int = SEEDS) -> dict[str, Any]:
    """Run both confidences over all requests and write which answers are right."""
    from engine import models
    from engine.tasks import families

    denoiser, family = models.load("embedded"), families.named(FAMILY)
    problems = family.problems(count, "held_out")
    right = {
        name: [
            family.is_right(p, answer(denoiser, config(p, family.length, name, seed)))
            for seed, p in enumerate(problems)
        ]
        for name in CONFIDENCES
    }
    found = {
        "command": "python -m app.lessons.seeds",
        "weights": fingerprint(),
        "config": dataclasses.asdict(config(problems[0], family.length, "mar", 0)),
        "right": right,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return found


def fingerprint() -> str:
    """Return what tells the shipped weights from others."""
    return hashlib.sha256(WEIGHTS.read_bytes()).hexdigest()[:16]


@cache
def numbers() -> dict[str, Any]:
    """Return both shares of right answers with their 95 % intervals, and how often only one of the two is right."""
    from engine.tables.results import wilson

    recorded = json.loads(FILE.read_text(encoding="utf-8"))
    right = recorded["right"]
    out: dict[str, Any] = {"seeds": len(right["mf"]), "steps": recorded["config"]["steps"]}
    for name, of in right.items():
        interval = wilson(sum(of), len(of))
        out |= {f"{name} share": interval.share, f"{name} low": interval.low, f"{name} high": interval.high}
    pairs = list(zip(right["mf"], right["mar"], strict=True))
    return {**out, "only mf": pairs.count((True, False)), "only mar": pairs.count((False, True))}


if __name__ == "__main__":
    record()
