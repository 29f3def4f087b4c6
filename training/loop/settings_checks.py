"""Checks the settings of a training run before anything is played."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agent.profiles.names import OF_STYLE
from agent.run.components import check_outcome
from agent.run.discover_traces import discover_traces
from envs.core.errors import BadInput
from envs.core.trace_store import check_chain, check_unedited, read_summary
from models.local.declarations import declaration, declared_milestones
from planners.registry import PLANNERS
from training.data.provenance import Provenance
from training.engine.checkpoints import base_of, check_adapter, is_adapter, read_config
from training.engine.language_model import hidden_width
from training.engine.preflight import check_trainable
from training.engine.trackers import check_trackers
from training.loop.credit_checks import check_credit
from training.loop.curriculum import held_out, refusal, training_seeds
from training.loop.curriculum.trainable import check_name
from training.loop.evaluation_tasks import evaluation_refs
from training.loop.phase_context import LogFunction
from training.loop.rates import check_rates
from training.loop.rollouts import check_policy, rollout_config
from training.loop.settings import LoopSettings
from training.serving.rollout_server import check_command
from training.starts import start_folder


def check_settings(settings: LoopSettings, log: LogFunction) -> None:
    """Raises BadInput for wrong *settings* that can be detected before anything is played. *log* gets a line for what
    is possible, but probably not meant."""
    evaluation_refs(settings.evaluation)
    training_seeds(settings.pool.suite)
    for name in settings.pool.names:
        check_name(settings.pool.suite, name)
    if settings.pool.split:
        raise BadInput("pool.split: a pool has training tasks only; choose among them with pool.names")
    start = start_folder(settings.start)
    if settings.start != "embedded":
        check_policy(start)
    check_trainable(start, settings.compute)
    if settings.phases:
        check_rates(settings, hidden_width(read_config(start)), log=log)
    _check_start(start, settings, log)
    check_outcome(rollout_config(start, settings.rollouts, settings.seed))
    check_trackers(settings.report_to)
    server = settings.rollouts.server
    if server is not None and not server.command and settings.phases and not settings.compute.shared_base:
        raise BadInput(
            "rollouts.server: a running server can load adapters, but no full checkpoints: set compute.shared_base, or"
            " give rollouts.server.command, which starts a server for each policy"
        )
    _check_play(settings)
    if server is not None and settings.rollouts.constrained:
        raise BadInput(
            "rollouts.constrained with rollouts.server: vLLM computes log-probabilities after the limit to valid"
            " actions, and the update needs those of the unconstrained policy: leave out one of the two"
        )
    _check_curriculum(settings)
    check_credit(settings)
    objective = settings.actor.objective
    if objective.kind != "regression" and (objective.anchor or objective.negative_weight != 1):
        raise BadInput(f"actor.objective.anchor and .negative_weight apply to a regression, not to {objective.kind!r}")
    _check_groups(settings)
    for places in (settings.demonstrations, settings.pretraining):
        if places:
            discover_traces(places)
    if server is not None:
        check_command(server)


async def check_episodes(name: str, places: Sequence[Path], log: LogFunction) -> None:
    """Raises BadInput where a success below *places*, the setting *name*, is of a held-out instance."""
    files, provenance = discover_traces(places), Provenance()
    for file in files:
        seal = check_chain(file.path)
        check_unedited(file.path, seal)
        provenance.count(seal)
    for notice in provenance.notices():
        log(f"{name}: {notice}")
    episodes = [read_summary(file.path) for file in files]
    successes = [item.header for item in episodes if item.footer is not None and item.footer.outcome == "success"]
    held = await held_out(header.task for header in successes)
    if held:
        raise BadInput(f"{name}: {refusal(successes, held)}; leave them out")


def _check_start(start: Path, settings: LoopSettings, log: LogFunction) -> None:
    """Raises BadInput where *start* does not fit the settings: its prompts or its adapter. *log* gets a warning where
    its prompts differ in the milestones alone."""
    style, profile = declaration(start, base_of(start))
    declared = profile or (style and OF_STYLE[style])
    if declared not in (None, settings.rollouts.profile):
        raise BadInput(f"start {str(start)!r} was trained on {declared} prompts: set rollouts.profile to {declared!r}")
    if settings.compute.shared_base and is_adapter(start):
        check_adapter(start, settings.compute.needed_lora)
    _warn_of_milestones(start, settings, log)


def _warn_of_milestones(start: Path, settings: LoopSettings, log: LogFunction) -> None:
    """Logs a warning where *start* declares prompts with milestones and the loop plays without, or the reverse."""
    declared = declared_milestones(start, base_of(start))
    if declared not in ("shown", "hidden"):
        return
    keys = {
        "rollouts.show_plan=true": settings.phases > 0 and not settings.rollouts.shows_milestones,
        'evaluation.planner="reference"': not settings.evaluation.shows_milestones,
    }
    if declared == "hidden":
        keys = {
            "rollouts.show_plan=false": settings.phases > 0 and settings.rollouts.shows_milestones,
            'evaluation.planner="none"': settings.evaluation.shows_milestones,
        }
    if changes := [key for key, differs in keys.items() if differs]:
        trained, played = ("with", "without") if declared == "shown" else ("without", "with")
        log(
            f"warning: start {str(start)!r} was trained on prompts {trained} milestones and plays on prompts {played}"
            f" them, where it may solve far less: set {' and '.join(changes)}"
        )


def _check_play(settings: LoopSettings) -> None:
    """Raises BadInput for roles and attempts that do not fit each other."""
    play, measured = settings.rollouts, settings.evaluation
    if play.rater == "state" and PLANNERS.split(play.planner)[1]:
        raise BadInput(
            f"rollouts.rater 'state' knows the suite's own milestones only, and rollouts.planner {play.planner!r} makes"
            " others: set rollouts.rater to 'same' or to a model"
        )
    if measured.attempts > 1 and measured.temperature == 0:
        raise BadInput(
            f"evaluation.attempts: {measured.attempts} greedy attempts are the same attempt: set evaluation.temperature"
            " above 0, or evaluation.attempts to 1"
        )


def _check_curriculum(settings: LoopSettings) -> None:
    """Raises BadInput for a curriculum that the rest of the settings does not permit."""
    if settings.curriculum.start_tasks > settings.pool.size:
        raise BadInput("curriculum.start_tasks is more than pool.size: the start cannot play more tasks than there are")
    if (settings.curriculum.similarity == "model") != bool(settings.curriculum.judge):
        raise BadInput("curriculum.similarity 'model', and only it, needs curriculum.judge: the spec of a chat model")
    if settings.curriculum.writing.model and not settings.rollouts.judge:
        raise BadInput("curriculum.writing.model needs rollouts.judge: tasks that a model writes have no checker")
    if settings.curriculum.value_band is not None and not settings.needs_value:
        raise BadInput(f"curriculum.value_band needs a value critic, and arm {settings.arm!r} has none")
    if settings.curriculum.value_band is not None and settings.value.milestones:
        raise BadInput("curriculum.value_band takes V of tasks before they are opened: set value.milestones to false")


def _check_groups(settings: LoopSettings) -> None:
    """Raises BadInput for settings that do not fit advantages within groups, or their absence."""
    clipped = settings.actor.objective.kind == "clipped"
    if clipped != settings.grouped:
        raise BadInput(
            "actor.objective.kind 'clipped' goes with advantages within groups, and only with them: set it"
            " together with the arm mgrpo"
        )
    if not settings.grouped:
        return
    play = settings.rollouts
    if play.attempts < 2:
        raise BadInput(f"rollouts.attempts: a group has at least 2 attempts at a task, not {play.attempts}")
    if play.temperature != 1 or play.constrained:
        raise BadInput(
            "rollouts.temperature must be 1 and rollouts.constrained false: log-probabilities are recorded for that"
            " distribution, and the ratio of an update would not begin at 1"
        )
    if settings.replay.per_new or settings.demonstrations:
        raise BadInput(f"arm {settings.arm!r} learns from its own episodes: set replay.per_new to 0, no demonstrations")
