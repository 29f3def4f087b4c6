"""Refuses combinations of settings of critics and credit that would have no effect, before anything is played."""

from __future__ import annotations

from envs.core.errors import BadInput
from training.loop.arms import ARMS
from training.loop.settings import LoopSettings


def check_credit(settings: LoopSettings) -> None:
    """Raises BadInput in one line that names the keys."""
    _check_critics(settings)
    _check_shaping(settings)
    _check_milestones(settings)
    _check_added(settings)
    if settings.grouped:
        _check_groups(settings)
    actor, targets = settings.actor, settings.targets
    if actor.failures_from != "start" and actor.keep == "successes":
        raise BadInput(
            f"actor.failures_from {actor.failures_from!r} has no effect: actor.keep 'successes' has no failures"
        )
    if not targets.group_weight:
        return
    if settings.rollouts.attempts < 2:
        raise BadInput("targets.group_weight needs several attempts at an instance: set rollouts.attempts to 2 or more")
    if targets.advantage == "webrl_code":
        raise BadInput(
            "targets.group_weight is a baseline of Eq. 10, and WebRL's code compares values of two states only"
        )
    if not settings.needs_value:
        raise BadInput(f"targets.group_weight changes advantages, and arm {settings.arm!r} uses none: set it to 0")


def _check_groups(settings: LoopSettings) -> None:
    """Raises BadInput for settings of the actor that an update within groups does not read. Those of critics are no
    error: one file serves all arms, and arms without a critic leave them alone."""
    default, given = LoopSettings().actor, settings.actor
    names = [
        f"actor.{name}"
        for name in ("keep", "failures_from", "normalizer", "max_advantage")
        if getattr(given, name) != getattr(default, name)
    ]
    if names:
        raise BadInput(
            f"{', '.join(names)}: no effect, because arm {settings.arm!r} has no critic and takes the advantage of a"
            " whole episode; leave them out"
        )


def _check_critics(settings: LoopSettings) -> None:
    if settings.potential.folds != 1:
        raise BadInput("potential.folds: only the value critic is cross-fitted, see value.folds")
    if settings.actor.keep == "digirl" and not settings.needs_value:
        raise BadInput(f"actor.keep 'digirl' needs a value critic, and arm {settings.arm!r} has none")
    if settings.pretraining and not (settings.needs_potential and settings.potential.keep):
        raise BadInput("pretraining needs a potential critic that is kept: targets.alpha above 0 and potential.keep")


def _check_shaping(settings: LoopSettings) -> None:
    """Raises BadInput for settings of shaping that α or γ switches off, unless the arm itself sets α or γ: one file
    serves all arms."""
    targets, fixed = settings.targets, ARMS[settings.arm].changes.get("targets", {})
    given = {
        "targets.shape_failures": targets.shape_failures,
        "targets.discounted_shaping": targets.discounted_shaping,
        "potential.milestones": settings.potential.milestones,
    }
    names = [name for name, on in given.items() if on]
    if names and targets.alpha == 0 and "alpha" not in fixed:
        raise BadInput(f"{', '.join(names)}: no effect, because targets.alpha is 0 and nothing is shaped; leave it out")
    if targets.discounted_shaping and targets.gamma == 1 and "gamma" not in fixed:
        raise BadInput("targets.discounted_shaping: no effect, because targets.gamma is 1; leave it out")


def _check_milestones(settings: LoopSettings) -> None:
    """Raises BadInput for settings that need milestones where the rollouts have none."""
    if settings.rollouts.planner != "none":
        return
    if settings.needs_potential and not (settings.pretraining or settings.demonstrations):
        raise BadInput(
            "rollouts.planner 'none' makes no milestones, from which the potential critic learns: choose a planner, set"
            " targets.alpha to 0, or name runs with milestones in pretraining"
        )
    given = {
        "value.milestones": settings.needs_value and settings.value.milestones,
        "actor.failures_from": settings.actor.failures_from == "last_milestone",
    }
    if names := [name for name, on in given.items() if on]:
        raise BadInput(
            f"{', '.join(names)}: no effect, because rollouts.planner 'none' makes no milestones; leave it out"
        )


def _check_added(settings: LoopSettings) -> None:
    """Raises BadInput for a reward of an installed package that the arm does not use."""
    if settings.targets.added is not None and (settings.grouped or not settings.needs_value):
        instead = "set groups.reward.added instead" if settings.grouped else "leave it out"
        raise BadInput(
            f"targets.added: no effect, because arm {settings.arm!r} computes no advantages of steps; {instead}"
        )
    if settings.groups.reward.added is not None and not settings.grouped:
        raise BadInput(
            f"groups.reward.added: no effect, because arm {settings.arm!r} has no advantages within groups; set"
            " targets.added instead"
        )
