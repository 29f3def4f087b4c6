"""A GRPO run in a folder: measured, trained, measured again; one that was broken off goes on.

OUT/
├── grpo.json        of which start, examples and settings it is
├── held_out.jsonl    what was measured, by update: 0 is the start
├── checkpoints/      while it trains
├── log.json          what was reported, step by step
└── model/            the policy; it is there when the run is done
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import PrinterCallback, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from envs.core.atomic_write import write_atomically
from envs.core.errors import BadInput
from envs.core.record import Record
from models.embedded import embedded_dir
from models.local.prompt_style import PromptStyle, declare_style, declared_style
from training.engine.checkpoints import (
    load_policy,
    neutral_sampling,
    select_device,
    weights_digest,
    write_folder_atomically,
)
from training.engine.language_model import hidden_width
from training.engine.launcher import run_launched
from training.engine.learning_rate_check import UpdateBound, rate_problem
from training.engine.progress import ReportSteps, Watcher, unwatched
from training.engine.trainer import SaveByTheClock, TrainingDiverged, settle_sharding, train_on, whole_model
from training.grpo.completion_length import check_completion_lengths
from training.grpo.evaluation import Evaluation, measure, tokenizer_of
from training.grpo.examples import Example, count_shared_prompts, read_examples, write_examples
from training.grpo.rewards import StepTarget, has_places
from training.grpo.settings import GrpoSettings
from training.grpo.trainer import build_rewarder, build_trainer, check_fit, count_updates, token_count
from training.grpo.vision_models import load_vision_model
from training.loop.parts import load_or_compute, read_record, write_record

Tell = Callable[[str], None]


class GrpoInputs(Record):
    """What a run is of: only the same one goes on in its folder."""

    start: str
    """Digest of the start's weights."""
    examples: str
    """Digest of what it learns from."""
    held_out: str
    settings: GrpoSettings


class HeldOutEvaluation(Record):
    """One measurement."""

    update: int
    """Of the policy: 0 is the start."""
    measured: Evaluation


class GrpoResult(Record):
    """What came of it."""

    model: Path
    updates: int
    held_out: tuple[HeldOutEvaluation, ...]
    """The start's and the end's among them; none without held-out examples."""
    first_reward: float | None
    """Mean reward of sampled completions when the run began; None where nothing was trained."""
    last_reward: float | None
    nonfinite_rows: int = 0
    """Completions that were left out: their rewards are NaN or infinite."""
    equal_groups: int = 0
    """Groups whose rewards are equal, so that there was nothing to learn from them."""


def train_grpo(
    examples: Sequence[Example],
    start: str,
    out: Path,
    settings: GrpoSettings,
    *,
    held_out: Sequence[Example] = (),
    log: Tell,
    watch: Watcher = unwatched,
) -> GrpoResult:
    """Trains the policy *start* on *examples*; a killed run continues with the same command.

    *tell* is warned of right answers that are longer than completions may be. Raises BadInput where *out* holds
    anything else, where the examples do not fit the reward, the model or the length of a completion, and where the
    policy is measured on what it learns from; TrainingDiverged.
    """
    if not (out / "grpo.json").exists() and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadInput(f"{str(out)!r} is not an empty folder and holds no GRPO run")
    if shared := count_shared_prompts(held_out, examples):
        raise BadInput(f"{shared} of {len(held_out)} held-out examples are among those that are learned from")
    count_updates(settings, len(examples))
    policy = embedded_dir() if start == "embedded" else Path(start)
    model, processor = load_start(policy, vision=examples[0].image is not None)
    check_fit((*examples, *held_out), build_rewarder(settings, processor))
    reach = UpdateBound(
        "optimization",
        settings.optimization,
        count_updates(settings, len(examples)),
        hidden_width(model.config),
        settings.compute.lora,
    )
    warnings = check_completion_lengths(examples, held_out, settings, token_count(processor)) + _unplaced(
        examples, settings
    )
    if problem := rate_problem(reach):
        warnings += (problem,)
    begun = GrpoInputs(
        start=weights_digest(policy), examples=_digest(examples), held_out=_digest(held_out), settings=settings
    )
    if load_or_compute(out / "grpo.json", GrpoInputs, lambda: begun) != begun:
        raise BadInput(f"{str(out)!r} holds a GRPO run of another start, other examples or other settings")
    for line in () if (out / "model").exists() else warnings:
        log(line)
    if not (out / "model").exists() and settings.launcher:
        del model
        _launch(policy, examples, held_out, out, settings)
    elif not (out / "model").exists():
        _train(model, processor, _Work(examples, held_out, out, settings, _style(examples, policy), log, watch))
    return read_result(out)


