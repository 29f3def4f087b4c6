"""`fine_tune`: supervised fine-tuning on runs, from its start to the result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from envs.core.errors import BadInput
from envs.core.run_lock import LOCK_NAME, RunLock, RunLocked
from models.embedded import embedded_dir
from models.local.declarations import declarations
from tests.agent.episodes import Play, write_run
from tests.training.engine.test_tree_attention import recurrent
from training.engine.checkpoints import load_policy, load_tokenizer, save_policy
from training.engine.settings import Compute, Lora, Optimization
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


def test_an_adapter_declares_what_its_model_declares(tmp_path: Path) -> None:
    """So `local:START+OUT/adapter` gets the prompts of `local:OUT/model`."""
    how = settings_of().model_copy(update={"compute": Compute(cpu=True, threads=1, bf16=True, lora=Lora(rank=2))})
    result = fine_tune(demonstrations(tmp_path / "runs"), "embedded", tmp_path / "sft", how, lambda _: None)
    declared = declarations(tmp_path / "sft" / "adapter")
    assert declared == declarations(result.model) and declared["precision"] == "bfloat16"


def test_a_tracker_gets_the_loss_and_an_unknown_one_is_refused(tmp_path: Path) -> None:
    how, runs = settings_of(), demonstrations(tmp_path / "runs")
    with pytest.raises(BadInput, match="unknown tracker 'foo'"):
        fine_tune(runs, "embedded", tmp_path / "sft", how.model_copy(update={"report_to": ("foo",)}), lambda _: None)
    assert not (tmp_path / "sft").exists()
    reported = how.model_copy(update={"report_to": ("tensorboard",)})
    fine_tune(runs, "embedded", tmp_path / "sft", reported, lambda _: None)
    (folder,) = (tmp_path / "sft" / "tensorboard").iterdir()
    events = EventAccumulator(str(folder))
    events.Reload()
    tags: dict[str, Any] = events.Tags()
    assert "train/loss" in tags["scalars"]


def test_of_two_concurrent_fine_tunings_one_is_refused(tmp_path: Path) -> None:
    """Both would write the same checkpoints. The second starts when the first has read its rows."""
    runs, out, refused = demonstrations(tmp_path / "runs"), tmp_path / "sft", list[str]()

    def start_another(line: str) -> None:
        if "rows of" in line:
            with pytest.raises(RunLocked, match="is in use by") as raised:
                fine_tune(runs, "embedded", out, settings_of(), lambda _: None)
            refused.append(str(raised.value))

    result = fine_tune(runs, "embedded", out, settings_of(), start_another)
    assert len(refused) == 1 and (result.model / "model.safetensors").is_file()


def test_a_fine_tuning_killed_before_it_began_restarts(tmp_path: Path) -> None:
    out = tmp_path / "sft"
    out.mkdir()
    with RunLock(out):
        (out / "begun.json.4711.part").write_text("{")
    assert (out / LOCK_NAME).exists()
    result = fine_tune(demonstrations(tmp_path / "runs"), "embedded", out, settings_of(), lambda _: None)
    assert (result.model / "model.safetensors").is_file()
