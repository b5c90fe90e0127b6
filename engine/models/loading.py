"""From a name to a model in memory: where its files are, whether it fits, and how it is read."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import torch
from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
from safetensors import SafetensorError, safe_open
from transformers import AutoConfig, AutoModelForMaskedLM, AutoTokenizer, PreTrainedTokenizerFast, Qwen2Tokenizer
from transformers.utils import logging as transformers_logging

from engine.errors import ModelError
from engine.models import dream, llada, masked_lm
from engine.models.pretrained import Pretrained, check_rotary
from engine.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from engine.models.architecture import Architecture, Options

FILES = ["*.json", "*.safetensors", "*.txt", "*.jinja", "*.model"]
"""What of a repository is fetched: no code, and no pickle."""
DTYPES = ("auto", "float32", "bfloat16", "float16")


def load(name: str, options: Options, progress: Callable[[int, int], None] | None = None) -> Pretrained:
    """Read a model of a folder or of the hub.

    Args:
        name: a folder, or an id on the hub.
        options: how.
        progress: called with the number of weights that are loaded and of all; what it raises ends the loading.

    Raises:
        ModelError: there is no such model, it is of no known family, a file is missing or damaged, or it doesn't fit.
    """
    folder = locate(name, options)
    content = read_config(folder)
    tokenizer = read_tokenizer(folder, content, options)
    architecture = _architecture(folder, content, tokenizer, options)
    model = _read_weights(folder, architecture, options, progress)
    check_rotary(model, (getattr(architecture.config, "rope_parameters", None) or {}).get("rope_theta"))
    found = Pretrained(name, architecture, model, tokenizer, options.raw_prompt)
    if not Path(name).is_dir():
        found.facts["revision"] = folder.name  # the hub's cache has a folder for each
    return found


def vocabulary(name: str, options: Options) -> Vocabulary:
    """Read what a model's ids write, and none of its weights.

    Raises:
        ModelError: as `load`, but for the weights.
    """
    folder = locate(name, options)
    content = read_config(folder)
    tokenizer = read_tokenizer(folder, content, options)
    architecture = _architecture(folder, content, tokenizer, options)
    size = int(architecture.config.vocab_size)
    return Vocabulary.from_tokenizer(tokenizer, size, architecture.eos_ids, architecture.mask_id)


def locate(name: str, options: Options) -> Path:
    """Return the folder of a model; one of the hub is fetched, or taken from the cache where it is there.

    Raises:
        ModelError: there is neither.
    """
    if Path(name).is_dir():
        return Path(name)
    remote = ["*.py"] if options.trust_remote_code else []
    try:
        return Path(snapshot_download(name, allow_patterns=FILES + remote))
    except HFValidationError as error:
        raise _unknown(name, "it is no folder here, and can't be an id on the hub") from error
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise _unknown(
            name, f"it is no folder here, and from the hub came: {' '.join(str(error).split())[:160]}"
        ) from error


def _unknown(name: str, reason: str) -> ModelError:
    return ModelError(
        f"There is no model named {name!r}: {reason}.",
        "Use --model embedded, the path of a model folder, an id on the hub that is in the cache or can be fetched, or "
        "table:FILE with a typed-in mean field.",
    )


def read_config(folder: Path) -> dict[str, Any]:
    """Return what the folder's config.json says.

    Raises:
        ModelError: there is none, or it names no type of model.
    """
    path = folder / "config.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ModelError(
            f"The folder {folder} holds no model: it has no config.json.",
            "Name the folder that has config.json, tokenizer files and model.safetensors.",
        ) from error
    except (OSError, ValueError) as error:
        raise _damaged(path, error) from error
    if not isinstance(content, dict) or not isinstance(content.get("model_type"), str):
        raise _damaged(path, "it names no model_type")
    return content


def read_tokenizer(folder: Path, content: Mapping[str, Any], options: Options) -> Any:
    """Read the folder's tokenizer.

    Raises:
        ModelError: its files are missing or damaged, or it is not of the `tokenizers` library.
    """
    readers: dict[str, Any] = {llada.MODEL_TYPE: PreTrainedTokenizerFast, dream.MODEL_TYPE: Qwen2Tokenizer}
    reader = readers.get(content["model_type"], AutoTokenizer)
    words = {"trust_remote_code": options.trust_remote_code} if reader is AutoTokenizer else {}
    try:
        tokenizer = reader.from_pretrained(folder, local_files_only=True, **words)
    except Exception as error:
        # The Rust reader raises a bare Exception for a damaged file, and nothing narrower.
        if not isinstance(error, OSError | ValueError | LookupError | TypeError) and type(error) is not Exception:
            raise
        raise _damaged(folder, f"its tokenizer: {error}") from error
    if not hasattr(tokenizer, "backend_tokenizer"):
        raise ModelError(
            f"The tokenizer of {folder} is Python code ({type(tokenizer).__name__}), whose bytes can't be read off.",
            "Add a tokenizer.json of the tokenizers library.",
        )
    return tokenizer


def _architecture(folder: Path, content: Mapping[str, Any], tokenizer: Any, options: Options) -> Architecture:
    kind = content["model_type"]
    if kind == llada.MODEL_TYPE:
        return llada.read(content, tokenizer)
    if kind == dream.MODEL_TYPE:
        return dream.read(content, tokenizer)
    if masked_lm.known(kind):
        return masked_lm.read(AutoConfig.from_pretrained(folder, local_files_only=True), tokenizer)
    if kind == "diffusion_gemma":
        raise ModelError(
            f"The model in {folder} is a DiffusionGemma, whose sampler commits nothing for good: every step draws all "
            "positions again and puts a random token, not a mask, on those whose entropy passes its bound. A step here "
            "is recorded as masked and committed positions.",
            "Use LLaDA, Dream or a masked language model.",
        )
    if not options.trust_remote_code:
        raise ModelError(
            f"The model in {folder} is of the type {kind!r}, which is neither LLaDA nor Dream nor a masked language "
            "model that transformers knows.",
            "Use a model of these families; one that brings its own code runs with --trust-remote-code and --shift or "
            "--no-shift.",
        )
    if options.shift is None:
        raise ModelError(
            f"Nothing says whether the model in {folder} predicts a position at itself or at its left neighbour.",
            "Say it with --no-shift or --shift.",
        )
    config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=True)
    return masked_lm.read(config, tokenizer, shift=options.shift)


def _read_weights(
    folder: Path, architecture: Architecture, options: Options, progress: Callable[[int, int], None] | None
) -> Any:
    dtype = _dtype(folder, architecture, options)
    _check_memory(folder, dtype, options.device)
    automatic = options.device == "auto" and torch.cuda.is_available()
    words: dict[str, Any] = {"device_map": "auto"} if automatic else {}
    if architecture.model_class is AutoModelForMaskedLM:
        words["trust_remote_code"] = options.trust_remote_code
    architecture.config.is_causal = False
    before = transformers_logging.set_tqdm_hook(lambda _factory, args, _words: _Watched(args[0], progress))
    verbosity = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity(logging.ERROR)  # what is missing is an error of ours below
    try:
        model, loaded = architecture.model_class.from_pretrained(
            folder,
            config=architecture.config,
            dtype=dtype,
            key_mapping=architecture.key_mapping or None,
            local_files_only=True,
            use_safetensors=True,
            ignore_mismatched_sizes=True,  # these too are an error of ours below
            output_loading_info=True,
            **words,
        )
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise _damaged(folder, error) from error
    finally:
        transformers_logging.set_tqdm_hook(before)
        transformers_logging.set_verbosity(verbosity)
    _check_complete(folder, loaded)
    for module in model.modules():
        if hasattr(module, "is_causal"):
            module.is_causal = False
    if not automatic and options.device != "auto":
        model = _moved(model, options.device)
    return model


class _Watched:
    """What transformers takes for its progress bar over the weights: counts them for `progress`."""

    def __init__(self, items: Any, progress: Callable[[int, int], None] | None) -> None:
        self._items, self._progress = list(items), progress

    def __iter__(self) -> Iterator[Any]:
        for n, item in enumerate(self._items):
            if self._progress:
                self._progress(n, len(self._items))
            yield item
        if self._progress:
            self._progress(len(self._items), len(self._items))


def _check_complete(folder: Path, loaded: Mapping[str, Any]) -> None:
    """Refuse what transformers would fill with noise."""
    missing = sorted(map(str, loaded.get("missing_keys", ())))
    wrong = sorted(map(str, loaded.get("mismatched_keys", ())))
    unread = sorted(map(str, loaded.get("unexpected_keys", ()))) if missing else []
    if missing or wrong:
        raise ModelError(
            f"The weights in {folder} lack {len(missing)} of the model's ({', '.join(missing[:3])}), have "
            f"{len(wrong)} of another shape ({', '.join(wrong[:3])}) and {len(unread)} of other names "
            f"({', '.join(unread[:3])}).",
            "Fetch all of the model's files again; weights and config.json must be of one model.",
        )


def _dtype(folder: Path, architecture: Architecture, options: Options) -> torch.dtype:
    if options.dtype not in DTYPES:
        raise ModelError(f"There is no dtype {options.dtype!r}.", f"Choose one of {', '.join(DTYPES)}.")
    if options.dtype != "auto":
        found = getattr(torch, options.dtype)
    else:
        found = architecture.config.dtype or next(iter(_stored(folder)))[1]
    return found if isinstance(found, torch.dtype) else getattr(torch, str(found))


def _stored(folder: Path) -> list[tuple[int, torch.dtype]]:
    """Return the number of entries and the type of each tensor, from the heads of the files alone."""
    kinds = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "F64": torch.float64}
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ModelError(
            f"The folder {folder} has no weights in safetensors files.",
            "Fetch the model's *.safetensors; files in pickle's format can run code and are not read.",
        )
    found = []
    for path in files:
        try:
            with safe_open(path, framework="pt") as opened:
                parts = [opened.get_slice(key) for key in opened.keys()]  # noqa: SIM118 - it is no mapping
                found += [
                    (int(torch.Size(part.get_shape()).numel()), kinds.get(part.get_dtype(), torch.float32))
                    for part in parts
                ]
        except (SafetensorError, OSError) as error:
            raise _damaged(path, error) from error
    return found


def _check_memory(folder: Path, dtype: torch.dtype, device: str) -> None:
    """Refuse weights that are larger than what is free, before hours of swapping say so."""
    needed = sum(entries for entries, _ in _stored(folder)) * dtype.itemsize
    free, where = _free(device)
    if needed > free:
        raise ModelError(
            f"The weights take {needed / 2**30:.1f} GiB as {str(dtype).removeprefix('torch.')}, and {where} has "
            f"{free / 2**30:.1f} GiB free.",
            "Choose a smaller dtype, another device, or a machine with more memory.",
        )


def _free(device: str) -> tuple[int, str]:
    """Return the bytes that are free on a device and the device's name; `auto` may use all GPUs and the CPU."""
    on_cpu = int(psutil.virtual_memory().available)
    if device.startswith("cuda") or (device == "auto" and torch.cuda.is_available()):
        if not torch.cuda.is_available():
            raise ModelError(f"There is no GPU for the device {device!r}.", "Choose cpu, or auto.")
        if device == "auto":
            return on_cpu + sum(torch.cuda.mem_get_info(n)[0] for n in range(torch.cuda.device_count())), "this machine"
        return int(torch.cuda.mem_get_info(torch.device(device))[0]), device
    return on_cpu, "the CPU"


def _moved(model: Any, device: str) -> Any:
    try:
        return model.to(torch.device(device))
    except (RuntimeError, AssertionError) as error:
        raise ModelError(
            f"The model can't be put on the device {device!r}: {' '.join(str(error).split())[:120]}.",
            "Choose auto, cpu, or a device that torch has here.",
        ) from error


def _damaged(path: Path, detail: object) -> ModelError:
    return ModelError(
        f"The model in {path} can't be read: {' '.join(str(detail).split())[:240]}.",
        "Fetch its files again, or name another folder.",
    )
