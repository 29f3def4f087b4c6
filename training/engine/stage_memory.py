"""Plans the memory of the stages and scoring passes of a phase from a model's configuration, without its weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from accelerate.utils import convert_outputs_to_fp32
from torch import Tensor, nn
from transformers.initialization import no_init_weights

from training.data.packing import PackedSequence
from training.engine.annotate import completion_token_logprobs
from training.engine.checkpoints import with_adapter
from training.engine.critic_model import Critic
from training.engine.half_weights import hold_frozen_in_bfloat16
from training.engine.language_model import freeze_encoders, hidden_width
from training.engine.memory_plan import Pass, Peak, Sharing, plan_pass, planned_rows, planned_sequence
from training.engine.packed_model import accept_packed, precision
from training.engine.settings import Compute

ANSWER_SHARE = 1 / 16
"""Share of the tokens of a pass that are completions: logits are needed for them only."""


def stage_peaks(
    config: Any, compute: Compute, *, critics: bool = True, sharing: Sharing | None = None, device: str = "cpu"
) -> tuple[Peak, ...]:
    """The peak of each stage for a model of the transformers configuration *config*: the actor, with *critics* the
    larger critic, and the pass that scores. *device*: the type whose autocast is planned."""
    sequence = planned_sequence(planned_rows(compute.pack_tokens, compute.max_tokens, ANSWER_SHARE))
    maker = _Maker(config, compute, sequence, torch.device(device))
    return tuple(plan_pass(planned, sharing) for planned in maker.passes(critics=critics))


class _Maker:
    """Makes the passes of one configuration."""

    def __init__(self, config: Any, compute: Compute, sequence: PackedSequence, device: torch.device) -> None:
        self._config = config
        self._compute = compute
        self._sequence = sequence
        self._device = device
        self._vocabulary = int(config.get_text_config().vocab_size)

    def passes(self, *, critics: bool) -> Iterator[Pass]:
        more = self._inactive_parts() if self._compute.lean else 0
        yield Pass("actor", self.actor, self._actor_loss, self._vocabulary, more_weights=more)
        if critics:
            build = self._lean_critic if self._compute.lean else self.critic
            yield Pass("critic", build, self._critic_loss, self._vocabulary, more_weights=more)
        scored = self.actor if self._compute.lean else self._scored
        yield Pass("scoring", scored, self._scores, self._vocabulary, trains=False, more_weights=more)

    def actor(self) -> nn.Module:
        lora = self._compute.needed_lora if self._compute.lean else self._compute.lora
        model = with_adapter(self._policy(), lora)
        return self._prepared(model)

    def critic(self) -> Critic:
        critic = self._critic(self._trunk())
        if self._compute.lora is not None:
            critic.adapt(self._compute.lora)
        self._prepared(critic)
        return critic

    def _lean_critic(self) -> nn.Module:
        model: Any = with_adapter(self._policy(), self._compute.needed_lora)
        causal = model.get_base_model()
        critic = self._critic(causal.base_model)
        critic.register_module("unused_head", causal.get_output_embeddings())
        self._prepared(critic)
        return critic

    def _scored(self) -> nn.Module:
        return hold_frozen_in_bfloat16(self._policy(), self._compute, frozen=True)

    def _policy(self) -> Any:
        from transformers import AutoModelForCausalLM

        with no_init_weights():
            model = AutoModelForCausalLM.from_config(self._config, dtype=torch.float32)
        model.tie_weights()
        return _trainable(model)

    def _trunk(self) -> Any:
        from transformers import AutoModel

        with no_init_weights():
            return _trainable(AutoModel.from_config(self._config, dtype=torch.float32))

    def _critic(self, trunk: nn.Module) -> Critic:
        return Critic(trunk, hidden_width(self._config))

    def _prepared(self, model: nn.Module) -> nn.Module:
        hold_frozen_in_bfloat16(model, self._compute)
        if self._compute.gradient_checkpointing:
            own: Any = model
            (own.get_base_model() if hasattr(own, "get_base_model") else own).activation_checkpointing_enable()
        if self._compute.bf16:  # accelerate's wrapper
            model.forward = convert_outputs_to_fp32(model.forward)
        return model

    def _inactive_parts(self) -> int:
        """Bytes of the two adapters and two heads that wait for their turn in a shared base."""
        with torch.device("meta"):
            adapted: Any = with_adapter(self._policy(), self._compute.needed_lora)
        adapter = sum(weight.numel() for weight in adapted.parameters() if weight.requires_grad)
        return 2 * 4 * (adapter + hidden_width(self._config) ** 2)

    def _actor_loss(self, model: Any) -> Tensor:
        with precision(self._device, bf16=self._compute.bf16):
            logprobs = completion_token_logprobs(model, self._sequence)
            return logprobs.sum().square()

    def _critic_loss(self, model: Any) -> Tensor:
        with precision(self._device, bf16=self._compute.bf16):
            return model(self._sequence).square().mean()

    def _scores(self, model: Any) -> Tensor:
        with precision(self._device, bf16=self._compute.bf16):
            return completion_token_logprobs(model, self._sequence)


def _trainable(model: Any) -> Any:
    freeze_encoders(model)
    accept_packed(model)
    return model
