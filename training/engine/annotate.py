"""Forward passes of a loaded model over rows, without gradients: log-probabilities of completions, as a sum or by
token; whether greedy decoding repeats them; a critic's outputs for states. :mod:`training.engine.scoring` loads the
model of a checkpoint for them.

Every state is scored once, however many rows share it, and shared prefixes are computed once. One pass gives both the
perplexities of a phase and its reference log-probabilities, because the reference is the policy at the phase's start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from training.data.packing import PackedSequence, packed_sequences, sum_by_row
from training.data.rows import Row
from training.engine.critic_model import Critic, states_of
from training.engine.packed_model import precision, require_packed_support
from training.engine.progress import Watcher, unwatched
from training.engine.rotary_lengths import length_class
from training.mira.losses import token_logprobs


def completion_logits(model: Any, packed: PackedSequence) -> Tensor:
    """Logits of a causal model for each completion token, (A, vocabulary); no others are computed."""
    return model(**packed.read_at(packed.predictors), logits_to_keep=packed.predictors).logits[0]


def completion_token_logprobs(model: Any, packed: PackedSequence) -> Tensor:
    """Log-probability of each completion token under a causal model, shape (A,)."""
    return token_logprobs(completion_logits(model, packed), packed.targets)


@torch.no_grad()
def score_completions(
    model: Any, rows: Sequence[Row], max_tokens: int, watch: Watcher = unwatched, *, bf16: bool = False
) -> tuple[float, ...]:
    """`log π(a|s)` of every row, summed over the completion tokens, in the order of *rows*.

    *bf16*: use the autocast of a stage with `compute.bf16`, so that its log-ratios begin at 0.
    """
    require_packed_support(model)
    sums = [0.0] * len(rows)
    for packed in _reported(model, rows, max_tokens, "scoring actions", watch):
        moved = packed.to(model.device)
        with precision(moved.input_ids.device, bf16=bf16):
            logprobs = completion_token_logprobs(model, moved)
        for place, total in zip(packed.rows, sum_by_row(logprobs.double(), moved).tolist(), strict=True):
            sums[place] = total
    return tuple(sums)


@torch.no_grad()
def score_tokens(
    model: Any, rows: Sequence[Row], max_tokens: int, watch: Watcher = unwatched, *, bf16: bool = False
) -> tuple[tuple[float, ...], ...]:
    """`log π` of every completion token of every row, in the order of *rows*. *bf16*: see `score_completions`."""
    require_packed_support(model)
    scores: list[tuple[float, ...]] = [()] * len(rows)
    for packed in _reported(model, rows, max_tokens, "scoring tokens", watch):
        moved = packed.to(model.device)
        with precision(moved.input_ids.device, bf16=bf16):
            logprobs = completion_token_logprobs(model, moved).double()
        by_text = logprobs.split(completion_lengths(moved))
        for place, text in zip(packed.rows, packed.texts.tolist(), strict=True):
            scores[place] = tuple(by_text[text].tolist())
    return tuple(scores)


@dataclass(frozen=True, slots=True)
class ForcedAnswer:
    """How a model rates a row's completion when each token is predicted from the true ones before it (teacher
    forcing)."""

    logprob: float
    """`log π(a|s)`: the sum over the completion tokens, in nats."""
    greedy: tuple[bool, ...]
    """Of each completion token, whether it is the most probable one."""

    @property
    def exact(self) -> bool:
        """Whether greedy decoding gives the completion."""
        return all(self.greedy)


@torch.no_grad()
def teacher_forced_answers(
    model: Any, rows: Sequence[Row], max_tokens: int, watch: Watcher = unwatched, *, bf16: bool = False
) -> tuple[ForcedAnswer, ...]:
    """The answer of every row under *model*, in the order of *rows*. *bf16*: see `score_completions`."""
    require_packed_support(model)
    scores: dict[int, ForcedAnswer] = {}
    device = next(model.parameters()).device
    for packed in _reported(model, rows, max_tokens, "scoring answers", watch):
        moved = packed.to(device)
        with precision(device, bf16=bf16):
            logits = completion_logits(model, moved)
        greedy = (logits.argmax(-1) == moved.targets).split(completion_lengths(moved))
        sums = sum_by_row(token_logprobs(logits, moved.targets).double(), moved).tolist()
        for place, text, total in zip(packed.rows, packed.texts.tolist(), sums, strict=True):
            scores[place] = ForcedAnswer(total, tuple(greedy[text].tolist()))
    return tuple(scores[place] for place in range(len(rows)))


def completion_lengths(packed: PackedSequence) -> list[int]:
    """Completion tokens of each text of *packed*; a text can stand for several equal rows."""
    return torch.bincount(packed.owners, minlength=len(packed.states)).tolist()


@torch.no_grad()
def score_states(
    critic: Critic, rows: Sequence[Row], max_tokens: int, watch: Watcher = unwatched, *, bf16: bool = False
) -> tuple[float, ...]:
    """The output of *critic* for each row's state, in [0, 1], in their order. *bf16*: see `score_completions`."""
    require_packed_support(critic)
    scores = [0.0] * len(rows)
    device = next(critic.parameters()).device
    for packed in _reported(critic, states_of(rows), max_tokens, "scoring states", watch):
        moved = packed.to(device)
        with precision(device, bf16=bf16):
            logits = critic(moved)
        for place, value in zip(packed.rows, torch.sigmoid(logits.float()).tolist(), strict=True):
            scores[place] = value
    return tuple(scores)


def _reported(
    model: nn.Module, rows: Sequence[Row], max_tokens: int, stage: str, watch: Watcher
) -> Iterator[PackedSequence]:
    """The packed sequences of *rows* for *model*; each is reported to *watch* after it was processed."""
    done = 0
    for packed in packed_sequences(rows, max_tokens, length_class(model)):
        yield packed
        done += len(packed.rows)
        watch(stage, done, len(rows), None)
