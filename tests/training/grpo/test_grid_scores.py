"""`mira eval grids`: puzzles are scored as in training, for saved answers and for a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from models.base import ChatReply, ChatRequest, Usage
from tests.mira_command import mira
from training.grpo.answering import answer_examples
from training.grpo.examples import write_examples
from training.grpo.grid_scores import score_grids
from training.grpo.predictions import Prediction
from training.grpo.puzzles import make_puzzles
from training.grpo.rewards import MazeTarget, SudokuTarget


def test_saved_answers_by_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    puzzles = (*make_puzzles("maze", 4, seed=0, size=3), *make_puzzles("sudoku", 4, seed=0, size=4))
    write_examples(tmp_path / "puzzles.jsonl", puzzles)
    lines: list[Prediction] = []
    for number, puzzle in enumerate(puzzles):
        assert isinstance(puzzle.target, MazeTarget | SudokuTarget)
        right = puzzle.target.path if isinstance(puzzle.target, MazeTarget) else "\n".join(puzzle.target.solution)
        lines.append(Prediction(name=puzzle.name, answer=f"<think>?</think>{right}" if number % 4 else "U", tokens=4))
    saved = tmp_path / "saved.jsonl"
    saved.write_text("".join(f"{line.model_dump_json()}\n" for line in lines))
    assert mira(monkeypatch, "eval", "grids", tmp_path / "puzzles.jsonl", "--predictions", saved, "--json") == 0
    scores = {each["kind"]: each for each in json.loads(capsys.readouterr().out)}
    assert {kind: (each["examples"], each["correct"]["value"]) for kind, each in scores.items()} == {
        "all": (8, 0.75),
        "maze": (4, 0.75),
        "sudoku": (4, 0.75),
    }
    assert scores["sudoku"]["proximity"]["value"] == 0.75 and scores["all"]["tokens"] == 4
    assert mira(monkeypatch, "eval", "grids", tmp_path / "puzzles.jsonl", "--predictions", saved) == 0
    assert "75.0%" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()
    words = ("grids", tmp_path / "puzzles.jsonl", "--predictions", saved, "-o", tmp_path / "out")
    assert mira(monkeypatch, "eval", *words) == 0
    assert {each["kind"]: each for each in json.loads((tmp_path / "out" / "score.json").read_text())} == scores
    assert str(tmp_path / "out" / "score.json") in capsys.readouterr().out


class Scripted:
    """A scripted model: it answers each puzzle with the same path."""

    spec = "scripted"

    def __init__(self, answer: str = "RRDD", tokens: int = 3) -> None:
        self.answer, self.tokens = answer, tokens

    async def complete(self, request: ChatRequest) -> ChatReply:
        return ChatReply(self.answer, Usage(tokens_out=self.tokens, tokens_thinking=2), self.spec, 0.0)

    async def aclose(self) -> None: ...


async def test_a_model_is_asked_once_for_each_puzzle() -> None:
    puzzles, kept = make_puzzles("maze", 5, seed=0, size=3), list[Prediction]()
    await answer_examples(Scripted(), None, puzzles, kept.append, max_tokens=9, workers=2)
    assert sorted(each.name for each in kept) == sorted(puzzle.name for puzzle in puzzles)
    (score,) = score_grids(puzzles, {each.name: each for each in kept})
    assert score.tokens == 5 and score.examples == 5
    assert score.thought_tokens.value == 2, "hidden ones; the path has no thought"


async def test_a_thought_in_the_answer_counts_by_its_share() -> None:
    puzzles, kept = make_puzzles("maze", 1, seed=0, size=3), list[Prediction]()
    await answer_examples(Scripted("<think>xxxxxxxxxx</think>RRDD", 20), None, puzzles, kept.append, max_tokens=9)
    share = round(20 * 10 / len("<think>xxxxxxxxxx</think>RRDD"))
    assert share == 7 and [(each.tokens, each.thought_tokens) for each in kept] == [(22, 2 + share)]


def test_an_example_that_is_no_puzzle_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = {"name": "a", "messages": [["user", "?"]], "target": {"kind": "step", "action": {"kind": "back"}}}
    (tmp_path / "a.jsonl").write_text(json.dumps(line))
    assert mira(monkeypatch, "eval", "grids", tmp_path / "a.jsonl", "--policy", "embedded") == 2
    assert "is not a puzzle" in (said := capsys.readouterr().err) and said.count("\n") == 1
