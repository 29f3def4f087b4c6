"""Runs GRPO training in a folder, with evaluations. An interrupted run continues.

OUT/
├── grpo.json         start, examples and settings of the run
├── held_out.jsonl    evaluations by update; 0 is the start
├── checkpoints/      during training
├── log.json          the training log by step
└── model/            the trained policy; exists when the run is done
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from transformers import PrinterCallback

from envs.core.atomic_write import write_atomically
from envs.core.errors import BadInput
from envs.core.record import Record
from models.local.declarations import declared_thoughts
from models.local.loading import declared_context, reading_old_names
from models.prompting.prompt_tokens import PromptTokens
from models.vision.checkpoints import declare_profile
from models.vision.coordinates import CoordinateSpace
from training.engine.checkpoints import (
    base_of,
    declare_adapter,
    load_policy,
    neutral_sampling,
    save_adapter,
    select_device,
    weights_digest,
    write_folder_atomically,
)
from training.engine.half_weights import copy_trained_weights, is_held_in_bfloat16
from training.engine.language_model import hidden_width
from training.engine.launcher import run_launched
from training.engine.learning_rate_check import UpdateBound, rate_problem
from training.engine.progress import ReportSteps, Watcher, unwatched
from training.engine.sharding import weights_are_sharded, whole_model
from training.engine.trackers import check_trackers
from training.engine.trainer import SaveByTheClock, StopOnNonfinite, train_on
from training.grpo.callbacks import LogExcludedRows, PeriodicEvaluation
from training.grpo.completion_length import check_completion_lengths, span
from training.grpo.declarations import Training, declare_training
from training.grpo.evaluation import measure, tokenizer_of
from training.grpo.examples import (
    Example,
    count_shared_prompts,
    examples_digest,
    messages_of,
    read_examples,
    share_of,
    write_examples,
)
from training.grpo.frames import DECLARED_PROFILE, AnswerFrames, keeps_aspect, limit_pixels, shown_size
from training.grpo.prompts import ask_as
from training.grpo.results import GrpoResult, HeldOutEvaluation, read_held_out, read_result
from training.grpo.rewards import StepTarget, has_places, places_of
from training.grpo.settings import GrpoSettings
from training.grpo.trainer import adapters_of, build_rewarder, build_trainer, check_fit, count_updates, token_count
from training.grpo.vision_models import load_vision_model
from training.grpo.vllm_sampling import check_image_prompts
from training.loop.parts import check_folder, owning, read_record, write_record
from training.starts import start_folder

Log = Callable[[str], None]


class GrpoInputs(Record):
    """The inputs of a run. A folder only continues with equal inputs."""

    start: str
    """Digest of the start's weights."""
    examples: str
    """Digest of the training examples."""
    held_out: str
    settings: GrpoSettings


def train_grpo(
    examples: Sequence[Example],
    start: str,
    out: Path,
    settings: GrpoSettings,
    *,
    held_out: Sequence[Example] = (),
    log: Log,
    watch: Watcher = unwatched,
) -> GrpoResult:
    """Trains the policy *start* on *examples*. A killed run continues with the same arguments.

    *log* receives warnings, such as correct answers that exceed the completion length limit. Raises BadInput if *out*
    holds anything else, if the examples do not fit the reward, the model or the length limit, and if held-out examples
    are also trained on; TrainingDiverged.
    """
    check_folder(out, "grpo.json", "GRPO run")
    check_trackers(settings.report_to)
    if shared := count_shared_prompts(held_out, examples):
        raise BadInput(
            f"{shared} of {len(held_out)} held-out examples are also training examples: "
            "remove them from one of the files"
        )
    examples = share_of(examples, settings.share, settings.seed)
    count_updates(settings, len(examples))
    policy = start_folder(start)
    model, processor = load_start(policy, vision=examples[0].image is not None)
    given = settings
    if examples[0].image is None:
        settings = _within(settings, declared_context(model.config, processor))
    limit_pixels(processor, settings.min_pixels, settings.max_pixels)
    frames = AnswerFrames(processor, settings.coordinates)
    examples, left = ask_as(examples, settings.prompt, frames.size)
    held_out, left_held_out = ask_as(held_out, settings.prompt, frames.size, held_out=True)
    check_fit((*examples, *held_out), build_rewarder(settings, processor))
    bound = UpdateBound(
        "optimization",
        settings.optimization,
        count_updates(settings, len(examples)),
        hidden_width(model.config),
        settings.compute.lora,
    )
    warnings = (
        *_question_warnings(left + left_held_out, len(examples) + len(held_out), settings),
        *check_completion_lengths(examples, held_out, settings, token_count(processor), frames.scale),
        *_coordinate_warnings(examples, settings),
        *_resizing_warnings(examples, settings, processor),
        *_cut_warnings((*examples, *held_out), given, settings, processor),
    )
    if problem := rate_problem(bound):
        warnings = (*warnings, problem)
    if not (out / "model").exists():
        check_image_prompts(examples, settings, processor)
    inputs = GrpoInputs(
        start=weights_digest(policy),
        examples=examples_digest(examples),
        held_out=examples_digest(held_out),
        settings=given,
    )
    with owning(out / "grpo.json", inputs, "a GRPO run"):
        for line in () if (out / "model").exists() else warnings:
            log(line)
        if not (out / "model").exists() and settings.launcher:
            del model
            _launch(policy, examples, held_out, out, settings)
        elif not (out / "model").exists():
            job = _TrainingJob(policy, examples, held_out, out, settings, log, watch)
            _train(model, processor, job)
        return read_result(out)


