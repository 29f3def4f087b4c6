"""Supervised fine-tuning from traces, which gives the start of every arm."""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from agent.episode.profile_prompts import profile_of_messages
from envs.core.errors import BadInput, ResetFailed
from envs.core.plain_values import Layer, checked, merged
from envs.core.record import Record
from models.local.declarations import (
    PromptStyle,
    ShownMilestones,
    declare_milestones,
    declare_no_reasons,
    declare_precision,
    declare_style,
)
from training.data.cache import rows_digest, write_trajectories
from training.data.rows import Row, RowEncoder, room_at_play
from training.data.table import DataSummary, summarize
from training.data.thoughts import declare_learned_thoughts, thoughts_in
from training.data.trajectories import Decision, LeftOut, Selection, Trajectory, parsed_completion
from training.engine.checkpoints import (
    base_of,
    check_checkpoint,
    declare_adapter,
    load_tokenizer,
    read_config,
    weights_digest,
)
from training.engine.early_stopping import ValidationScore, best_epoch, best_score, read_scores
from training.engine.language_model import hidden_width
from training.engine.learning_rate_check import UpdateBound, check_rate
from training.engine.progress import Watcher, unwatched
from training.engine.settings import Compute, Optimization
from training.engine.sft import SupervisedJob, supervised
from training.engine.trackers import check_trackers
from training.loop.curriculum import held_out, refusal
from training.loop.curriculum.trainable import declared_seeds, training_seeds
from training.loop.data import read_runs
from training.loop.parts import check_folder, owning, write_record
from training.loop.settings import SET, values_of
from training.starts import start_folder


class SupervisedSettings(Record):
    """Settings of `mira train sft`."""

    optimization: Optimization = Optimization(
        learning_rate=1e-3, schedule="cosine", warmup=0.1, batch_rows=16, epochs=3
    )
    """The paper's rate is 1e-5 for 8 to 12 billion parameters; this one is for a million."""
    compute: Compute = Compute()
    seed: int = 0
    failures: bool = False
    """Train on failed episodes, too."""
    patience: int = Field(default=1, ge=1)
    """With validation runs: epochs without a lower loss on them after which training ends."""
    report_to: tuple[str, ...] = ()
    """Trackers of transformers, such as `tensorboard`, which get the loss."""
    launcher: tuple[str, ...] = ()
    """Command that runs the training in several processes, e.g. `["accelerate", "launch", "--num_processes", "8",
    "-m"]`; empty: this process."""

    @model_validator(mode="after")
    def _has_one_model(self) -> Self:
        self.optimization.check_trains()
        self.compute.check_one_model()
        return self

    @classmethod
    def load(cls, path: Path | None, changes: Sequence[str]) -> SupervisedSettings:
        defaults = cls().model_dump(mode="json")
        over = Layer(SET, values_of(None, changes))
        return checked(cls, merged(defaults, values_of(path, changes)), str(path or SET), over)


BEGUN = "begun.json"


class Begun(Record):
    """Identity of a fine-tuning: only the same one can be resumed in its folder."""

    start: str
    """Digest of the start's weights."""
    rows: str
    """Digest of the training rows."""
    validation: str = ""
    """Digest of the validation rows; empty without any."""
    settings: SupervisedSettings


class FineTuned(Record):
    """The result of a fine-tuning."""

    model: Path
    data: DataSummary
    first_loss: float | None
    """Mean over completion tokens, in nats; None if nothing was trained."""
    last_loss: float | None
    validation: tuple[ValidationScore, ...] = ()
    """Scores of the validation rows at the start and after every epoch; the model has the weights of the best epoch."""
    play: tuple[str, ...]
    """The command that plays the model on tasks like its training tasks."""


