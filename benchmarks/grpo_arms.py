"""What the GRPO benchmarks share: arms and seeds from one start, and their table.

A table has for each run the mean of its late measurements, those after three fifths of its updates: after updates 125,
150, 175 and 200 of a run of 200 that is measured every 25. The share solved changes by several points between two
measurements, so the last one alone is a noisier estimate. Intervals are over examples and seeds together
(:func:`training.loop.evaluation.compare_arms`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any, Final, NamedTuple

from benchmarks.percentages import points, share
from envs.core.errors import BadInput
from envs.core.plain_values import checked, merged
from envs.core.record import Record
from training.grpo.evaluation import Evaluation
from training.grpo.examples import Example, examples_digest
from training.grpo.results import HeldOutEvaluation, read_held_out
from training.grpo.run import train_grpo
from training.grpo.settings import parse_settings
from training.loop.evaluation import Trial, compare_arms
from training.loop.evaluation.arms import ArmResult
from training.loop.evaluation.curves import Curve, write_curves


class Sets(NamedTuple):
    """Examples."""

    learned: Sequence[Example]
    measured: Sequence[Example]


class Setting(NamedTuple):
    """What the runs of one table share."""

    start: Path
    sets: Sets
    base: Mapping[str, Any]
    """Settings of every arm."""
    arms: Mapping[str, Mapping[str, Any]]
    """What each changes of them. An arm `NAME@40` learns from the first 40 % of the examples."""
    out: Path


class ArmRun(Record):
    """One finished run."""

    arm: str
    seed: int
    held_out: tuple[HeldOutEvaluation, ...]
    """In the order of updates; the first is the start's."""

    @property
    def start(self) -> Evaluation:
        return self.held_out[0].measured

    @property
    def late(self) -> tuple[HeldOutEvaluation, ...]:
        """The measurements after three fifths of the updates, the last one included."""
        last = self.held_out[-1].update
        return tuple(one for one in self.held_out if 5 * one.update > 3 * last) or self.held_out[-1:]


class MeasuredExamples(Record):
    """The held-out examples of a table."""

    names: tuple[str, ...]
    digest: str
    """Of the examples with their images; empty if the runs are from before it was recorded."""


class Results(Record):
    """The runs of a table, and its JSON file."""

    examples: MeasuredExamples
    runs: tuple[ArmRun, ...]


