"""Tasks that a model writes from failed ones, and the filter of their complexity (MiRA paper, App. A.3).

One request for each failed task asks for new instructions that begin at the same place, a second one rates them: can it
be done there, and in how many steps? Those that cannot, or that take too few or too many steps, are dropped. The paper
drops what does not "meet specific complexity criteria" and does not name them.

A written task has no checker (:mod:`envs.core.written_tasks`): a model judges the outcome of its episodes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Final, TypeVar

from pydantic import Field

from envs.core.errors import EnvError
from envs.core.record import Record, storable
from envs.observer.page_text import one_line
from models.asking import ask
from models.base import ChatModel, ChatRequest, Message, ModelError, ModelInvalidAnswer, ModelTruncated
from models.prompting.fence import FENCE_RULE
from models.prompting.prompt_text import PromptText, fenced, fenced_lines, joined, message, number, words
from training.loop.curriculum.failures import Failed, deduplicated
from training.loop.curriculum.pool import Candidate
from training.loop.curriculum.settings import WritingSettings
from training.loop.curriculum.trainable import check_trainable
from training.loop.curriculum.variants import Variant

Answer = TypeVar("Answer", bound=Record)

MOST_CHARS: Final = 600
"""Longest written instruction."""
SHOWN: Final = 8
"""Other tasks of the category that are shown as examples of what can be done there."""

WRITE: Final = f"""\
You write practice tasks for an agent that operates a web browser. You get a task that it failed and other tasks that \
begin at the same kind of place.

Rules
- A new task begins where the failed one begins. It needs the same skills, and is another task, not other words for it.
- Ask only for what can surely be done there, with names and values that the tasks show.
- Someone who reads the pages afterwards can tell whether it was done: state the result, not the clicks.
- One or two sentences, as a person would ask.
- {FENCE_RULE}

Answer with one JSON object: {{"tasks": ["…", …]}}, as many as asked for."""

RATE: Final = f"""\
You check practice tasks for an agent that operates a web browser. You get a task that exists and a numbered list of \
new tasks that begin at the same place. Say of each new task whether it can surely be done there and be checked \
afterwards, and how many actions (clicks, texts typed, choices) it takes.

{FENCE_RULE}

