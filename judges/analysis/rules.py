"""Assigns a failure its category by prioritised rules, and its key step (MiRA paper, §4.2 and §4.3).

Pure functions of records, without a model. The checker (or the judge) decides that an episode *failed*, not this
module. The first rule that holds decides:

    A  stop_at_wrong_page      the agent ended the episode, and the check failed
    B  stuck_midway            it is in a loop that it did not leave, see :mod:`judges.analysis.loops`
    C  no_reasonable_attempt   the right page was reached and no exit tried; a very early exit; a nonsensical first
                               click without progress after it; no action on a page
    D  other                   the environment or a model broke; a limit cut progress short; all other failures

Choices that the paper leaves open: a Stop within the first `early_exit_steps` steps is C, not A ("failed very early").
If the environment ends the episode on an action (MiniWoB++ does on a submit), that action is the exit; if it is the
first action, the category is C too. An error or a broken environment is D before every other rule.

Key step, always an `Intent.step` of the trace:

    A  the last action before the Stop; or the divergence from the nearest reference if that came earlier
    B  the first step of the loop
    C  the exit; the first click; the step at which it should have stopped; the first step if nothing was attempted
    D  the divergence; else the first step after the last gained milestone; if something broke, or a limit cut
       progress short, the last step
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from typing import Final

from pydantic import Field

from envs.core.actions import Click, ClickAt, Press, Stop
from envs.core.trace import LIMITS, EndedBy, Failure, Loop, Outcome
from judges.analysis.action_words import in_words
from judges.analysis.history import OBSERVING, History, PlacedAction, Step, carried_out, history_of
from judges.analysis.loops import LoopRules, advance, find_loop, gains_of
from judges.analysis.pages import Pages
from judges.analysis.records import Comparison


class FailureRules(LoopRules):
    """Thresholds of the rules, in steps."""

    early_exit_steps: int = Field(default=2, ge=0)
    """A Stop at or before this step is rule C; with 0 every exit is rule A."""


@dataclass(frozen=True, slots=True)
class Case:
    """Input of the rules. The first three fields are required; the others refine the result."""

    steps: Sequence[Step]
    ended_by: EndedBy
    outcome: Outcome
    instruction: str = ""
    final: Sequence[bool] = ()
    """Milestones achieved at the end, after the last action."""
    error: str | None = None
    """The error, as recorded in the trace."""
    nearest: Comparison | None = None
    """Comparison with the nearest reference success; None without one."""
    usual: Sequence[Sequence[PlacedAction]] = ()
    """Steps of the reference successes."""
    pages: Pages | None = None
    """Page texts; without them volatile numbers are not ignored."""
    history: History | None = None
    """The history of the steps; None builds it from the steps and `pages`."""


SELF_ENDED: Final = ("stop", "environment")
_NAMED: Final = 3
"""Number of equal actions that a reason names."""
_RELATIVE: Final = (Click, ClickAt, Press)
"""Actions that may make progress when they are repeated."""
_PROGRESS: Final = "while progress was being made"
_WORD: Final = re.compile(r"\w+")
_COMMON: Final = frozenset(
    (
        "a",
        "an",
        "and",
        "at",
        "by",
        "click",
        "for",
        "from",
        "in",
        "is",
        "it",
        "of",
        "on",
        "or",
        "page",
        "press",
        "the",
        "to",
    )
)


def explain(case: Case, rules: FailureRules | None = None) -> Failure:
    """The category, key step and loop of an episode that failed, broke, or was cut off without a verdict.

    Raises ValueError for any other: a success, or an episode without a verdict that ended itself.
    """
    if not needs_reason(case.outcome, case.ended_by):
        raise ValueError(f"an episode with outcome {case.outcome!r} has no failure to analyze")
    rules = rules or FailureRules()
    history = case.history or history_of(settled(case.steps), case.pages)
    case = replace(case, steps=history.steps, history=history)
    loop = find_loop(history, rules, case.final, case.usual)
    if case.outcome == "broken":
        failed = f"the environment or a model failed{f' ({case.error})' if case.error else ''}"
        return _failure("other", _last(case), f"{failed}, which says nothing about the policy", loop)
    if not case.steps:
        return _no_step(case.ended_by)
    return (
        _exited(case, rules, loop)
        or _stuck(history, loop)
        or _no_attempt(case, rules, loop)
        or _cut_short(case, rules)
        or _other(case, loop)
    )


def needs_reason(outcome: Outcome, ended_by: EndedBy) -> bool:
    """Whether the episode failed or broke, or was cut off without a verdict and so was not finished."""
    return outcome in ("failure", "broken") or (outcome == "unjudged" and ended_by not in SELF_ENDED)


def settled(steps: Sequence[Step]) -> Sequence[Step]:
    """*steps* without intents that a resumed run repeated: each number once, the last one."""
    again = {i for i, (one, following) in enumerate(pairwise(steps)) if one[0].step == following[0].step}
    return [one for i, one in enumerate(steps) if i not in again] if again else steps


def _no_step(ended_by: EndedBy) -> Failure:
    if ended_by in LIMITS or ended_by in SELF_ENDED:
        return Failure(category="no_reasonable_attempt", key_step=None, reason="no step was taken")
    return Failure(category="other", key_step=None, reason=f"ended by {ended_by} before the first step")


def _exited(case: Case, rules: FailureRules, loop: Loop | None) -> Failure | None:
    """Rule A, and exits of rule C."""
    if case.ended_by not in SELF_ENDED:
        return None
    steps = case.steps
    claim = steps[-1][0].step
    stopped = isinstance(steps[-1][0].action, Stop)
    if stopped and len(steps) <= rules.early_exit_steps:
        return _failure("no_reasonable_attempt", claim, f"the agent ended the episode too early, at step {claim}", loop)
    if not stopped and len(steps) == 1:
        return _failure(
            "no_reasonable_attempt", claim, "the first action ended the episode, and the task was not done", loop
        )
    subject = "the agent ended the episode" if stopped else "the agent's last action ended the episode"
    reason = f"{subject} at step {claim}, but the final check failed"
    before = steps[-2][0].step if stopped and len(steps) > 1 else claim
    divergence = case.nearest.divergence if case.nearest else None
    if divergence is not None and divergence.step < before:
        return _failure("stop_at_wrong_page", divergence.step, f"{reason}; {divergence.reason}", loop)
    return _failure("stop_at_wrong_page", before, reason, loop)


def _stuck(history: History, loop: Loop | None) -> Failure | None:
    if loop is None:
        return None
    repeated = _repeated(history, loop)
    among = f" until step {loop.last}, with other steps in between," if loop.last is not None else ""
    reason = f"from step {loop.entry} on,{among} {repeated} was repeated {loop.repetitions} times without progress"
    return _failure("stuck_midway", loop.entry, reason, loop)


def _repeated(history: History, loop: Loop) -> str:
    """The actions of a round in words; for one repeated action, all its variants."""
    first = next(i for i, (intent, _) in enumerate(history.steps) if intent.step == loop.entry)
    if loop.period > 1:
        actions = [in_words(intent) for intent, _ in history.steps[first : first + loop.period]]
        return f"a round of {loop.period} steps ({'; '.join(actions)})"
    last = loop.last or loop.entry + loop.repetitions - 1
    stretch = [i for i in range(first, len(history.steps)) if history.steps[i][0].step <= last]
    busiest = max(stretch, key=lambda i: sum(history.acts[i] == history.acts[j] for j in stretch))
    names = [*dict.fromkeys(in_words(history.steps[i][0]) for i in stretch if history.same_as(i, busiest))]
    others = ["others"] if len(names) > _NAMED else []
    return " or ".join(names[:_NAMED] + others)


def _no_attempt(case: Case, rules: FailureRules, loop: Loop | None) -> Failure | None:
    """Rule C for episodes that ran until a limit."""
    if case.ended_by not in LIMITS:
        return None
    if (done := _done_at(case)) is not None:
        reason = f"everything was achieved by step {done}, but the agent never stopped"
        return _failure("no_reasonable_attempt", done, reason, loop)
    first = next((s for s in case.steps if not isinstance(s[0].action, OBSERVING)), None)
    if first is None or not any(commit is not None and carried_out((intent, commit)) for intent, commit in case.steps):
        reason = "no action on a page was carried out"
        return _failure("no_reasonable_attempt", case.steps[0][0].step, reason, loop)
    if _nonsensical(case, first) and _advance(case, rules) is None:
        step, name = first[0].step, first[0].target.name if first[0].target else ""
        reason = f"the first click, on {name!r} at step {step}, is unrelated to the task and led to no progress"
        return _failure("no_reasonable_attempt", step, reason, loop)
    return None


def _cut_short(case: Case, rules: FailureRules) -> Failure | None:
    """Rule D if a limit ended the episode during progress: no other failure is known."""
    if case.ended_by not in LIMITS:
        return None
    progress = _on_reference_path(case) or _advance(case, rules) or _last_gain(case)
    if progress is None:
        return None
    limit = case.ended_by.removeprefix("max_")
    reason = f"the limit of {limit} ended it after {len(case.steps)} steps, {progress}"
    return _failure("other", _last(case), reason, None).model_copy(update={"cut_short": True})


def _on_reference_path(case: Case) -> str | None:
    nearest = case.nearest
    if nearest is None or nearest.divergence is not None:
        return None
    return f"{_PROGRESS}: it followed {nearest.reference}, which had more steps"


def _advance(case: Case, rules: FailureRules) -> str | None:
    """Progress by equal last actions that each led to a new page; typing the same again is excluded.

    It is no progress if the episode left the reference before them, or by them without a milestone gained since.
    """
    assert case.history is not None
    run = advance(case.history, rules)
    if not run or not isinstance(case.steps[run[0]][0].action, _RELATIVE):
        return None
    first = case.steps[run[0]][0]
    gained = any(gain > run[0] for gain in gains_of(case.steps, case.final))
    divergence = case.nearest.divergence if case.nearest is not None else None
    if divergence is not None and (divergence.step < first.step or not gained):
        return None
    seen = f"{in_words(first)}, {len(run)} times from step {first.step} on, led to a new page each time"
    return f"{_PROGRESS}: {seen}, and to a milestone" if gained else f"apparently {_PROGRESS}: {seen}"


def _last_gain(case: Case) -> str | None:
    """Progress by a milestone that the last action achieved; only without a reference."""
    if case.nearest is not None or len(case.steps) not in gains_of(case.steps, case.final):
        return None
    return f"{_PROGRESS}: the last action reached a milestone"


def _other(case: Case, loop: Loop | None) -> Failure:
    ended = f"ended by {case.ended_by} after {len(case.steps)} steps"
    divergence = case.nearest.divergence if case.nearest else None
    if divergence is not None:
        return _failure("other", divergence.step, f"{ended}; {divergence.reason}", loop)
    counts = [sum(intent.rating.z) for intent, _ in case.steps]
    key = case.steps[counts.index(max(counts))][0].step
    gained = (
        f"no milestone was gained from step {key} on"
        if any(i.rating.z for i, _ in case.steps)
        else ("there were no milestones and no reference to tell where it went wrong")
    )
    return _failure("other", key, f"{ended}; {gained}", loop)


def _done_at(case: Case) -> int | None:
    """The first step at which only a Stop was left.

    From the ratings of milestones, else from the reference; if only the end is known, the first of the final steps on
    the last page.
    """
    rated = next((intent.step for intent, _ in case.steps if intent.rating.z and all(intent.rating.z)), None)
    if rated is not None:
        return rated
    if case.nearest is not None and case.nearest.done_at is not None:
        return case.nearest.done_at
    return _first_on_the_last_page(case) if case.final and all(case.final) else None


def _first_on_the_last_page(case: Case) -> int:
    assert case.history is not None
    states = case.history.states
    on_it = list(takewhile(lambda i: states[i] == states[-1], reversed(range(len(states)))))
    return case.steps[on_it[-1]][0].step


def _nonsensical(case: Case, first: Step) -> bool:
    """Whether the first click is on an element that neither task nor references name, and led to no progress.

    "No progress" needs evidence: milestones of which none was gained, or references of which no step was done.
    """
    intent = first[0]
    if not isinstance(intent.action, Click) or intent.target is None:
        return False
    if _words(intent.target.name) & _words(case.instruction):
        return False
    counts = [sum(one.rating.z) for one, _ in case.steps if one.rating.z and one.step >= intent.step]
    counts += [sum(case.final)] if counts and len(case.final) == len(intent.rating.z) else []
    if case.nearest is not None:
        # The page after the click may fulfil a milestone by chance; later gains are real.
        gained = bool(counts) and max(counts) > counts[min(1, len(counts) - 1)]
        return not gained and not case.nearest.first_known and case.nearest.followed == 0
    return bool(counts) and max(counts) == counts[0]


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold())) - _COMMON


def _failure(category: str, key: int | None, reason: str, loop: Loop | None) -> Failure:
    return Failure.model_validate({"category": category, "key_step": key, "reason": reason, "loop": loop})


def _last(case: Case) -> int | None:
    return case.steps[-1][0].step if case.steps else None
