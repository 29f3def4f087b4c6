"""Shared-base LoRA: actor and critics are low-rank adapters on one frozen base, with a small head for each critic.

One copy of a large model is in memory instead of four. One part is active at a time: :meth:`SharedBaseModels.use`
activates it, and only its adapter and head have gradients. Using an inactive part raises an error instead of computing
with another part's adapter. Adapters are never switched between a forward and its backward pass, where PEFT would
silently drop the gradients of the inactive one.

A checkpoint of a part is a PEFT adapter folder that names its base; a critic's also holds its head. An actor's can be
played as `local:BASE+ADAPTER` and served by vLLM.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from envs.core.errors import BadInput
from models.local.loading import reading_old_names
from training.engine.checkpoints import (
    ADAPTER_WEIGHTS,
    adapter_weights,
    base_of,
    check_adapter,
    is_adapter,
    load_policy,
    lora_config,
    select_device,
    write_folder_atomically,
)
from training.engine.critic_model import HEAD, Critic
from training.engine.half_weights import hold_frozen_in_bfloat16
from training.engine.language_model import hidden_width
from training.engine.settings import Compute, Lora
from training.engine.trained_weights import store_trained_weights_only

Part = Literal["actor", "potential", "value"]
Turn = Part | Literal["reference"]


class SharedBaseActor(nn.Module):
    """Wraps a causal model for the trainer, so that checkpoints hold its trained weights only."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def activation_checkpointing_enable(self, **options: Any) -> None:
        """For transformers' Trainer."""
        model: Any = self.model
        model.activation_checkpointing_enable(**options)

    def forward(self, **inputs: Any) -> Any:
        return self.model(**inputs)