class LaunchedJob(Record):
    """Inputs of a launcher's processes, besides the examples: `job.json`."""

    start: Path
    settings: GrpoSettings


def _launch(
    policy: Path, examples: Sequence[Example], held_out: Sequence[Example], out: Path, settings: GrpoSettings
) -> None:
    """Trains under the launcher. Raises BadInput, TrainingDiverged."""
    write_record(out / "job.json", LaunchedJob(start=policy.resolve(), settings=settings))
    write_examples(out / "examples.jsonl", examples)
    write_examples(out / "held_out_examples.jsonl", held_out)
    run_launched(settings.launcher, out, "training.grpo")
    for name in ("job.json", "examples.jsonl", "held_out_examples.jsonl"):
        (out / name).unlink()


def run_launched_part(folder: Path, watch: Watcher) -> None:
    """Runs one launched process of the run in *folder*. Raises BadInput, TrainingDiverged."""
    job = read_record(folder / "job.json", LaunchedJob)
    examples = read_examples(folder / "examples.jsonl")
    held_out = read_examples(folder / "held_out_examples.jsonl", empty=True)
    model, processor = load_start(job.start, vision=examples[0].image is not None)
    run = _TrainingJob(job.start, examples, held_out, folder, job.settings, _log_stderr, watch)
    _train(model, processor, run)


def _log_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def load_start(folder: Path, *, vision: bool) -> tuple[Any, Any]:
    """Loads (model in float32, tokenizer, or processor with *vision*). Raises BadInput."""
    return load_vision_model(folder) if vision else load_policy(folder, padded=True)


@dataclass(frozen=True, slots=True)
class _TrainingJob:
    start: Path
    examples: Sequence[Example]
    held_out: Sequence[Example]
    out: Path
    settings: GrpoSettings
    log: Log
    watch: Watcher


def _train(model: Any, processor: Any, job: _TrainingJob) -> None:
    out, settings = job.out, job.settings
    sharded = weights_are_sharded()
    if not sharded:  # else each process would hold the full model until it keeps its part
        model = model.to(select_device(settings.compute))
    trainer = build_trainer(model, processor, job.examples, settings, out / "checkpoints")

    def evaluate(update: int) -> None:
        """Measures in the main process alone, or in all together if each has a part of the weights."""
        done = {evaluation.update: evaluation for evaluation in read_held_out(out)}
        if not job.held_out or update in done or not (sharded or trainer.is_world_process_zero()):
            return
        policy = trainer.accelerator.unwrap_model(trainer.model)
        with trainer.plain_passes(), trainer.accelerator.autocast():
            metrics = measure(policy, processor, job.held_out, settings, job.watch)
        if not trainer.is_world_process_zero():
            return
        done[update] = HeldOutEvaluation(update=update, measured=metrics)
        lines = "".join(f"{done[key].model_dump_json()}\n" for key in sorted(done))
        write_atomically(out / "held_out.jsonl", lines)
        job.log(f"update {update}: {metrics.correct.value or 0:.1%} of {metrics.examples} held-out examples are solved")

    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(SaveByTheClock(settings.compute.save_minutes, settings.reuse))
    trainer.add_callback(ReportSteps("GRPO", job.watch, "reward"))
    trainer.add_callback(StopOnNonfinite())
    trainer.add_callback(LogExcludedRows(job.log))
    trainer.add_callback(PeriodicEvaluation(evaluate, settings.held_out_every))
    train_on(trainer, out / "checkpoints")
    evaluate(trainer.state.global_step)
    learned = whole_model(trainer, partial(_untrained, job))
    if learned is not None:
        if is_held_in_bfloat16(learned):
            learned = _in_float32(learned, job)
        write_atomically(out / "log.json", json.dumps(trainer.state.log_history, indent=1) + "\n")
        save_adapter(learned, out / "model", job.start)
        save_start(
            learned,
            processor,
            out / "model",
            Training(
                job.examples,
                job.start,
                settings.coordinates,
                bf16=settings.compute.bf16,
                thoughts=declared_thoughts(job.start, base_of(job.start)),
                prompt=settings.prompt,
            ),
        )
        declare_adapter(out / "model")
        shutil.rmtree(out / "checkpoints", ignore_errors=True)


def _in_float32(learned: Any, job: _TrainingJob) -> Any:
    """The adapters of *learned* on the float32 weights of the start: merged into bfloat16, their sum is rounded."""
    exact = _untrained(job)
    copy_trained_weights(learned, exact)
    return exact


