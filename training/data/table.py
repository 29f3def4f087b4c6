"""What was kept of a set of traces, what was left out, and why: counted, never silent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.text import Text

from agent.cli.tables import Column, FittedTable
from envs.core.record import Record
from training.data.rows import Encoded
from training.data.trajectories import Selection, Trajectory

UNREADABLE = "answers without an action"


class Group(Record):
    """Trajectories of one site or suite."""

    name: str
    trajectories: int
    successes: int
    decisions: int
    with_milestones: int
    """Trajectories whose milestones were counted from start to end."""


class DataSummary(Record):
    """One line a group, and what did not become a row."""

    groups: tuple[Group, ...]
    left_out: dict[str, int]
    """Episodes by the reason why nothing is learned from them."""
    too_long: int
    """Trajectories of which a recorded row is longer than the limit."""
    cut: int
    """Prompts whose middle was left out to fit."""
    unreadable: int = 0
    """Answers that held no action, in episodes that were kept: no row is made of them."""
    rows: int
    prompt_tokens: tuple[int, int, int]
    """Median, 90th percentile, longest."""
    action_tokens: tuple[int, int, int]

    def table(self) -> FittedTable:
        """For people."""
        table = FittedTable(
            Column("site", wrap=24),
            Column("trajectories", right=True),
            Column("successes", right=True, drop=1),
            Column("decisions", right=True, drop=2),
            Column("with milestones", right=True, wrap=10, drop=3),
            title=f"{self.rows} rows; prompts of {self.prompt_tokens[0]} tokens (longest {self.prompt_tokens[2]})",
        )
        for one in self.groups:
            counts = (one.trajectories, one.successes, one.decisions, one.with_milestones)
            table.row(one.name, *map(str, counts))
        reasons = {
            **self.left_out,
            "row longer than the limit": self.too_long,
            "prompt cut": self.cut,
            UNREADABLE: self.unreadable,
        }
        for reason, count in reasons.items():
            if count:
                counted = {"prompt cut": "prompts cut", UNREADABLE: UNREADABLE}
                table.row(Text(counted.get(reason, f"left out: {reason}"), "dim"), str(count), "", "", "")
        return table


def summarize(selection: Selection, encoded: Encoded) -> DataSummary:
    """Counts what *selection* kept and *encoded* made of it."""
    by_name: dict[str, list[Trajectory]] = {}
    for one in selection.kept:
        by_name.setdefault(f"{one.task.suite}/{one.category}", []).append(one)
    return DataSummary(
        groups=tuple(_group(name, ones) for name, ones in sorted(by_name.items())),
        left_out={reason.value: count for reason, count in sorted(Counter(selection.left_out).items())},
        too_long=len(encoded.too_long),
        cut=encoded.cut,
        unreadable=sum(one.unreadable for one in selection.kept),
        rows=len(encoded.rows),
        prompt_tokens=_spread([len(row.prompt) for row in encoded.rows]),
        action_tokens=_spread([len(row.action) for row in encoded.rows]),
    )


def _group(name: str, ones: Sequence[Trajectory]) -> Group:
    return Group(
        name=name,
        trajectories=len(ones),
        successes=sum(one.success for one in ones),
        decisions=sum(len(one.decisions) for one in ones),
        with_milestones=sum(one.milestones > 0 for one in ones),
    )


def _spread(lengths: Sequence[int]) -> tuple[int, int, int]:
    if not lengths:
        return (0, 0, 0)
    ordered = sorted(lengths)
    return ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.9)], ordered[-1]
