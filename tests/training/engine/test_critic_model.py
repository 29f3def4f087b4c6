"""The critics' network: its states, its initial output, and training on progress."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig, LlamaModel

from tests.training.engine.critics import last_layer
from training.data.packing import pack
from training.data.rows import Row
from training.engine.critic_model import Critic
from training.engine.packed_model import accept_packed
from training.mira.losses import potential_loss


@pytest.fixture
def critic() -> Critic:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=32,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=64,
    )
    trunk = LlamaModel(config)
    accept_packed(trunk)
    return Critic(trunk, 16)


ROWS = [Row((1, 2, 3), (9, 9), 0, 0), Row((1, 2, 4, 5), (9,), 0, 1), Row((7,), (9, 8, 9), 1, 0)]


def test_a_new_critic_predicts_one_half(critic: Critic) -> None:
    assert torch.sigmoid(critic(pack(ROWS, [0, 1, 2]))).tolist() == [0.5, 0.5, 0.5]


def test_a_state_does_not_depend_on_completions_or_other_rows(critic: Critic) -> None:
    """Completions and other packed rows do not change the output for a state; another prompt does."""
    torch.nn.init.normal_(last_layer(critic).weight)
    with torch.no_grad():
        together = critic(pack(ROWS, [0, 1, 2]))
        alone = torch.cat([critic(pack(ROWS, [n])) for n in range(3)])
        other_action = critic(pack([Row((1, 2, 3), (5,), 0, 0)], [0]))
        other_prompt = critic(pack([Row((1, 2, 6), (9, 9), 0, 0)], [0]))
    assert torch.allclose(together, alone, atol=1e-5)
    assert torch.allclose(other_action, alone[:1], atol=1e-5)
    assert not torch.allclose(other_prompt, alone[:1], atol=1e-3)


def test_a_saved_critic_can_be_loaded(critic: Critic, tmp_path: Path) -> None:
    torch.nn.init.normal_(last_layer(critic).weight)
    critic.save(tmp_path / "critic")
    again = Critic.load(tmp_path / "critic")
    with torch.no_grad():
        assert torch.allclose(again(pack(ROWS, [0, 1, 2])), critic(pack(ROWS, [0, 1, 2])), atol=1e-6)


def test_it_learns_progress_from_a_few_states(critic: Critic) -> None:
    packed, progress = pack(ROWS, [0, 1, 2]), torch.tensor([0.0, 0.5, 1.0])
    optimizer = torch.optim.Adam(critic.parameters(), lr=5e-3)
    for _ in range(150):
        optimizer.zero_grad()
        loss = potential_loss(torch.sigmoid(critic(packed)), progress)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        assert torch.allclose(torch.sigmoid(critic(packed)), progress, atol=0.1)
