"""Supervised fine-tuning from traces: the start that every arm shares."""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from agent.episode.policy import MAX_ANSWER_TOKENS
from envs.core.errors import BadInput, ResetFailed
from envs.core.plain_values import Layer, checked, merged
from envs.core.record import Record
from models.embedded import embedded_dir
from models.local.loading import declared_context
from models.local.prompt_style import PromptStyle, declare_style
from models.prompting.prompt_tokens import prompt_room
from training.data.cache import rows_digest, write_trajectories
from training.data.rows import RowEncoder
from training.data.table import DataSummary, summarize
from training.data.trajectories import Decision, LeftOut, Selection, Trajectory
from training.engine.checkpoints import load_policy, weights_digest
from training.engine.language_model import hidden_width
from training.engine.learning_rate_check import UpdateBound, check_rate
from training.engine.progress import Watcher, unwatched
from training.engine.settings import Compute, Optimization
from training.engine.sft import SupervisedJob, supervised
from training.loop.curriculum import held_out, refusal
from training.loop.curriculum.trainable import POOLED
from training.loop.data import read_runs
from training.loop.parts import load_or_compute, write_record
from training.loop.settings import SET, values_of


class SupervisedSettings(Record):
    """What `mira train sft` reads."""

    optimization: Optimization = Optimization(
        learning_rate=1e-3, schedule="cosine", warmup=0.1, batch_rows=16, epochs=3
    )
    """The paper's rate is 1e-5 for 8 to 12 billion parameters; this one is for a million."""
    compute: Compute = Compute()
    seed: int = 0
    failures: bool = False
    """Learn from failed episodes, too."""
    launcher: tuple[str, ...] = ()
    """Runs it on many processes, e.g. `["accelerate", "launch", "--num_processes", "8", "-m"]`; empty: in this one."""

    @classmethod
    def load(cls, path: Path | None, changes: Sequence[str]) -> SupervisedSettings:
        defaults = cls().model_dump(mode="json")
        over = Layer(SET, values_of(None, changes))
        return checked(cls, merged(defaults, values_of(path, changes)), str(path or SET), over)


BEGUN = "begun.json"


class Begun(Record):
    """What a fine-tuning is of: only the same one goes on in its folder."""

    start: str
    """Digest of the start's weights."""
    rows: str
    """Digest of what it learns from."""
    settings: SupervisedSettings


class FineTuned(Record):
    """What came of it."""

    model: Path
    data: DataSummary
    first_loss: float | None
    """Mean over action tokens, in nats; None where nothing was trained."""
    last_loss: float | None
    play: tuple[str, ...]
    """The command that plays the model on tasks like those it has learned from."""


