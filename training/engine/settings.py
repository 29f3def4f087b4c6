"""How a stage is optimised. Whatever a library would choose by itself is said here."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from envs.core.record import Record


class Lora(Record):
    """Low-rank adapters on a frozen base (Hu et al. 2021)."""

    rank: int = Field(default=16, ge=1)
    alpha: int = Field(default=32, ge=1)
    dropout: float = Field(default=0.0, ge=0, lt=1)
    targets: tuple[str, ...] = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
    """Linear layers, by the last part of their names."""


class Compute(Record):
    """What a machine can do; the defaults are for two CPU cores."""

    max_tokens: int = Field(default=1_024, ge=16)
    """Longest row, prompt and action together. A longer prompt loses its middle and is counted."""
    pack_tokens: int = Field(default=2_048, ge=16)
    """Tokens of one forward and backward pass; rows are packed into it without padding, a longer one goes alone. In a
    larger pack more rows share what they begin with; it takes memory, and a GPU wants it. Fine-tuning pads rows to the
    longest of a pass, and padding counts."""
    bf16: bool = False
    """bfloat16 autocast. The library's default is on, and some 14 times slower on a CPU without instructions for it.
    With them (AVX-512 BF16) LoRA on SmolLM2-135M was 1.1 to 1.7 times faster."""
    gradient_checkpointing: bool = False
    """Trades a second forward pass for memory. The library's default is on."""
    cpu: bool = False
    """Use the CPU even where there is a GPU."""
    threads: int = Field(default=2, ge=1)
    """Of PyTorch, on a CPU."""
    save_minutes: float = Field(default=5.0, gt=0)
    """Between two checkpoints from which a killed stage goes on."""
    lora: Lora | None = None
    """Train adapters alone; None trains every weight."""
    lean: bool = False
    """Actor and critics are adapters on one base that stays as it is, see :mod:`training.engine.shared_base_lora`;
    checkpoints are adapters. Without it a stage's adapter is merged into its checkpoint."""

    @property
    def needed_lora(self) -> Lora:
        """The adapters' shape, where there are any."""
        return self.lora or Lora()


class Optimization(Record):
    """One stage's optimizer: AdamW."""

    learning_rate: float = Field(gt=0)
    schedule: Literal["constant", "cosine", "linear"] = "constant"
    warmup: float = Field(default=0.0, ge=0, lt=1)
    """Share of the steps in which the rate rises."""
    epochs: int = Field(default=1, ge=0)
    batch_rows: int = Field(default=128, ge=1)
    """Decisions of one optimizer step, over all machines."""
    clip: float = Field(default=1.0, gt=0)
    """Norm to which a step's gradient is cut."""
    weight_decay: float = Field(default=0.0, ge=0)


ObjectiveKind = Literal["regression", "weighted", "cloning", "webrl_code"]


class Objective(Record):
    """What the actor minimises, see :mod:`training.mira.losses`."""

    kind: ObjectiveKind = "regression"
    """`regression`: MiRA's Eq. 12, WebRL as its paper has it. `weighted`: exp(A/β), the KL objective of Eq. 15 and AWR.
    `cloning`: the rows that were kept, all alike. `webrl_code`: WebRL as it was published."""
    beta: float = Field(default=0.1, gt=0)
    """β of Eq. 12 and of `exp(A/β)`; the paper gives none. A regression moves the log-probability of an action by
    about A/β where it can."""
    negative_weight: float = Field(default=1.0, ge=0)
    """What the square of an action with a negative advantage counts in a regression. The paper: 1; the published code
    of WebRL: 0."""
    anchor: float = Field(default=0.0, ge=0)
    """Weight of `−log π` of the actions of successes beside a regression; the paper: 0."""
