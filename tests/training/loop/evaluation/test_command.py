"""`mira eval` as a command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from envs.core.errors import BadInput
from tests.agent.episodes import Play, write_run
from tests.mira_command import mira
from training.cli.evaluate import parse_ks

HALF = ((False, False), (True, False), (True, False))
LONG = "a-task-with-a-name-that-is-far-too-long-for-any-table-of-eighty-columns"


def as_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str | Path) -> Any:
    assert mira(monkeypatch, "eval", *words, "--json") == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    return json.loads(printed.out)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two attempts at each of two tasks; one episode is broken, one has no footer."""
    plays = [
        Play(seed=0, attempt=1),
        Play(seed=0, attempt=2, outcome="failure", z=HALF),
        Play(seed=1, attempt=1, outcome="failure", z=HALF),
        Play(seed=1, attempt=2, outcome="broken"),
        Play(task=LONG, seed=0, attempt=1, tokens=123456),
        Play(seed=2, outcome=None),
    ]
    return write_run(tmp_path / "r", plays).path


def test_one_report(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run: Path) -> None:
    report = as_json(monkeypatch, capsys, run, "--k", "1,2")
    evaluation = report["evaluation"]
    assert (evaluation["total"]["judged"], evaluation["total"]["successes"], evaluation["total"]["broken"]) == (4, 2, 1)
    assert [(item["k"], item["value"]["value"], item["tasks"]) for item in evaluation["pass_at"]] == [
        (1, 0.5, 3),
        (2, 1.0, 1),
    ]
    assert (report["phases"], report["arms"], report["out"]) == ([], None, None)


def test_everything_fits_eighty_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run: Path, tmp_path: Path
) -> None:
    other = write_run(tmp_path / "s", [Play(seed=seed) for seed in (0, 1)]).path
    arms = ("--arm", f"base={run}", "--arm", f"{'better' * 9}={other}")
    phases = ("--phases", f"{'before-training' * 3}={run}", "--phases", f"after={other}")
    assert mira(monkeypatch, "eval", run, *arms, *phases) == 0
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines())
    for expected in (
        "66.7%",
        "no task has 8 attempts",
        "excluded from rates: 1 broken, 1 unfinished",
        "diagonal",
        "minus B",
    ):
        assert expected in out or expected == "66.7%"
    assert "50.0% (15-85)" in out


def test_arms_with_the_same_name_are_seeds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words: list[str] = []
    for name, won in (("base-0", (0,)), ("base-1", (0, 1)), ("mira-0", (0, 1)), ("mira-1", (0, 1, 2))):
        plays = [Play(seed=seed, outcome="success" if seed in won else "failure") for seed in range(4)]
        write_run(tmp_path / name, plays)
        words += ["--arm", f"{name[:4]}={tmp_path / name}"]
    report = as_json(monkeypatch, capsys, *words, "--baseline", "base")["arms"]
    assert [[item["success"] for item in arm["seeds"]] for arm in report["arms"]] == [[0.25, 0.5], [0.5, 0.75]]
    assert report["arms"][1]["change"]["value"] == 0.25 and report["arms"][1]["change"]["seeds"]["why_not"]


def test_the_phase_of_arms_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words: list[str] = []
    for name in ("awr", "mira"):
        for phase in (0, 2):
            write_run(tmp_path / name / f"phase-{phase}" / "evaluation", [Play(seed=0), Play(seed=1)])
        words += ["--arm", f"{name}={tmp_path / name}"]
    assert [arm["phase"] for arm in as_json(monkeypatch, capsys, *words)["arms"]["arms"]] == [2, 2]
    assert mira(monkeypatch, "eval", *words) == 0
    assert "mira after phase 2: 2 episodes" in capsys.readouterr().out


