"""Why an episode failed: the prioritised rules A to D of SPEC §1.4, and the step where it began.

Pure: reads trace records, asks no model, guesses nothing. That it *failed* is the checker's word (or the judge's),
never this module's.

    A  stop_at_wrong_page      the agent ended the episode itself, and the check failed
    B  stuck_midway            the last actions are identical, or a short cycle of (action, page) repeats
    C  no_reasonable_attempt   a very early exit, a first action that ended it all, nothing ever done to the page,
                               or all milestones reached and no exit tried
    D  other                   the world or a model broke, and whatever no rule above covers

A comes before B, B before C; one exception: an exit within the first `early_exit_steps` steps is C, not A ("failed
very early"; SPEC §1.4 names the conflict). A world that ends the episode on an action (MiniWoB does on a submit) counts
as an exit by that action.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from pydantic import Field

from envs.actions import Stop
from envs.record import Record
from envs.trace import Commit, EndedBy, Failure, Intent, Outcome

Step = tuple[Intent, Commit | None]
"""What was decided and what came of it; None where the process died in between."""


class FailureRules(Record):
    """Thresholds of the rules, in steps."""

    identical_actions: int = Field(default=3, ge=2)
    """N of rule B: identical last actions."""
    max_period: int = Field(default=4, ge=1)
    """Longest cycle of (action, page) that counts for rule B."""
    cycle_repeats: int = Field(default=2, ge=2)
    """M of rule B: times that a cycle of two or more steps is seen in a row. One action on one page needs
    `identical_actions`."""
    early_exit_steps: int = Field(default=2, ge=0)
    """An exit at or before this step is rule C; 0 gives every exit to rule A."""


class Cycle(NamedTuple):
    """A stretch of steps that repeats with `period`. `start` is the 0-based index of its first step."""

    start: int
    period: int
    length: int


_SELF_ENDED: Final = ("stop", "world")
_LIMITS: Final = ("max_steps", "max_seconds", "max_tokens", "max_cost")


def analyze(
    steps: Sequence[Step], *, ended_by: EndedBy, outcome: Outcome, rules: FailureRules | None = None
) -> Failure:
    """The category and the 1-based key step of a failed or broken episode.

    Raises ValueError for an episode that did not fail: success needs no reason, and an unjudged one is not known to
    have failed.
    """
    if outcome not in ("failure", "broken"):
        raise ValueError(f"an episode with outcome {outcome!r} has no failure to analyze")
    rules = rules or FailureRules()
    if outcome == "broken" or ended_by == "error":
        return Failure(category="other", key_step=_last(steps), reason="the world or a model broke, not the policy")
    if not steps:
        return _no_step(ended_by)
    for rule in (_wrong_stop, _stuck, _no_attempt):
        if (failure := rule(steps, ended_by, rules)) is not None:
            return failure
    return _other(steps, ended_by)


def find_cycle(keys: Sequence[object], *, period: int, repeats: int) -> Cycle | None:
    """The first stretch of *keys* that repeats with *period* at least *repeats* times in a row, at full length."""
    start = 0
    while start + period * repeats <= len(keys):
        end = start + period
        while end < len(keys) and keys[end] == keys[end - period]:
            end += 1
        if end - start >= period * repeats:
            return Cycle(start, period, end - start)
        start = max(start + 1, end - period + 1)
    return None


def _no_step(ended_by: EndedBy) -> Failure:
    if ended_by in _LIMITS or ended_by in _SELF_ENDED:
        return Failure(category="no_reasonable_attempt", key_step=None, reason="no step was taken")
    return Failure(category="other", key_step=None, reason=f"ended by {ended_by} before the first step")


def _wrong_stop(steps: Sequence[Step], ended_by: EndedBy, rules: FailureRules) -> Failure | None:
    if ended_by not in _SELF_ENDED:
        return None
    claim = len(steps)
    stopped = isinstance(steps[-1][0].action, Stop)
    if stopped and claim <= rules.early_exit_steps:
        return Failure(
            category="no_reasonable_attempt",
            key_step=_number(steps, claim),
            reason=f"the agent ended the episode at step {claim}, hardly begun",
        )
    if not stopped and claim == 1:
        return Failure(
            category="no_reasonable_attempt",
            key_step=_number(steps, 1),
            reason="the very first action ended the episode with the task not done",
        )
    key = claim - 1 if stopped and claim > 1 else claim
    what = "the agent ended the episode" if stopped else "the agent's last action ended the episode"
    return Failure(
        category="stop_at_wrong_page",
        key_step=_number(steps, key),
        reason=f"{what} at step {_number(steps, claim)}, but the final check failed",
    )


def _stuck(steps: Sequence[Step], ended_by: EndedBy, rules: FailureRules) -> Failure | None:
    seen = [(_action_key(intent), intent.seen.digest) for intent, _ in steps]
    for period in range(1, rules.max_period + 1):
        repeats = rules.identical_actions if period == 1 else rules.cycle_repeats
        if (cycle := find_cycle(seen, period=period, repeats=repeats)) is not None:
            entry = _number(steps, cycle.start + 1)
            return Failure(
                category="stuck_midway",
                key_step=entry,
                reason=f"from step {entry} on, {_steps(period)} repeated on unchanged pages for {cycle.length} steps",
            )
    actions = [action for action, _ in seen]
    run = _tail_run(actions)
    if run >= rules.identical_actions:
        entry = _number(steps, len(steps) - run + 1)
        return Failure(category="stuck_midway", key_step=entry, reason=f"the last {run} actions are identical")
    return None


def _no_attempt(steps: Sequence[Step], ended_by: EndedBy, rules: FailureRules) -> Failure | None:
    if ended_by not in _LIMITS:
        return None
    complete = next((i for i, (intent, _) in enumerate(steps, 1) if intent.rating.z and all(intent.rating.z)), None)
    if complete is not None:
        return Failure(
            category="no_reasonable_attempt",
            key_step=_number(steps, complete),
            reason=f"all milestones were reached by step {_number(steps, complete)}, but the agent never stopped",
        )
    if not any(commit is not None and commit.result.ok for _, commit in steps):
        return Failure(
            category="no_reasonable_attempt", key_step=_number(steps, 1), reason="no action was ever carried out"
        )
    return None


def _other(steps: Sequence[Step], ended_by: EndedBy) -> Failure:
    """Without a reference to compare with, the failure began after the last milestone that was gained."""
    achieved = [sum(intent.rating.z) for intent, _ in steps]
    key = next(i for i, count in enumerate(achieved, 1) if count == max(achieved))
    return Failure(
        category="other",
        key_step=_number(steps, key),
        reason=f"ended by {ended_by} after {len(steps)} steps; no milestone was gained from step {key} on",
    )


def _action_key(intent: Intent) -> object:
    """Equal for equal actions on the same element: by the durable key where there is one, for numbers change."""
    action = intent.action.model_dump_json(exclude={"ref"})
    return action, intent.target.model_copy(update={"ref": 0}) if intent.target else getattr(intent.action, "ref", None)


def _tail_run(keys: Sequence[object]) -> int:
    run = 1
    while run < len(keys) and keys[-run - 1] == keys[-1]:
        run += 1
    return run


def _steps(period: int) -> str:
    return "one action" if period == 1 else f"a cycle of {period} steps"


def _number(steps: Sequence[Step], position: int) -> int:
    """The step's own number, for the 1-based *position* in the list."""
    return steps[position - 1][0].step


def _last(steps: Sequence[Step]) -> int | None:
    return steps[-1][0].step if steps else None
