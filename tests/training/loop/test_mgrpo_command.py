"""`mira train mgrpo`: its options become settings of the loop."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mira_command import mira
from training.cli import mgrpo
from training.loop.evaluation_tasks import evaluation_refs
from training.loop.settings import LoopSettings


def settings_of(monkeypatch: pytest.MonkeyPatch, *words: str) -> LoopSettings:
    """The settings with which the loop would run."""
    given: list[LoopSettings] = []

    def run_loop(settings: LoopSettings, _out: Path, *, as_json: bool) -> int:
        given.append(settings)
        return 0

    monkeypatch.setattr(mgrpo, "run_loop", run_loop)
    assert mira(monkeypatch, "train", "mgrpo", "-o", "out", *words) == 0
    (settings,) = given
    return settings


def test_options_name_suite_tasks_start_and_group(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["--suite", "miniwob", "--tasks", "click-button, enter-text", "--start", "runs/start", "--group", "4"]
    settings = settings_of(monkeypatch, *words, "--set", "phases=2", "--set", "groups.deviation=false")
    assert settings.arm == "mgrpo" and settings.grouped and settings.start == "runs/start" and settings.phases == 2
    assert settings.pool.names == settings.evaluation.names == ("click-button", "enter-text")
    assert settings.rollouts.attempts == 4 and not settings.groups.deviation
    assert settings.replay.per_new == 0 and settings.actor.objective.kind == "clipped" and not settings.needs_value
    assert len(evaluation_refs(settings.evaluation)) == 20


@pytest.mark.parametrize(
    ("words", "count"),
    [(["--suite", "sites", "--tasks", "forum-open-topic"], 8), (["--suite", "sites"], 8), (["--suite", "miniwob"], 10)],
)
def test_evaluations_are_of_instances_that_are_not_trained_on(
    monkeypatch: pytest.MonkeyPatch, words: list[str], count: int
) -> None:
    settings = settings_of(monkeypatch, *words)
    refs = evaluation_refs(settings.evaluation)
    assert {ref.suite for ref in refs} == {words[1]} == {settings.pool.suite}
    assert {ref.seed for ref in refs} == set(range(count))


def test_a_file_of_another_arm_is_played_as_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_of(monkeypatch, "-c", "smoke")
    assert settings.arm == "mgrpo" and settings.rollouts.attempts == 8 and settings.rollouts.tasks == 12
    assert settings.evaluation.seeds == (0, 1), "the file's"


@pytest.mark.parametrize("tasks", ["", " , "])
def test_tasks_that_name_nothing_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tasks: str
) -> None:
    """Symptom: with an empty shell variable, `--tasks "$TASKS"` trained on all tasks of the suite."""
    assert mira(monkeypatch, "train", "mgrpo", "-o", "out", "--suite", "miniwob", "--tasks", tasks) == 2
    assert f"--tasks {tasks!r} names nothing: give a name, or omit it" in capsys.readouterr().err
    assert not Path("out").exists()


def test_a_suite_without_training_tasks_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert mira(monkeypatch, "train", "mgrpo", "-o", "out", "--suite", "webarena") == 2
    assert "webarena" in capsys.readouterr().err
