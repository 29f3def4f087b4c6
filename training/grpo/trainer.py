"""Extends TRL's GRPOTrainer in seven ways: prompts are encoded as in rollouts, rewards are computed for entire groups,
the KL divergence can be weighted by reward (:mod:`training.grpo.kl`), the prompt of a group is computed once in a pass
(:mod:`training.grpo.packed_logprobs`), batches are compared with single rows (:mod:`training.grpo.batch_check`),
groups without a learning signal do not change the weights (:mod:`training.grpo.groups`), and a resumed run has the
order of prompts of an uninterrupted one (:mod:`training.grpo.epoch_order`).

The overridden methods are private in TRL, which is pinned in pyproject.toml. Each has a contract test in
`tests/training/grpo/test_trainer.py`. A completion is rewarded once, in the process that sampled it, together with its
group. Batches never split a group.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

import torch

from envs.core.errors import BadInput
from models.base import Message
from models.local.loading import reading_old_names
from models.local.vision_loading import pad_left
from models.prompting.prompt_tokens import PromptTokens
from training.engine.checkpoints import lora_config
from training.engine.half_weights import hold_frozen_in_bfloat16
from training.engine.processes import process_state
from training.engine.sharding import load_whole, settle_sharding, weights_are_sharded
from training.engine.trainer import one_device, shared_arguments
from training.grpo.batch_check import PER_TOKEN, check_fields, check_rows, padded_marks
from training.grpo.epoch_order import EpochOrders
from training.grpo.evaluation import chat_turns, template_opening, tokenizer_of
from training.grpo.examples import Example, check_images
from training.grpo.frames import AnswerFrames, limit_pixels
from training.grpo.groups import GroupStats, RowExclusion, SkipIdleUpdates
from training.grpo.kl import KL_WEIGHTS, kl_weighted_by_reward
from training.grpo.packed_logprobs import PackedPasses
from training.grpo.rewards import UNSCALED, Rewarder, Scale, Score, TokenCount, has_places
from training.grpo.rewards.ssl import NEAR_MISS
from training.grpo.settings import GrpoSettings
from training.grpo.vllm_sampling import SentToVllm, vllm_arguments, vllm_engine

VISION: Final = ("vision", "visual")
"""Parts of the names of image encoder weights: LLaVA, SmolVLM, Gemma; Qwen."""


def check_fit(examples: Sequence[Example], rewarder: Rewarder) -> None:
    """Raises BadInput if the reward does not fit a kind of *examples*, or if images do not fit the examples."""
    check_images(examples)
    kinds = {(example.target.kind, has_places(example.target), example.image is None): example for example in examples}
    for example in kinds.values():
        rewarder.of_group(example.target, ["", ""], example.picture if rewarder.needs_picture else None)


class GroupReward:
    """TRL's reward function: scores groups of completions and logs the parts of the reward."""

    __name__ = "reward"

    def __init__(
        self,
        examples: Sequence[Example],
        rewarder: Rewarder,
        group: int,
        tokenizer: Any,
        opening: str = "",
        *,
        scale: Callable[[Example], Scale] = lambda _: UNSCALED,
    ) -> None:
        """*opening*: text that the chat template puts before every completion, see `template_opening`. *scale*: pixels
        per unit of an answer's coordinates."""
        self._opening = opening
        self._scale = scale
        self._examples = examples
        self._rewarder = rewarder
        self._group = group
        self._tokenizer = tokenizer
        self.shares: list[float] = []
        """Rewards of the last batch over the maximum reward, in order, 0 to 1; 0 if not finite."""

    def example(self, index: int) -> Example:
        return self._examples[index]

    def __call__(
        self, completion_ids: Sequence[Sequence[int]], index: Sequence[int], log_metric: Any, **_: Any
    ) -> list[float | None]:
        """*index* has the example of each completion. TRL's decoded texts are not used: TRL removes thoughts and tool
        calls from them if the tokenizer defines how."""
        decoded: list[str] = self._tokenizer.batch_decode(completion_ids, skip_special_tokens=True)
        texts = [self._opening + text for text in decoded]
        scores: list[Score] = []
        for start in range(0, len(texts), self._group):
            own = set(index[start : start + self._group])
            if len(own) != 1:
                raise ValueError(f"completions of the examples {sorted(own)} are in one group")
            example = self._examples[own.pop()]
            picture = example.picture if self._rewarder.needs_picture else None
            group = texts[start : start + self._group]
            scores += self._rewarder.of_group(example.target, group, picture, self._scale(example))
        finite = [score for score in scores if math.isfinite(score.total)]
        self.shares = [
            score.total / self._rewarder.max_reward if math.isfinite(score.total) else 0.0 for score in scores
        ]
        for name, value in mean_parts(finite).items():
            log_metric(name, value)
        # TRL treats NaN as a missing reward and warns with the full prompt. Infinite rewards are excluded too.
        return [math.inf if math.isnan(score.total) else score.total for score in scores]


