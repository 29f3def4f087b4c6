"""`benchmarks.real_models`: what a results file counts, and how an interrupted experiment continues."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from agent.config import RunConfig
from agent.results import RunResult
from benchmarks import real_models
from benchmarks.real_models import (
    Arm,
    Results,
    Row,
    current_commit,
    difference,
    figures,
    main,
    problems,
    settings_of,
    table,
)
from envs.core.tasks import TaskSelection
from tests.timing import HANG_S

ROOT = Path(__file__).parents[3]


def row(task: str, seed: int, *, success: bool, **changes: Any) -> Row:
    fields = {
        "task": task,
        "seed": seed,
        "success": success,
        "ended_by": "environment",
        "steps": 2,
        "calls": {"policy": 3},
        "unreadable": {},
        "tokens_in": 1_000,
        "tokens_cached": 400,
        "tokens_out": 50,
        "model_seconds": 1.5,
        "seconds": 2.5,
    }
    return Row.model_validate({**fields, **changes})


def results(**arms: list[Row]) -> Results:
    names = tuple(dict.fromkeys(row.task for rows in arms.values() for row in rows))
    made = {name: Arm(settings={"constrained": name}, rows=tuple(rows)) for name, rows in arms.items()}
    return Results(policy="openai:m", tasks=names, max_steps=8, arms=made)


def test_an_arm_in_numbers() -> None:
    off = [row("a", 0, success=True), row("a", 1, success=False, calls={"policy": 5, "rater": 2}, unreadable={"x": 2})]
    on = [row("a", 0, success=True, milestones=1.0), row("a", 1, success=True, milestones=0.5)]
    first, second = figures(results(off=off, on=on))
    assert (first.successes, first.episodes, first.difference, first.milestones) == (1, 2, "", "")
    assert first.calls == {"policy": 4.0, "rater": 1.0} and first.unreadable == {"x": 2} and first.tokens_in == 1_000
    assert (second.successes, second.milestones, second.by_task) == (2, "0.750", {"a": 1.0})
    shown = table(results(off=off, on=on), by_task=True)
    assert "| off |" in shown and "| on |" in shown


def test_differences_are_paired_by_task_and_seed() -> None:
    """An episode that one arm has not played yet is not compared. Both tasks gain the same, so no interval remains."""
    base = [row(task, seed, success=False) for task in ("a", "b") for seed in (0, 1)]
    other = [row(task, 0, success=True) for task in ("a", "b")]
    assert difference(base, other) == "1.0000 (no interval: no resample differs)"


def test_settings_are_words() -> None:
    words = ["constrained=on", "limits.max_steps=3", "planner=reference", "show_plan=false"]
    expected = {"constrained": "on", "limits": {"max_steps": 3}, "planner": "reference", "show_plan": False}
    assert settings_of(words) == expected


def run(monkeypatch: pytest.MonkeyPatch, *words: object) -> None:
    monkeypatch.setattr(sys, "argv", ["real_models", *map(str, words)])
    main()


@pytest.mark.browser
def test_an_interrupted_experiment_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A scripted model never answers with an action. What the file has is not played again."""
    (tmp_path / "model.json").write_text(json.dumps([{"when": "", "answer": "Which of the 2 buttons?"}]))
    common = ("play", tmp_path / "out", "--policy", f"scripted:{tmp_path / 'model.json'}", "--tasks", "click-test")
    run(monkeypatch, *common, "--max-steps", 2, "--seeds", "0", "--arm", "off", "constrained=off")
    first = Results.model_validate_json((tmp_path / "out" / "results.json").read_text())
    (only,) = first.arms["off"].rows
    assert only.commit == current_commit() and re.fullmatch(r"\d{4}-\d\d-\d\d", only.played_on or "")
    assert not only.success and only.calls["policy"] >= 2
    assert only.unreadable == {"no action found": only.calls["policy"]}
    capsys.readouterr()
    arms = ("--arm", "off", "constrained=off", "--arm", "one", "max_actions_per_turn=1")
    run(monkeypatch, *common, "--max-steps", 2, "--seeds", "0", *arms, "--json")
    output, progress = capsys.readouterr()
    assert [arm["arm"] for arm in json.loads(output)] == ["off", "one"]
    assert progress.startswith("one, seed 0: 1 episodes to play\n  click-test: failure, 0 steps")
    both = Results.model_validate_json((tmp_path / "out" / "results.json").read_text())
    assert both.arms["off"] == first.arms["off"] and len(both.arms["one"].rows) == 1
    (tmp_path / "out" / "results.json").unlink()  # it was killed before it was written: the run's folder is read
    run(monkeypatch, *common, "--max-steps", 2, "--seeds", "0", *arms)
    again = Results.model_validate_json((tmp_path / "out" / "results.json").read_text())
    assert again == both
    (tmp_path / "out" / "results.json").unlink()
    with pytest.raises(SystemExit, match="is a run of other tasks"):
        run(monkeypatch, *common, "click-link", "--max-steps", 2, "--seeds", "0", "--arm", "off", "constrained=off")
    (tmp_path / "out" / "results.json").write_text(both.model_dump_json())
    for words, problem in (
        (("--max-steps", 3, "--arm", "off", "constrained=off"), "another policy, task list or number of steps"),
        (("--max-steps", 2, "--arm", "off", "constrained=on"), "other settings for the arm off"),
    ):
        with pytest.raises(SystemExit, match=problem):
            run(monkeypatch, *common, "--seeds", "0", *words)