class LaunchedJob(Record):
    """What the processes of a launcher are told, beside the examples: `job.json`."""

    start: Path
    settings: GrpoSettings


def _launch(
    policy: Path, examples: Sequence[Example], held_out: Sequence[Example], out: Path, settings: GrpoSettings
) -> None:
    """Raises BadInput, TrainingDiverged."""
    write_record(out / "job.json", LaunchedJob(start=policy.resolve(), settings=settings))
    write_examples(out / "examples.jsonl", examples)
    write_examples(out / "held_out_examples.jsonl", held_out)
    run_launched(settings.launcher, out, "training.grpo")
    for name in ("job.json", "examples.jsonl", "held_out_examples.jsonl"):
        (out / name).unlink()


def run_launched_part(folder: Path, watch: Watcher) -> None:
    """What one process of a launcher does of the run in *folder*. Raises BadInput, TrainingDiverged."""
    job = read_record(folder / "job.json", LaunchedJob)
    examples = read_examples(folder / "examples.jsonl")
    held_out = read_examples(folder / "held_out_examples.jsonl", empty=True)
    model, processor = load_start(job.start, vision=examples[0].image is not None)
    style = _style(examples, job.start)
    _train(model, processor, _Work(examples, held_out, folder, job.settings, style, _say, watch))


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def read_result(out: Path) -> GrpoResult:
    """Of a run that has ended. Raises BadInput."""
    log = read_log(out)
    rewards = [float(row["reward"]) for row in log if row.get("reward") is not None]
    return GrpoResult(
        model=out / "model",
        updates=max((int(row["step"]) for row in log), default=0),
        held_out=read_held_out(out),
        first_reward=rewards[0] if rewards else None,
        last_reward=rewards[-1] if rewards else None,
        nonfinite_rows=sum(int(row.get("nonfinite_rows") or 0) for row in log),
        equal_groups=sum(int(row.get("equal_groups") or 0) for row in log),
    )


def read_log(out: Path) -> list[dict[str, Any]]:
    """What was reported, step by step. Raises BadInput where *out* holds no run that has ended."""
    try:
        return json.loads((out / "log.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{str(out)!r} holds no GRPO run that has ended") from error


def read_held_out(out: Path) -> tuple[HeldOutEvaluation, ...]:
    """What was measured so far."""
    path = out / "held_out.jsonl"
    lines = path.read_text(encoding="utf-8").split("\n") if path.exists() else []
    return tuple(HeldOutEvaluation.model_validate_json(line) for line in lines if line)


def load_start(folder: Path, *, vision: bool) -> tuple[Any, Any]:
    """(model in float32, tokenizer; with images what encodes them, too). Raises BadInput."""
    return load_vision_model(folder) if vision else load_policy(folder, padded=True)


class _MeasureOnTheWay(TrainerCallback):
    def __init__(self, measure_now: Callable[[int], None], every: int) -> None:
        self._measure_now = measure_now
        self._every = every

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object) -> None:
        last = state.global_step >= state.max_steps
        if self._every and state.global_step % self._every == 0 and not last and state.is_world_process_zero:
            self._measure_now(state.global_step)


class _Finite(TrainerCallback):
    """Ends a run whose numbers no training can survive."""

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, float] | None = None,
        **_: object,
    ) -> None:
        bad = [name for name in ("loss", "grad_norm") if logs and not torch.isfinite(torch.tensor(logs.get(name, 0.0)))]
        if bad:
            raise TrainingDiverged(f"step {state.global_step}: the {bad[0]} is {(logs or {})[bad[0]]}")


