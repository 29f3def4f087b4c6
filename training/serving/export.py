"""From a training checkpoint to a folder that `vllm serve` takes as it is.

Two kinds. *Merged*: the adapter is added to the weights in float32, the sum is stored in the base's own type; any
server and `local:DIR` read it. *Adapter*: some megabytes beside a base that the servers hold already; what
:mod:`training.serving.reload` puts into a running server between phases.

Both come with what a server would otherwise guess: the tokens that end an answer, the context, a chat template, and a
generation config whose sampling is neutral. Servers take their defaults from that file, and a `top_p` that somebody's
base model brought along would make the log-probabilities of a rollout those of another policy.

An export is loaded back and compared with its source before it gets its name (:mod:`training.serving.verify`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast, get_args

from envs.core.errors import BadInput
from models.local.loading import Checkpoint, declared_context, declared_ends, read_checkpoint
from models.local.prompt_style import declare_style, declared_style
from models.local.safe_loading import ADAPTER_CONFIG, LOCAL, adapter_problem
from training.serving.adapters import check_servable
from training.serving.artifact import Dtype, Kind, Manifest, hash_files, new_folder, write_manifest
from training.serving.verify import Verification, verify

PLAIN_TEMPLATE: Final = "{% for message in messages %}{{ message.content }}\n\n{% endfor %}"
"""For a tokenizer without a chat template: what :mod:`models.prompting.prompt_tokens` makes of messages then."""

_ADAPTER_WEIGHTS = "adapter_model.safetensors"


def export(
    base: Path, adapter: Path | None, out: Path, *, kind: Kind = "merged", dtype: Dtype | None = None
) -> Verification:
    """Writes *base* (+ *adapter*) to the new folder *out*: whole and compared with its source, or not at all.

    *dtype* is what merged weights are stored as; None keeps the base's. Raises BadInput in one line where *out* exists,
    where the kind does not fit the checkpoint, or where a weight is not finite (in that type), where the
    comparison fails; ModelUnavailable where the checkpoint cannot be read.
    """
    if kind == "merged":
        return export_merged(base, adapter, out, dtype=dtype)
    if adapter is None:
        raise BadInput(f"{str(base)!r} was given without an adapter: name it as DIR+ADAPTER, or export merged")
    if dtype is not None:
        raise BadInput("an adapter is stored as it was trained: give no dtype")
    return export_adapter(base, adapter, out)


def export_merged(base: Path, adapter: Path | None, out: Path, *, dtype: Dtype | None = None) -> Verification:
    """The whole model in one folder."""
    with new_folder(out) as folder:
        read = read_checkpoint(base, adapter, on_cpu=True)
        stored = dtype or _stored_dtype(base)
        _cast(read.model, stored)
        context, ends = declared_context(read.model, read.tokenizer), declared_ends(read.model, read.tokenizer)
        if not ends:
            raise BadInput(f"{str(base)!r} names no token that ends an answer: a server would never stop")
        read.model.generation_config = _generation_config(read, ends)
        read.model.save_pretrained(folder)
        _save_tokenizer(read.tokenizer, folder, context)
        declare_style(folder, declared_style(*([adapter] if adapter else []), base))
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
    """The adapter alone, checked against what vLLM serves; its configuration names the base by its absolute path."""
    with new_folder(out) as folder:
        read = read_checkpoint(base, adapter, merge=False, on_cpu=True)
        _check_template(base, read.tokenizer)
        config = cast("dict[str, Any]", json.loads((adapter / ADAPTER_CONFIG).read_text(encoding="utf-8")))
        tensors = _adapter_tensors(adapter)
        rank = check_servable(config, tensors)
        _check_finite(tensors, "the adapter")
        _write_adapter(folder, {**config, "base_model_name_or_path": str(base.resolve())}, tensors)
        declare_style(folder, declared_style(adapter, base))
        manifest = Manifest(
            kind="adapter",
            base=str(base.resolve()),
            adapter=str(adapter.resolve()),
            dtype=_dtype_name(next(iter(tensors.values())).dtype),
            parameters=sum(tensor.numel() for tensor in tensors.values()),
            context=declared_context(read.model, read.tokenizer),
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


def _check_finite(tensors: Mapping[str, Any], whose: str) -> None:
    import torch

    broken = next((name for name, tensor in tensors.items() if not torch.isfinite(tensor).all()), None)
    if broken is not None:
        raise BadInput(f"{whose} has weights that are not finite, in {broken!r}: training diverged, or use bfloat16")


def _stored_dtype(base: Path) -> Dtype:
    """What the base's configuration says its weights are; float32 where it says nothing that a server could take."""
    from transformers import AutoConfig

    declared: Any = AutoConfig.from_pretrained(base, **LOCAL).dtype
    return _dtype_name(declared) if declared is not None else "float32"


def _dtype_name(dtype: Any) -> Dtype:
    name = str(dtype).removeprefix("torch.")
    return cast("Dtype", name) if name in get_args(Dtype) else "float32"


def _generation_config(read: Checkpoint, ends: frozenset[int]) -> Any:
    """Samples from the model's own distribution unless the request asks otherwise; 0 switches `top_k` off."""
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


def _save_tokenizer(tokenizer: Any, folder: Path, context: int) -> None:
    tokenizer.model_max_length = context
    if tokenizer.chat_template is None:
        tokenizer.chat_template = PLAIN_TEMPLATE
    tokenizer.save_pretrained(folder, save_jinja_files=False)


def _check_template(base: Path, tokenizer: Any) -> None:
    """A server reads the base's tokenizer, whatever lies beside the adapter."""
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
