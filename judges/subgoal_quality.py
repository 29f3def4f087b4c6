"""How much milestones say about success: the subgoal quality of the MiRA paper, §5.1.

For traces i with the checker's outcome `y_i` and the completion vector `z_i` at the end:

- *exact equivalence*: precision, recall and F1 of "all milestones done ⇔ success";
- *graded agreement*: AUROC of the progress score `s_i = mean_k z_ik`, and Kendall's τ-b of `s` and `y` with its p;
- *calibration*: P(success | m done), and whether it rises strictly with m;
- *milestones that tell nothing*: never or always done; and P(milestone k done by step t).

Intervals are at 95 %. Proportions (precision, recall, the calibration) have Wilson's. F1, AUROC and τ have the
percentiles of a bootstrap over traces, stratified by outcome: each resample draws as many successes and as many
failures as there were, so every resample has both classes, and the success rate counts as given.

Pure: reads trace records, asks no model.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from envs.core.record import Record
from judges.metrics import ScoreTable, Spread, tau_p
from judges.shared_text import shared_text
from judges.statistics import Estimate, proportion
from judges.trace_ratings import Observed, Source

Group = Literal["all", "success", "failure"]

MAX_HEAT_STEPS: Final = 60
"""Steps of the heat map; what came later counts at the last one."""


class Point(Record):
    """P(success) of the traces with `done` of their milestones done."""

    done: int
    traces: int
    success: Estimate


class Calibration(Record):
    """One curve: P(success | m done) of the traces with `of` milestones; of all traces where `of` is None."""

    of: int | None
    points: tuple[Point, ...]
    """In order of m; an m that no trace had is missing."""
    strictly_increasing: bool | None
    """Over the points there are; None where there are fewer than two."""


class MilestoneRow(Record):
    """How often one milestone of a task was done at the end."""

    task: str
    milestone: str
    text: str
    """What its texts in all these traces have in common, `…` where they differ; empty where that is nothing."""
    done: int
    traces: int

    @property
    def tells_nothing(self) -> Literal["never", "always"] | None:
        """Set where it was the same in every trace."""
        return "never" if self.done == 0 else "always" if self.done == self.traces else None


class HeatMap(Record):
    """P(milestone k done by step t) over the traces with one outcome, or all."""

    group: Group
    rows: tuple[tuple[float, ...], ...]
    """`rows[k][t]`: share of the traces with more than k milestones that had done the (k+1)th within t steps; a trace
    that ended keeps what it had."""
    traces: tuple[int, ...]
    """Traces behind each row."""


class Quality(Record):
    """The table of §5.1, and what stands behind it."""

    source: Source
    traces: int
    successes: int
    all_done: int
    precision: Estimate
    recall: Estimate
    f1: Estimate
    auroc: Estimate
    tau: Estimate
    tau_p: float | None
    """Two-sided p of "τ is 0"; None where τ is not defined."""
    calibration: tuple[Calibration, ...]
    milestones: tuple[MilestoneRow, ...]
    heat: tuple[HeatMap, ...]


class Agreement(Record):
    """The rater's z against the state checks', milestone by milestone, on traces that have both."""

    traces: int
    milestones: int
    same: Estimate
    only_rater: int
    """Done for the rater alone: undone again before the end, or never true."""
    only_checks: int


class PaperNumbers(NamedTuple):
    precision: float = 0.7917
    recall: float = 0.6032
    f1: float = 0.6847
    auroc: float = 0.84
    tau: float = 0.4585


PAPER: Final = PaperNumbers()
"""§5.1 of the MiRA paper: milestones by Gemini-2.5-pro on WebArena-Lite, τ with p < 0.001."""


def quality(observed: Sequence[Observed], source: Source, *, resamples: int = 2000, seed: int = 0) -> Quality:
    """All of it for the traces given, none of which may be one that is unfit; the same seed gives the same numbers."""
    table = ScoreTable.of(observed)
    spread = Spread(table, resamples, seed)
    return Quality(
        source=source,
        traces=len(observed),
        successes=int(table.won.sum()),
        all_done=int(table.won[-1] + table.lost[-1]) if len(observed) else 0,
        precision=spread.estimate("precision"),
        recall=spread.estimate("recall"),
        f1=spread.estimate("f1"),
        auroc=spread.estimate("auroc"),
        tau=spread.estimate("tau"),
        tau_p=tau_p(table),
        calibration=tuple(_calibrations(observed)),
        milestones=tuple(_milestone_rows(observed)),
        heat=tuple(heat_maps(observed)),
    )


def agreement(pairs: Iterable[tuple[Observed, Observed]]) -> Agreement:
    """Of (checks, rater) of the same traces; a pair whose milestones are not the same is passed over."""
    counts: Counter[tuple[bool, bool]] = Counter()
    traces = 0
    for checks, rater in pairs:
        if checks.milestones == rater.milestones:
            traces += 1
            counts.update(zip(checks.z, rater.z, strict=True))
    total = sum(counts.values())
    return Agreement(
        traces=traces,
        milestones=total,
        same=proportion(counts[True, True] + counts[False, False], total),
        only_rater=counts[False, True],
        only_checks=counts[True, False],
    )


def _calibrations(observed: Sequence[Observed]) -> Iterable[Calibration]:
    """Over all traces first, then for each number of milestones, where there is more than one."""
    sizes = sorted({len(one.z) for one in observed})
    for of in (None, *sizes) if len(sizes) > 1 else sizes:
        tally: defaultdict[int, list[bool]] = defaultdict(list)
        for one in observed:
            if of in (None, len(one.z)):
                tally[sum(one.z)].append(one.success)
        points = tuple(
            Point(done=m, traces=len(tally[m]), success=proportion(sum(tally[m]), len(tally[m]))) for m in sorted(tally)
        )
        shares = [point.success.value or 0.0 for point in points]
        rising = all(a < b for a, b in pairwise(shares)) if len(points) > 1 else None
        yield Calibration(of=of, points=points, strictly_increasing=rising)


def _milestone_rows(observed: Sequence[Observed]) -> Iterable[MilestoneRow]:
    """By task and milestone, in the order first seen. Instances of a task name other things in the same milestone."""
    done: Counter[tuple[str, str]] = Counter()
    traces: Counter[tuple[str, str]] = Counter()
    texts: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for one in observed:
        for name, text, held in zip(one.milestones, one.texts, one.z, strict=True):
            texts[one.task, name].append(text)
            traces[one.task, name] += 1
            done[one.task, name] += held
    for (task, name), told in texts.items():
        key = task, name
        yield MilestoneRow(task=task, milestone=name, text=shared_text(told), done=done[key], traces=traces[key])


def heat_maps(observed: Sequence[Observed]) -> Iterable[HeatMap]:
    last = min(MAX_HEAT_STEPS, max((one.steps for one in observed), default=0))
    for group in ("all", "success", "failure"):
        members = [one for one in observed if group == "all" or one.success == (group == "success")]
        rows: list[tuple[float, ...]] = []
        traces: list[int] = []
        for k in range(max((len(one.z) for one in members), default=0)):
            when = [min(one.reached[k], last) for one in members if len(one.z) > k and one.reached[k] is not None]  # pyright: ignore
            with_k = sum(len(one.z) > k for one in members)
            traces.append(with_k)
            rows.append(tuple(sum(t <= step for t in when) / with_k for step in range(last + 1)))
        yield HeatMap(group=group, rows=tuple(rows), traces=tuple(traces))
