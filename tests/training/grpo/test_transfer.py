"""`benchmarks.transfer`: from points to steps with a tiny model, continued, and compared on the same steps."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import transfer
from benchmarks.toy_models.vision import vision_model
from envs.core.action_languages import PROGRAM
from tests.mira_command import mira
from tests.training.data_sets.published import BUILDERS
from training.grpo.examples import read_examples
from training.grpo.rewards import StepTarget
from training.step_accuracy.answers import StepAnswer
from training.step_accuracy.report import ScoredStep, score_answers

TINY = (
    *("--set", "steps=1", "--set", "answer_tokens=8", "--set", "optimization.batch_rows=8", "--max-tokens", "8"),
    *("--set", "compute.max_tokens=512", "--set", "compute.cpu=true", "--set", "optimization.learning_rate=1e-3"),
)


@pytest.fixture(autouse=True)
def published(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    for name, place in (("aitz", "aitz"), ("folder", "folder/labels.csv")):
        Path(name).mkdir()
        BUILDERS[name](Path(name))
        assert mira(monkeypatch, "data", "import", name, place, "-o", f"{name}.jsonl") == 0
    capsys.readouterr()


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["transfer", *words])
    try:
        transfer.main()
    except SystemExit as ended:
        assert isinstance(ended.code, int)
        return ended.code
    return 0


@pytest.mark.slow
def test_a_tiny_model_trains_on_points_and_answers_steps(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    vision_model(Path("start"), width=32, layers=1)
    words = ["--points", "folder.jsonl", "--steps", "aitz.jsonl", "--start", "start", "--out", "out", "--json", *TINY]
    assert run(monkeypatch, *words) == 0
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    assert [(row["steps"], row["arm"], row["seed"]) for row in rows] == [
        ("aitz", "start", None),
        ("aitz", "ssl/tiered", 0),
    ]
    assert rows[0]["change"] is None and rows[1]["change"]["success"]["value"] is not None
    answers = Path("out/start/aitz/predictions.jsonl")
    weights = Path("out/ssl-tiered/seed-0/model/model.safetensors")
    written = answers.stat().st_mtime_ns, weights.stat().st_mtime_ns
    (trained,) = Path("out").glob("ssl-tiered/seed-0-steps/aitz/predictions.jsonl")
    first, second = trained.read_text().splitlines()
    trained.write_text(f"{first}\n{second[:9]}")  # as if it was killed while it wrote
    assert run(monkeypatch, *words) == 0
    assert json.loads(capsys.readouterr().out) == rows
    assert (answers.stat().st_mtime_ns, weights.stat().st_mtime_ns) == written, (
        "only the lost answer is asked for again"
    )


def _scored(answers: list[str]) -> list[ScoredStep]:
    (file,) = transfer.read_steps([Path("aitz.jsonl")])
    given = {
        step.example.name: StepAnswer(name=step.example.name, answer=answer)
        for step, answer in zip(file.steps, answers, strict=True)
    }
    return score_answers(file.steps, given, lambda _: (1.0, 1.0))


def test_a_change_is_the_trained_model_less_the_start_on_the_same_steps() -> None:
    targets = [one.target for one in read_examples(Path("aitz.jsonl"))]
    right = [PROGRAM.show(target.action) for target in targets if isinstance(target, StepTarget)]
    change = transfer.change_of(_scored(["", right[1]]), _scored(right))
    assert (change.type.value, change.success.value) == (0.5, 0.5)
    assert change.grounding.value is None, "the start answered no click"
    far = ['do(action="Click At", x=199, y=199)', right[1]]
    change = transfer.change_of(_scored(right), _scored(far))
    assert (change.type.value, change.grounding.value, change.success.value) == (0, -1, -0.5)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--points", "aitz.jsonl", "--steps", "aitz.jsonl"], "--points: example 'aitz/general/GENERAL-1/0' is a step"),
        (["--points", "folder.jsonl", "--steps", "folder.jsonl"], "asks for no action"),
        (["--points", "folder.jsonl", "--steps", "aitz.jsonl", "--steps", "aitz.jsonl"], "two files are named 'aitz'"),
        (["--points", "folder.jsonl", "--steps", "aitz.jsonl", "--recipes", "no"], "'no'"),
    ],
)
def test_bad_input_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    assert run(monkeypatch, *words, "--start", "start", "--out", "out") == 2
    err = capsys.readouterr().err
    assert says in err and err.count("\n") == 1
    assert not Path("out").exists()


def test_screenshots_that_are_trained_on_are_counted() -> None:
    points = transfer.read_points([Path("folder.jsonl")])
    files = transfer.read_steps([Path("aitz.jsonl")])
    assert transfer.count_shared_pictures(points, files) == 0
    shown = [step.example for file in files for step in file.steps]
    assert transfer.count_shared_pictures([*points, shown[0]], files) >= 1
