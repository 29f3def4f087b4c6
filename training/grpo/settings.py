"""Settings of `mira train grpo`: one TOML file over the recipe of a paper, with every key checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from envs.core.errors import BadInput
from envs.core.plain_values import Layer, checked, merged, source_of
from envs.core.record import Record
from models.vision.coordinates import CoordinateSpace
from training.engine.settings import Compute, Optimization, none_if_named
from training.grpo.prompts import PromptSettings
from training.grpo.recipes import Stage, layered, recipe_named
from training.grpo.rewards import RewardSettings
from training.grpo.rewards.registry import REWARDS, recipe_of
from training.grpo.rewards.ssl import SslReward
from training.loop.settings import SET, values_of

Recipe = str
"""The name of a reward or of a row of a paper's table. Its constants are the defaults of a run. The learning
rates of the papers are for models of 3 to 8 billion parameters; a small model needs its own."""


class VllmSampling(Record):
    """Sampling by vLLM, which TRL gives the weights after every update."""

    mode: Literal["colocate", "server"] = "colocate"
    """`colocate`: vLLM runs in every training process, on the same GPU. `server`: a running `vllm serve` on other GPUs
    takes the prompts of all processes; weights are sent by NCCL."""
    url: str = ""
    """`server`: its address, such as `http://127.0.0.1:8000`."""
    memory: float = Field(default=0.3, gt=0, lt=1)
    """`colocate`: share of a GPU's memory for vLLM's weights and cache."""
    tensor_parallel: int = Field(default=1, ge=1)
    """`colocate`: number of processes that divide one copy of the sampler's weights."""
    sleep: bool = False
    """`colocate`: release vLLM's memory while the policy is trained, and copy the weights before every sampling."""
    correction: bool = True
    """Weight completions by the ratio of their probabilities under trainer and sampler, which round differently."""
    max_ratio: float = Field(default=3.0, gt=1)
    """Completions with a larger ratio are excluded from the loss."""

    @model_validator(mode="after")
    def _has_url(self) -> VllmSampling:
        if (self.mode == "server") != bool(self.url):
            raise ValueError("vllm.url is the address of a server: give it with vllm.mode='server', and only then")
        return self


