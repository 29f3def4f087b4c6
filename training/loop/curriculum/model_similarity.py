"""Task similarity as rated by a chat model: the paper uses Gemini-2.5-flash (App. A.3).

One request per failed task covers the pool tasks that TF-IDF ranks nearest, because 400 × 1,500 pairs are too many.
Other pairs have no score. An unreadable answer is an error, never a score; so is an answer that rates a task twice, not
at all, or one that was not listed.
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
from training.loop.curriculum.similarity import Scores, TfIdf

MOST: Final = 10
"""Rating of a task against itself."""

SYSTEM: Final = f"""\
You choose what a web agent practises next. You get a task that it failed and a numbered list of other tasks. Rate how \
much practising each of them would train the skills that the failed task needs: the same kind of page, the same steps, \
the same kind of goal. Names, dates and numbers that differ do not matter.

{MOST}: the same task with other names or numbers. {MOST // 2}: the same pages or most of the same steps. 0: nothing \
in common.

{FENCE_RULE}

Answer with a JSON object: {{"ratings": [{{"number": 1, "likeness": 0 to {MOST}}}, …]}}, each number once."""


class SimilarityFailed(EnvError):
    """A model returned no usable ratings. The message names model and reason in one line."""


class Rating(Record):
    number: int
    """1-based position in the list of the prompt."""
    likeness: int = Field(ge=0, le=MOST)


class Ratings(Record):
    """The model's answer."""

    ratings: tuple[Rating, ...]


class ModelSimilaritySettings(Record):
    shortlist: int = Field(default=24, ge=1, le=100)
    """Number of pool tasks that the model rates for each failed one; at least the curriculum's top_k."""
    parallel: int = Field(default=4, ge=1)
    """Number of concurrent requests."""
    deadline_s: float = Field(default=120.0, gt=0)
    max_tokens: int = Field(default=2_048, ge=64)


@dataclass(frozen=True, slots=True)
class ModelSimilarity:
    """A :class:`training.loop.curriculum.Similarity` that looks up a model's ratings of the requested texts."""

    ratings: Mapping[str, Mapping[str, float]]
    """Failed text → pool text → similarity, in [0, 1]."""
    usages: tuple[Usage, ...] = field(default=())
    """Usage of the requests, in the order of the failed texts."""

    def scores(self, failed: Sequence[str], pool: Sequence[str]) -> Scores:
        """NaN for pairs without a rating. Raises KeyError for a failed text that was not requested."""
        rows = [[self.ratings[text].get(other, np.nan) for other in pool] for text in failed]
        return np.array(rows, dtype=np.float64).reshape(len(failed), len(pool))


async def rate_similarity(
    model: ChatModel,
    failed: Sequence[str],
    pool: Sequence[str],
    settings: ModelSimilaritySettings | None = None,
    *,
    on_answer: Callable[[], None] = lambda: None,
) -> ModelSimilarity:
    """Requests ratings of *model* for each distinct text of *failed*; *on_answer* is called after each answer.

    TF-IDF makes the shortlists. Raises SimilarityFailed and cancels the remaining requests.
    """
    settings = settings or ModelSimilaritySettings()
    questions, offers = sorted(set(failed)), sorted(set(pool))
    similarity = TfIdf().scores(questions, offers)
    semaphore = asyncio.Semaphore(settings.parallel)

    async def rate(question: str, row: Sequence[float]) -> tuple[dict[str, float], Usage]:
        best = sorted(range(len(offers)), key=lambda place: (-row[place], offers[place]))[: settings.shortlist]
        async with semaphore:
            answer = await _rated(model, question, [offers[place] for place in best], settings)
        on_answer()
        return answer

    try:
        async with asyncio.TaskGroup() as group:
            running = [
                group.create_task(rate(question, row))
                for question, row in zip(questions, similarity.tolist(), strict=True)
                if offers
            ]
    except* SimilarityFailed as failures:
        raise failures.exceptions[0] from None
    answers = [task.result() for task in running] or [({}, Usage()) for _ in questions]
    return ModelSimilarity(
        {question: ratings for question, (ratings, _) in zip(questions, answers, strict=True)},
        tuple(usage for _, usage in answers),
    )


def render(failed: str, offers: Sequence[str]) -> tuple[Message, ...]:
    """Renders the prompt. Instructions may come from pages, so they are fenced as data."""
    listed = "\n".join(f"{number}. {one_line(storable(text), 400)}" for number, text in enumerate(offers, 1))
    text = joined("\n\n", (fenced("failed task", storable(failed)), fenced("tasks", listed)))
    return message("system", own(SYSTEM)), message("user", text)


async def _rated(
    model: ChatModel, failed: str, offers: Sequence[str], settings: ModelSimilaritySettings
) -> tuple[dict[str, float], Usage]:
    request = ChatRequest(
        messages=render(failed, offers), max_tokens=settings.max_tokens, deadline_s=settings.deadline_s
    )
    try:
        result = await ask(model, request, Ratings)
    except ModelError as error:
        reason = one_line(storable(str(error)), 200)
        raise SimilarityFailed(f"{model.spec} rated no tasks: {type(error).__name__}: {reason}") from error
    numbers = sorted(rating.number for rating in result.answer.ratings)
    if numbers != list(range(1, len(offers) + 1)):
        raise SimilarityFailed(f"{model.spec} was to rate tasks 1 to {len(offers)} once each, but rated {numbers}")
    rated = {offers[rating.number - 1]: rating.likeness / MOST for rating in result.answer.ratings}
    return rated, result.reply.usage
