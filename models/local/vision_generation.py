"""Generates answers of a vision-language model, one prompt at a time.

Families differ in positions, caches and inputs of later tokens, which `generate()` of transformers knows. Choosing a
token is the same as for text (:mod:`models.local.batch_generation`): temperature, seed, grammar, deadline and the
log-probabilities of the unconstrained distribution.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig, LogitsProcessor, StoppingCriteria

from models.local.batch_generation import Answer, Generator
from models.local.continuation import Arrivals, Job, Row
from models.local.vision_prompts import VisionPrompts


class VisionGenerator(Generator):
    """A vision-language model and its processor, used from one thread at a time."""

    def __init__(self, model: Any, processor: Any, ends: frozenset[int]) -> None:
        super().__init__(model, processor.tokenizer, ends)
        self.prompts = VisionPrompts(processor)
        # Sampling settings of the checkpoint, such as a repetition penalty, would change the logits.
        model.generation_config = GenerationConfig(pad_token_id=self.pad)

    def serve(self, arrivals: Arrivals) -> Iterator[Row]:
        while jobs := arrivals(0):
            for job in jobs:
                yield self._answered(job)

    def _answered(self, job: Job) -> Row:
        answer = self.started(job)
        row = answer.row
        if row.finish is None:
            device = self.model.device
            ids = torch.tensor([job.prompt], device=device)
            self.model.generate(
                input_ids=ids,
                attention_mask=torch.ones_like(ids),
                **{name: _on_model(value, self.model) for name, value in job.inputs.items()},
                max_new_tokens=job.max_tokens,
                do_sample=False,
                logits_processor=[_Choice(self, answer)],
                stopping_criteria=[_Ended(row)],
            )
        return row


class _Choice(LogitsProcessor):
    """Chooses the next token of one row, and leaves no other to `generate()`."""

    def __init__(self, generator: Generator, answer: Answer) -> None:
        self._generator = generator
        self._answer = answer

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """[1, L] tokens so far, [1, V] logits → [1, V] with one finite value."""
        token = self._generator.advance(self._answer, scores[0].float())
        chosen = torch.full_like(scores, float("-inf"))
        chosen[0, token] = 0.0
        return chosen


class _Ended(StoppingCriteria):
    def __init__(self, row: Row) -> None:
        self._row = row

    def __call__(self, input_ids: Tensor, scores: Any, **kwargs: Any) -> Any:
        """[B] booleans: whether the rows have ended."""
        del scores, kwargs
        return torch.full((input_ids.shape[0],), self._row.finish is not None, device=input_ids.device)


def _on_model(value: Any, model: Any) -> Any:
    """An input on the model's device; pixels in its precision."""
    return value.to(model.device, model.dtype) if value.is_floating_point() else value.to(model.device)
