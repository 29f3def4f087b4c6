"""`mira eval steps`: exact steps are those that greedy decoding repeats; what is left out is counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from agent.config import parse_config
from agent.run.runner import run_suite
from envs.core.tasks import TaskSelection
from models.embedded import embedded_dir
from tests.mira_command import mira
from training.data.rows import Row, RowEncoder
from training.engine.checkpoints import load_policy
from training.loop.data import read_runs
from training.step_accuracy.recorded_steps import SYNTAX, argument_at


@pytest.mark.parametrize(
    ("answer", "place"),
    [
        ("", SYNTAX),
        ("do(", SYNTAX),
        ('do(action="', "action"),
        ('do(action="Type", ', SYNTAX),
        ('do(action="Type", argument="Juno C', "argument"),
        ('do(action="Type", argument="a", element="1', "element"),
        ('exit(message="', "message"),
    ],
)
def test_the_first_wrong_token_is_in_the_open_value(answer: str, place: str) -> None:
    assert argument_at(answer) == place


async def played(policy: str, task: str, out: Path) -> Path:
    config = parse_config({"policy": policy, "planner": "reference", "fsync": False}, "test")
    return (await run_suite(config, TaskSelection("miniwob", (task,), (1_000_000, 1_000_001)), out)).folder


def greedy_answer(model: torch.nn.Module, row: Row) -> tuple[int, ...]:
    ids = list(row.prompt)
    with torch.no_grad():
        for _ in row.completion:
            ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
    return tuple(ids[len(row.prompt) :])


@pytest.mark.browser
async def test_exact_steps_are_those_that_greedy_decoding_repeats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for task in ("login-user", "use-autocomplete"):
        await played("oracle", task, tmp_path)
    kept = read_runs([tmp_path], texts=True).kept
    model, tokenizer = load_policy(embedded_dir(), padded=True)
    rows = RowEncoder(tokenizer, 2_048).encode(kept).rows
    right = [greedy_answer(model.eval(), row) == row.completion for row in rows]
    assert mira(monkeypatch, "eval", "steps", tmp_path, "--checkpoint", "embedded", "--cpu", "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert result["steps"] == len(rows) and 0 < sum(right) < len(rows)
    assert sum(task["exact"] for task in result["tasks"]) == sum(right)
    assert result["exact"]["wilson"]["value"] == pytest.approx(sum(right) / len(rows))
    assert sum(result["first_wrong"].values()) == len(rows) - sum(right)
    assert (result["failures"], result["too_long"]) == (0, 0)


def test_a_folder_without_runs_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert mira(monkeypatch, "eval", "steps", tmp_path, "--checkpoint", "embedded") == 2
    assert str(tmp_path) in capsys.readouterr().err