class GrpoSettings(Record):
    """One training run."""

    recipe: Recipe = "ssl"
    """`ssl`, `guirlvg`, `adagui`, `lpo`, the name of an added reward, or a row of a paper's table such as
    `guirlvg/in-box` (:mod:`training.grpo.recipes`). Its settings are the defaults of the run."""
    reward: RewardSettings = SslReward()
    group: int = Field(default=8, ge=2)
    """G: completions sampled for one prompt. Their mean reward is the baseline."""
    temperature: float = Field(default=1.0, gt=0, le=2)
    answer_tokens: int = Field(default=128, ge=1)
    """Completion length limit in tokens, thought included. No paper states it; a warning names correct answers that do
    not fit."""
    coordinates: CoordinateSpace = CoordinateSpace.PIXELS
    """Units of the coordinates in answers: `pixels` of the image file, of the `resized` image (Qwen2.5-VL), 0 to
    `thousand` (Qwen3-VL), or `unit`, 0 to 1. Targets are always in pixels of the file."""
    min_pixels: int | None = Field(default=None, ge=1)
    max_pixels: int | None = Field(default=None, ge=1)
    """Limits of an image's area after resizing, for processors that keep the aspect ratio (Qwen). They bound the tokens
    of an image, and are saved with the trained model. None: the checkpoint's."""
    prompt: Annotated[PromptSettings | None, BeforeValidator(none_if_named)] = None
    """The form in which questions are asked again; None (in a file `"none"`): as the examples ask them."""
    share: float = Field(default=1.0, gt=0, le=1)
    """Share of the examples to train on, drawn by the seed; smaller shares are subsets of larger ones (SSL, Fig. 6)."""
    steps: Annotated[int | None, BeforeValidator(none_if_named)] = Field(default=None, ge=1)
    """Number of policy updates. None (in a file `"none"`): as many as `optimization.epochs` passes over the prompts
    take."""
    reuse: int = Field(default=1, ge=1)
    """μ: number of updates on one batch of completions."""
    clip_low: float = Field(default=0.2, gt=0)
    clip_high: float = Field(default=0.2, gt=0)
    """The probability ratio is clipped to `1 − clip_low` and `1 + clip_high`."""
    ratio: Literal["token", "sequence"] = "token"
    """Level of the probability ratio (importance sampling)."""
    kl: float = Field(default=0.0, ge=0)
    """β: weight of the KL divergence from the start, `π_ref/π − log(π_ref/π) − 1` per token."""
    kl_by_reward: bool = False
    """GuirlVG's adversarial KL factor (Eq. 3.1): scales each completion's divergence by its reward over the maximum
    reward."""
    scale_advantages: bool = True
    """Divide a group's advantages by their standard deviation; SSL does not (App. B.5)."""
    freeze_vision: bool = False
    """Freeze the image encoder of a vision model. No adapters are added outside of its language model."""
    micro_rows: int = Field(default=32, ge=1)
    """Maximum completions in one forward and backward pass; the largest divisor of a step's rows up to it is used."""
    packing: bool = True
    """Compute the prompt of a group once in a pass, without padding (:mod:`training.grpo.packed_logprobs`). Models that
    see images, and those whose layers cannot separate packed texts, take padded rows."""
    vllm: Annotated[VllmSampling | None, BeforeValidator(none_if_named)] = None
    """Sample completions with vLLM; None (in a file `"none"`): with transformers, in the training process."""
    held_out_every: int = Field(default=0, ge=0)
    """Updates between two evaluations on held-out examples. 0: evaluate only at the start and the end."""
    optimization: Optimization = Optimization(learning_rate=1e-6)
    """`batch_rows` is a number of completions."""
    compute: Compute = Compute()
    """`max_tokens` limits a prompt and its completion together."""
    seed: int = 0
    launcher: tuple[str, ...] = ()
    """Command that starts several training processes, each with the full model, e.g. `["accelerate", "launch",
    "--num_processes", "8", "-m"]`. Empty: train in this process."""
    report_to: tuple[str, ...] = ()
    """Experiment trackers of transformers, such as `tensorboard`."""

    @model_validator(mode="after")
    def _fits(self) -> GrpoSettings:
        self.optimization.check_trains(self.steps)
        if self.optimization.batch_rows % self.group:
            raise ValueError(
                f"optimization.batch_rows {self.optimization.batch_rows} is not a multiple of the group of {self.group}"
                "; use a multiple of group"
            )
        if self.answer_tokens >= self.compute.max_tokens:
            raise ValueError(f"compute.max_tokens {self.compute.max_tokens} leaves no room for a prompt")
        self.compute.check_one_model()
        if self.kl_by_reward and not self.kl:
            raise ValueError("kl_by_reward scales a divergence whose weight kl is 0")
        return self

    @property
    def room(self) -> int:
        """Maximum tokens of a prompt."""
        return self.compute.max_tokens - self.answer_tokens


def load_settings(path: Path | None, changes: Sequence[str] = ()) -> GrpoSettings:
    """Reads a TOML file, if any. It overrides the recipe that it names; *changes*, `key=value` each, override both.
    Raises BadInput."""
    return parse_settings(values_of(path, changes), str(path or SET), Layer(SET, values_of(None, changes)))


def parse_settings(values: Mapping[str, Any], source: str, over: Layer | None = None) -> GrpoSettings:
    """Merges *values* over their recipe over the defaults. Raises BadInput that names the first invalid key and its
    source: *source*, or *over* if the key is from there."""
    where = source_of(("recipe",), source, over)
    combined = GrpoSettings().model_dump(mode="json")
    for layer in (*_recipe_layers(values.get("recipe", "ssl"), where), values):
        reward = layer.get("reward", {})
        if isinstance(reward, Mapping) and reward.get("kind", combined["reward"]["kind"]) != combined["reward"]["kind"]:
            combined["reward"] = {}  # its keys do not apply to another reward
        combined = merged(combined, layer)
    return checked(GrpoSettings, combined, source, over)


def _recipe_layers(recipe: object, source: str) -> tuple[Mapping[str, Any], ...]:
    """The settings of a recipe: its reward's, and those of its row. Raises BadInput."""
    name = recipe if isinstance(recipe, str) else ""
    if name in REWARDS:
        return (recipe_of(name),)
    if "/" not in name:
        rows = "; rows of the papers' tables: `mira train recipes`"
        raise BadInput(f"{source}: unknown recipe {recipe!r}; there are {', '.join(REWARDS.names)}{rows}")
    row = recipe_named(name)
    match row.stage:
        case Stage.GRPO:
            return recipe_of(row.reward), layered(row)
        case Stage.SFT:
            raise BadInput(f"{source}: recipe {name!r} is supervised: mira train sft EXAMPLES --recipe {name}")
        case Stage.NONE:
            raise BadInput(f"{source}: recipe {name!r} trains nothing: evaluate the start itself")