def play(setting: Setting, arms: Sequence[str], seeds: Sequence[int]) -> None:
    """Seed after seed, so that a table of few seeds is whole early. Raises BadInput."""
    for arm in arms:
        if arm.partition("@")[0] not in setting.arms:
            raise BadInput(f"unknown arm {arm!r}; there are {', '.join(setting.arms)}")
    for seed in seeds:
        for arm in arms:
            name, _, share = arm.partition("@")
            begun = time.monotonic()
            print(f"{arm}, seed {seed}", flush=True)
            learned = setting.sets.learned[: len(setting.sets.learned) * int(share or 100) // 100]
            result = train_grpo(
                learned,
                str(setting.start),
                setting.out / arm / f"seed-{seed}",
                parse_settings(merged(merged(setting.base, setting.arms[name]), {"seed": seed}), arm),
                held_out=setting.sets.measured,
                log=lambda line: print(f"  {line}", flush=True),
            )
            took = time.monotonic() - begun
            print(f"  {took:.0f} s, {result.held_out[-1].measured.correct}", flush=True)


def completed_runs(out: Path) -> Iterator[ArmRun]:
    """Every run that has ended."""
    for path in sorted(out.glob("*/seed-*/model")):
        folder = path.parent
        seed = int(folder.name.removeprefix("seed-"))
        yield ArmRun(arm=folder.parent.name, seed=seed, held_out=read_held_out(folder))


def read_results(
    out: Path, measured: Sequence[Example], earlier: Path | None = None, *, order: Iterable[str] = ()
) -> Results:
    """The runs in *out*, measured on *measured*, and those of the JSON file *earlier*, by arm in the given *order* and
    by seed; a run in *out* replaces one of the file. Without runs in *out* the examples are those of the file.

    Raises BadInput where no run has ended, or where the file was measured on other examples."""
    stored = None if earlier is None else _read_stored(earlier)
    own = tuple(completed_runs(out))
    if own or stored is None:
        examples = MeasuredExamples(names=tuple(one.name for one in measured), digest=examples_digest(measured))
    else:
        examples = stored.examples
    if stored is not None and stored.examples != examples:
        raise BadInput(
            f"{str(earlier)!r} was not measured on the examples of the runs in {str(out)!r}: leave --earlier out, or "
            "play its runs again"
        )
    by_name = {(run.arm, run.seed): run for run in (*(stored.runs if stored else ()), *own)}
    if not by_name:
        raise BadInput(f"no run in {str(out)!r} has ended: `play` plays them")
    places = {arm: place for place, arm in enumerate(order)}
    runs = sorted(by_name.values(), key=lambda run: (places.get(run.arm, len(places)), run.arm, run.seed))
    return Results(examples=examples, runs=tuple(runs))


def _read_stored(path: Path) -> Results:
    """The results of a table's JSON file. Raises BadInput if it is none."""
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{str(path)!r} cannot be read as the JSON file of a table: {error}") from error
    return checked(Results, read, str(path))


def table(results: Results, write: Path, *, baseline: str = "binary", starts: Mapping[str, str] | None = None) -> None:
    """Writes WRITE.md, .json and .svg; differences are to the arm *baseline*, if it is there. *starts*: the label of
    the start's row for arms whose start is measured apart, as it is asked other questions; `start` for the others."""
    names, labels = results.examples.names, starts or {}
    trials: dict[tuple[str, int, int], list[Trial]] = {}
    for run in results.runs:
        label = labels.get(run.arm, START)
        trials[label, run.seed, 0] = list(_trials(label, run.seed, names, run.held_out[0]))
        for one in run.late:
            trials[run.arm, run.seed, one.update] = list(_trials(run.arm, run.seed, names, one))
    arms = {label for label, _, _ in trials}
    made = compare_arms(chain.from_iterable(trials.values()), baseline=baseline if baseline in arms else None)
    rows = (_row(one, _measurements(one.arm, results.runs, labels)) for one in made.arms)
    text = "\n".join([_late_line(results.runs), "", *_header(made.baseline), *rows]) + "\n"
    write.parent.mkdir(parents=True, exist_ok=True)
    write.with_suffix(".json").write_text(results.model_dump_json() + "\n", encoding="utf-8")
    write.with_suffix(".md").write_text(text, encoding="utf-8")
    write_curves([_curve(run) for run in results.runs], write.with_suffix(".svg"), "update")
    print(text)


def _trials(label: str, seed: int, names: Sequence[str], one: HeldOutEvaluation) -> Iterator[Trial]:
    """A measurement is one attempt at every example."""
    solved = set(one.measured.solved)
    return (Trial(label, seed, name, one.update, name in solved) for name in names)


def _measurements(label: str, runs: Sequence[ArmRun], labels: Mapping[str, str]) -> list[Evaluation]:
    """What the row *label* is the mean of: the start, or the late measurements of an arm."""
    own = [one.measured for run in runs if run.arm == label for one in run.late]
    return own or [run.start for run in runs if labels.get(run.arm, START) == label]


def _late_line(runs: Sequence[ArmRun]) -> str:
    taken = dict.fromkeys(", ".join(str(one.update) for one in run.late) for run in runs)
    return f"Start: at update 0. Arms: means of the measurements after updates {' or '.join(taken)}."


def _curve(run: ArmRun) -> Curve:
    return Curve(
        run.arm,
        run.seed,
        {
            "held out, solved": {one.update: one.measured.correct.value or 0.0 for one in run.held_out},
            "held out, proximity": {one.update: one.measured.proximity for one in run.held_out},
            "held out, wrong and near": {one.update: one.measured.near_misses for one in run.held_out},
        },
    )


START: Final = "start"
_COLUMNS: Final = (
    "arm",
    "seeds",
    "solved",
    "to {}",
    "proximity",
    "wrong and near",
    "answer tokens",
    "of a thought",
    "by seed",
)


def _header(baseline: str) -> tuple[str, str]:
    names = " | ".join(_COLUMNS).format(baseline)
    return f"| {names} |", f"|{' --- |' * len(_COLUMNS)}"


def _row(one: ArmResult, measured: Sequence[Evaluation]) -> str:
    cells = (
        one.arm,
        str(len(one.seeds)),
        share(one.success.value or 0),
        "" if one.change is None else points(one.change.both),
        f"{fmean(taken.proximity for taken in measured):.2f}",
        share(fmean(taken.near_misses for taken in measured)),
        f"{fmean(taken.answer_tokens for taken in measured):.1f}",
        f"{fmean(taken.thought_tokens for taken in measured):.1f}",
        ", ".join(share(seed.success) for seed in one.seeds),
    )
    return f"| {' | '.join(cells)} |"
