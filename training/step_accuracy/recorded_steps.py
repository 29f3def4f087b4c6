"""How often a checkpoint repeats recorded actions, given what the recorded policy saw: no browser, no sampling.

Every completion is scored with teacher forcing. A step is exact where each of its tokens is the most probable one, so
greedy decoding gives the recorded answer. The rate is a lower bound: another action may be right as well. The first
wrong token shows what a model confuses: the action, the element, or the text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from envs.core.errors import BadInput
from envs.core.record import Record
from judges.statistics import RESAMPLES, Estimate, clustered_mean, proportion
from training.data.rows import Row, RowEncoder, room_at_play
from training.engine.annotate import ForcedAnswer, teacher_forced_answers
from training.engine.checkpoints import load_policy, select_device
from training.engine.half_weights import hold_frozen_in_bfloat16
from training.engine.progress import Watcher, unwatched
from training.engine.settings import Compute
from training.loop.data import read_runs
from training.starts import start_folder
from training.step_accuracy.report import Rate

SYNTAX: Final = "syntax"
"""Place of a first wrong token outside all quoted values: the form of the answer, or where it ends."""

_OPEN_VALUE = re.compile(r'(\w+)="[^"]*$')


class RecordedTask(Record):
    """The steps of one task instance."""

    task: str
    steps: int
    exact: int


class RecordedAccuracy(Record):
    """What `mira eval steps` prints."""

    checkpoint: str
    steps: int
    exact: Rate
    whole_tasks: Estimate
    """Share of the task instances with every step exact, with Wilson's interval."""
    loss: float
    """Mean over completion tokens, in nats."""
    first_wrong: dict[str, int]
    """Of the steps that are not exact: the argument that holds the first wrong token, such as `element`, or
    `SYNTAX`."""
    tasks: tuple[RecordedTask, ...]
    cut: int
    """Prompts whose middle was removed to fit the model."""
    failures: int
    """Failed episodes, which are left out."""
    too_long: int
    """Episodes that are left out, because a row does not fit the model."""


def recorded_accuracy(
    start: str,
    runs: Sequence[Path],
    compute: Compute,
    log: Callable[[str], None],
    watch: Watcher = unwatched,
) -> RecordedAccuracy:
    """Scores the checkpoint *start* (a folder, a GGUF file, or `embedded`) on the successes in *runs*.

    Raises BadInput where the checkpoint cannot be read or takes no packed sequences, and where *runs* hold no success
    with prompts.
    """
    selection = read_runs(runs, texts=True)
    for notice in selection.provenance.notices():
        log(notice)
    kept = [trajectory for trajectory in selection.kept if trajectory.success]
    if not kept:
        raise BadInput("these runs hold no success with prompts; `mira run --policy oracle` records some")
    device = select_device(compute)
    model, tokenizer = load_policy(start_folder(start), half=compute.bf16)
    room = room_at_play(model.config, tokenizer)
    encoded = RowEncoder(tokenizer, compute.max_tokens, room).encode(kept)
    if not encoded.rows:
        raise BadInput(f"every episode has a row longer than {compute.max_tokens} tokens: raise --max-tokens")
    hold_frozen_in_bfloat16(model.eval(), compute, frozen=True).to(device)
    answers = teacher_forced_answers(model, encoded.rows, compute.pack_tokens, watch, bf16=compute.bf16)
    names = [kept[row.trajectory].task.id for row in encoded.rows]
    tokens = sum(len(row.completion) for row in encoded.rows)
    exact = [answer.exact for answer in answers]
    tasks = _by_task(names, exact)
    return RecordedAccuracy(
        checkpoint=start,
        steps=len(exact),
        exact=Rate(
            wilson=proportion(sum(exact), len(exact)),
            by_episode=clustered_mean(exact, names, resamples=RESAMPLES, seed=0),
        ),
        whole_tasks=proportion(sum(task.exact == task.steps for task in tasks), len(tasks)),
        loss=-sum(answer.logprob for answer in answers) / tokens,
        first_wrong=_first_wrong(tokenizer, encoded.rows, answers),
        tasks=tasks,
        cut=encoded.cut,
        failures=len(selection.kept) - len(kept),
        too_long=len(encoded.too_long),
    )


def _by_task(names: Sequence[str], exact: Sequence[bool]) -> tuple[RecordedTask, ...]:
    steps, hits = Counter(names), Counter(name for name, hit in zip(names, exact, strict=True) if hit)
    return tuple(RecordedTask(task=name, steps=count, exact=hits[name]) for name, count in steps.items())


def _first_wrong(tokenizer: Any, rows: Sequence[Row], answers: Sequence[ForcedAnswer]) -> dict[str, int]:
    wrong = Counter(
        argument_at(tokenizer.decode(row.completion[: answer.greedy.index(False)]))
        for row, answer in zip(rows, answers, strict=True)
        if not answer.exact
    )
    return dict(wrong.most_common())


def argument_at(answer: str) -> str:
    """The argument whose quoted value *answer*, the beginning of an answer, ends in; `SYNTAX` outside of any.

    >>> argument_at('do(action="Click", element="1')
    'element'
    """
    value = _OPEN_VALUE.search(answer)
    return value[1] if value else SYNTAX
