"""`benchmarks.grpo_step` shows on stderr that it advances, and nothing else."""

from __future__ import annotations

import json
import re

import pytest

from benchmarks import grpo_step


@pytest.mark.slow
def test_each_finished_run_has_a_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    small = "--padded --width 64 --layers 1 --rows 8 --steps 2 --rounds 1 --threads 1"
    monkeypatch.setattr("sys.argv", ["grpo_step", *small.split(), "--json"])
    grpo_step.main()
    shown = capsys.readouterr()
    lines = [re.sub(r"\d+\.\d{3} s", "S s", line) for line in shown.err.splitlines()]
    sides = ("here", "TRL", "TRL", "here")
    assert lines == [f"round 1 of 1, {side}: S s a step" for side in sides]
    assert json.loads(shown.out)["steps"] == 2
