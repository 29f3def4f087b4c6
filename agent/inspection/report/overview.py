"""Builds the report's overview from episodes that are added one by one, so that no trace is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

from markupsafe import Markup

from agent.inspection.expert_steps import ExpertSteps
from agent.inspection.report import charts
from agent.inspection.report.views import RowView
from judges.statistics import proportion
from judges.subgoal_quality import heat_maps
from judges.trace_ratings import Observed

_FEWEST = 2
"""Minimum number of groups for a chart by group."""
_MOST_GROUPS = 14


class Tile(NamedTuple):
    value: str
    label: str
    hint: str = ""


class Chart(NamedTuple):
    title: str
    note: str
    picture: Markup


class TaskRow(NamedTuple):
    task: str
    episodes: int
    successes: int
    steps: float
    seconds: float
    tokens: int


@dataclass(slots=True)
class Overview:
    """Counts over the episodes added so far."""

    rows: list[RowView] = field(default_factory=list[RowView])
    observed: list[Observed] = field(default_factory=list[Observed])

    def add(self, row: RowView, observed: Observed | None) -> None:
        self.rows.append(row)
        if observed is not None:
            self.observed.append(observed)

    def tiles(self) -> tuple[Tile, ...]:
        outcomes = Counter(row.outcome for row in self.rows)
        judged = outcomes["success"] + outcomes["failure"]
        share = proportion(outcomes["success"], judged)
        interval = f"95 % interval {share.low:.0%} to {share.high:.0%}" if share.low is not None else ""
        success = (
            Tile(f"{share.value:.0%}", f"success, {outcomes['success']} of {judged} judged", interval)
            if judged
            else None
        )
        other = [
            Tile(str(outcomes[name]), label)
            for name, label in (
                ("failure", "failed"),
                ("broken", "broken"),
                ("unjudged", "unjudged"),
                ("unfinished", "unfinished"),
            )
            if outcomes[name]
        ]
        steps = median(row.steps for row in self.rows) if self.rows else 0
        tokens, cost = sum(row.tokens for row in self.rows), sum(row.cost for row in self.rows)
        spent = [
            Tile(f"{steps:g}", "steps per episode, median"),
            Tile(_large(tokens), "tokens", f"{tokens:,}"),
            Tile(_time(sum(row.seconds for row in self.rows)), "total episode time"),
        ]
        degraded = sum(row.degraded for row in self.rows)
        expert = ExpertSteps.of(row.assisted for row in self.rows)
        title = "planner or rater gave no usable answer at least once; these episodes count"
        return (
            *([success] if success else []),
            *other,
            *([Tile(str(degraded), "played without a plan or rating", title)] if degraded else []),
            *([_expert_tile(expert)] if expert is not None else []),
            *spent,
            *([Tile(f"${cost:.2f}", "model cost")] if cost else []),
        )

    def charts(self) -> tuple[Chart, ...]:
        return tuple(chart for chart in (self._failures(), self._sites(), self._policies(), *self._progress()) if chart)

    def tasks(self) -> tuple[TaskRow, ...]:
        """One row per task, over all seeds, in the order of the runs."""
        groups: dict[str, list[RowView]] = {}
        for row in self.rows:
            groups.setdefault(row.task.rsplit("/", 1)[0], []).append(row)
        return tuple(
            TaskRow(
                task=task,
                episodes=len(rows),
                successes=sum(row.outcome == "success" for row in rows),
                steps=sum(row.steps for row in rows) / len(rows),
                seconds=sum(row.seconds for row in rows) / len(rows),
                tokens=sum(row.tokens for row in rows) // len(rows),
            )
            for task, rows in groups.items()
        )

    def _failures(self) -> Chart | None:
        counts = Counter(row.failure for row in self.rows if row.failure and row.outcome != "unjudged")
        total = sum(counts.values())
        if not total:
            return None
        rows = [
            charts.Bar(label, counts[name], f"{counts[name]} · {counts[name] / total:.0%}", f"f-{name}")
            for name, label in charts.CATEGORIES.items()
        ]
        picture = charts.bars(rows, label="failures by category", most=max(counts.values()))
        return Chart("Why episodes failed", f"{total} failed or broken episodes, by category", picture)

    def _sites(self) -> Chart | None:
        return self._rates("Success by site", ((row.site, row) for row in self.rows))

    def _policies(self) -> Chart | None:
        return self._rates("Success by policy", ((row.policy, row) for row in self.rows))

    def _rates(self, title: str, named: Iterable[tuple[str, RowView]]) -> Chart | None:
        groups: dict[str, Counter[str]] = {}
        for name, row in named:
            groups.setdefault(name, Counter())[row.outcome] += 1
        if len(groups) < _FEWEST:
            return None
        largest = sorted(groups.items(), key=lambda item: -item[1].total())[:_MOST_GROUPS]
        rows = [
            (name or "-", n["success"] + n["failure"], proportion(n["success"], n["success"] + n["failure"]))
            for name, n in sorted(largest)
        ]
        more = f"; the {len(largest)} largest of {len(groups)}" if len(groups) > len(largest) else ""
        return Chart(title, f"judged episodes, with 95 % Wilson intervals{more}", charts.rates(rows, label=title))

    def _progress(self) -> Iterable[Chart]:
        if not self.observed:
            return
        steps = min(max(episode.steps for episode in self.observed), 60)
        lines = [
            (f"{name} ({len(members)})", name, _mean_progress(members, steps))
            for name, members in (
                ("success", [episode for episode in self.observed if episode.success]),
                ("failure", [episode for episode in self.observed if not episode.success]),
            )
            if members
        ]
        yield Chart(
            "Progress", "mean share of milestones done by each step", charts.curves(lines, label="progress by step")
        )
        for map_ in heat_maps(self.observed):
            if map_.traces:
                which = {"all": "all episodes", "success": "successful episodes", "failure": "failed episodes"}
                picture = charts.heat(map_, label=f"milestones by step, {which[map_.group]}")
                yield Chart(
                    f"Milestones by step: {which[map_.group]}",
                    "% of episodes with milestone k done within t steps",
                    picture,
                )


def _mean_progress(members: Sequence[Observed], steps: int) -> list[float]:
    return [
        sum(sum(t is not None and t <= step for t in episode.reached) / len(episode.reached) for episode in members)
        / len(members)
        for step in range(steps + 1)
    ]


def _expert_tile(expert: ExpertSteps) -> Tile:
    hint = f"{expert.text}: the success is not the policy's alone"
    if expert.uncounted == expert.episodes:
        return Tile(str(expert.episodes), "played with an expert", hint)
    return Tile(f"{expert.by_expert} of {expert.steps}", "steps were the expert's", hint)


def _large(number: int) -> str:
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return str(number)


def _time(seconds: float) -> str:
    if seconds >= 7200:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.1f} min" if seconds >= 120 else f"{seconds:.0f} s"
