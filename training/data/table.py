"""Summarizes a data set: how many traces were kept, how many were left out, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pydantic import AliasChoices, Field
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
    """Trajectories with a milestone count at every state."""


class DataSummary(Record):
    """One line per group, and counts of what was left out."""

    groups: tuple[Group, ...]
    left_out: dict[str, int]
    """Number of episodes that were left out, by reason."""
    too_long: int
    """Trajectories with a recorded row that is longer than the limit."""
    cut: int
    """Prompts whose middle was removed to fit the limit."""
    unreadable: int = 0
    """Answers without an action, in episodes that were kept; they give rows to M-GRPO
    with `groups.unreadable` only."""
    rows: int
    prompt_tokens: tuple[int, int, int]
    """Median, 90th percentile, longest."""
    completion_tokens: tuple[int, int, int] = Field(validation_alias=AliasChoices("completion_tokens", "action_tokens"))
    """The same of completions. Files of earlier versions name it `action_tokens`."""

    def table(self) -> FittedTable:
        """The summary as a table for the terminal."""
        table = FittedTable(
            Column("site", wrap=24),
            Column("trajectories", right=True),
            Column("successes", right=True, drop=1),
            Column("decisions", right=True, drop=2),
            Column("with milestones", right=True, wrap=10, drop=3),
            title=f"{self.rows} rows; prompts of {self.prompt_tokens[0]} tokens (longest {self.prompt_tokens[2]})",
        )
        for group in self.groups:
            counts = (group.trajectories, group.successes, group.decisions, group.with_milestones)
            table.row(group.name, *map(str, counts))
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
    """Summarizes the trajectories of *selection* and their rows, *encoded*."""
    by_name: dict[str, list[Trajectory]] = {}
    for trajectory in selection.kept:
        by_name.setdefault(f"{trajectory.task.suite}/{trajectory.category}", []).append(trajectory)
    return DataSummary(
        groups=tuple(_group(name, members) for name, members in sorted(by_name.items())),
        left_out={reason.value: count for reason, count in sorted(Counter(selection.left_out).items())},
        too_long=len(encoded.too_long),
        cut=encoded.cut,
        unreadable=sum(trajectory.unreadable for trajectory in selection.kept),
        rows=len(encoded.rows),
        prompt_tokens=_spread([len(row.prompt) for row in encoded.rows]),
        completion_tokens=_spread([len(row.completion) for row in encoded.rows]),
    )


def _group(name: str, members: Sequence[Trajectory]) -> Group:
    return Group(
        name=name,
        trajectories=len(members),
        successes=sum(member.success for member in members),
        decisions=sum(len(member.decisions) for member in members),
        with_milestones=sum(member.milestones > 0 for member in members),
    )


def _spread(lengths: Sequence[int]) -> tuple[int, int, int]:
    if not lengths:
        return (0, 0, 0)
    ordered = sorted(lengths)
    return ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.9)], ordered[-1]
