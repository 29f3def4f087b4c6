"""What a terminal shows while it plays and while it learns."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from agent.display import RunDisplay
from agent.progress import EpisodeStarted, RunEnded, RunStarted, StepDone
from agent.results import RunResult
from envs.actions import Status
from envs.tasks import TaskRef


class Screen:
    def __init__(self, width: int = 100) -> None:
        self.console = Console(file=io.StringIO(), force_terminal=True, width=width)
        self.display = RunDisplay(self.console)

    @property
    def text(self) -> str:
        with self.console.capture() as said:
            self.console.print(self.display.board(), no_wrap=True)
        return said.get()


def test_a_stage_has_a_bar_while_it_learns_and_none_after() -> None:
    screen = Screen()
    screen.display.learning("value-fold-1", 3, 40, None)
    assert "value-fold-1" in screen.text and "3/40" in screen.text and "loss" not in screen.text
    screen.display.learning("value-fold-1", 4, 40, 0.125)
    assert "4/40" in screen.text and "loss 0.125" in screen.text
    screen.display.learning("value-fold-1", 40, 40, 0.1)
    assert screen.text.strip() == ""
    screen.display.learning("actor", 1, 9, None)
    assert "actor" in screen.text and "1/9" in screen.text and "loss" not in screen.text


def test_a_run_that_has_ended_leaves_neither_rows_nor_counts_to_the_next() -> None:
    screen = Screen()
    task = TaskRef(suite="miniwob", name="click-test", seed=1)
    screen.display(RunStarted("r", Path("r"), planned=8, finished=2))
    screen.display(EpisodeStarted("e", task, 1, 0, "Click"))
    assert "click-test" in screen.text and "2/8" in screen.text
    screen.display(RunEnded(RunResult("r", Path("r"), episodes=(), planned=8, seconds=1.0)))
    assert screen.text.strip() == ""
    screen.display(RunStarted("s", Path("s"), planned=5, finished=0))
    assert "0/5" in screen.text and "click-test" not in screen.text


@pytest.mark.parametrize(("width", "shows_text"), [(120, True), (80, True), (60, False)])
def test_the_live_table_keeps_task_and_action_on_a_narrow_terminal(width: int, shows_text: bool) -> None:
    screen = Screen(width)
    task = TaskRef(suite="sites", name="shop-add-to-basket", seed=12)
    screen.display(RunStarted("r", Path("r"), planned=1, finished=0))
    screen.display(EpisodeStarted("e", task, 1, 0, "Fill the basket"))
    screen.display(
        StepDone(
            episode_id="e", step=3, action='do(action="Click", element="9")', words='click button "Save"',
            status=Status.OK, milestone="The basket is open", z=(True, False), seconds=1.0,
        )
    )  # fmt: skip
    lines = [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", screen.text).splitlines()]
    assert max(map(len, lines)) <= width
    (row,) = [line for line in lines if line.startswith("shop-add")]
    assert "●○" in row and row.endswith('click button "Save"') and ("The basket" in row) is shows_text
