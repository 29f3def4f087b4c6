"""A critic with different outputs for different states; a new critic predicts 0.5 for every state."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from models.embedded import embedded_dir
from training.engine.critic_model import Critic


def last_layer(critic: Critic) -> nn.Linear:
    """The last layer of the critic's head."""
    layer = critic.head[-1]
    assert isinstance(layer, nn.Linear)
    return layer


def save_critic(folder: Path, *, std: float) -> Path:
    """Writes a critic with the embedded model's trunk; *std*: of the weights of its head's last layer."""
    torch.manual_seed(0)  # the first layers of a new head are random, too
    saved = Critic.from_policy(embedded_dir())
    nn.init.normal_(last_layer(saved).weight, std=std)
    saved.save(folder)
    return folder
