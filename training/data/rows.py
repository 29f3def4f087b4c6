"""Encodes decisions as rows of token ids: a prompt and a completion, stored apart, so that the loss mask is exact.

The loss counts on the completion tokens only, the end token included. Page text that looks like a chat template has no
effect: prompts are encoded as when they were sent (:mod:`models.prompting.prompt_tokens`). Recorded token ids are used
as they are, unless another tokenizer made them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agent.episode.policy import MAX_ANSWER_TOKENS
from envs.core.errors import BadInput
from models.base import Message
from models.prompting.prompt_tokens import PromptTokens, prompt_room
from training.data.trajectories import Decision, Trajectory, prompt_of


@dataclass(frozen=True, slots=True)
class Row:
    """One decision as tokens."""

    prompt: tuple[int, ...]
    completion: tuple[int, ...]
    """The answer's tokens, with the end token."""
    trajectory: int
    """Index of its trajectory among the encoded ones."""
    time: int
    """0-based number of the decision in its trajectory; also the time of the state before it."""
    sampled: tuple[float, ...] | None = None
    """Log-probability of each completion token when it was sampled; None where unknown."""
    start: tuple[float, ...] | None = None
    """Log-probability of each completion token under the start of training, for a KL penalty; None without one."""

    def __len__(self) -> int:
        return len(self.prompt) + len(self.completion)


@dataclass(frozen=True, slots=True)
class Encoded:
    """Rows in the order of trajectories and steps, with counts of what was cut or left out."""

    rows: tuple[Row, ...]
    cut: int
    """Number of prompts whose middle was removed to fit the limit."""
    too_long: tuple[int, ...]
    """Indices of trajectories that were left out, because a recorded row exceeds the limit and may not be cut."""

    @property
    def tokens(self) -> int:
        return sum(len(row) for row in self.rows)


def room_at_play(config: Any, tokenizer: Any) -> int:
    """The limit of a prompt's tokens when the checkpoint plays, with one action an answer: what its *config* and its
    *tokenizer* declare, less the room for an answer."""
    from models.local.loading import declared_context  # imports PyTorch, which the help of commands does not need

    return prompt_room(declared_context(config, tokenizer), MAX_ANSWER_TOKENS)


def fitted_prompt(
    prompts: PromptTokens, messages: Sequence[Message], completion: Sequence[int], max_tokens: int, room: int
) -> tuple[int, ...]:
    """The token ids of *messages*, cut as at play to *room* tokens, and further where prompt and *completion* would
    exceed *max_tokens*."""
    return prompts.encode(messages, min(room, max(1, max_tokens - len(completion))))


class RowEncoder:
    """Encodes trajectories for one model. *max_tokens* bounds prompt and completion together.

    *room*: the prompt's token limit when the model plays, see :func:`room_at_play`. Prompts that are stored as text are
    cut in the same way.
    """

    def __init__(self, tokenizer: Any, max_tokens: int, room: int | None = None) -> None:
        """Raises ValueError where the tokenizer has no end token: completions would never end."""
        if tokenizer.eos_token_id is None:
            raise ValueError("the tokenizer has no end-of-sequence token")
        self._end: int = tokenizer.eos_token_id
        self._max_tokens = max_tokens
        self._room = max_tokens if room is None else room
        self._tokenizer = tokenizer

    def encode(self, trajectories: Iterable[Trajectory]) -> Encoded:
        """Raises BadInput for token ids of another tokenizer whose prompts are not stored as text."""
        prompts = PromptTokens(self._tokenizer)
        rows: list[Row] = []
        too_long: list[int] = []
        for index, trajectory in enumerate(trajectories):
            own = list(self._rows(trajectory, index, prompts))
            if all(len(row) <= self._max_tokens for row in own):
                rows += own
            else:
                too_long.append(index)
        return Encoded(tuple(rows), prompts.cut, tuple(too_long))

    def _rows(self, trajectory: Trajectory, index: int, prompts: PromptTokens) -> Iterator[Row]:
        known = self._has_own_ids(trajectory)
        for time, decision in enumerate(trajectory.decisions):
            if decision.tokens is not None and known:
                tokens = decision.tokens
                yield Row(tokens.prompt, tokens.completion, index, time, tokens.logprobs)
            elif decision.messages:
                yield self._row(decision, index, time, prompts)
            else:
                raise BadInput(
                    f"the tokens of {trajectory.task.id} (run {trajectory.run_id}) were made by another tokenizer than "
                    "this model's: `mira train sft` can train on such a run, by its texts"
                )

    def _has_own_ids(self, trajectory: Trajectory) -> bool:
        """Whether this tokenizer made the recorded ids: at least half of the completions decode to the recorded text.
        A completion may be cut within a character, so not all need to match."""
        matches = [
            all(0 <= token < len(self._tokenizer) for token in (*tokens.prompt, *tokens.completion))
            and _letters(self._tokenizer.decode(tokens.completion, skip_special_tokens=True))
            == _letters(decision.completion)
            for decision in trajectory.decisions
            if (tokens := decision.tokens) is not None
        ]
        return 2 * sum(matches) >= len(matches)

    def _row(self, decision: Decision, index: int, time: int, prompts: PromptTokens) -> Row:
        completion = (*prompts.plain(prompts.defused(decision.completion)), self._end)
        prompt = fitted_prompt(prompts, prompt_of(decision), completion, self._max_tokens, self._room)
        return Row(prompt, completion, index, time)


def _letters(text: str) -> str:
    """*text* without white space and punctuation: tokenizers treat spaces differently."""
    return re.sub(r"\W+", "", text)
