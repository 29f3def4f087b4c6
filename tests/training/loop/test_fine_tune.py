"""`fine_tune`: supervised fine-tuning on runs, from its start to the result."""

from __future__ import annotations

from pathlib import Path

import torch

from models.embedded import embedded_dir
from tests.agent.episodes import Play, write_run
from tests.training.engine.test_tree_attention import recurrent
from training.engine.checkpoints import load_policy, load_tokenizer, save_policy
from training.engine.settings import Compute, Optimization
from training.loop.sft import SupervisedSettings, fine_tune

torch.set_num_threads(1)
FIRST = 1_000_000
"""First MiniWoB++ seed for training."""


def settings_of(epochs: int = 1) -> SupervisedSettings:
    how = Optimization(learning_rate=1e-3, batch_rows=2, epochs=epochs)
    return SupervisedSettings(optimization=how, compute=Compute(cpu=True, threads=1))


def demonstrations(folder: Path) -> list[Path]:
    write_run(folder, [Play(seed=FIRST), Play(task="enter-text", seed=FIRST + 1)])
    return [folder]


def test_a_recurrent_start_is_trained_on_padded_rows(tmp_path: Path) -> None:
    """Its layers cannot take packed texts. It used to be refused before its training began."""
    torch.manual_seed(0)
    start = tmp_path / "start"
    save_policy(recurrent(), load_tokenizer(embedded_dir()), start)
    lines: list[str] = []
    result = fine_tune(demonstrations(tmp_path / "runs"), str(start), tmp_path / "sft", settings_of(), lines.append)
    before, after = (load_policy(at, padded=True)[0].state_dict() for at in (start, result.model))
    assert any(not torch.equal(before[name], after[name]) for name in before)
