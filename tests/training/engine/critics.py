"""A critic with different outputs for different states; a new critic predicts 0.5 for every state."""

from __future__ import annotations

from pathlib import Path

import torch

from models.embedded import embedded_dir
from training.engine.critic_model import Critic


def save_critic(folder: Path, *, std: float) -> Path:
    """Writes a critic with the embedded model's trunk; *std*: of the weights of its head's last layer."""
    saved = Critic.from_policy(embedded_dir())
    torch.manual_seed(0)
    torch.nn.init.normal_(saved.head[-1].weight, std=std)
    saved.save(folder)
    return folder