def mean_parts(scores: Sequence[Score]) -> dict[str, float]:
    """Returns the mean of each part of *scores*, and the share of near misses if scores have proximity and
    correctness."""
    parts: dict[str, list[float]] = defaultdict(list)
    for score in scores:
        for name, value in score.parts.items():
            parts[f"part/{name}"].append(value)
        if {"proximity", "correct"} <= score.parts.keys():
            parts["near_misses"].append(float(score.parts["proximity"] > NEAR_MISS and not score.parts["correct"]))
    return {name: math.fsum(values) / len(values) for name, values in parts.items()}


def group_trainer() -> Any:
    """Returns the trainer class. It is created on demand because TRL takes seconds to import."""
    from trl.trainer.grpo_trainer import GRPOTrainer

    class GroupTrainer(RowExclusion, PackedPasses, EpochOrders, SentToVllm, GRPOTrainer):
        """TRL's trainer with the extensions of this module."""

        def __init__(self, rewarding: GroupReward, settings: GrpoSettings, **options: Any) -> None:
            self._rewarding = rewarding
            self._room = settings.room
            self._group = settings.group
            self._by_reward = settings.kl_by_reward
            self._checked: set[bool] = set()
            self._marks: dict[str, Any] = {}
            self._groups: GroupStats | None = None
            self._counts: Counter[str] = Counter()
            self.begin_packing(options["model"], **_packing(settings, rewarding.example(0)))
            super().__init__(reward_funcs=rewarding, **options)
            self.pack_reference()
            self.begin_vllm()
            self._prompts = PromptTokens(self._tokenizer)
            self.add_callback(SkipIdleUpdates(self))

        def create_accelerator_and_postprocess(self) -> None:
            """Settles how weights are sharded before TRL shards the reference."""
            super().create_accelerator_and_postprocess()
            settle_sharding(self)

        def _tokenize_prompts(self, prompts: list[Any]) -> Any:
            if self._is_vlm:
                ids, images, fields = super()._tokenize_prompts(prompts)
                self._marks = {name: fields[name] for name in PER_TOKEN if name in fields}
                return ids, images, fields
            return [list(self._prompts.encode(_messages(turns), self._room)) for turns in prompts], None, {}

        def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
            """Samples under the autocast of the updates: TRL samples from an adapted model without it. Processes that
            each have a part of the weights sample as long as any of them does."""
            self.accelerator.unwrap_model(self.model)._is_fsdp_managed_module = self.is_fsdp_enabled
            with reading_old_names(), self.accelerator.autocast():
                scored = super()._generate_and_score_completions(inputs)
            shape = scored["prompt_ids"].shape, scored["completion_ids"].shape[1]
            scored.update(padded_marks(self._marks, *shape, scored["prompt_ids"].device))
            self._marks = {}
            self._check_alignment(inputs, scored)
            self._exclude_rows(scored)
            if self._by_reward:
                scored[KL_WEIGHTS] = torch.tensor(self._rewarding.shares, device=scored["advantages"].device)
            return scored

        def _get_per_token_logps_and_entropies(
            self, model: Any, input_ids: torch.Tensor, attention_mask: torch.Tensor, logits_to_keep: int, **fields: Any
        ) -> Any:
            """Computes log-probabilities with the per-token fields of the same encoding as the tokens: TRL encodes
            prompts twice."""
            prompts = (input_ids.shape[0], input_ids.shape[1] - logits_to_keep)
            fields |= padded_marks(self._marks, prompts, logits_to_keep, input_ids.device)
            check_fields(input_ids, attention_mask, fields)
            return super()._get_per_token_logps_and_entropies(
                model, input_ids, attention_mask, logits_to_keep, **fields
            )

        def _check_alignment(self, inputs: list[dict[str, Any]], scored: dict[str, Any]) -> None:
            """Checks the first batch and the first batch with padding, of any process: processes that each have a
            part of the weights compute together."""
            padding = (scored["prompt_mask"] == 0).any().float()
            padded = bool(self.accelerator.reduce(padding, "sum") > 0)
            if padded not in self._checked:
                examples = [self._rewarding.example(row["index"]) for row in inputs]
                check_rows(self, self.accelerator.unwrap_model(self.model), examples, scored, self._room)
                self._checked.add(padded)

        def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
            """Returns the mean loss over the kept rows; TRL's mean is over all rows."""
            scale = inputs["loss_scale"][0]
            if not self._by_reward:
                return super()._compute_loss(model, inputs) * scale
            with kl_weighted_by_reward(self, inputs[KL_WEIGHTS]):
                return super()._compute_loss(model, inputs) * scale

    return GroupTrainer