class SentenceHandler(BaseHTTPRequestHandler):
    """Answers every chat with a sentence that has no action."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        message = {"role": "assistant", "content": "Which of the buttons?"}
        body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "model": "m"}
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def answering(server: HTTPServer) -> Generator[None]:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.browser
def test_a_broken_episode_is_no_row_and_is_played_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server is away at first. Its outage says nothing about the policy."""
    with HTTPServer(("127.0.0.1", 0), SentenceHandler) as server:
        port = server.server_port
    common = ("play", tmp_path, "--policy", "openai:m", "--base-url", f"http://127.0.0.1:{port}/v1", "--seeds", "0")
    words = (*common, "--tasks", "click-test", "--arm", "off", "constrained=off", "retry_window_s=0")
    for _ in range(2):
        with pytest.raises(SystemExit, match="broken: click-test; the same command plays them again"):
            run(monkeypatch, *words)
    assert not (tmp_path / "results.json").exists()
    with answering(HTTPServer(("127.0.0.1", port), SentenceHandler)):
        run(monkeypatch, *words)
    (only,) = Results.model_validate_json((tmp_path / "results.json").read_text()).arms["off"].rows
    assert not only.success and only.unreadable == {"no action found": only.calls["policy"]}


def test_an_interrupted_run_ends_the_experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No later arm begins."""

    async def interrupted(config: RunConfig, selection: TaskSelection, out: Path, *_: object, run_id: str) -> RunResult:
        return RunResult(run_id, out / run_id, (), planned=len(selection.names), seconds=0.0)

    monkeypatch.setattr(real_models, "run_suite", interrupted)
    words = ("play", tmp_path, "--policy", "openai:m", "--tasks", "click-test", "--seeds", "0")
    with pytest.raises(SystemExit, match="first/seed-0: interrupted; the same command continues"):
        run(monkeypatch, *words, "--arm", "first", "--arm", "second")


@pytest.mark.browser
def test_episodes_of_another_commit_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Symptom: an experiment was continued with other prompts, and nothing in its file or on the screen said so."""
    (tmp_path / "model.json").write_text(json.dumps([{"when": "", "answer": "Which of the 2 buttons?"}]))
    common = ("play", tmp_path / "out", "--policy", f"scripted:{tmp_path / 'model.json'}", "--tasks", "click-test")
    words = (*common, "--max-steps", 2, "--arm", "off", "constrained=off", "--seeds")
    file = tmp_path / "out" / "results.json"

    def commits() -> list[str | None]:
        return [row.commit for row in Results.model_validate_json(file.read_text()).arms["off"].rows]

    monkeypatch.setattr(real_models, "current_commit", lambda: "older")
    run(monkeypatch, *words, "0")
    assert "several commits" not in capsys.readouterr().err
    monkeypatch.setattr(real_models, "current_commit", lambda: "newer")
    run(monkeypatch, *words, "0-1")
    assert capsys.readouterr().err.splitlines()[0] == (
        f"{file}: episodes of several commits of Mira, so prompts may differ: older (1), newer (0)"
    )
    assert commits() == ["older", "newer"]
    run(monkeypatch, "table", file)
    assert capsys.readouterr().err.splitlines() == [
        f"{file}: episodes of several commits of Mira, so prompts may differ: older (1), newer (1)"
    ]
    file.unlink()  # the runs' folders say the same
    run(monkeypatch, *words, "0-1")
    assert commits() == ["older", "newer"]


