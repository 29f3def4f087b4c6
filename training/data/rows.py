"""Rows of tokens: each decision's prompt and action, and a mask that is exact because they are kept apart.

The loss counts on the action's own tokens, its end token included, and on nothing else. Text of a page that looks like
a chat template changes nothing: prompts are encoded as when they were sent (:mod:`models.prompting.prompt_tokens`), and
where the ids were recorded they are not encoded at all, unless another tokenizer made them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from envs.core.errors import BadInput
from models.prompting.prompt_tokens import PromptTokens
from training.data.trajectories import Decision, Trajectory, prompt_of


@dataclass(frozen=True, slots=True)
class Row:
    """One decision as tokens."""

    prompt: tuple[int, ...]
    action: tuple[int, ...]
    """With the end token."""
    trajectory: int
    """Index of its trajectory among those that were encoded."""
    time: int
    """0-based number of the decision in its trajectory: the state before it is that of this time."""
    sampled: tuple[float, ...] | None = None
    """Log-probability of each action token when it was sampled; None where that is not known."""

    def __len__(self) -> int:
        return len(self.prompt) + len(self.action)


@dataclass(frozen=True, slots=True)
class Encoded:
    """Rows in the order of trajectories and steps, and what it took to make them."""

    rows: tuple[Row, ...]
    cut: int
    """Prompts whose middle was left out to fit."""
    too_long: tuple[int, ...]
    """Trajectories left out as a whole, because a recorded row is longer than the limit and may not be cut."""

    @property
    def tokens(self) -> int:
        return sum(len(row) for row in self.rows)


class RowEncoder:
    """Encodes for one model. *max_tokens* bounds prompt and action together: whatever does not fit is counted.

    *room*: tokens that a prompt has where the model plays (:func:`models.prompting.prompt_tokens.prompt_room`); prompts
    that are known as text alone are cut as they would be there.
    """

    def __init__(self, tokenizer: Any, max_tokens: int, room: int | None = None) -> None:
        """Raises ValueError where the tokenizer has no end token: a policy could never stop."""
        if tokenizer.eos_token_id is None:
            raise ValueError("the tokenizer has no end-of-sequence token")
        self._end: int = tokenizer.eos_token_id
        self._max_tokens = max_tokens
        self._room = max_tokens if room is None else room
        self._tokenizer = tokenizer

    def encode(self, trajectories: Iterable[Trajectory]) -> Encoded:
        """Raises BadInput for token ids that another tokenizer made, where their prompts are not there as text."""
        prompts = PromptTokens(self._tokenizer)
        rows: list[Row] = []
        too_long: list[int] = []
        for index, trajectory in enumerate(trajectories):
            made = list(self._rows(trajectory, index, prompts))
            if all(len(row) <= self._max_tokens for row in made):
                rows += made
            else:
                too_long.append(index)
        return Encoded(tuple(rows), prompts.cut, tuple(too_long))

    def _rows(self, trajectory: Trajectory, index: int, prompts: PromptTokens) -> Iterator[Row]:
        known = self._knows(trajectory)
        for time, decision in enumerate(trajectory.decisions):
            if decision.tokens is not None and known:
                tokens = decision.tokens
                yield Row(tokens.prompt, tokens.action, index, time, tokens.logprobs)
            elif decision.messages:
                yield self._row(decision, index, time, prompts)
            else:
                raise BadInput(
                    f"the tokens of {trajectory.task.id} (run {trajectory.run_id}) were made by another tokenizer than "
                    "this model's: `mira train sft` learns from such a run, by its texts"
                )

    def _knows(self, trajectory: Trajectory) -> bool:
        """Whether the recorded ids are this tokenizer's: at least half the actions read as what was said. Not all need
        to, because an answer may have been cut within a character."""
        read = [
            all(0 <= one < len(self._tokenizer) for one in (*tokens.prompt, *tokens.action))
            and _letters(self._tokenizer.decode(tokens.action, skip_special_tokens=True)) == _letters(decision.said)
            for decision in trajectory.decisions
            if (tokens := decision.tokens) is not None
        ]
        return 2 * sum(read) >= len(read)

    def _row(self, decision: Decision, index: int, time: int, prompts: PromptTokens) -> Row:
        action = (*prompts.plain(prompts.defused(decision.said)), self._end)
        room = min(self._room, max(1, self._max_tokens - len(action)))
        prompt = prompts.encode(prompt_of(decision), room)
        return Row(prompt, action, index, time)


def _letters(text: str) -> str:
    """Tokenizers differ in what they do with blanks."""
    return re.sub(r"\W+", "", text)
