"""Exports a training checkpoint to a folder for `vllm serve`.

There are two kinds. *Merged*: the adapter is added to the weights in float32, and the sum is stored in the base's type;
any server and `local:DIR` can read it. *Adapter*: a few megabytes for a base that servers already hold;
:mod:`training.serving.reload` loads it into a running server between phases.

Both state what a server would otherwise guess: the end tokens, the context length, a chat template, and a generation
config with neutral sampling. Servers take their defaults from that config. With a `top_p` of the base model, a
rollout's log-probabilities would be those of another policy.

An export is loaded and compared with its source before it is renamed to its final folder
(:mod:`training.serving.verify`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast, get_args

from envs.core.errors import BadInput
from models.local.declarations import copy_declarations
from models.local.loading import Checkpoint, declared_context, declared_ends, read_checkpoint
from models.local.safe_loading import ADAPTER_CONFIG, LOCAL, adapter_problem
from models.prompting.prompt_tokens import PromptTokens
from models.vision.checkpoints import copy_processor, is_vision_checkpoint
from training.serving.adapters import check_servable
from training.serving.artifact import Dtype, Kind, Manifest, hash_files, new_folder, write_manifest
from training.serving.verify import Verification, verify

PLAIN_TEMPLATE: Final = "{% for message in messages %}{{ message.content }}\n\n{% endfor %}"
"""Chat template for a tokenizer without one, equal to the formatting of :mod:`models.prompting.prompt_tokens`."""
FOLDED_SYSTEM: Final = (
    "{% if messages[0]['role'] == 'system' %}{% if messages | length > 1 and messages[1]['role'] == 'user' %}"
    "{% set messages = [{'role': 'user', 'content': messages[0]['content'] + '\\n\\n' + messages[1]['content']}]"
    " + messages[2:] %}{% else %}"
    "{% set messages = [{'role': 'user', 'content': messages[0]['content']}] + messages[1:] %}{% endif %}{% endif %}"
)
"""What precedes a chat template that writes no system messages, equal to `PromptTokens.for_template`."""

_ADAPTER_WEIGHTS = "adapter_model.safetensors"


def export(
    base: Path, adapter: Path | None, out: Path, *, kind: Kind = "merged", dtype: Dtype | None = None
) -> Verification:
    """Exports *base* (+ *adapter*) atomically to the new folder *out* and compares it with its source.

    *dtype* is the type of merged weights; None keeps the base's. Raises BadInput in one line if *out* exists, if the
    kind does not fit the checkpoint, if a weight is not finite in that type, or if the comparison fails;
    ModelUnavailable if the checkpoint cannot be read.
    """
    if kind == "merged":
        return export_merged(base, adapter, out, dtype=dtype)
    if adapter is None:
        raise BadInput(f"{str(base)!r} was given without an adapter: name it as DIR+ADAPTER, or export merged")
    if dtype is not None:
        raise BadInput("an adapter is stored as it was trained: give no dtype")
    return export_adapter(base, adapter, out)


def export_merged(base: Path, adapter: Path | None, out: Path, *, dtype: Dtype | None = None) -> Verification:
    """Exports merged weights, tokenizer, generation config and any image processor to one folder."""
    with new_folder(out) as folder:
        read = read_checkpoint(base, adapter, on_cpu=True, vision=is_vision_checkpoint(base))
        stored = dtype or _stored_dtype(base)
        _cast(read.model, stored)
        context, ends = declared_context(read.model.config, read.tokenizer), declared_ends(read.model, read.tokenizer)
        if not ends:
            raise BadInput(f"{str(base)!r} names no token that ends an answer: a server would never stop")
        read.model.generation_config = _generation_config(read, ends)
        read.model.save_pretrained(folder)
        _save_tokenizer(read.tokenizer, folder, context)
        places = (base,) if adapter is None else (adapter, base)
        copy_processor(folder, *places)
        copy_declarations(folder, *places)
        manifest = Manifest(
            kind="merged",
            base=str(base.resolve()),
            adapter=str(adapter.resolve()) if adapter else None,
            dtype=stored,
            parameters=sum(weight.numel() for weight in read.model.parameters()),
            context=context,
            ends=tuple(sorted(ends)),
            files=hash_files(folder),
        )
        write_manifest(folder, manifest)
        return verify(folder)


def export_adapter(base: Path, adapter: Path, out: Path) -> Verification:
    """Exports only the adapter, after checking that vLLM can serve it. Its configuration has the base's absolute
    path."""
    with new_folder(out) as folder:
        read = read_checkpoint(base, adapter, merge=False, on_cpu=True, vision=is_vision_checkpoint(base))
        _check_template(base, read.tokenizer)
        config = cast("dict[str, Any]", json.loads((adapter / ADAPTER_CONFIG).read_text(encoding="utf-8")))
        tensors = _adapter_tensors(adapter)
        rank = check_servable(config, tensors)
        _check_finite(tensors, "the adapter")
        _write_adapter(folder, {**config, "base_model_name_or_path": str(base.resolve())}, tensors)
        copy_declarations(folder, adapter, base)
        manifest = Manifest(
            kind="adapter",
            base=str(base.resolve()),
            adapter=str(adapter.resolve()),
            dtype=_dtype_name(next(iter(tensors.values())).dtype),
            parameters=sum(tensor.numel() for tensor in tensors.values()),
            context=declared_context(read.model.config, read.tokenizer),
            ends=tuple(sorted(declared_ends(read.model, read.tokenizer))),
            rank=rank,
            files=hash_files(folder),
        )
        write_manifest(folder, manifest)
        return verify(folder)


def _cast(model: Any, dtype: Dtype) -> None:
    import torch

    model.to(getattr(torch, dtype))
    _check_finite(dict(model.named_parameters()), f"the model as {dtype}")


def _check_finite(tensors: Mapping[str, Any], owner: str) -> None:
    import torch

    broken = next((name for name, tensor in tensors.items() if not torch.isfinite(tensor).all()), None)
    if broken is not None:
        raise BadInput(f"{owner} has weights that are not finite, in {broken!r}: training diverged, or use bfloat16")


def _stored_dtype(base: Path) -> Dtype:
    """Returns the weight type in the base's configuration; float32 if there is none that servers support."""
    from transformers import AutoConfig

    declared: Any = AutoConfig.from_pretrained(base, **LOCAL).dtype
    return _dtype_name(declared) if declared is not None else "float32"