def test_stored_files_without_commits_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    files = sorted((ROOT / "docs" / "results").glob("real_models_*.json"))
    stored = [[row for arm in real_models.read_results(file).arms.values() for row in arm.rows] for file in files]
    assert all(stored)
    old = [rows for rows in stored if not any(row.commit for row in rows)]
    assert old
    for rows in old:
        assert real_models.mixed_commits(rows) == ""
        assert real_models.mixed_commits(rows, "abc").endswith(f"unknown ({len(rows)}), abc (0)")


def saved(path: Path, made: Results) -> Path:
    path.write_text(made.model_dump_json())
    return path


def test_results_count_as_played_only_if_enough_is_solved_and_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Symptom: `make models` succeeded with 0 of 5 solved, and without any results."""
    names = "abcde"
    good = results(on=[row(name, 0, success=name in "abc") for name in names])
    file = saved(tmp_path / "good.json", good)
    run(monkeypatch, "check", file, "--least", 0.6)
    assert capsys.readouterr().out == f"{file}: on: 3 of 5 solved, 15 answers, 12 s\n"
    poor = saved(tmp_path / "poor.json", results(on=[row(name, 0, success=name in "ab") for name in names]))
    assert problems(poor, 0.6) == [f"{poor}: on solved 2 of 5, less than the share 0.6"]
    unread = saved(tmp_path / "unread.json", results(on=[row("a", 0, success=True, unreadable={"no action found": 2})]))
    assert problems(unread, 0.6) == [f"{unread}: on has 2 answers that could not be read"]
    part = saved(tmp_path / "part.json", good.model_copy(update={"tasks": ("a", "b", "c", "d", "e", "f")}))
    assert problems(part, 0.6) == [f"{part}: on lacks f (seed 0)"]
    empty = saved(tmp_path / "empty.json", good.model_copy(update={"arms": {"on": Arm(settings={})}}))
    assert problems(empty, 0.0) == [f"{empty}: on lacks {', '.join(f'{name} (seed 0)' for name in names)}"]
    none = saved(tmp_path / "none.json", good.model_copy(update={"arms": {}}))
    assert problems(none, 0.0) == [f"{none}: no tasks were played"]
    with pytest.raises(SystemExit, match=r"poor\.json: on solved 2 of 5"):
        run(monkeypatch, "check", file, poor, "--least", 0.6)
    for bad, reason in ((tmp_path / "absent.json", "No such file"), (saved_text(tmp_path, "{}"), "not a results file")):
        capsys.readouterr()
        with pytest.raises(SystemExit, match="2"):
            run(monkeypatch, "check", bad)
        assert reason in (line := capsys.readouterr().err) and line.count("\n") == 1
    with pytest.raises(SystemExit, match="2"):
        run(monkeypatch, "check", file, "--least", 60)
    assert "'60' is not a number from 0 to 1" in capsys.readouterr().err


def saved_text(folder: Path, text: str) -> Path:
    (folder / "bad.json").write_text(text)
    return folder / "bad.json"


@pytest.mark.parametrize("words", ["", " --json"])
def test_a_reader_that_ended_is_no_traceback(words: str, tmp_path: Path) -> None:
    """Symptom: `real_models table FILE | head` ended in a BrokenPipeError."""
    file = saved(tmp_path / "results.json", results(on=[row("a", 0, success=True)]))
    ended = subprocess.run(
        [
            *("bash", "-c", 'exec 3>&1; { "$0" -m benchmarks.real_models table "$@"; echo "code $?" >&3; } | true'),
            *(sys.executable, file, *words.split()),
        ],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (ended.stdout, ended.stderr) == ("code 130\n", "")
