"""Any masked language model that transformers knows (BERT, RoBERTa, ModernBERT …) as a denoiser.

The model sees `[CLS] prompt canvas [SEP]`. Its separator ends a text and pads the canvas, as nothing else of its
vocabulary could: such models were not trained to end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transformers import AutoModelForMaskedLM
from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

from engine.errors import ModelError
from engine.models.architecture import Architecture

if TYPE_CHECKING:
    from transformers import PreTrainedConfig


def known(model_type: str) -> bool:
    """Whether transformers has a masked language model of this type."""
    return model_type in MODEL_FOR_MASKED_LM_MAPPING_NAMES


def read(config: PreTrainedConfig, tokenizer: Any, *, shift: bool = False) -> Architecture:
    """Take the ids that the tokenizer says.

    Raises:
        ModelError: the tokenizer has no mask token.
    """
    if tokenizer.mask_token_id is None:
        raise ModelError(
            f"The tokenizer of this {config.model_type} model has no mask token.",
            "Use a model that was trained to fill masks.",
        )
    ends = [i for i in (tokenizer.sep_token_id, tokenizer.eos_token_id) if i is not None]
    before = [tokenizer.cls_token_id] if tokenizer.cls_token_id is not None else []
    positions = getattr(config, "max_position_embeddings", None)
    # RoBERTa's positions begin behind the padding id, which costs it that many of them.
    lost = (config.pad_token_id or 0) + 1 if config.model_type in ("roberta", "xlm-roberta", "camembert") else 0
    return Architecture(
        family=f"masked language model ({config.model_type})",
        model_class=AutoModelForMaskedLM,
        config=config,
        mask_id=int(tokenizer.mask_token_id),
        eos_ids=tuple(dict.fromkeys(ends)),
        shift=shift,
        context=int(positions or 512) - lost,
        before=tuple(before),
        after=tuple(ends[:1]),
        chat=False,
    )