def fine_tune(
    runs: Sequence[Path],
    start: str,
    out: Path,
    settings: SupervisedSettings,
    log: Callable[[str], None],
    *,
    validation: Sequence[Path] = (),
    allow_evaluation: bool = False,
    watch: Watcher = unwatched,
) -> FineTuned:
    """Trains *start* on the episodes of *runs*; a killed run continues with the same command.

    *start*: a checkpoint, a GGUF file, or `embedded`. *validation*: runs for early stopping. Episodes of held-out
    instances are left out of the training and counted, unless *allow_evaluation*. Raises TraceError for a trace that
    was edited after it was written, and BadInput where there are no rows, the learning rate is too low, or *out* holds
    anything else.
    """
    check_folder(out, BEGUN, "fine-tuning")
    check_trackers(settings.report_to)
    policy = start_folder(start)
    check_checkpoint(policy)
    config, tokenizer = read_config(policy), load_tokenizer(policy)
    encoder = RowEncoder(tokenizer, settings.compute.max_tokens, room_at_play(config, tokenizer))
    selection = read_runs(runs, texts=True)
    for notice in selection.provenance.notices():
        log(notice)
    kept = _chosen(selection, settings)
    failed = len(selection.kept) - len(kept)
    trainable = kept if allow_evaluation else _trainable(kept, log)
    held = len(kept) - len(trainable)
    left_out = selection.left_out + Counter({LeftOut.FAILED: failed, LeftOut.HELD_OUT: held})
    kept = trainable
    encoded = encoder.encode(kept)
    if not encoded.rows:
        raise BadInput(_nothing_to_learn(selection, left_out))
    check_rate(update_bound(settings, len(encoded.rows), hidden_width(config)))
    validation_rows = _validation_rows(validation, encoded.rows, encoder, settings, log)
    begun = Begun(
        start=weights_digest(policy),
        rows=rows_digest(encoded.rows),
        validation=rows_digest(validation_rows) if validation_rows else "",
        settings=settings,
    )
    with owning(out / BEGUN, begun, "a fine-tuning"):
        summary = summarize(Selection(kept, left_out), encoded)
        write_record(out / "summary.json", summary)
        write_trajectories(out / "trajectories.parquet", kept)
        log(
            f"{len(encoded.rows)} rows of {len(kept)} episodes"
            + (f", {len(validation_rows)} to validate" if validation_rows else "")
        )
        job = SupervisedJob(
            start=policy.resolve(),
            optimization=settings.optimization,
            compute=settings.compute,
            seed=settings.seed,
            patience=settings.patience,
            report_to=settings.report_to,
        )
        model = supervised(job, encoded.rows, out, validation=validation_rows, launcher=settings.launcher, watch=watch)
        _declare(model, kept, policy, log)
        declare_precision(model, bf16=settings.compute.bf16)
        declare_adapter(model)
        losses = [row["loss"] for row in json.loads((out / "log.json").read_text(encoding="utf-8")) if "loss" in row]
        first, last = (losses[0], losses[-1]) if losses else (None, None)
        play = play_command(model, kept)
        scores = read_scores(out) if validation_rows else ()
        if scores and best_score(scores).step == 0:
            log(
                f"warning: the start has a lower loss on the validation runs ({scores[0].loss:.3f}) than every epoch "
                f"(at best {best_epoch(scores).loss:.3f}): compare both in play; the model is that of the best epoch"
            )
        return FineTuned(model=model, data=summary, first_loss=first, last_loss=last, validation=scores, play=play)


def update_bound(settings: SupervisedSettings, rows: int, width: int) -> UpdateBound:
    """Bounds the updates of a fine-tuning on a number of *rows*; *width*: of the model's hidden states."""
    optimization = settings.optimization
    steps = optimization.epochs * math.ceil(rows / optimization.batch_rows)
    return UpdateBound("optimization", optimization, steps, width, settings.compute.lora)


def _nothing_to_learn(selection: Selection, left_out: Counter[LeftOut]) -> str:
    """The error where no row is left of *selection*."""
    reasons = ", ".join(f"{count} {reason.value}" for reason, count in left_out.items())
    hint = "; `mira run --policy oracle --planner reference` records demonstrations" * (
        LeftOut.NO_PROMPT in selection.left_out
    )
    episodes = len(selection.kept) + selection.left_out.total()
    return f"nothing to learn from in {episodes} episodes ({reasons or 'all too long'}){hint}"


def _validation_rows(
    runs: Sequence[Path],
    learned: Sequence[Row],
    encoder: RowEncoder,
    settings: SupervisedSettings,
    log: Callable[[str], None],
) -> tuple[Row, ...]:
    """The rows of *runs* for early stopping; *log* gets the number of those that are *learned*, too. Raises BadInput
    where *runs* give none."""
    if not runs:
        return ()
    selection = read_runs(runs, texts=True)
    for notice in selection.provenance.notices():
        log(notice)
    rows = encoder.encode(_chosen(selection, settings)).rows
    if not rows:
        raise BadInput("--validation: these runs hold no successes with prompts that fit the model: choose others")
    known = {(row.prompt, row.completion) for row in learned}
    if both := sum((row.prompt, row.completion) in known for row in rows):
        log(f"warning: {both} of {len(rows)} validation rows are trained on, too: their loss falls by memory")
    return rows


