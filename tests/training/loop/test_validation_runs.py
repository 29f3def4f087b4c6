"""`mira train sft --validation`: what the log says of the runs and of their loss."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.agent.episodes import Play, write_run
from training.engine.early_stopping import best_epoch
from training.engine.settings import Compute, Optimization
from training.loop.sft import SupervisedSettings, fine_tune

torch.set_num_threads(1)


@pytest.mark.parametrize(("rate", "is_worse"), [(1e-3, False), (0.3, True)], ids=["it learns", "it destroys the model"])
def test_a_start_with_a_lower_loss_is_reported(tmp_path: Path, rate: float, is_worse: bool) -> None:
    write_run(tmp_path / "demos", [Play(seed=1_000_000), Play(task="enter-text", seed=1_000_001)])
    settings = SupervisedSettings(
        optimization=Optimization(learning_rate=rate, batch_rows=4, epochs=1), compute=Compute(cpu=True, threads=1)
    )
    lines: list[str] = []
    demos = [tmp_path / "demos"]
    result = fine_tune(demos, "embedded", tmp_path / "sft", settings, lines.append, validation=demos)
    start, epoch = result.validation
    assert best_epoch(result.validation) is epoch and (epoch.loss > start.loss) == is_worse
    reported = [line for line in lines if "the start has a lower loss on the validation runs" in line]
    assert len(reported) == is_worse
    assert not reported or (f"({start.loss:.3f})" in reported[0] and f"{epoch.loss:.3f}" in reported[0])
    assert any("validation rows are trained on, too" in line for line in lines)
