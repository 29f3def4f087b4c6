"""`mira train grpo`, `puzzles` and `show` as a user runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks.toy_models.puzzles import fresh_model
from tests.agent.episodes import Play, write_run
from tests.mira_command import mira
from tests.timing import HANG_S
from training.grpo.examples import read_examples
from training.grpo.report import TrainingReport, merge_reports

QUICK = [
    *("--set", "steps=2", "--set", "answer_tokens=4", "--set", "optimization.batch_rows=16"),
    *("--set", "compute.max_tokens=64", "--set", "compute.cpu=true", "--set", "held_out_every=1"),
]


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    fresh_model(Path("start"), width=32, layers=1)
    assert mira(monkeypatch, "train", "puzzles", "maze", "-o", "train.jsonl", "--count", "20", "--size", "3") == 0
    apart = ["--apart-from", "train.jsonl", "--seed", "1"]
    assert mira(monkeypatch, "train", "puzzles", "maze", "-o", "held.jsonl", "--count", "9", "--size", "3", *apart) == 0


def test_puzzles_are_learned_and_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    learn = ["train", "grpo", "train.jsonl", "--start", "start", "--held-out", "held.jsonl", *QUICK]
    assert mira(monkeypatch, *learn, "-o", "run", "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert [one["update"] for one in printed["held_out"]] == [0, 1, 2]
    assert printed["held_out"][0]["measured"]["examples"] == 9
    assert mira(monkeypatch, *learn, "-o", "run") == 0
    assert "solved (95 %)" in capsys.readouterr().out

    assert mira(monkeypatch, "train", "show", "run", "--json") == 0
    assert json.loads(capsys.readouterr().out)["held_out"] == printed["held_out"]
    assert mira(monkeypatch, *learn, "-o", "other", "--set", "seed=1") == 0
    assert mira(monkeypatch, "train", "show", "ssl=run", "other", "--out", "curves.svg") == 0
    shown = capsys.readouterr().out
    assert "ssl" in shown and "other" in shown and "curves: curves.svg" in shown
    assert "ssl, update 2" in Path("curves.svg").read_text()


@pytest.mark.parametrize("words", [("--suite", "miniwob"), ("train.jsonl", "--tasks", "click-button")])
def test_an_option_of_live_episodes_names_their_command(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Symptom: "No such option: --suite" and nothing else."""
    assert mira(monkeypatch, "train", "grpo", *words, "-o", "run") == 2
    shown = capsys.readouterr()
    assert "mira train mgrpo --suite NAME" in shown.err and not Path("run").exists()
    mira(monkeypatch, "train", "grpo", "--help")
    assert "--suite" not in capsys.readouterr().out


