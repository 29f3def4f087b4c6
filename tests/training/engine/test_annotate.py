"""The scoring pass, on the embedded model: scored log-probabilities equal the sampled ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from agent.config import parse_config
from agent.run.discover_traces import discover_traces
from agent.run.runner import run_suite
from envs.core.tasks import TaskSelection
from models.embedded import embedded_dir
from tests.training.engine.critics import last_layer
from training.data.rows import Row, RowEncoder
from training.data.trajectories import select
from training.engine.annotate import score_completions, score_states
from training.engine.checkpoints import load_policy
from training.engine.critic_model import Critic


@pytest.mark.browser
async def test_scored_log_probabilities_equal_the_recorded_ones(tmp_path: Path) -> None:
    """Sampled token by token with a cache, in a batch; scored packed, in one pass: equal up to float32 rounding."""
    from transformers import AutoTokenizer

    config = parse_config({"policy": "embedded", "fsync": False, "workers": 2, "limits": {"max_steps": 5}}, "test")
    run = await run_suite(config, TaskSelection("miniwob", ("login-user", "enter-text"), (0, 1)), tmp_path)
    kept = select((item.read(), item.blobs) for item in discover_traces([run.folder])).kept
    encoder = RowEncoder(AutoTokenizer.from_pretrained(embedded_dir(), local_files_only=True), 1_000)
    rows = encoder.encode(kept).rows
    model = load_policy(embedded_dir())[0].eval()
    assert len(rows) >= 6
    for row, total in zip(rows, score_completions(model, rows, 800), strict=True):
        assert row.sampled is not None
        assert total == pytest.approx(sum(row.sampled), abs=1e-3)


def test_states_are_scored_in_the_order_of_the_rows() -> None:
    critic = Critic.from_policy(embedded_dir()).eval()
    torch.manual_seed(0)
    torch.nn.init.normal_(last_layer(critic).weight, std=0.02)  # no state is rated 1 to the last bit
    rows = [Row((5, 6, 7, n), (9,) * (n % 3 + 1), 0, n) for n in range(8)]
    packed, alone = score_states(critic, rows, 12), [score_states(critic, [row], 12)[0] for row in rows]
    assert packed == pytest.approx(alone, abs=1e-4)
    assert len(set(packed)) == len(rows) and all(0 <= value <= 1 for value in packed)


def test_shared_prefixes_are_computed_once() -> None:
    """Ten rows: two states of three tokens with a shared prefix of two, and for each two completions of two tokens with
    an equal first token."""
    critic = Critic.from_policy(embedded_dir()).eval()
    torch.nn.init.normal_(last_layer(critic).weight, std=0.02)
    model = load_policy(embedded_dir())[0].eval()
    rows = [Row((5, 6, 7 + n % 2), (9, 10 + n % 4 // 2), n, 0) for n in range(10)]
    shown: list[int] = []

    def record(_module: object, _arguments: object, options: dict[str, Any]) -> None:
        shown.append(options["input_ids"].shape[1])

    for network in (critic.trunk, model.base_model):
        network.register_forward_pre_hook(record, with_kwargs=True)
    states, actions = score_states(critic, rows, 100), score_completions(model, rows, 100)
    assert shown == [2 + 2, 2 + 2 * (1 + 1 + 2)]
    assert states == pytest.approx([score_states(critic, [row], 100)[0] for row in rows], abs=1e-4)
    assert actions == pytest.approx([score_completions(model, [row], 100)[0] for row in rows], abs=1e-4)
    assert len(set(actions)) == 4
