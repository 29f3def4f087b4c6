"""TRL's GRPOTrainer with the three things that it does not have: prompts encoded as the policy plays them, rewards of
whole groups, and a divergence that counts by reward.

What is overridden are private methods of TRL, pinned in pyproject.toml; each has a contract test in
`tests/training/grpo/test_trainer.py`. A completion is rewarded once, in the process that sampled it, with the others of
its group: batches are cut so that no group is split.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

import torch

from envs.errors import BadInput
from models.base import Message
from models.local_loading import reading_old_names
from models.prompt_tokens import PromptTokens
from training.grpo.examples import Example, check_images
from training.grpo.measuring import TOO_GOOD, tokenizer_of
from training.grpo.settings import GrpoSettings
from training.rewards import Rewarder, Score, is_placed
from training.stages.checkpoints import lora_config
from training.stages.trainer import one_device, shared_arguments

VISION: Final = ("vision", "visual")
"""In the names of an encoder's weights: LLaVA, SmolVLM, Gemma; Qwen."""


def check_fit(examples: Sequence[Example], rewarder: Rewarder) -> None:
    """Raises BadInput where the reward cannot judge one of the kinds of *examples*, or their images are not theirs."""
    check_images(examples)
    kinds = {(example.target.kind, is_placed(example.target), example.image is None): example for example in examples}
    for example in kinds.values():
        rewarder.of_group(example.target, ["", ""], example.picture if rewarder.looks else None)


class Rewarding:
    """TRL's reward function: whole groups at once, and what came of them."""

    __name__ = "reward"

    def __init__(self, examples: Sequence[Example], rewarder: Rewarder, group: int, tokenizer: Any) -> None:
        self._examples = examples
        self._rewarder = rewarder
        self._group = group
        self._tokenizer = tokenizer
        self.shares: list[float] = []
        """Of the last batch, in its order: each reward by the greatest there is, 0 to 1."""

    def __call__(
        self, completion_ids: Sequence[Sequence[int]], index: Sequence[int], log_metric: Any, **_: Any
    ) -> list[float | None]:
        """*index* says which example each completion is of. TRL's own texts are not looked at: it takes thoughts and
        calls of tools out of them where a tokenizer says how."""
        texts: list[str] = self._tokenizer.batch_decode(completion_ids, skip_special_tokens=True)
        scores: list[Score] = []
        for start in range(0, len(texts), self._group):
            own = set(index[start : start + self._group])
            if len(own) != 1:
                raise ValueError(f"completions of the examples {sorted(own)} are in one group")
            example = self._examples[own.pop()]
            picture = example.picture if self._rewarder.looks else None
            scores += self._rewarder.of_group(example.target, texts[start : start + self._group], picture)
        self.shares = [score.total / self._rewarder.most for score in scores]
        for name, value in means_of(scores).items():
            log_metric(name, value)
        return [score.total for score in scores]


def means_of(scores: Sequence[Score]) -> dict[str, float]:
    """The mean of each part of *scores*, and the share of failures that are very near (`near_misses`), where scores
    tell of both."""
    parts: dict[str, list[float]] = defaultdict(list)
    for score in scores:
        for name, value in score.parts.items():
            parts[f"part/{name}"].append(value)
        if {"proximity", "correct"} <= score.parts.keys():
            parts["near_misses"].append(float(score.parts["proximity"] > TOO_GOOD and not score.parts["correct"]))
    return {name: math.fsum(values) / len(values) for name, values in parts.items()}


class _ByReward(float):
    """A β whose product with a divergence (B, T) counts each row by its own factor (B,)."""

    factors: torch.Tensor

    def __mul__(self, divergence: Any) -> Any:
        return float(self) * self.factors.unsqueeze(1) * divergence


def group_trainer() -> Any:
    """The trainer's class; made when it is asked for, as TRL takes seconds to import."""
    from trl.trainer.grpo_trainer import GRPOTrainer

    class GroupTrainer(GRPOTrainer):
        """*rewarding* is the reward; *room*: tokens of a prompt."""

        def __init__(self, rewarding: Rewarding, settings: GrpoSettings, **given: Any) -> None:
            self._rewarding = rewarding
            self._room = settings.room
            self._by_reward = settings.kl_by_reward
            super().__init__(reward_funcs=rewarding, **given)
            self._prompts = PromptTokens(self._tokenizer)

        def _tokenize_prompts(self, prompts: list[Any]) -> Any:
            if self._is_vlm:
                return super()._tokenize_prompts(prompts)
            return [list(self._prompts.encode(_messages(turns), self._room)) for turns in prompts], None, {}

        def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
            with reading_old_names():
                found = super()._generate_and_score_completions(inputs)
            if self._by_reward:
                found["kl_share"] = torch.tensor(self._rewarding.shares, device=found["advantages"].device)
            return found

        def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
            if not self._by_reward:
                return super()._compute_loss(model, inputs)
            beta = self.beta
            self.beta = _ByReward(beta)
            self.beta.factors = inputs["kl_share"]
            try:
                return super()._compute_loss(model, inputs)
            finally:
                self.beta = beta

    return GroupTrainer