def _dtype_name(dtype: Any) -> Dtype:
    name = str(dtype).removeprefix("torch.")
    return cast("Dtype", name) if name in get_args(Dtype) else "float32"


def _generation_config(read: Checkpoint, ends: frozenset[int]) -> Any:
    """Builds a generation config that samples from the model's own distribution by default; 0 disables `top_k`."""
    from transformers import GenerationConfig

    old = read.model.generation_config
    return GenerationConfig(
        do_sample=True,
        temperature=1.0,
        top_p=1.0,
        top_k=0,
        repetition_penalty=1.0,
        max_new_tokens=getattr(old, "max_new_tokens", None),
        bos_token_id=read.tokenizer.bos_token_id,
        eos_token_id=sorted(ends),
        pad_token_id=read.tokenizer.pad_token_id if read.tokenizer.pad_token_id is not None else min(ends),
    )


def served_template(tokenizer: Any) -> Any:
    """The chat template with which a server writes prompts as training and `local:` do: mostly the tokenizer's own."""
    own = tokenizer.chat_template
    if own is None:
        return PLAIN_TEMPLATE
    takes_system = not isinstance(own, str) or PromptTokens(tokenizer).writes_system
    return own if takes_system else FOLDED_SYSTEM + own


def _save_tokenizer(tokenizer: Any, folder: Path, context: int) -> None:
    tokenizer.model_max_length = context
    tokenizer.chat_template = served_template(tokenizer)
    tokenizer.save_pretrained(folder, save_jinja_files=False)


def _check_template(base: Path, tokenizer: Any) -> None:
    """Raises BadInput if the base has no chat template, or another one than the adapter: servers read the base's
    tokenizer."""
    from transformers import AutoTokenizer

    template = AutoTokenizer.from_pretrained(base, **LOCAL).chat_template
    if template is None:
        raise BadInput(f"{str(base)!r} has no chat template, so no server can chat with it: export merged")
    if template != tokenizer.chat_template:
        raise BadInput("the adapter was trained with another chat template than its base has: export merged")


def _adapter_tensors(adapter: Path) -> dict[str, Any]:
    from peft.utils import load_peft_weights

    if problem := adapter_problem(adapter):
        raise BadInput(problem)
    tensors: dict[str, Any] = load_peft_weights(str(adapter), device="cpu", local_files_only=True)
    return dict(sorted(tensors.items()))


def _write_adapter(folder: Path, config: Mapping[str, Any], tensors: Mapping[str, Any]) -> None:
    from safetensors.torch import save_file

    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / _ADAPTER_WEIGHTS)
    text = json.dumps({**config, "inference_mode": True}, indent=2, sort_keys=True)
    (folder / ADAPTER_CONFIG).write_text(text + "\n", encoding="utf-8")
