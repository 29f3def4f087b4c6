"""Settings with which a resume may continue a run: its models, their server, how long a call may take and how much
a model thinks, and the limits that end an episode.

All other settings stay as recorded, those of the boundary (allowed origins, approval, secrets) among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agent.config import COVERED_KEYS, ROLES, Limits, RunConfig, check_retry_window, overridden, parse_config
from agent.run.limits import RAISED_BY, limit_reached
from agent.run.prompt_profiles import with_policy
from agent.run.run_store import Manifest, RunFolder
from agent.run.setting_scopes import RUN_FIELDS, Scope
from envs.core.errors import BadInput
from envs.core.plain_values import flattened
from envs.core.trace import Footer
from envs.suites.browsergym.names import keeps_effects

_LIMITS: Final[Mapping[str, str]] = dict(RAISED_BY.values())
"""Options by field of :class:`agent.config.Limits`, of the limits that end an episode."""
CHANGEABLE: Final = (
    *(name for name, field in RUN_FIELDS.items() if field.scope is Scope.MODEL),
    *COVERED_KEYS,
    *(f"{role}_{key}" for key in ("thinking", "deadline_s", "base_url") for role in ROLES),
    "retry_window_s",
    *(f"limits.{name}" for name in _LIMITS),
)
"""Keys of :class:`agent.config.RunConfig` that a resume may change."""


def with_changes(manifest: Manifest, changes: Mapping[str, Any]) -> Manifest:
    """Returns *manifest* with *changes*, plain values by key. What the prompt profile of the old policy sets is set by
    that of a new one. Raises BadInput for a key that a resume does not change, and for values that `mira run`
    refuses."""
    for name in flattened(changes):
        if name not in CHANGEABLE:
            raise BadInput(f"a resume cannot change {name!r}: it can change {', '.join(CHANGEABLE)}")
    before, policy = manifest.config, changes.get("policy")
    config = parse_config(overridden(before.resolved(), changes), "resume")
    if "retry_window_s" in changes:
        check_retry_window(config)
    if policy is not None and policy != before.policy:
        config = with_policy(config, before.policy, manifest.suite)
    return manifest.model_copy(update={"config": config}) if config.resolved() != before.resolved() else manifest


def check_continued(folder: RunFolder, manifest: Manifest) -> None:
    """Raises BadInput if an episode that a limit ended cannot be continued: its environment cannot be restored."""
    settled = folder.settled(manifest)
    for job, (_, footer) in folder.ended(manifest.jobs()).items():
        past_limit = job not in settled and not footer.resumable
        if past_limit and footer.totals.steps and keeps_effects(manifest.suite, job.task.name):
            raise BadInput(
                f"{job.episode_id} ended by {footer.ended_by} and cannot continue: the server of {manifest.suite} "
                "keeps the effects of actions, so they are not sent again: run the task again with larger limits"
            )


def nothing_left(folder: RunFolder, manifest: Manifest) -> BadInput:
    """The error for a finished run that was to continue with other settings."""
    spent: dict[str, float] = {}
    for _, footer in folder.ended(manifest.jobs()).values():
        if footer.ended_by in RAISED_BY and footer.outcome != "success":
            name, used = _blocking(manifest.config.limits, footer)
            spent[name] = max(used, spent.get(name, 0.0))
    raised = "; those that a limit ended continue with " if spent else ""
    options = ", ".join(f"{_LIMITS[name]} above {used:.10g}" for name, used in spent.items())
    return BadInput(f"{str(folder.path)!r} is finished: no episode continues with these settings{raised}{options}")


def _blocking(limits: Limits, footer: Footer) -> tuple[str, float]:
    """The limit that keeps an episode from continuing, and how much of it the episode used."""
    name, _ = RAISED_BY[limit_reached(limits, footer.totals) or footer.ended_by]
    totals = footer.totals
    used = {
        "max_steps": totals.steps,
        "max_seconds": totals.seconds,
        "max_tokens": totals.tokens,
        "max_cost_usd": totals.cost_usd,
    }
    return name, max(used[name], getattr(limits, name))


def differing(old: Mapping[str, Any], new: RunConfig) -> dict[str, tuple[Any, Any]]:
    """Values that differ between a stored configuration, maybe of an older version, and *new*, by dotted name."""
    before, after = flattened(old), flattened(new.resolved())
    return {name: (before[name], value) for name, value in after.items() if before.get(name, value) != value}