def test_learning_through_an_adapter_prints_no_warning_of_a_library(
    monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    learn = ["train", "grpo", "train.jsonl", "--start", "start", *QUICK, "--set", "compute.lora.rank=4"]
    assert mira(monkeypatch, *learn, "-o", "run") == 0
    assert [str(one.message) for one in recwarn if issubclass(one.category, FutureWarning)] == []


def test_runs_that_were_measured_otherwise(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    learn = ["train", "grpo", "train.jsonl", "--start", "start", *QUICK]
    assert mira(monkeypatch, *learn, "-o", "one", "--held-out", "held.jsonl") == 0
    assert mira(monkeypatch, *learn, "-o", "two") == 0
    capsys.readouterr()
    assert mira(monkeypatch, "train", "show", "one", "two") == 0
    assert "two was measured on other examples than one" in capsys.readouterr().err


def test_a_run_without_evaluations_shows_its_training_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its table was empty, though the log has reward, share of right ones and divergence."""
    learn = ["train", "grpo", "train.jsonl", "--start", "start", *QUICK, "--set", "steps=14"]
    assert mira(monkeypatch, *learn, "-o", "run") == 0
    capsys.readouterr()
    assert mira(monkeypatch, "train", "show", "run") == 0
    shown = capsys.readouterr().out
    assert "sampled while training" in shown and "solved (95 %)" not in shown
    assert all(title in shown for title in ("updates", "reward", "right", "KL", "tokens"))
    assert "1-2" in shown and "13-14" in shown, "two updates a row"
    assert mira(monkeypatch, "train", "show", "run", "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    log = [line for line in json.loads(Path("run/log.json").read_text()) if "reward" in line]
    assert [one["reward"] for one in printed["training"]] == [line["reward"] for line in log]
    assert [one["kl"] for one in printed["training"]] == [line["kl"] for line in log]
    assert (printed["held_out"], printed["training"][-1]["last"]) == ([], 14)
    assert mira(monkeypatch, "train", "show", "run", "--out", "curves.svg") == 0
    assert "sampled, right" in Path("curves.svg").read_text()


def test_a_run_that_has_not_ended_shows_its_last_checkpoint(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    learn = ["train", "grpo", "train.jsonl", "--start", "start", *QUICK]
    assert mira(monkeypatch, *learn, "-o", "run") == 0
    history = json.loads(Path("run/log.json").read_text())
    Path("run/log.json").unlink()
    capsys.readouterr()
    assert mira(monkeypatch, "train", "show", "run") == 0
    assert capsys.readouterr().out == "run: nothing was reported yet\n"
    for step, text in ((9, json.dumps({"log_history": history})), (10, "cut off")):
        folder = Path(f"run/checkpoints/checkpoint-{step}")
        folder.mkdir(parents=True)
        (folder / "trainer_state.json").write_text(text)
    assert mira(monkeypatch, "train", "show", "run") == 0
    assert "sampled while training" in capsys.readouterr().out
    Path("run/checkpoints/checkpoint-9/trainer_state.json").unlink()
    assert mira(monkeypatch, "train", "show", "run", "--out", "curves.svg") == 2
    assert "nothing was measured on held-out examples" in capsys.readouterr().err


def test_a_learning_rate_that_is_too_low_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    learn = ["train", "grpo", "train.jsonl", "--start", "start", *QUICK]
    assert mira(monkeypatch, *learn, "-o", "run") == 0
    assert "optimization.learning_rate 1e-06 would teach nothing" in capsys.readouterr().err
    assert mira(monkeypatch, *learn, "-o", "other", "--set", "optimization.learning_rate=1e-3") == 0
    assert "would teach nothing" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("count", "rows"), [(0, []), (1, [(1, 1)]), (5, [(1, 2), (3, 4), (5, 5)]), (3, [(1, 1), (2, 2), (3, 3)])]
)
def test_reports_are_put_together_in_rows(count: int, rows: list[tuple[int, int]]) -> None:
    reports = [TrainingReport(first=n, last=n, reward=float(n), kl=None if n % 2 else 0.5) for n in range(1, count + 1)]
    result = merge_reports(reports, 3)
    assert [(one.first, one.last) for one in result] == rows
    assert [one.reward for one in result] == [(first + last) / 2 for first, last in rows]


WRONG = [
    pytest.param(
        ["examples", "run", "-o", "x", "--answer", "box"], "--answer box is for questions for a position", id="answer"
    ),
    pytest.param(["puzzles", "chess", "-o", "x"], "unknown puzzle 'chess'", id="kind"),
    pytest.param(["puzzles", "maze", "-o", "."], "'.' is a folder", id="a folder"),
    pytest.param(["puzzles", "maze", "-o", "x", "--size", "4"], "odd number", id="size"),
    pytest.param(["grpo", "nowhere.jsonl", "-o", "x"], "'nowhere.jsonl' cannot be read", id="no examples"),
    pytest.param(["grpo", "train.jsonl", "train.jsonl", "-o", "x"], "in an earlier file, too", id="twice"),
    pytest.param(["grpo", "train.jsonl", "-o", "x", "--held-out", "no.jsonl"], "'no.jsonl' cannot", id="no held-out"),
    pytest.param(["grpo", "train.jsonl", "-o", "x", "-c", "no.toml"], "'no.toml' does not exist", id="no config"),
    pytest.param(["grpo", "train.jsonl", "-o", "x", "--set", "alpha=1"], "unknown key 'alpha'", id="unknown key"),
    pytest.param(["grpo", "train.jsonl", "-o", "x", "--set", "recipe=lpo"], "one target is a maze", id="reward"),
    pytest.param(["grpo", "train.jsonl", "-o", "x", "--start", "no"], "'no' is not a checkpoint", id="no start"),
    pytest.param(
        ["grpo", "train.jsonl", "-o", "x", "--set", 'report_to=["foo"]'], "unknown tracker 'foo'", id="tracker"
    ),
    pytest.param(["show", "start"], "'start' holds no training run", id="no run"),
]


@pytest.mark.parametrize(("words", "says"), WRONG)
def test_errors_are_one_line_and_write_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    capsys.readouterr()
    assert mira(monkeypatch, "train", *words) == 2
    err = capsys.readouterr().err
    assert says in err and err.count("\n") == 1
    assert not Path("x").exists()


@pytest.mark.skipif(find_spec("torchvision") is not None, reason="torchvision is installed")
def test_a_torchvision_that_does_not_fit_torch_is_one_line(tmp_path: Path) -> None:
    """As where a build for CUDA lies beside torch's build for the CPU."""
    (tmp_path / "torchvision").mkdir()
    (tmp_path / "torchvision" / "__init__.py").write_text("raise RuntimeError('operator torchvision::nms is missing')")
    words = ["-m", "agent.cli", "train", "grpo", str(Path("train.jsonl").resolve()), "-o", str(tmp_path / "run")]
    root = Path(__file__).parents[3]
    paths = os.pathsep.join([str(root), str(tmp_path)])
    done = subprocess.run(
        [sys.executable, *words],
        env={**os.environ, "PYTHONPATH": paths, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 2
    assert "torchvision is installed and cannot be imported (operator torchvision::nms is missing)" in done.stderr
    assert done.stderr.count("\n") == 1


def test_steps_of_runs_become_examples(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    plays = [Play(seed=1_000_000, text="Save"), Play(seed=3, text="Send"), Play(seed=1_000_001, outcome="failure")]
    write_run(tmp_path / "run", plays)
    capsys.readouterr()
    assert mira(monkeypatch, "train", "examples", "run", "-o", "steps.jsonl", "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == {
        "file": "steps.jsonl",
        "examples": 1,
        "left_out": {
            "asked before": 1,
            "of an instance that is held out for evaluation": 2,
            "of an episode that did not succeed": 2,
        },
    }
    assert mira(monkeypatch, "train", "examples", "run", "-o", "all.jsonl", "--allow-evaluation") == 0
    assert "2 examples: all.jsonl" in capsys.readouterr().out
    assert mira(monkeypatch, "train", "examples", "run", "-o", "points.jsonl", "--ask", "element") == 2
    err = capsys.readouterr().err
    assert (
        "steps left out: without a screenshot (`mira run --screenshots steps`)" in err
        and "no step of these runs fits as an example; see the counts above" in err
    )
    assert mira(monkeypatch, "train", "examples", "run", "-o", "x.jsonl", "--ask", "page") == 2
    assert "--ask 'page': use element, description, goal or step" in capsys.readouterr().err


def test_the_requested_puzzles_are_written() -> None:
    train, held = (read_examples(Path(name)) for name in ("train.jsonl", "held.jsonl"))
    assert (len(train), len(held)) == (20, 9)
    assert not {one.messages for one in train} & {one.messages for one in held}
