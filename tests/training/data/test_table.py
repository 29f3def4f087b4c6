"""The summary of a data set: every count by hand, and all of them in the table."""

from __future__ import annotations

from collections import Counter
from io import StringIO

from rich.console import Console

from tests.training.trajectories import acted, rows_of
from training.data.rows import Encoded
from training.data.table import DataSummary, Group, summarize
from training.data.trajectories import LeftOut, Selection, Trajectory

WON = acted("won", ((1,), (2, 3)), success=True)
LOST = acted("lost", ((4, 5, 6), (7,), (8,)), success=False)
UNPLANNED = acted("lucky", ((9,),), success=True).model_copy(update={"milestones": 0, "category": "navigation"})
KEPT: tuple[Trajectory, ...] = (WON, LOST, UNPLANNED)
LEFT_OUT = Counter({LeftOut.BROKEN: 3, LeftOut.NO_PROMPT: 11})


def summary() -> DataSummary:
    """Six rows: prompts of two tokens each, completions of 1, 2, 3, 1, 1 and 1."""
    return summarize(Selection(KEPT, LEFT_OUT), Encoded(rows_of(KEPT), cut=7, too_long=(5, 9)))


def test_counts_by_hand() -> None:
    counts = summary()
    assert counts.groups == (
        Group(name="miniwob/form", trajectories=2, successes=1, decisions=5, with_milestones=2),
        Group(name="miniwob/navigation", trajectories=1, successes=1, decisions=1, with_milestones=0),
    )
    assert counts.left_out == {"broken": 3, "no prompt": 11}
    assert (counts.too_long, counts.cut, counts.rows) == (2, 7, 6)
    assert counts.prompt_tokens == (2, 2, 2)
    assert counts.completion_tokens == (1, 3, 3), "median, 90th percentile and longest of 1 1 1 1 2 3"


def test_everything_left_out_or_cut_is_in_the_table() -> None:
    lines = rendered(summary())
    for reason, count in (("broken", 3), ("no prompt", 11), ("row longer than the limit", 2), ("prompts cut", 7)):
        line = next(line for line in lines if reason in line)
        assert str(count) in line.split(), line
    assert "left out: prompt" not in "\n".join(lines), "a cut prompt is kept"


def test_zero_counts_are_not_in_the_table() -> None:
    counts = rendered(summarize(Selection((WON,), Counter()), Encoded(rows_of((WON,)), cut=0, too_long=())))
    assert not any("left out" in line or "cut" in line for line in counts)


def test_no_rows_at_all() -> None:
    counts = summarize(Selection((), Counter()), Encoded((), 0, ()))
    assert (counts.groups, counts.rows, counts.prompt_tokens, counts.completion_tokens) == ((), 0, (0, 0, 0), (0, 0, 0))
    assert rendered(counts)


def rendered(counts: DataSummary) -> list[str]:
    out = StringIO()
    Console(file=out, width=120).print(counts.table())
    return out.getvalue().splitlines()
