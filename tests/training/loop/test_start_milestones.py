"""A start that was trained on prompts with milestones is not silently played on prompts without them."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.local.declarations import declared_milestones
from tests.agent.episodes import Play, write_run
from tests.training.loop.test_fine_tune import FIRST, settings_of
from training.loop.loop import Loop
from training.loop.settings import load_settings
from training.loop.sft import fine_tune

SMOKE = Path("training/configs/smoke.toml")
SHOWN = "Goal: x\nNext: y\nPage:"
HIDDEN = "Goal: x\nPage:"
SHOW = ("rollouts.show_plan=true", "evaluation.planner=reference")


def start_of(folder: Path, *pages: str) -> Path:
    """A start that was fine-tuned on one episode with each prompt of *pages*."""
    write_run(folder / "runs", [Play(seed=FIRST + place, text=page) for place, page in enumerate(pages)])
    return fine_tune([folder / "runs"], "embedded", folder / "sft", settings_of(), lambda _: None).model


def warnings_of(start: Path, out: Path, *changes: str) -> list[str]:
    lines: list[str] = []
    Loop.open(out, load_settings(SMOKE, [f"start={start}", *changes]), log=lines.append)
    return lines


def test_a_loop_that_hides_the_milestones_of_its_start_warns(tmp_path: Path) -> None:
    start = start_of(tmp_path, SHOWN)
    assert declared_milestones(start) == "shown"
    (line,) = warnings_of(start, tmp_path / "out")
    assert line == (
        f"warning: start {str(start)!r} was trained on prompts with milestones and plays on prompts without them, where"
        ' it may solve far less: set rollouts.show_plan=true and evaluation.planner="reference"'
    )
    assert not warnings_of(start, tmp_path / "out", *SHOW)
    (line,) = warnings_of(start, tmp_path / "out", SHOW[0])
    assert line.endswith('set evaluation.planner="reference"')


def test_a_loop_that_shows_what_its_start_never_saw_warns(tmp_path: Path) -> None:
    start = start_of(tmp_path, HIDDEN)
    assert declared_milestones(start) == "hidden"
    assert not warnings_of(start, tmp_path / "out")
    (line,) = warnings_of(start, tmp_path / "out", *SHOW)
    assert "trained on prompts without milestones" in line
    assert line.endswith('set rollouts.show_plan=false and evaluation.planner="none"')


@pytest.mark.parametrize("changes", [(), SHOW])
def test_a_start_of_both_kinds_of_prompts_plays_on_either(tmp_path: Path, changes: tuple[str, ...]) -> None:
    start = start_of(tmp_path, SHOWN, HIDDEN)
    assert declared_milestones(start) == "both"
    assert not warnings_of(start, tmp_path / "out", *changes)
