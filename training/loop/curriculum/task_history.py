"""Likeness as a chat model judges it: the paper asks Gemini-2.5-flash (App. A.3).

One question for each failed task, about the pool tasks that TF-IDF finds nearest to it: nobody asks a model about each
of 400 × 1,500 pairs. Pairs that were not asked about have no score. An answer that cannot be read is an error, never a
score, and so is one that rates a task twice, not at all, or one that was not on the list.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from pydantic import Field

from envs.core.errors import EnvError
from envs.core.record import Record, storable
from envs.observer.page_text import one_line
from models.asking import ask
from models.base import ChatModel, ChatRequest, Message, ModelError, Usage
from models.prompting.fence import FENCE_RULE
from models.prompting.prompt_text import fenced, joined, message, own
from training.loop.curriculum.similarity import Scores, Similarity, TfIdf

MOST: Final = 10
"""The likeness of a task to itself."""

SYSTEM: Final = f"""\
You choose what a web agent practises next. You get a task that it failed and a numbered list of other tasks. Rate how \
much practising each of them would train the skills that the failed task needs: the same kind of page, the same steps, \
the same kind of goal. Names, dates and numbers that differ do not matter.

{MOST}: the same task with other names or numbers. {MOST // 2}: the same pages or most of the same steps. 0: nothing \
in common.

{FENCE_RULE}

Answer with a JSON object: {{"ratings": [{{"number": 1, "likeness": 0 to {MOST}}}, …]}}, each number once."""


class SimilarityFailed(EnvError):
    """A model gave no usable ratings. The message names the model and what is wrong, in one line."""


class Rating(Record):
    number: int
    """1-based place in the list that was shown."""
    likeness: int = Field(ge=0, le=MOST)


class Ratings(Record):
    """What the model answers with."""

    ratings: tuple[Rating, ...]


class AskedSettings(Record):
    shortlist: int = Field(default=24, ge=1, le=100)
    """Pool tasks that the model sees for each failed one; not fewer than the curriculum's top_k."""
    parallel: int = Field(default=4, ge=1)
    """Questions under way at once."""
    deadline_s: float = Field(default=120.0, gt=0)
    max_tokens: int = Field(default=2_048, ge=64)


@dataclass(frozen=True, slots=True)
class Judged:
    """A model's ratings, looked up: a :class:`training.loop.curriculum.Similarity` for the texts that were asked
    about."""

    ratings: Mapping[str, Mapping[str, float]]
    """Failed text to pool text to likeness, in [0, 1]."""
    usages: tuple[Usage, ...] = field(default=())
    """What the questions cost, in the order of the failed texts."""

    def scores(self, failed: Sequence[str], pool: Sequence[str]) -> Scores:
        """NaN for pairs that the model was not asked about. Raises KeyError for a failed text that it never saw."""
        rows = [[self.ratings[one].get(other, np.nan) for other in pool] for one in failed]
        return np.array(rows, dtype=np.float64).reshape(len(failed), len(pool))


async def judged(
    model: ChatModel,
    failed: Sequence[str],
    pool: Sequence[str],
    settings: AskedSettings | None = None,
    *,
    nearest: Similarity | None = None,
    told: Callable[[], None] = lambda: None,
) -> Judged:
    """Asks *model* about each different text of *failed*; *told* is called after each answer.

    *nearest* draws up the shortlists, TF-IDF by default. Raises SimilarityFailed; then the questions that are still
    under way are given up.
    """
    settings = settings or AskedSettings()
    questions, offers = sorted(set(failed)), sorted(set(pool))
    likeness = (nearest or TfIdf()).scores(questions, offers)
    turn = asyncio.Semaphore(settings.parallel)

    async def asked(question: str, row: Sequence[float]) -> tuple[dict[str, float], Usage]:
        best = sorted(range(len(offers)), key=lambda place: (-row[place], offers[place]))[: settings.shortlist]
        async with turn:
            answer = await _asked(model, question, [offers[place] for place in best], settings)
        told()
        return answer

    try:
        async with asyncio.TaskGroup() as group:
            running = [
                group.create_task(asked(question, row))
                for question, row in zip(questions, likeness.tolist(), strict=True)
                if offers
            ]
    except* SimilarityFailed as failures:
        raise failures.exceptions[0] from None
    answers = [one.result() for one in running] or [({}, Usage()) for _ in questions]
    return Judged(
        {question: ratings for question, (ratings, _) in zip(questions, answers, strict=True)},
        tuple(usage for _, usage in answers),
    )


def render(failed: str, offers: Sequence[str]) -> tuple[Message, ...]:
    """The model's messages. Instructions may come from pages, so they are fenced as data."""
    listed = "\n".join(f"{number}. {one_line(storable(text), 400)}" for number, text in enumerate(offers, 1))
    told = joined("\n\n", (fenced("failed task", storable(failed)), fenced("tasks", listed)))
    return message("system", own(SYSTEM)), message("user", told)


async def _asked(
    model: ChatModel, failed: str, offers: Sequence[str], settings: AskedSettings
) -> tuple[dict[str, float], Usage]:
    request = ChatRequest(
        messages=render(failed, offers), max_tokens=settings.max_tokens, deadline_s=settings.deadline_s
    )
    try:
        asked = await ask(model, request, Ratings)
    except ModelError as error:
        reason = one_line(storable(str(error)), 200)
        raise SimilarityFailed(f"{model.spec} rated no tasks: {type(error).__name__}: {reason}") from error
    numbers = sorted(rating.number for rating in asked.answer.ratings)
    if numbers != list(range(1, len(offers) + 1)):
        raise SimilarityFailed(f"{model.spec} was to rate tasks 1 to {len(offers)} once each, but rated {numbers}")
    rated = {offers[rating.number - 1]: rating.likeness / MOST for rating in asked.answer.ratings}
    return rated, asked.reply.usage