def _packing(settings: GrpoSettings, example: Example) -> dict[str, Any]:
    """The arguments of :meth:`PackedPasses.begin_packing` for a run on examples like *example*."""
    wanted = settings.packing and example.image is None
    return {"wanted": wanted, "longest": settings.compute.max_tokens, "processes": process_state().num_processes}


def _messages(turns: Sequence[Mapping[str, Any]]) -> list[Message]:
    return [Message(turn["role"], turn["content"]) for turn in turns]


def build_rewarder(settings: GrpoSettings, processor: Any) -> Rewarder:
    """Builds the rewarder of *settings*, which counts a thought's tokens with the policy's tokenizer."""
    return Rewarder(settings.reward, token_count(processor))


def token_count(processor: Any) -> TokenCount:
    """Returns a function that counts tokens with the policy's tokenizer."""
    tokens = PromptTokens(tokenizer_of(processor))
    return lambda text: len(tokens.plain(text))


def build_dataset(examples: Sequence[Example], processor: Any) -> Any:
    """Builds TRL's dataset: prompts as conversations, the index of each example, and its image if any."""
    from datasets import Dataset, Image, disable_progress_bars

    disable_progress_bars()
    images = [example.image for example in examples if example.image is not None]
    if not images:
        turns = [[{"role": role, "content": text} for role, text in example.messages] for example in examples]
        return Dataset.from_dict({"prompt": turns, "index": list(range(len(examples)))})
    turns = [chat_turns(processor, example) for example in examples]
    columns = {"prompt": turns, "index": list(range(len(examples))), "image": [str(path) for path in images]}
    return Dataset.from_dict(columns).cast_column("image", Image())