def _messages(turns: Sequence[Mapping[str, Any]]) -> list[Message]:
    return [Message(turn["role"], turn["content"]) for turn in turns]


def rewarder_of(settings: GrpoSettings, processor: Any) -> Rewarder:
    """The reward of *settings*, which counts a thought's tokens as the policy's own tokenizer makes them."""
    tokens = PromptTokens(tokenizer_of(processor))
    return Rewarder(settings.reward, lambda text: len(tokens.plain(text)))


def dataset_of(examples: Sequence[Example]) -> Any:
    """Prompts as conversations, the number of each example, its image where examples have some."""
    from datasets import Dataset, Image, disable_progress_bars

    disable_progress_bars()
    turns = [[{"role": role, "content": text} for role, text in example.messages] for example in examples]
    columns: dict[str, Any] = {"prompt": turns, "index": list(range(len(examples)))}
    images = [example.image for example in examples if example.image is not None]
    if not images:
        return Dataset.from_dict(columns)
    made = Dataset.from_dict({**columns, "image": [str(path) for path in images]})
    return made.cast_column("image", Image())


def trainer_of(model: Any, processor: Any, examples: Sequence[Example], settings: GrpoSettings, out: Path) -> Any:
    """The trainer, ready. *processor*: the tokenizer, or what encodes images, too. Raises BadInput."""
    lora = settings.compute.lora
    adapters: Any = None if lora is None else lora_config(lora)
    if settings.freeze_vision and adapters is not None:
        adapters.exclude_modules = rf".*({'|'.join(VISION)}).*"
    elif settings.freeze_vision:
        for name, weight in model.named_parameters():
            weight.requires_grad_(not any(part in name for part in VISION))
    rewarding = Rewarding(examples, rewarder_of(settings, processor), settings.group, tokenizer_of(processor))
    start = model.state_dict()
    with reading_old_names():
        trainer = group_trainer()(
            rewarding,
            settings,
            model=model,
            args=_config(out, settings, len(examples)),
            train_dataset=dataset_of(examples),
            processing_class=processor,
            peft_config=adapters,
        )
    if trainer.ref_model is not None:  # TRL reads it from where the model's configuration was, an adapter's base
        trainer.accelerator.unwrap_model(trainer.ref_model).load_state_dict(start)
    return trainer


def updates_of(settings: GrpoSettings, examples: int) -> int:
    """Updates of the policy: what `steps` says, or what the epochs take. Raises BadInput where there are too few
    examples for one."""
    prompts = settings.optimization.batch_rows // settings.group
    if examples < prompts:
        raise BadInput(
            f"a step takes {prompts} prompts (optimization.batch_rows by group) and there are {examples} examples"
        )
    return settings.steps or settings.optimization.epochs * (examples // prompts) * settings.reuse


def _config(out: Path, settings: GrpoSettings, examples: int) -> Any:
    """Every setting that the library would otherwise choose by itself. Raises BadInput where a step's groups cannot be
    dealt evenly to the processes."""
    from accelerate import PartialState
    from trl.trainer.grpo_config import GRPOConfig

    how, compute = settings.optimization, settings.compute
    processes = PartialState(cpu=compute.cpu).num_processes
    own, left = divmod(how.batch_rows, processes * settings.group)
    if left:
        raise BadInput(
            f"optimization.batch_rows {how.batch_rows} is no multiple of {processes} processes by groups of "
            f"{settings.group}"
        )
    rows = own * settings.group
    micro = max(size for size in range(1, settings.micro_rows + 1) if rows % size == 0)
    steps = updates_of(settings, examples)
    arguments = GRPOConfig(
        output_dir=str(out),
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=rows // micro,
        num_generations=settings.group,
        num_iterations=settings.reuse,
        max_completion_length=settings.answer_tokens,
        temperature=settings.temperature,
        top_p=1.0,
        top_k=0,
        max_steps=steps,
        beta=settings.kl,
        epsilon=settings.clip_low,
        epsilon_high=settings.clip_high,
        importance_sampling_level=settings.ratio,
        scale_rewards="group" if settings.scale_advantages else "none",
        loss_type="grpo",
        use_bias_correction_kl=False,  # the papers' divergence is not weighted by the ratio
        disable_dropout=True,
        shuffle_dataset=True,
        gradient_checkpointing=cast(Any, None),  # its old name, which TRL switches on
        logging_steps=max(1, steps // 100),
        **shared_arguments(how, compute, seed=settings.seed, steps=steps, report_to=settings.report_to),
    )
    one_device(arguments)
    return arguments
