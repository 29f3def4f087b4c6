"""Adapters are attached and trained without a deprecation of PEFT, TRL or transformers on the terminal."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from models.embedded import embedded_dir
from tests.training.engine.token_rows import rows_of
from training.engine.checkpoints import load_policy, with_adapter
from training.engine.critic_model import Critic
from training.engine.settings import Compute, Lora, Optimization
from training.engine.sft import SupervisedJob, supervised
from training.engine.shared_base_lora import SharedBaseModels

LORA = Lora(rank=4)


def _policy(_: Path) -> object:
    return with_adapter(load_policy(embedded_dir())[0], LORA)


def _critic(_: Path) -> None:
    model = load_policy(embedded_dir())[0]
    Critic(model.base_model, int(model.config.hidden_size)).adapt(LORA)


def _shared_base(_: Path) -> object:
    return SharedBaseModels(embedded_dir(), LORA)


def _fine_tuning(folder: Path) -> object:
    how = Optimization(learning_rate=1e-3, batch_rows=3)
    compute = Compute(cpu=True, threads=1, max_tokens=60, lora=LORA)
    return supervised(
        SupervisedJob(start=embedded_dir(), optimization=how, compute=compute), rows_of(3), folder / "sft"
    )


@pytest.mark.parametrize("attach", [_policy, _critic, _shared_base, _fine_tuning])
def test_attaching_an_adapter_prints_no_warning(attach: Callable[[Path], object], tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FutureWarning)
        warnings.simplefilter("always", DeprecationWarning)
        attach(tmp_path)
    assert [str(warning.message) for warning in caught] == []