def build_trainer(model: Any, processor: Any, examples: Sequence[Example], settings: GrpoSettings, out: Path) -> Any:
    """Builds the trainer. *processor*: the tokenizer, or the processor of a vision model. Raises BadInput."""
    adapters = adapters_of(settings, model, sees=examples[0].image is not None)
    if settings.freeze_vision and adapters is None:
        freeze_vision(model)
    pad_left(processor)
    limit_pixels(processor, settings.min_pixels, settings.max_pixels)
    rewarder, opening = build_rewarder(settings, processor), template_opening(processor)
    scale = AnswerFrames(processor, settings.coordinates).scale
    rewarding = GroupReward(examples, rewarder, settings.group, tokenizer_of(processor), opening, scale=scale)
    start = model.state_dict()
    arguments = trl_arguments(out, settings, len(examples))
    with reading_old_names(), vllm_engine(settings, model.device, processor, out):
        trainer = group_trainer()(
            rewarding,
            settings,
            model=model,
            args=arguments,
            train_dataset=build_dataset(examples, processor),
            processing_class=processor,
            peft_config=adapters,
        )
    if trainer.ref_model is not None:
        # TRL loads the reference from the folder in the model's configuration, the base of a merged adapter.
        reference = trainer.accelerator.unwrap_model(trainer.ref_model)
        load_whole(reference, start)
        if not weights_are_sharded():
            hold_frozen_in_bfloat16(reference, settings.compute, frozen=True)
    if adapters is not None:
        hold_frozen_in_bfloat16(trainer.accelerator.unwrap_model(trainer.model), settings.compute)
    return trainer


def adapters_of(settings: GrpoSettings, model: Any, *, sees: bool) -> Any:
    """Returns PEFT's configuration of the run's adapters; None if every weight is trained. *sees*: the examples have
    images."""
    if settings.compute.lora is None:
        return None
    return lora_config(settings.compute.lora, model, freeze_vision=settings.freeze_vision or not sees)


def freeze_vision(model: Any) -> None:
    """Freezes the weights of the image encoder."""
    for name, weight in model.named_parameters():
        weight.requires_grad_(not any(part in name for part in VISION))


def count_updates(settings: GrpoSettings, examples: int) -> int:
    """Returns the number of policy updates, from `steps` or the epochs. Raises BadInput if there are too few examples
    for one update."""
    prompts = settings.optimization.batch_rows // settings.group
    if examples < prompts:
        raise BadInput(
            f"a step takes {prompts} prompts (optimization.batch_rows by group) and there are {examples} examples"
            "; add examples or lower optimization.batch_rows"
        )
    return settings.steps or settings.optimization.epochs * (examples // prompts) * settings.reuse


def rows_of_process(settings: GrpoSettings, processes: int) -> int:
    """Returns the number of completions that a process samples for a step. Raises BadInput if a step's groups cannot be
    divided evenly among the processes."""
    batch, group = settings.optimization.batch_rows, settings.group
    own, left = divmod(batch, processes * group)
    if left:
        raise BadInput(
            f"optimization.batch_rows {batch} is not a multiple of {processes} processes by groups of {group}"
        )
    return own * group


def micro_batch(settings: GrpoSettings, rows: int) -> int:
    """Returns the number of completions in one pass: the largest divisor of *rows* up to `micro_rows`."""
    return max(size for size in range(1, settings.micro_rows + 1) if rows % size == 0)


def trl_arguments(out: Path, settings: GrpoSettings, examples: int) -> Any:
    """Builds TRL's arguments and sets every default explicitly. Raises BadInput if a step's groups cannot be divided
    evenly among the processes."""
    from trl.trainer.grpo_config import GRPOConfig

    optimization, compute = settings.optimization, settings.compute
    rows = rows_of_process(settings, process_state(cpu=compute.cpu).num_processes)
    micro = micro_batch(settings, rows)
    steps = count_updates(settings, examples)
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
        use_bias_correction_kl=False,  # the papers do not weight the divergence by the ratio
        disable_dropout=True,
        shuffle_dataset=True,
        gradient_checkpointing=cast(Any, None),  # TRL enables the deprecated name of this option
        **vllm_arguments(settings),
        logging_steps=max(1, steps // 100),
        **shared_arguments(optimization, compute, seed=settings.seed, steps=steps, report_to=settings.report_to),
    )
    one_device(arguments)
    return arguments
