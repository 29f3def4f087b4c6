"""What a terminal shows during a run and during training."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from agent.cli.display import RunDisplay
from agent.progress import EpisodeEnded, EpisodeStarted, ModelWaits, RunEnded, RunStarted, StepDone
from agent.results import EpisodeResult, RunResult
from envs.core.actions import Status
from envs.core.tasks import TaskRef


class Screen:
    def __init__(self, width: int = 100) -> None:
        self.now = 0.0
        self.console = Console(file=io.StringIO(), force_terminal=True, width=width, get_time=lambda: self.now)
        self.display = RunDisplay(self.console)

    @property
    def text(self) -> str:
        with self.console.capture() as capture:
            self.console.print(self.display.board(), no_wrap=True)
        return capture.get()


def test_a_stage_has_a_bar_while_it_learns_and_none_after() -> None:
    screen = Screen()
    screen.display.learning("value-fold-1", 3, 40, None)
    assert "value-fold-1" in screen.text and "3/40" in screen.text and "loss" not in screen.text
    screen.display.learning("value-fold-1", 4, 40, "loss 0.125")
    assert "4/40" in screen.text and "loss 0.125" in screen.text
    screen.display.learning("value-fold-1", 40, 40, "loss 0.100")
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


def test_a_wait_for_a_model_is_shown_at_once_and_printed_once_when_it_is_long() -> None:
    out = io.StringIO()
    display = RunDisplay(Console(file=out, width=200))
    task = TaskRef(suite="miniwob", name="click-test", seed=1)
    display(RunStarted("r", Path("r"), planned=1, finished=0))
    display(EpisodeStarted("e", task, 1, 0, "Click"))
    for seconds in (0.0, 1.0, 4.0, 9.0):
        display(ModelWaits("e", "policy", "cannot reach http://127.0.0.1:9", seconds, 100 - seconds))
    (line,) = out.getvalue().splitlines()
    assert "e: the policy's model does not answer, retrying for 96 s more: cannot reach http://127.0.0.1:9" in line
    display(StepDone("e", 1, "click", "click", Status.OK, "", (), 0.1))
    display(ModelWaits("e", "judge", "HTTP 503", 5.0, 95.0))
    assert "the judge's model does not answer" in out.getvalue().splitlines()[-1]


def test_the_row_names_the_model_that_it_waits_for() -> None:
    screen = Screen()
    screen.display(RunStarted("r", Path("r"), planned=1, finished=0))
    screen.display(EpisodeStarted("e", TaskRef(suite="open", name="task"), 1, 0, "x"))
    screen.display(ModelWaits("e", "planner", "HTTP 503: busy", 0.5, 99.5))
    assert "waiting for the planner's model" in screen.text


def test_a_terminal_keeps_a_line_for_a_declined_action() -> None:
    """The table shows only the last action; declined actions stay above it."""
    screen = Screen()
    task = TaskRef(suite="open", name="task", seed=0)
    declined = 'click button "Buy" (by a person)'
    with screen.console.capture() as capture:
        screen.display(EpisodeStarted("e", task, 1, 0, "Order"))
        step = StepDone("e", 1, 'do(action="Click", element="2")', "click", Status.BLOCKED, "", (), 0.1, declined)
        screen.display(step)
    assert f"step 1 declined: {declined}" in capture.get()
    assert "declined: click button" in screen.text


def ended(task: TaskRef) -> EpisodeEnded:
    return EpisodeEnded(
        0,
        EpisodeResult(
            run_id="r",
            episode_id="e",
            task=task,
            attempt=1,
            instruction="Click",
            outcome="success",
            ended_by="stop",
            trace="t",
        ),
    )


def test_the_bar_of_a_run_does_not_show_the_result_of_the_run_before() -> None:
    """Symptom: the line was `0/5 1 succeeded`."""
    screen = Screen()
    task = TaskRef(suite="miniwob", name="click-test", seed=1)
    screen.display(RunStarted("r", Path("r"), planned=1, finished=0))
    screen.now = 70.0
    screen.display(ended(task))
    assert "1 succeeded" in screen.text and "0:01:10" in screen.text
    screen.display(RunEnded(RunResult("r", Path("r"), episodes=(), planned=1, seconds=1.0)))
    screen.display(RunStarted("s", Path("s"), planned=5, finished=0))
    assert "0/5" in screen.text and "succeeded" not in screen.text and "0:01:10" not in screen.text


@pytest.mark.parametrize("first", [0, 3], ids=["from its begin", "resumed"])
def test_the_time_that_is_left_is_shown_from_the_first_step_on(first: int) -> None:
    """It was `-:--:--` wherever a step takes longer than half a minute."""
    screen = Screen()
    screen.display.learning("GRPO", first, first + 10, None)
    screen.now = 100.0
    assert "unknown yet" in screen.text and "0:01:40" in screen.text
    screen.display.learning("GRPO", first + 1, first + 10, "reward 0.412")
    assert "0:15:00 left" in screen.text and "reward 0.412" in screen.text
    screen.now = 400.0
    screen.display.learning("GRPO", first + 4, first + 10, "reward 0.500")
    assert "0:10:00 left" in screen.text


def test_the_next_stage_has_a_pace_of_its_own() -> None:
    screen = Screen()
    screen.display.learning("potential", 0, 2, None)
    screen.now = 500.0
    screen.display.learning("potential", 2, 2, None)
    screen.display.learning("value", 0, 4, None)
    screen.now = 501.0
    screen.display.learning("value", 1, 4, None)
    assert "0:00:03 left" in screen.text


def test_episodes_of_minutes_have_a_time_that_is_left() -> None:
    screen = Screen()
    screen.display(RunStarted("r", Path("r"), planned=6, finished=2))
    screen.now = 240.0
    screen.display(ended(TaskRef(suite="miniwob", name="click-test", seed=1)))
    assert "0:12:00 left" in screen.text, "two were finished before"


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