Answer with one JSON object: {{"ratings": [{{"number": 1, "possible": true or false, "steps": number}}, …]}}, each \
number once."""


class WritingFailed(EnvError):
    """A model could not be asked to write or rate tasks. The message names model and reason in one line."""


class UnusableAnswer(WritingFailed):
    """A model wrote or rated no usable tasks."""


class Written(Record):
    """The answer to WRITE."""

    tasks: tuple[str, ...] = Field(min_length=1)


class TaskRating(Record):
    number: int
    """1-based position in the list of the prompt."""
    possible: bool
    steps: int = Field(ge=0)


class TaskRatings(Record):
    """The answer to RATE."""

    ratings: tuple[TaskRating, ...]


async def write_tasks(
    model: ChatModel,
    failed: Sequence[Failed],
    known: Sequence[Candidate],
    settings: WritingSettings | None = None,
    log: Callable[[str], None] = print,
) -> tuple[Variant, ...]:
    """New tasks from each distinct failed one, in the order of the failures, without duplicates of each other and of
    *known* instructions. Where an answer cannot be used, *log* gets the reason, and that failure gives no tasks.

    Raises BadInput where a failed task is held out, WritingFailed where the model cannot be asked.
    """
    settings = settings or WritingSettings()
    failures = [failure for failure in deduplicated(failed) if failure.instruction]
    for failure in failures:
        check_trainable(failure.task)
    semaphore = asyncio.Semaphore(settings.parallel)

    async def write(failure: Failed) -> list[str]:
        async with semaphore:
            try:
                texts = await _written(model, failure, _examples(failure, known), settings)
                return await _rated(model, failure, texts, settings) if texts else []
            except UnusableAnswer as problem:
                log(f"no tasks are written from {failure.task.id}: {problem}")
                return []

    try:
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(write(failure)) for failure in failures]
    except* WritingFailed as problems:
        raise problems.exceptions[0] from None
    taken = {_key(text) for text in (*(one.instruction for one in known), *(one.instruction for one in failures))}
    variants: list[Variant] = []
    for failure, texts in zip(failures, (task.result() for task in running), strict=True):
        variants += [_variant(failure, text) for text in _new(texts, taken)]
    return tuple(variants)


def _variant(failure: Failed, text: str) -> Variant:
    ref = failure.task.model_copy(update={"written": text})
    return Variant(Candidate(ref, text, failure.category), failure.task, "written")


def _new(texts: Sequence[str], taken: set[str]) -> list[str]:
    """Those of *texts* that are not in *taken*, which grows."""
    new: list[str] = []
    for text in texts:
        if (key := _key(text)) and key not in taken:
            taken.add(key)
            new.append(text)
    return new


def _key(text: str) -> str:
    """The letters and digits of an instruction: equal for the same words."""
    return "".join(filter(str.isalnum, text.casefold()))


def _examples(failure: Failed, known: Collection[Candidate]) -> list[str]:
    """Instructions of other tasks of the same category and suite, at most SHOWN, spread over the names."""
    own = [
        one
        for one in known
        if one.instruction and one.category == failure.category and one.ref.suite == failure.task.suite
    ]
    by_name = {one.ref.name: one.instruction for one in reversed(own) if one.ref.name != failure.task.name}
    return [by_name[name] for name in sorted(by_name)][:SHOWN]


def _failed_part(failure: Failed) -> PromptText:
    return fenced("failed task", one_line(storable(failure.instruction), MOST_CHARS))


def render_writing(failure: Failed, examples: Sequence[str], count: int) -> tuple[Message, ...]:
    """Instructions may come from pages, so they are fenced as data."""
    listed = fenced_lines("other tasks", (f"- {one_line(storable(text), MOST_CHARS)}" for text in examples))
    asked = joined("", (words("Write "), number(count), words(" new tasks.")))
    parts = (_failed_part(failure), listed, asked) if examples else (_failed_part(failure), asked)
    return message("system", words(WRITE)), message("user", joined("\n\n", parts))


def render_rating(failure: Failed, texts: Sequence[str]) -> tuple[Message, ...]:
    listed = fenced_lines("new tasks", (f"{place}. {text}" for place, text in enumerate(texts, 1)))
    return message("system", words(RATE)), message("user", joined("\n\n", (_failed_part(failure), listed)))


async def _written(model: ChatModel, failure: Failed, examples: Sequence[str], settings: WritingSettings) -> list[str]:
    messages = render_writing(failure, examples, settings.each)
    answer = await _asked(model, messages, Written, 120 * settings.each + 200, settings)
    texts = [one_line(storable(text), MOST_CHARS + 1) for text in answer.tasks[: settings.each]]
    return [text for text in texts if 0 < len(text) <= MOST_CHARS]


async def _rated(model: ChatModel, failure: Failed, texts: Sequence[str], settings: WritingSettings) -> list[str]:
    """Those of *texts* that can be done in a number of steps of the settings."""
    answer = await _asked(model, render_rating(failure, texts), TaskRatings, 40 * len(texts) + 200, settings)
    numbers = sorted(rating.number for rating in answer.ratings)
    if numbers != list(range(1, len(texts) + 1)):
        raise UnusableAnswer(f"{model.spec} was to rate tasks 1 to {len(texts)} once each, but rated {numbers}")
    low, high = settings.min_steps, settings.max_steps
    kept = {one.number for one in answer.ratings if one.possible and low <= one.steps <= high}
    return [text for place, text in enumerate(texts, 1) if place in kept]


async def _asked(
    model: ChatModel, messages: Sequence[Message], schema: type[Answer], tokens: int, settings: WritingSettings
) -> Answer:
    request = ChatRequest(messages=tuple(messages), max_tokens=tokens, deadline_s=settings.deadline_s)
    try:
        return (await ask(model, request, schema)).answer
    except ModelError as error:
        unusable = isinstance(error, ModelInvalidAnswer | ModelTruncated)
        reason = one_line(storable(str(error)), 200)
        problem = f"{model.spec} wrote no tasks: {type(error).__name__}: {reason}"
        raise (UnusableAnswer if unusable else WritingFailed)(problem) from error