def _untrained(job: _TrainingJob) -> Any:
    """The start in float32, with new adapters if the run has adapters."""
    from peft import get_peft_model

    sees = job.examples[0].image is not None
    exact, _ = load_start(job.start, vision=sees)
    adapters = adapters_of(job.settings, exact, sees=sees)
    if adapters is None:
        return exact
    with reading_old_names():
        return get_peft_model(exact, adapters)


def save_start(
    model: Any,
    processor: Any,
    out: Path,
    training: Training | None = None,
) -> None:
    """Writes a checkpoint to *out* for :func:`load_start` and servers: weights with any adapter merged, the tokenizer
    or processor, and the declarations of its *training*. A model that sees answers in pixels unless it was trained to
    do otherwise."""
    merged = model.merge_and_unload() if hasattr(model, "merge_and_unload") else model
    neutral_sampling(merged)
    with write_folder_atomically(out) as part:
        merged.save_pretrained(part)
        processor.save_pretrained(part)
        if processor is not tokenizer_of(processor):
            tokenizer_of(processor).save_pretrained(part)
            declare_profile(part, DECLARED_PROFILE[CoordinateSpace.PIXELS])
        if training is not None:
            declare_training(part, training)


def _within(settings: GrpoSettings, context: int) -> GrpoSettings:
    """Limits prompts and completions to the *context* of the start, in tokens. Raises BadInput if completions alone
    fill it."""
    if settings.compute.max_tokens <= context:
        return settings
    if settings.answer_tokens >= context:
        raise BadInput(
            f"answer_tokens {settings.answer_tokens} leaves no room for a prompt: the start has a context of {context} "
            "tokens; lower it, or take another start"
        )
    compute = settings.compute.model_copy(update={"max_tokens": context})
    return settings.model_copy(update={"compute": compute})


def _cut_warnings(
    examples: Sequence[Example], given: GrpoSettings, used: GrpoSettings, tokenizer: Any
) -> tuple[str, ...]:
    """Returns a warning if prompts of *examples* are longer than the room of the settings that are *used*: those that
    are *given*, limited to the start's context. Prompts with an image are not cut."""
    if examples[0].image is not None:
        return ()
    prompts = PromptTokens(tokenizer)
    lengths = [len(prompts.checked(messages_of(example))) for example in examples]
    over = [length for length in lengths if length > used.room]
    if not over:
        return ()
    limit, context = given.compute.max_tokens, used.compute.max_tokens
    if limit == context:
        reason = (
            f"they have {span(over)} tokens, and compute.max_tokens {limit} less answer_tokens {used.answer_tokens} "
            f"leaves {used.room}; raise compute.max_tokens"
        )
    else:
        reason = f"the start has a context of {context} tokens, fewer than compute.max_tokens {limit}"
    return (f"warning: {len(over)} of {len(examples)} prompts lose their middle: {reason}",)


def _question_warnings(left: int, examples: int, settings: GrpoSettings) -> tuple[str, ...]:
    """Returns a warning if *left* of the questions could not be put in the form of the settings."""
    if not left:
        return ()
    line = f"warning: {left} of {examples} questions are in words of their own and stay as they are: check that they "
    return (f"{line}ask for what recipe {settings.recipe!r} rewards (prompt.answer, prompt.think)",)


def _coordinate_warnings(examples: Sequence[Example], settings: GrpoSettings) -> tuple[str, ...]:
    """Returns a warning if a proximity reward is used and no step has coordinates."""
    steps = all(isinstance(example.target, StepTarget) for example in examples)
    if not steps or settings.reward.kind == "guirlvg" or any(has_places(example.target) for example in examples):
        return ()
    return (
        f"warning: none of the {len(examples)} steps has coordinates, so reward {settings.reward.kind!r} tells right "
        "from wrong alone; `mira train examples` of a run with `--screenshots steps` makes steps that have",
    )


def _resizing_warnings(examples: Sequence[Example], settings: GrpoSettings, processor: Any) -> tuple[str, ...]:
    """Returns a warning if the processor resizes images with targets and answers are read in pixels of the files."""
    if examples[0].image is None or settings.coordinates is not CoordinateSpace.PIXELS or not keeps_aspect(processor):
        return ()
    sizes = dict.fromkeys(place.size for example in examples for place in places_of(example.target))
    resized = ((size, shown_size(processor, size) or size) for size in sizes)
    first = next(((size, shown) for size, shown in resized if shown != size), None)
    if first is None:
        return ()
    size, shown = first
    return (
        f"warning: the processor resizes images, such as {size[0]} x {size[1]} to {shown[0]} x {shown[1]}, and answers "
        "are read in pixels of the files; for a model that answers in pixels of what it sees (Qwen2.5-VL) set "
        "coordinates=resized, for one that answers in 0 to 1000 (Qwen3-VL) coordinates=thousand",
    )