class SharedBaseModels:
    """One base model in memory with the parts that share it; one part is active at a time."""

    def __init__(
        self, base: Path, lora: Lora, device: torch.device | str = "cpu", compute: Compute | None = None
    ) -> None:
        """*base*: a checkpoint, or an adapter whose base is used. With `compute.bf16` its linear layers are held in
        bfloat16. Raises BadInput where it cannot be read."""
        from peft import get_peft_model

        self.base = base_of(base)
        model, self.tokenizer = load_policy(self.base, half=compute is not None and compute.bf16)
        if compute is not None:
            hold_frozen_in_bfloat16(model, compute, frozen=True)
        self._lora = lora
        config = lora_config(lora, model)
        with reading_old_names():
            self._peft: Any = get_peft_model(model.to(device), config, adapter_name="actor")
        causal: Any = self._peft.get_base_model()
        width = hidden_width(causal.config)
        self._actor = SharedBaseActor(causal)
        self._critics = {
            "potential": Critic(causal.base_model, width).to(device),
            "value": Critic(causal.base_model, width).to(device),
        }
        self._turn: Turn | None = None
        self._actor.register_forward_pre_hook(self._only_in(("actor", "reference")))
        store_trained_weights_only(self._actor)
        for kind, critic in self._critics.items():
            critic.register_forward_pre_hook(self._only_in((kind,)))
            store_trained_weights_only(critic)
            self._peft.add_adapter(kind, config)
        self._freeze()

    def use(self, part: Part, start: Path) -> nn.Module:
        """Activates *part* for scoring or training and loads it from *start*: a folder that `save` wrote, or the base's
        checkpoint for new weights. A new critic's trunk can start from an actor's adapter.

        Raises BadInput where *start* belongs to another base or does not fit.
        """
        self._freeze()
        if base_of(start) != self.base:
            raise BadInput(f"{str(start)!r} has the base {str(base_of(start))!r}, not {str(self.base)!r}")
        if is_adapter(start):
            self._load(part, start)
        else:
            self._reset(part)
        if part != "actor":
            critic = self._critics[part]
            if Critic.is_at(start):
                critic.head.load_state_dict(load_file(start / HEAD))
            else:
                critic.renew_head()
            critic.head.requires_grad_(requires_grad=True)
        self._peft.base_model.set_adapter(part)  # this also enables gradients for this adapter only
        self._turn = part
        return self._module(part).eval()

    def reference(self, start: Path) -> nn.Module:
        """The reference policy of a phase: the base with its adapters disabled, or the adapter in *start*, frozen.

        Score it before the actor is trained, which changes the weights.
        """
        if is_adapter(start):
            self.use("actor", start)
        self._freeze()
        if not is_adapter(start):
            self._peft.base_model.disable_adapter_layers()
        self._turn = "reference"
        return self._actor.eval()

    def save(self, part: Part, folder: Path) -> None:
        """Writes *folder* atomically: the part's adapter, a critic's head, an actor's tokenizer."""
        with write_folder_atomically(folder) as unfinished:
            save_file(_contiguous(self._adapter(part)), unfinished / ADAPTER_WEIGHTS)
            config: Any = self._peft.peft_config[part]
            config.base_model_name_or_path = str(self.base)
            config.save_pretrained(str(unfinished))
            if part == "actor":
                self.tokenizer.save_pretrained(unfinished)
            else:
                save_file(_contiguous(self._critics[part].head.state_dict()), unfinished / HEAD)

    def _module(self, part: Part) -> nn.Module:
        return self._actor if part == "actor" else self._critics[part]

    def _freeze(self) -> None:
        """Deactivates all parts: nothing has gradients, adapters are enabled."""
        self._turn = None
        self._peft.base_model.enable_adapter_layers()
        for module in (self._peft, *(critic.head for critic in self._critics.values())):
            module.requires_grad_(requires_grad=False)
            module.zero_grad(set_to_none=True)

    def _adapter(self, part: Part) -> dict[str, torch.Tensor]:
        from peft import get_peft_model_state_dict

        return get_peft_model_state_dict(self._peft, adapter_name=part)

    def _load(self, part: Part, folder: Path) -> None:
        from peft import set_peft_model_state_dict

        check_adapter(folder, self._lora)
        weights, own = adapter_weights(folder), self._adapter(part)
        different = sorted(name for name in own.keys() | weights.keys() if _shape(own, name) != _shape(weights, name))
        if different:
            count, first = len(different), different[0]
            raise BadInput(f"the adapter in {str(folder)!r} does not fit: {count} tensors differ, such as {first!r}")
        set_peft_model_state_dict(self._peft, weights, adapter_name=part)

    def _reset(self, part: Part) -> None:
        from peft.tuners.lora import LoraLayer

        for module in self._peft.modules():
            if isinstance(module, LoraLayer):
                module.reset_lora_parameters(part, init_lora_weights=True)

    def _only_in(self, turns: tuple[str, ...]) -> Callable[[nn.Module, Any], None]:
        def check(_module: nn.Module, _inputs: Any) -> None:
            if self._turn not in turns:
                raise RuntimeError(f"the active part is {self._turn or 'none'}, not {turns[0]}: call use() first")

        return check


class SharedBaseCache:
    """Keeps the models of one base between the stages and scoring passes of a process."""

    def __init__(self) -> None:
        self._key: tuple[Path, Lora, bool] | None = None
        self._models: SharedBaseModels | None = None

    def get(self, start: Path, compute: Compute) -> SharedBaseModels | None:
        """The models for the checkpoint or adapter in *start*; None without `compute.shared_base`. Raises BadInput."""
        if not compute.shared_base:
            return None
        key = (base_of(start), compute.needed_lora, compute.bf16)
        if self._models is None or key != self._key:
            self.clear()
            self._models = SharedBaseModels(start, compute.needed_lora, select_device(compute), compute)
            self._key = key
        return self._models

    def clear(self) -> None:
        """Forgets the models, so that their memory is freed."""
        self._models = self._key = None


def _contiguous(weights: dict[str, Any]) -> dict[str, torch.Tensor]:
    return {name: weight.detach().cpu().contiguous() for name, weight in weights.items()}


def _shape(weights: dict[str, torch.Tensor], name: str) -> torch.Size | None:
    return weights[name].shape if name in weights else None