def fine_tune(
    runs: Sequence[Path],
    start: str,
    out: Path,
    settings: SupervisedSettings,
    tell: Callable[[str], None],
    *,
    allow_evaluation: bool = False,
    watch: Watcher = unwatched,
) -> FineTuned:
    """Learns from the episodes of *runs*; a killed run continues with the same command.

    Episodes of instances on which policies are measured are left out, and counted, unless *allow_evaluation*. Raises
    TraceError for a trace that was edited after it was written, and
    BadInput where nothing can be learned from, where the rate would teach nothing, and where *out* holds anything else.
    """
    if not (out / BEGUN).exists() and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadInput(f"{str(out)!r} is not an empty folder and holds no fine-tuning")
    if settings.compute.lean:
        raise BadInput("compute.lean is for the critics and the actor of a phase; fine-tuning takes compute.lora")
    policy = embedded_dir() if start == "embedded" else Path(start)
    model, tokenizer = load_policy(policy)
    room = prompt_room(declared_context(model, tokenizer), MAX_ANSWER_TOKENS)
    width = hidden_width(model.config)
    del model
    selection = read_runs(runs, texts=True)
    for notice in selection.provenance.notices():
        tell(notice)
    kept = tuple(one for one in selection.kept if one.success or settings.failures)
    failed = len(selection.kept) - len(kept)
    trainable = kept if allow_evaluation else _trainable(kept, tell)
    held = len(kept) - len(trainable)
    left_out = selection.left_out + Counter({LeftOut.FAILED: failed, LeftOut.HELD_OUT: held})
    kept = trainable
    encoded = RowEncoder(tokenizer, settings.compute.max_tokens, room).encode(kept)
    if not encoded.rows:
        reasons = ", ".join(f"{count} {reason.value}" for reason, count in left_out.items())
        hint = "; `mira run --policy oracle --planner reference` leaves demonstrations" * (
            LeftOut.NO_PROMPT in selection.left_out
        )
        raise BadInput(
            f"nothing to learn from in {len(selection.kept) + selection.left_out.total()} episodes "
            f"({reasons or 'all too long'}){hint}"
        )
    how = settings.optimization
    steps = how.epochs * math.ceil(len(encoded.rows) / how.batch_rows)
    check_rate(UpdateBound("optimization", how, steps, width, settings.compute.lora))
    begun = Begun(start=weights_digest(policy), rows=rows_digest(encoded.rows), settings=settings)
    if load_or_compute(out / BEGUN, Begun, lambda: begun) != begun:
        raise BadInput(f"{str(out)!r} holds a fine-tuning of another start, other rows or other settings")
    summary = summarize(Selection(kept, left_out), encoded)
    write_record(out / "summary.json", summary)
    write_trajectories(out / "trajectories.parquet", kept)
    tell(f"{len(encoded.rows)} rows of {len(kept)} episodes")
    job = SupervisedJob(
        start=policy.resolve(), optimization=settings.optimization, compute=settings.compute, seed=settings.seed
    )
    made = supervised(job, encoded.rows, out, launcher=settings.launcher, watch=watch)
    declare_style(made, _style(kept))
    losses = [row["loss"] for row in json.loads((out / "log.json").read_text(encoding="utf-8")) if "loss" in row]
    first, last = (losses[0], losses[-1]) if losses else (None, None)
    play = play_command(made, kept)
    return FineTuned(model=made, data=summary, first_loss=first, last_loss=last, play=play)


PLAYED = 3
"""Tasks that `play_command` names."""


def play_command(model: Path, learned: Sequence[Trajectory]) -> tuple[str, ...]:
    """`mira run` of *model* on the tasks that most of *learned* are of, on seeds for evaluation, with a plan in the
    prompts where theirs had one."""
    counts = Counter((one.task.suite, one.task.name) for one in learned if one.task.suite in POOLED)
    suite = max(POOLED, key=lambda name: sum(count for (of, _), count in counts.items() if of == name))
    names = [name for (of, name), _ in counts.most_common() if of == suite][:PLAYED]
    if not names:  # of open tasks or of a benchmark
        suite, names = "miniwob", ["login-user"]
    words = ["mira", "run", "--suite", suite, "--tasks", ",".join(names), "--seeds", "0-4"]
    planned = any(_shows_plan(one.decisions[0]) for one in learned)
    return (*words, *(() if planned else ("--planner", "none")), "--policy", f"local:{model}")


def _shows_plan(decision: Decision) -> bool:
    """The lines that prompts of either style tell milestones by."""
    return any("\nNext: " in text or "\n\nPlan\n" in text for _, text in decision.messages)


def _style(kept: Sequence[Trajectory]) -> PromptStyle | None:
    """Of the prompts in *kept*; None where they differ."""
    found: set[PromptStyle] = {_style_of(one.decisions[0]) for one in kept}
    return found.pop() if len(found) == 1 else None


def _style_of(decision: Decision) -> PromptStyle:
    """Only full prompts have a system message."""
    return "full" if any(role == "system" for role, _ in decision.messages) else "compact"


def _trainable(kept: tuple[Trajectory, ...], tell: Callable[[str], None]) -> tuple[Trajectory, ...]:
    try:
        held = asyncio.run(held_out(one.task for one in kept))
    except (BadInput, ResetFailed) as error:
        raise BadInput(
            f"whether episodes reword evaluation tasks cannot be seen: {error}; learn from them all the same with "
            "--allow-evaluation"
        ) from error
    if held:
        tell(f"{refusal(kept, held)}; left out (--allow-evaluation learns from them all the same)")
    return tuple(one for one in kept if one.task not in held)
