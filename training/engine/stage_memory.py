"""Plans the memory of the stages and scoring passes of a phase from a model's configuration, without its weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from transformers.initialization import no_init_weights

from training.data.packing import PackedSequence
from training.engine.annotate import completion_token_logprobs
from training.engine.checkpoints import with_adapter
from training.engine.critic_model import Critic
from training.engine.half_weights import hold_frozen_in_bfloat16
from training.engine.language_model import freeze_encoders, hidden_width
from training.engine.memory_plan import PLANNED_ON, Pass, Peak, Sharing, plan_pass, planned_rows, planned_sequence
from training.engine.packed_model import accept_packed, precision
from training.engine.settings import Compute

ANSWER_SHARE = 1 / 16
"""Share of the tokens of a pass that are completions: logits are needed for them only."""

LEAST_LAYERS = 4
"""In fewer layers the peak may lie elsewhere: the last layer is computed only where it is read."""


def stage_peaks(
    config: Any, compute: Compute, *, critics: bool = True, sharing: Sharing | None = None
) -> tuple[Peak, ...]:
    """The peak of each stage for a model of the transformers configuration *config*: the actor, with *critics* the
    larger critic, and the pass that scores.

    Every role is linear in the number of layers, so a deep model is extrapolated from a few layers and one period more
    (six in Gemma 3: five with a window, one without).
    """
    sequence = _full_pass(compute)

    def peaks(shape: Any) -> tuple[Peak, ...]:
        maker = _Maker(shape, compute, sequence)
        return tuple(plan_pass(planned, sharing) for planned in maker.passes(critics=critics))

    return for_all_layers(config, peaks)


def fine_tuning_peak(config: Any, compute: Compute, *, sharing: Sharing | None = None) -> Peak:
    """The peak of a supervised fine-tuning on packed rows (:mod:`training.engine.sft`), as :func:`stage_peaks`. Raises
    UnpackableLayers for a model that is trained on padded rows."""
    sequence = _full_pass(compute)

    def peaks(shape: Any) -> tuple[Peak, ...]:
        return (plan_pass(_Maker(shape, compute, sequence).fine_tuning(), sharing),)

    return for_all_layers(config, peaks)[0]


def _full_pass(compute: Compute) -> PackedSequence:
    """The longest rows that the settings allow, as many as a pass takes."""
    return planned_sequence(planned_rows(compute.pack_tokens, compute.max_tokens, ANSWER_SHARE))


def for_all_layers(config: Any, peaks: Callable[[Any], tuple[Peak, ...]]) -> tuple[Peak, ...]:
    """*peaks* of *config*; those of a deep model are extrapolated from configurations with fewer layers."""
    layers, period = config.get_text_config().num_hidden_layers, layer_period(config)
    first = period * math.ceil(LEAST_LAYERS / period)
    if layers <= first + period:
        return peaks(config)
    few, more = peaks(with_layers(config, first)), peaks(with_layers(config, first + period))
    return tuple(_extrapolated(a, b, (layers - first) / period) for a, b in zip(few, more, strict=True))


def layer_period(config: Any) -> int:
    """Number of layers after which their kinds repeat; all of them if they do not."""
    text = config.get_text_config()
    kinds: list[str] = list(getattr(text, "layer_types", None) or ["full_attention"] * text.num_hidden_layers)
    fitting = (n for n in range(1, len(kinds)) if all(kind == kinds[at % n] for at, kind in enumerate(kinds)))
    return next(fitting, len(kinds))


def with_layers(config: Any, layers: int) -> Any:
    """A copy of *config* with the first *layers* of its language model."""
    shape = deepcopy(config)
    text = shape.get_text_config()
    if getattr(text, "layer_types", None):
        text.layer_types = text.layer_types[:layers]
    text.num_hidden_layers = layers
    return shape


def _extrapolated(few: Peak, more: Peak, times: float) -> Peak:
    """*few* with *times* the difference to *more* added."""
    roles = [name for name, value in few if isinstance(value, int)]
    numbers = {name: getattr(few, name) + round(times * (getattr(more, name) - getattr(few, name))) for name in roles}
    return few.model_copy(update=numbers)


class _Maker:
    """Makes the passes of one configuration."""

    def __init__(self, config: Any, compute: Compute, sequence: PackedSequence) -> None:
        self._config = config
        self._compute = compute
        self._sequence = sequence
        self._vocabulary = int(config.get_text_config().vocab_size)

    def passes(self, *, critics: bool) -> Iterator[Pass]:
        more = self._inactive_parts() if self._compute.shared_base else 0
        merges = self._merges and not self._compute.shared_base
        yield Pass("actor", self.actor, self._actor_loss, self._vocabulary, more_weights=more, merges=merges)
        if critics:
            build = self._shared_base_critic if self._compute.shared_base else self.critic
            yield Pass("critic", build, self._critic_loss, self._vocabulary, more_weights=more, merges=merges)
        scored = self.actor if self._compute.shared_base else self._scored
        yield Pass("scoring", scored, self._scores, self._vocabulary, trains=False, more_weights=more)

    def fine_tuning(self) -> Pass:
        return Pass("fine-tuning", self.actor, self._likelihood_loss, self._vocabulary, merges=self._merges)

    @property
    def _merges(self) -> bool:
        """Whether a trained adapter is merged into the weights as they are in the checkpoint."""
        return self._compute.lora is not None

    def actor(self) -> nn.Module:
        lora = self._compute.needed_lora if self._compute.shared_base else self._compute.lora
        model = with_adapter(self._policy(), lora)
        return self._prepared(model)

    def critic(self) -> Critic:
        critic = self._critic(self._trunk())
        if self._compute.lora is not None:
            critic.adapt(self._compute.lora)
        self._prepared(critic)
        return critic

    def _shared_base_critic(self) -> nn.Module:
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
        return model

    def _inactive_parts(self) -> int:
        """Bytes of the two adapters and two heads that wait for their turn in a shared base."""
        with torch.device("meta"):
            adapted: Any = with_adapter(self._policy(), self._compute.needed_lora)
        adapter = sum(weight.numel() for weight in adapted.parameters() if weight.requires_grad)
        return 2 * 4 * (adapter + hidden_width(self._config) ** 2)

    def _actor_loss(self, model: Any) -> Tensor:
        with precision(PLANNED_ON, bf16=self._compute.bf16):
            logprobs = completion_token_logprobs(model, self._sequence)
            return logprobs.sum().square()

    def _likelihood_loss(self, model: Any) -> Tensor:
        with precision(PLANNED_ON, bf16=self._compute.bf16):
            return -completion_token_logprobs(model, self._sequence).mean()

    def _critic_loss(self, model: Any) -> Tensor:
        with precision(PLANNED_ON, bf16=self._compute.bf16):
            return model(self._sequence).square().mean()

    def _scores(self, model: Any) -> Tensor:
        with precision(PLANNED_ON, bf16=self._compute.bf16):
            return completion_token_logprobs(model, self._sequence)


def _trainable(model: Any) -> Any:
    freeze_encoders(model)
    accept_packed(model)
    return model
