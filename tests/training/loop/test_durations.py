"""The seconds of a phase's parts, over all processes that ran them."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.embedded import embedded_dir
from tests.training.engine.token_rows import rows_of
from training.loop.durations import by_kind, read_seconds, timed, training_seconds
from training.loop.phase_context import PhaseContext
from training.loop.settings import load_settings


def test_seconds_are_summed_over_the_processes_of_a_phase(tmp_path: Path) -> None:
    """After a resume, those of the last process alone were in metrics.json."""
    settings, policy = load_settings(None, ["compute.cpu=true"]), embedded_dir()
    seconds: list[dict[str, float]] = []
    for part in ("data", "data", "actor"):
        context = PhaseContext(settings, 1, tmp_path, policy, {}, policy, (), log=list[str]().append)
        with context.running(), context.part(part, "scoring"):
            context.score("actions", policy, rows_of(6))
        seconds.append(context.seconds)
    first, second, last = seconds
    assert 0 < first["data"] < second["data"] == last["data"]
    assert last["actor"] > 0 and read_seconds(tmp_path) == last


def test_a_part_that_fails_is_timed(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="stop"), timed(tmp_path, "rollouts"):
        raise ValueError("stop")
    assert list(read_seconds(tmp_path)) == ["rollouts"]


def test_play_is_no_training() -> None:
    seconds = {"rollouts": 10.0, "value-fold-1": 1.0, "value-fold-2": 2.0, "actor": 4.0, "evaluation": 20.0}
    assert training_seconds(seconds) == 7
    assert by_kind(seconds) == {"rollouts": 10, "value": 3, "actor": 4, "evaluation": 20}
