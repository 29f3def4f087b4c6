"""Writes adaptive thoughts for a file of examples, a line as each is finished, so that a killed run continues.

OUT            examples with `thought` and `preparation`, in the order of the input once all are done
OUT.run.json   what they are made of: settings, models, examples
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

from envs.core.errors import BadInput
from envs.core.record import Record
from models.base import ModelError
from training.grpo.adaptive.prompts import DECIDE
from training.grpo.adaptive.settings import AdaptiveSettings
from training.grpo.adaptive.steps import StepMaker
from training.grpo.examples import Example, example_line, read_examples, write_examples
from training.loop.parts import begin_or_continue

Watch = Callable[[str, int, int, str | None], None]


def unwatched(_stage: str, _done: int, _all: int, _note: str | None, /) -> None:
    """Shows no progress."""


class AdaptiveInputs(Record):
    """What a file is made of; only a run with equal inputs continues it."""

    examples: str
    """Digest of the examples."""
    policy: str
    judge: str
    settings: AdaptiveSettings


class AdaptiveSummary(Record):
    """Counts over a whole file."""

    file: Path
    examples: int
    levels: dict[int, int]
    """Examples by difficulty."""
    hard: int
    thoughts: int
    """Examples whose answer thinks."""
    agreed: int
    """First thoughts that led to the right action."""
    revised: int
    left_out: int
    """Examples for which a model gave no usable thought or judgement; the same command tries them again."""
    calls: int
    tokens_in: int
    tokens_out: int
    cost_usd: float | None


async def make_adaptive(
    examples: Sequence[Example],
    out: Path,
    maker: StepMaker,
    log: Callable[[str], None],
    watch: Watch = unwatched,
) -> AdaptiveSummary:
    """Makes the thoughts of *examples* that *out* does not hold yet.

    Raises BadInput if *out* was made of other inputs, ModelError if a model cannot be reached; finished examples stay.
    """
    inputs = AdaptiveInputs(
        examples=_digest(examples),
        policy=maker.policy.model.spec,
        judge=maker.judge.model.spec,
        settings=maker.settings,
    )
    _begin(out, inputs)
    done = {example.name: example for example in _finished(out)}
    waiting = [example for example in examples if example.name not in done]
    folder, left = out.parent.resolve(), 0
    watch("preparing", len(done), len(examples), None)
    with out.open("a", encoding="utf-8") as file:
        async for example, made in _all_made(waiting, maker):
            if isinstance(made, ModelError):
                left += 1
                log(f"{example.name} is left out: {made}")
                continue
            file.write(example_line(made, folder))
            file.flush()
            os.fsync(file.fileno())
            done[made.name] = made
            watch("preparing", len(done), len(examples), None)
    finished = [done[example.name] for example in examples if example.name in done]
    write_examples(out, finished)
    return summary_of(out, finished, left)


async def _all_made(
    waiting: Sequence[Example], maker: StepMaker
) -> AsyncIterator[tuple[Example, Example | ModelError]]:
    """Yields each example with its result as it is finished. Raises the ModelError of an unreachable model."""
    slots = asyncio.Semaphore(maker.settings.workers)

    async def made(example: Example) -> tuple[Example, Example | ModelError]:
        async with slots:
            try:
                return example, await maker.make(asked_to_decide(example, maker.settings))
            except ModelError as error:
                if not error.answered:
                    raise
                return example, error

    tasks = [asyncio.create_task(made(example)) for example in waiting]
    try:
        for task in asyncio.as_completed(tasks):
            yield await task
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def asked_to_decide(example: Example, settings: AdaptiveSettings) -> Example:
    """*example* with the instruction of App. A.4, where the settings write it."""
    role, text = example.messages[-1]
    if not settings.decide or text.endswith(DECIDE):
        return example
    return example.model_copy(update={"messages": (*example.messages[:-1], (role, f"{text}\n{DECIDE}"))})


def summary_of(out: Path, made: Sequence[Example], left_out: int) -> AdaptiveSummary:
    facts = [example.preparation for example in made if example.preparation is not None]
    costs = [fact.cost_usd for fact in facts]
    return AdaptiveSummary(
        file=out,
        examples=len(made),
        levels=dict(sorted(Counter(fact.level for fact in facts).items())),
        hard=sum(fact.hard for fact in facts),
        thoughts=sum(fact.agreed is not None for fact in facts),
        agreed=sum(fact.agreed is True for fact in facts),
        revised=sum(fact.revised for fact in facts),
        left_out=left_out,
        calls=sum(fact.calls for fact in facts),
        tokens_in=sum(fact.tokens_in for fact in facts),
        tokens_out=sum(fact.tokens_out for fact in facts),
        cost_usd=None if None in costs else sum(cost or 0.0 for cost in costs),
    )


def _begin(out: Path, inputs: AdaptiveInputs) -> None:
    """Creates the file, or checks that it was made of the same *inputs*. Raises BadInput."""
    record = out.with_name(f"{out.name}.run.json")
    if out.is_dir() or (out.exists() and not record.exists()):
        raise BadInput(f"--out {str(out)!r} exists and holds no thoughts of this command: name another file")
    begin_or_continue(record, inputs, "thoughts", out)


def _finished(out: Path) -> tuple[Example, ...]:
    """The examples that *out* holds. A last line without its end was cut when the process was killed: it is removed."""
    if not out.exists():
        return ()
    data = out.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if whole != data:
        os.truncate(out, len(whole))  # a rewrite that is interrupted would lose the finished ones
    return read_examples(out, empty=True)


def _digest(examples: Sequence[Example]) -> str:
    digest = hashlib.sha256()
    for example in examples:
        digest.update(example.model_dump_json(exclude={"image", "thought", "preparation"}).encode())
        digest.update(example.picture or b"")
    return digest.hexdigest()[:16]
