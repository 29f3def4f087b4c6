"""A critic: a language model's trunk with a small head on the state's last token.

Both critics of MiRA have this architecture. The potential critic's output goes through a sigmoid and is regressed on
progress (Eq. 3); the value critic's is the logit of success (Eq. 4). The state is the policy's own prompt: goal, last
actions, page, and the milestones only where the policy is shown them (`rollouts.show_plan`, by default off). Its last
token attends to all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from models.local.loading import reading_old_names
from models.local.safe_loading import WEIGHTS
from training.data.packing import PackedSequence
from training.data.rows import Row
from training.engine.checkpoints import check_weights, is_adapter, load_policy, lora_config
from training.engine.half_weights import loading_half
from training.engine.language_model import freeze_encoders, hidden_width
from training.engine.packed_model import accept_packed
from training.engine.settings import Lora
from training.engine.sharding import weights_are_sharded
from training.engine.trained_weights import store_trained_weights_only

HEAD = "head.safetensors"


class Critic(nn.Module):
    """Predicts one number for each row's state."""

    def __init__(self, trunk: nn.Module, width: int) -> None:
        """*trunk*: a transformers model without its language head, hidden states of *width*.

        The head's last layer begins at zero, so that a new critic predicts 0.5 for every state.
        """
        super().__init__()
        self.trunk = trunk
        self.head = _new_head(width)

    @classmethod
    def from_policy(cls, folder: Path, *, half: bool = False) -> Critic:
        """A critic with a new head on the trunk of the checkpoint in *folder*; an adapter is merged into its base.
        *half*: as :func:`training.engine.checkpoints.load_policy` reads it; the head is in float32."""
        from transformers import AutoModel

        if is_adapter(folder):
            trunk: Any = load_policy(folder)[0].base_model
        else:
            check_weights(folder)
            with loading_half(half=half):
                trunk = AutoModel.from_pretrained(folder, dtype=torch.float32, **WEIGHTS)
            freeze_encoders(trunk)
            accept_packed(trunk)
        return cls(trunk, hidden_width(trunk.config))

    @classmethod
    def load(cls, folder: Path, *, half: bool = False) -> Critic:
        """Loads what `save` wrote. *half*: see :meth:`from_policy`."""
        critic = cls.from_policy(folder, half=half)
        critic.head.load_state_dict(load_file(folder / HEAD))
        return critic

    @staticmethod
    def is_at(folder: Path) -> bool:
        """Whether `save` wrote *folder*."""
        return (folder / HEAD).is_file()

    @property
    def _no_split_modules(self) -> Any:
        """For FSDP: the trunk's layers, each of which is one sharding unit."""
        trunk: Any = self.trunk
        return trunk._no_split_modules

    def adapt(self, lora: Lora) -> None:
        """Adds low-rank adapters to the trunk and freezes its weights, which checkpoints then leave out."""
        from peft import get_peft_model

        trunk: Any = self.trunk
        config = lora_config(lora, trunk)
        config.task_type = None  # the wrapper of a causal model needs a language head, which the trunk lacks
        with reading_old_names():
            self.trunk = get_peft_model(trunk, config)
        if not weights_are_sharded():  # the checkpoints of FSDP are in parts
            store_trained_weights_only(self)

    def renew_head(self) -> None:
        """Resets the head's weights."""
        first: Any = self.head[0]
        self.head = _new_head(first.in_features).to(first.weight.device)

    def activation_checkpointing_enable(self, **options: Any) -> None:
        """For transformers' Trainer."""
        trunk: Any = self.trunk
        trunk.activation_checkpointing_enable(**options)

    def save(self, folder: Path) -> None:
        """Writes the trunk with adapters merged, and the head. The trunk alone is a transformers checkpoint."""
        folder.mkdir(parents=True, exist_ok=True)
        trunk: Any = self.trunk
        trunk = trunk.merge_and_unload() if hasattr(trunk, "merge_and_unload") else trunk
        trunk.save_pretrained(folder)
        save_file({name: value.contiguous() for name, value in self.head.state_dict().items()}, folder / HEAD)

    def forward(self, packed: PackedSequence) -> Tensor:
        """Logits of the rows' states, shape (N,); their sigmoid is the potential or the probability of success."""
        out = self.trunk(**packed.read_at(packed.states))
        hidden: Tensor = out.last_hidden_state[0, packed.states]
        return self.head(hidden.float()).squeeze(-1)[packed.texts]


def states_of(rows: Sequence[Row]) -> tuple[Row, ...]:
    """*rows* without their completions: later tokens do not change a critic's output for the state."""
    return tuple(replace(row, completion=(), sampled=None) for row in rows)


def _new_head(width: int) -> nn.Sequential:
    head = nn.Sequential(nn.Linear(width, width), nn.SiLU(), last := nn.Linear(width, 1))
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return head
