"""Measures how well milestones predict success: the subgoal quality of the MiRA paper, §5.1.

For traces i with the checker's outcome `y_i` and the final completion vector `z_i`:

- *exact equivalence*: precision, recall and F1 of "all milestones done ⇔ success";
- *graded agreement*: AUROC of the progress score `s_i = mean_k z_ik`, and Kendall's τ-b of `s` and `y` with its p;
- *calibration*: P(success | m done), and whether it strictly increases with m;
- *uninformative milestones*: never or always done; and P(milestone k done by step t).

Intervals are at 95 %. Proportions (precision, recall, calibration) have Wilson's interval. F1, AUROC and τ have the
percentile interval of a bootstrap over traces, stratified by outcome: each resample draws the observed number of
successes and of failures, so every resample has both classes and the success rate is fixed.

Pure functions of trace records; no model is used.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from envs.core.record import Record
from judges.metrics import ScoreTable, Spread, tau_p
from judges.shared_text import shared_text
from judges.statistics import RESAMPLES, Estimate, proportion
from judges.trace_ratings import Observed, Source

Group = Literal["all", "success", "failure"]

MAX_HEAT_STEPS: Final = 60
"""Steps of the heat map; later steps count at the last one."""


class Point(Record):
    """P(success) of the traces with `done` of their milestones done."""

    done: int
    traces: int
    success: Estimate


class Calibration(Record):
    """One curve: P(success | m done) of the traces with `of` milestones; of all traces if `of` is None."""

    of: int | None
    points: tuple[Point, ...]
    """In order of m; an m without traces is missing."""
    strictly_increasing: bool | None
    """Over the existing points; None for fewer than two."""


class MilestoneRow(Record):
    """How often one milestone of a task was done at the end."""

    task: str
    milestone: str
    text: str
    """The words that its texts in all these traces share, `…` where they differ; may be empty."""
    done: int
    traces: int

    @property
    def tells_nothing(self) -> Literal["never", "always"] | None:
        """Set if it was the same in every trace."""
        return "never" if self.done == 0 else "always" if self.done == self.traces else None


class HeatMap(Record):
    """P(milestone k done by step t) over the traces with one outcome, or all."""

    group: Group
    rows: tuple[tuple[float, ...], ...]
    """`rows[k][t]`: share of the traces with more than k milestones that achieved the (k+1)th within t steps. A trace
    that ended keeps its milestones."""
    traces: tuple[int, ...]
    """Number of traces of each row."""


class Quality(Record):
    """The table of §5.1 with its underlying counts."""

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
    """Two-sided p of "τ is 0"; None if τ is undefined."""
    calibration: tuple[Calibration, ...]
    milestones: tuple[MilestoneRow, ...]
    heat: tuple[HeatMap, ...]


class Agreement(Record):
    """Agreement of the rater's z with the state checks, milestone by milestone, on traces that have both."""

    traces: int
    milestones: int
    same: Estimate
    only_rater: int
    """Achieved according to the rater only: undone before the end, or never true."""
    only_checks: int


class PaperNumbers(NamedTuple):
    precision: float = 0.7917
    recall: float = 0.6032
    f1: float = 0.6847
    auroc: float = 0.84
    tau: float = 0.4585


PAPER: Final = PaperNumbers()
"""§5.1 of the MiRA paper: milestones by Gemini-2.5-pro on WebArena-Lite, τ with p < 0.001."""


def quality(observed: Sequence[Observed], source: Source, *, resamples: int = RESAMPLES, seed: int = 0) -> Quality:
    """Computes all metrics of *observed*. The same seed gives the same numbers."""
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
    """Compares (checks, rater) of the same traces; pairs with different milestones are skipped."""
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
    """For all traces first, then for each number of milestones if there are several."""
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
    """By task and milestone, in order of first appearance. The text of a milestone differs between instances."""
    done: Counter[tuple[str, str]] = Counter()
    traces: Counter[tuple[str, str]] = Counter()
    texts: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for one in observed:
        for name, text, held in zip(one.milestones, one.texts, one.z, strict=True):
            texts[one.task, name].append(text)
            traces[one.task, name] += 1
            done[one.task, name] += held
    for (task, name), variants in texts.items():
        key = task, name
        yield MilestoneRow(task=task, milestone=name, text=shared_text(variants), done=done[key], traces=traces[key])


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
