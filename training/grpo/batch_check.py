"""Checks that rows of a batch, padded or packed, have the same log-probabilities as the rows alone.

Rows of different lengths are padded, and so is every field with one value per token. If a processor, a model or the
library pads incorrectly, or a model lets packed rows attend to each other, training runs without an error on the
log-probabilities of other inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch

from envs.core.errors import BadInput
from training.grpo.evaluation import encode_prompts
from training.grpo.examples import Example

PER_TOKEN: Final = ("token_type_ids", "mm_token_type_ids")
"""Fields with one value per token, besides the tokens and their mask."""
LIMIT: Final = 1e-2
"""Maximum mean difference of a row's log-probabilities. Rounding in float32 causes about 1e-6."""
LIMIT_BF16: Final = 0.1
_NOT_FIELDS: Final = (
    *("prompt_ids", "prompt_mask", "completion_ids", "completion_mask", "advantages", "num_items_in_batch"),
    *("old_per_token_logps", "ref_per_token_logps", "sampling_per_token_logps", "importance_sampling_ratio"),
)
"""Keys of a scored batch that are not model inputs."""


def padded_marks(
    marks: Mapping[str, Sequence[Sequence[int]]], prompts: tuple[int, ...], completions: int, device: torch.device
) -> dict[str, torch.Tensor]:
    """Pads the per-token fields of unpadded prompts on the left to the shape *prompts* (B, P), and appends 0 for
    *completions* tokens. Raises BadInput if a field is longer than the prompts."""
    rows, wide = prompts
    for name, values in marks.items():
        if len(values) != rows or any(len(own) > wide for own in values):
            raise BadInput(f"{name} does not fit the prompts: it has more values than there are tokens")
    padded = {name: torch.zeros(rows, wide + completions, dtype=torch.long) for name in marks}
    for name, values in marks.items():
        for row, own in zip(padded[name], values, strict=True):
            row[wide - len(own) : wide] = torch.tensor(own)
    return {name: values.to(device) for name, values in padded.items()}


def check_fields(input_ids: torch.Tensor, attention_mask: torch.Tensor, fields: Mapping[str, Any]) -> None:
    """Raises BadInput if a field does not have one value for each of *input_ids* (B, T), or marks padding."""
    for name in PER_TOKEN:
        values = fields.get(name)
        if values is None:
            continue
        if values.shape != input_ids.shape:
            raise BadInput(
                f"{name} has {values.shape[1]} values a row for {input_ids.shape[1]} tokens: the processor encodes a "
                "batch differently from its single prompts"
            )
        if bool(((values != 0) & (attention_mask == 0)).any()):
            raise BadInput(f"{name} marks padding as part of an image: it is not padded on the side of the prompts")


def rows_to_check(prompt_mask: torch.Tensor) -> tuple[int, int]:
    """Returns the row with the most padding and the last row, whose image comes after all others; always two, because
    processes that each have a part of the weights compute equally often."""
    padding = (prompt_mask == 0).sum(1)
    return int(padding.argmax()), len(padding) - 1


def check_rows(trainer: Any, model: Any, examples: Sequence[Example], scored: Mapping[str, Any], room: int) -> None:
    """Raises BadInput if rows of a *scored* batch have other log-probabilities than the same rows alone. *examples*:
    one per row. *room*: maximum tokens of a prompt."""
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            together = batch_logprobs(trainer, model, scored)
            for row in rows_to_check(scored["prompt_mask"]):
                prompt = encode_prompts(trainer.processing_class, [examples[row]], room)
                _check_marks(dict(prompt), scored, row, examples[row])
                alone = _alone(trainer, model, dict(prompt), scored, row)
                if alone is None:
                    name = examples[row].name
                    raise BadInput(f"the prompt of example {name!r} is encoded differently in a batch than alone")
                _compare(together[row, : len(alone)], alone, examples[row], bf16=trainer.args.bf16)
    finally:
        model.train(was_training)


def _check_marks(alone: Mapping[str, torch.Tensor], scored: Mapping[str, Any], row: int, example: Example) -> None:
    """Raises BadInput if a per-token field of the prompt in *row* differs from the prompt *alone*. A shift by one token
    can change log-probabilities by less than the limit."""
    kept = scored["prompt_mask"][row].bool()
    for name in PER_TOKEN:
        if name not in alone or name not in scored:
            continue
        marks = scored[name][row, : len(kept)][kept].tolist()
        if marks != alone[name][0].tolist():
            raise BadInput(
                f"{name} of the prompt of example {example.name!r} differs in a batch from the prompt alone: it marks "
                "other tokens as part of an image"
            )


def batch_logprobs(trainer: Any, model: Any, scored: Mapping[str, Any]) -> torch.Tensor:
    """(B, T) log-probabilities of completions, computed by the trainer."""
    logprobs, _, _ = trainer._get_per_token_logps_and_entropies(
        model,
        torch.cat([scored["prompt_ids"], scored["completion_ids"]], 1),
        torch.cat([scored["prompt_mask"], scored["completion_mask"]], 1),
        scored["completion_ids"].shape[1],
        batch_size=trainer.args.per_device_train_batch_size,
        **{name: value for name, value in scored.items() if name not in _NOT_FIELDS},
    )
    return logprobs


def _alone(
    trainer: Any, model: Any, inputs: dict[str, torch.Tensor], scored: Mapping[str, Any], row: int
) -> torch.Tensor | None:
    """(t,) log-probabilities of the completion in *row*, computed by the plain model on the single prompt *inputs*;
    None if its tokens differ from the row's."""
    inputs = {name: value.to(scored["prompt_ids"].device) for name, value in inputs.items()}
    own = scored["prompt_ids"][row][scored["prompt_mask"][row].bool()]
    if inputs["input_ids"][0].tolist() != own.tolist():
        return None
    completion = scored["completion_ids"][row][scored["completion_mask"][row].bool()]
    inputs["input_ids"] = torch.cat([own, completion])[None]
    inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    for name in PER_TOKEN:
        if name in inputs:
            inputs[name] = torch.cat([inputs[name], inputs[name].new_zeros(1, len(completion))], 1)
    with trainer.plain_passes(), trainer.accelerator.autocast():
        logits = model(**inputs).logits[0, len(own) - 1 : -1]
    scores = (logits.float() / trainer.temperature).log_softmax(-1)
    return scores.gather(-1, completion[:, None]).squeeze(-1)


def _compare(together: torch.Tensor, alone: torch.Tensor, example: Example, *, bf16: bool) -> None:
    if not len(alone):
        return
    apart = (together - alone).abs().mean().item()
    if not apart <= (LIMIT_BF16 if bf16 else LIMIT):
        raise BadInput(
            f"the model's inputs in a batch differ from those of a single row: log-probabilities of the answer to "
            f"{example.name!r} differ by {apart:.2g} a token. Training would use wrong inputs: the "
            "processor pads a field on the wrong side, or the model's positions count padding"
        )