def _chosen(selection: Selection, settings: SupervisedSettings) -> tuple[Trajectory, ...]:
    return tuple(one for one in selection.kept if one.success or one.labelled or settings.failures)


PLAYED = 3
"""Number of tasks in `play_command`."""


def play_command(model: Path, learned: Sequence[Trajectory]) -> tuple[str, ...]:
    """The `mira run` command of *model* for the most frequent tasks of *learned*, on evaluation seeds, with a plan in
    the prompts if the training prompts had one."""
    suites = Counter(item.task.suite for item in learned)
    suite = next((name for name, _ in suites.most_common() if declared_seeds(name) is not None), "miniwob")
    counts = Counter(item.task.name for item in learned if item.task.suite == suite)
    names = [name for name, _ in counts.most_common(PLAYED)] or ["login-user"]  # of open tasks or of a benchmark
    last = min(5, training_seeds(suite).start) - 1
    words = ["mira", "run", "--suite", suite, "--tasks", ",".join(names), "--seeds", f"0-{last}"]
    planned = any(_shows_plan(trajectory.decisions[0]) for trajectory in learned)
    return (*words, *(() if planned else ("--planner", "none")), "--policy", f"local:{model}")


def _declare(model: Path, learned: Sequence[Trajectory], start: Path, log: Callable[[str], None]) -> None:
    """Declares the prompts that *model* was trained on, beside its weights."""
    declare_style(model, _style(learned), _profile(learned))
    declare_milestones(model, _milestones(learned))
    if not _gives_reasons(learned):
        declare_no_reasons(model)
    declare_learned_thoughts(model, thoughts_in(learned), start, base_of(start), log=log)


def _shows_plan(decision: Decision) -> bool:
    """Whether the prompt shows milestones, in either prompt style."""
    return any("\nNext: " in text or "\nPlan\n" in text for _, text in decision.messages)


def _milestones(learned: Sequence[Trajectory]) -> ShownMilestones:
    """Whether the first prompts of *learned*, at least one, show milestones."""
    shown = [_shows_plan(trajectory.decisions[0]) for trajectory in learned]
    return "shown" if all(shown) else "both" if any(shown) else "hidden"


def _style(kept: Sequence[Trajectory]) -> PromptStyle | None:
    """The prompt style of *kept*; None where styles differ."""
    styles: set[PromptStyle] = {_style_of(trajectory.decisions[0]) for trajectory in kept}
    return styles.pop() if len(styles) == 1 else None


def _profile(kept: Sequence[Trajectory]) -> str:
    """The profile of the prompts of *kept*, where their style has several; empty where profiles differ."""
    profiles = {profile_of_messages(trajectory.decisions[0].messages) for trajectory in kept}
    return profiles.pop() if len(profiles) == 1 else ""


def _gives_reasons(kept: Sequence[Trajectory]) -> bool:
    """Whether a completion of *kept* has a reason before its action."""
    parsed = (parsed_completion(decision.completion) for one in kept for decision in one.decisions)
    return any(one is not None and one.rationale for one in parsed)


def _style_of(decision: Decision) -> PromptStyle:
    """The prompt style of *decision*: only full prompts have a system message."""
    return "full" if any(role == "system" for role, _ in decision.messages) else "compact"


def _trainable(kept: tuple[Trajectory, ...], log: Callable[[str], None]) -> tuple[Trajectory, ...]:
    try:
        held = asyncio.run(held_out(trajectory.task for trajectory in kept))
    except (BadInput, ResetFailed) as error:
        raise BadInput(
            f"cannot check whether episodes reword evaluation tasks: {error}; use --allow-evaluation to train on them "
            "anyway"
        ) from error
    if held:
        log(f"{refusal(kept, held)}; left out (--allow-evaluation trains on them anyway)")
    return tuple(trajectory for trajectory in kept if trajectory.task not in held)
