"""`benchmarks.real_models`: what a results file counts, and how an interrupted experiment continues."""

from __future__ import annotations

import json
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
from benchmarks.real_models import Arm, Results, Row, difference, figures, main, settings_of, table
from envs.core.tasks import TaskSelection


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