class _TellLeftOut(TrainerCallback):
    def __init__(self, log: Tell) -> None:
        self._tell = log

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, float] | None = None,
        **_: object,
    ) -> None:
        if (rows := int((logs or {}).get("nonfinite_rows", 0))) and state.is_world_process_zero:
            self._tell(f"update {state.global_step}: {rows} rows are left out, their rewards are NaN or infinite")


@dataclass(frozen=True, slots=True)
class _Work:
    examples: Sequence[Example]
    held_out: Sequence[Example]
    out: Path
    settings: GrpoSettings
    style: PromptStyle | None
    log: Tell
    watch: Watcher


def _train(model: Any, processor: Any, work: _Work) -> None:
    out, settings = work.out, work.settings
    device = select_device(settings.compute)
    trainer = build_trainer(model.to(device), processor, work.examples, settings, out / "checkpoints")
    settle_sharding(trainer)
    if trainer.is_fsdp_enabled:
        raise BadInput("GRPO trains with DDP: leave FSDP out; compute.lora keeps a large model on one GPU")

    def measure_now(update: int) -> None:
        done = {one.update: one for one in read_held_out(out)}
        if not work.held_out or update in done or not trainer.is_world_process_zero():
            return
        found = measure(trainer.accelerator.unwrap_model(trainer.model), processor, work.held_out, settings, work.watch)
        done[update] = HeldOutEvaluation(update=update, measured=found)
        lines = "".join(f"{done[key].model_dump_json()}\n" for key in sorted(done))
        write_atomically(out / "held_out.jsonl", lines)
        work.log(f"update {update}: {found.correct.value or 0:.1%} of {found.examples} held-out examples are solved")

    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(SaveByTheClock(settings.compute.save_minutes, settings.reuse))
    trainer.add_callback(ReportSteps("GRPO", work.watch, "reward"))
    trainer.add_callback(_Finite())
    trainer.add_callback(_TellLeftOut(work.log))
    trainer.add_callback(_MeasureOnTheWay(measure_now, settings.held_out_every))
    measure_now(0)
    train_on(trainer, out / "checkpoints")
    measure_now(trainer.state.global_step)
    learned = whole_model(trainer, lambda: model)
    if learned is not None:
        write_atomically(out / "log.json", json.dumps(trainer.state.log_history, indent=1) + "\n")
        save_start(learned, processor, out / "model", work.style)
        shutil.rmtree(out / "checkpoints", ignore_errors=True)


def save_start(model: Any, processor: Any, out: Path, style: PromptStyle | None = None) -> None:
    """Writes *out* so that :func:`load_start` and servers take it: weights with any adapter merged, what encodes, the
    *style* of prompts to play it with."""
    merged = model.merge_and_unload() if hasattr(model, "merge_and_unload") else model
    neutral_sampling(merged)
    with write_folder_atomically(out) as part:
        merged.save_pretrained(part)
        processor.save_pretrained(part)
        if processor is not tokenizer_of(processor):
            tokenizer_of(processor).save_pretrained(part)
        declare_style(part, style)


def _unplaced(examples: Sequence[Example], settings: GrpoSettings) -> tuple[str, ...]:
    """A line where a reward of how near a click is has nothing to go by."""
    steps = all(isinstance(example.target, StepTarget) for example in examples)
    if not steps or settings.reward.kind == "guirlvg" or any(has_places(example.target) for example in examples):
        return ()
    return (
        f"warning: none of the {len(examples)} steps has a place, so reward {settings.reward.kind!r} tells right from "
        "wrong alone; `mira train examples` of a run with `--screenshots steps` makes steps that have",
    )


def _style(examples: Sequence[Example], policy: Path) -> PromptStyle | None:
    """Of the prompts that the result must be played with: those of its steps, else what the start declares."""
    if all(isinstance(example.target, StepTarget) for example in examples):
        full = {any(role == "system" for role, _ in example.messages) for example in examples}
        return None if len(full) > 1 else "full" if full.pop() else "compact"
    return declared_style(policy)


def _digest(examples: Sequence[Example]) -> str:
    found = hashlib.sha256()
    for example in examples:
        found.update(example.model_copy(update={"image": None}).model_dump_json().encode())
        found.update(example.picture or b"")
    return found.hexdigest()[:16]