def test_arms_are_paired_by_the_seeds_of_their_training(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Of four tasks seed 0 solves 1 and 2, seed 5 solves 3 and 4: one more each, in any order."""
    words: list[str] = []
    for arm, seed, won in (("base", 0, 1), ("base", 5, 3), ("mira", 5, 4), ("mira", 0, 2)):
        folder = tmp_path / f"{arm}-{seed}"
        plays = [Play(seed=task, outcome="success" if task < won else "failure") for task in range(4)]
        write_run(folder / "phase-1" / "evaluation", plays)
        (folder / "config.json").write_text(f'{{"seed": {seed}}}')
        words += ["--arm", f"{arm}={folder}"]
    _, mira = as_json(monkeypatch, capsys, *words)["arms"]["arms"]
    assert mira["seeds"] == [{"seed": 0, "success": 0.5}, {"seed": 5, "success": 1.0}]
    assert mira["change"]["seeds"]["why_not"] == "all seeds are the same"


def test_phases_are_drawn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run: Path, tmp_path: Path
) -> None:
    report = as_json(monkeypatch, capsys, "--phases", f"0={run}", "--out", tmp_path / "maps.svg")
    (phase,) = report["phases"]
    assert phase["name"] == "0" and phase["milestones"]["diagonal"]["value"] == 0.75
    assert (tmp_path / "maps.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nothing to evaluate"),
        (["{0}/none"], "holds no traces"),
        (["{0}/unfinished"], "no finished episode"),
        (["{0}/r", "--k", "0"], "--k '0'"),
        (["{0}/r", "--k", "one"], "--k 'one'"),
        (["{0}/r", "--k", ""], "--k ''"),
        (["{0}/r", "--out", "{0}/x.svg"], "name no phase"),
        (["--phases", "a={0}/r", "--out", "{0}/x.png"], "must end in .svg or .html"),
        (["--phases", "a={0}/r", "--out", "{0}/y/x.svg"], "there is no folder"),
        (["--phases", "{0}/none"], "holds no phase"),
        (["--arm", "{0}/r"], "write NAME=RUN"),
        (["--arm", "a={0}/r", "--baseline", "b"], "no arm 'b' among a"),
        (["--arm", "a={0}/r", "--cluster", "site"], "'site'"),
        (["{0}/r", "--baseline", "a"], "--baseline is one of"),
        (["{0}/r", "--suite", "miniwob"], "options of --play"),
        (["{0}/r", "--policy", "oracle"], "options of --play"),
        (["{0}/r", "--seeds", "0-4"], "options of --play"),
        (["--play"], "--play needs --suite"),
        (["--play", "--suite", "nothing"], "nothing"),
        (["--play", "--suite", "miniwob", "--tasks", "click-buton"], "click-button"),
    ],
)
def test_wrong_input_is_one_line_and_nothing_is_written(  # noqa: PLR0917 - fixtures
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    run: Path,
    tmp_path: Path,
    words: list[str],
    message: str,
) -> None:
    write_run(tmp_path / "unfinished", [Play(outcome=None)])
    (tmp_path / "none").mkdir()
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    assert mira(monkeypatch, "eval", *(word.format(tmp_path) for word in words)) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("\n") == 1 and message in printed.err
    assert sorted(tmp_path.rglob("*")) == before


def test_a_damaged_trace_is_named_and_cannot_steer_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run: Path, tmp_path: Path
) -> None:
    (run / "episodes" / "login-user-1-a2.jsonl").write_text("{}\n")
    write_run(tmp_path / "s", [Play(policy="\x1b[2Jgone")])
    assert mira(monkeypatch, "eval", run, tmp_path / "s") == 0
    out = capsys.readouterr().out
    assert "cannot be read" in out and "gone" in out and "\x1b[2J" not in out
    assert "several policies are counted together" in out


def test_ks() -> None:
    assert parse_ks("4, 1,4") == (4, 1)
    with pytest.raises(BadInput):
        parse_ks("1,-2")


@pytest.mark.browser
def test_it_plays_and_then_reports(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ("--play", "--suite", "miniwob", "--tasks", "click-test", "--seeds", "0-1", "--policy", "oracle")
    assert mira(monkeypatch, "eval", *words, "--runs", tmp_path, "--json") == 0
    evaluation = json.loads(capsys.readouterr().out)["evaluation"]
    assert (evaluation["episodes"], evaluation["policies"]) == (2, ["oracle"])
    assert len(list(tmp_path.glob("*/run.json"))) == 1
