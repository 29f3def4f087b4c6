"""Settings of a stage: compute, optimizer, objective. Every library default that matters is set here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, cast

from pydantic import BeforeValidator, Field, model_validator

from envs.core.record import Record

NONE: Final = "none"


def none_if_named(value: object) -> object:
    """Returns None for the text `none`: TOML has no null, and a recipe's value must be removable."""
    return None if value == NONE else value


class Lora(Record):
    """Low-rank adapters on a frozen base (Hu et al. 2021)."""

    rank: int = Field(default=16, ge=1)
    alpha: int = Field(default=32, ge=1)
    dropout: float = Field(default=0.0, ge=0, lt=1)
    targets: tuple[str, ...] = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
    """Names of linear layers: the last part of their module path."""


def with_renamed_compute(compute: Mapping[str, Any]) -> dict[str, Any]:
    """*compute* with `shared_base` in place of `lean`, its name in earlier versions."""
    values = dict(compute)
    if "lean" in values:
        values.setdefault("shared_base", values.pop("lean"))
    return values


class Compute(Record):
    """Compute settings of a machine; the defaults are for two CPU cores."""

    max_tokens: int = Field(default=1_024, ge=16)
    """Maximum length of a row, prompt and completion together. A longer prompt loses its middle and is counted."""
    pack_tokens: int = Field(default=2_048, ge=16)
    """Tokens of one forward and backward pass. Rows are packed without padding; a longer row is processed alone. Longer
    packed sequences share more prefixes and use a GPU better, but take more memory."""
    bf16: bool = False
    """bfloat16 autocast. The library's default is on, which is some 14 times slower on a CPU without instructions for
    it. With them (AVX-512 BF16) LoRA on SmolLM2-135M was 1.1 to 1.7 times faster."""
    gradient_checkpointing: bool = False
    """Saves memory at the cost of a second forward pass. The library's default is on."""
    cpu: bool = False
    """Use the CPU even if there is a GPU."""
    threads: int = Field(default=2, ge=1)
    """PyTorch's threads on a CPU."""
    save_minutes: float = Field(default=5.0, gt=0)
    """Minutes between two checkpoints, from which a killed stage is resumed."""
    lora: Annotated[Lora | None, BeforeValidator(none_if_named)] = None
    """Train adapters only; None (in a file `"none"`) trains every weight."""
    shared_base: bool = False
    """Train actor and critics as adapters on one shared, frozen base, see :mod:`training.engine.shared_base_lora`;
    checkpoints are adapters. Otherwise a stage's adapter is merged into its checkpoint."""

    @model_validator(mode="before")
    @classmethod
    def _read_lean(cls, fields: Any) -> Any:
        return with_renamed_compute(cast("Mapping[str, Any]", fields)) if isinstance(fields, Mapping) else fields

    @property
    def needed_lora(self) -> Lora:
        """The adapters' settings, or their defaults."""
        return self.lora or Lora()

    def check_one_model(self) -> None:
        """Raises ValueError if `shared_base` shares a base in a training that has one model."""
        if self.shared_base:
            raise ValueError("compute.shared_base is for the critics and the actor of a phase: take compute.lora")


class Optimization(Record):
    """Settings of one stage's AdamW optimizer."""

    learning_rate: float = Field(gt=0)
    schedule: Literal["constant", "cosine", "linear"] = "constant"
    warmup: float = Field(default=0.0, ge=0, lt=1)
    """Share of the steps in which the learning rate rises."""
    epochs: int = Field(default=1, ge=0)
    batch_rows: int = Field(default=128, ge=1)
    """Rows of one optimizer step, over all processes."""
    clip: float = Field(default=1.0, gt=0)
    """Maximum norm of a step's gradient."""
    weight_decay: float = Field(default=0.0, ge=0)

    def check_trains(self, steps: int | None = None) -> None:
        """Raises ValueError if neither *steps* nor epochs ask for an update: the result would be the start."""
        if steps is None and not self.epochs:
            raise ValueError("optimization.epochs must be at least 1: a fine-tuning of 0 epochs would be its start")


ObjectiveKind = Literal["regression", "weighted", "cloning", "webrl_code", "clipped"]


class Objective(Record):
    """The actor's objective, see :mod:`training.mira.losses`."""

    kind: ObjectiveKind = "regression"
    """`regression`: MiRA's Eq. 12, also WebRL's paper. `weighted`: exp(A/β), the KL objective of Eq. 15 and AWR.
    `cloning`: the selected rows with equal weight. `webrl_code`: WebRL's published code. `clipped`: the clipped
    surrogate of PPO and GRPO, see :mod:`training.mira.clipped_surrogate`."""
    beta: float = Field(default=0.1, gt=0)
    """β of Eq. 12 and of `exp(A/β)`; the paper gives no value. A regression moves the log-probability of an action
    towards a change of A/β."""
    negative_weight: float = Field(default=1.0, ge=0)
    """Weight of the squared error of actions with a negative advantage in a regression. The paper: 1; WebRL's published
    code: 0."""
    anchor: float = Field(default=0.0, ge=0)
    """Weight of `−log π` of successful actions, added to a regression; the paper: 0."""
    clip_low: float = Field(default=0.2, gt=0, lt=1)
    """`clipped`: the ratio of probabilities is clipped at `1 − clip_low`."""
    clip_high: float = Field(default=0.2, gt=0)
    """`clipped`: and at `1 + clip_high`; DAPO: 0.28."""
    max_ratio: float = Field(default=10.0, gt=1)
    """`clipped`: bound on the ratio of tokens with a negative advantage."""
    kl: float = Field(default=0.0, ge=0)
    """`clipped`: weight of the KL divergence from the start of training; 0 needs no reference."""
