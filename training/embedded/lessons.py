"""Extracts lessons for the embedded model from recorded runs: the action of each step, the plan of each task, and
whether a milestone is reached. One model, three prompts.

Actions come from an oracle's successes alone, and without the detours of `oracle:detours`: coming back is learned,
going astray is not. Plans and ratings come from every run that a reference planner and the state checkers were beside,
a model's own mistakes included. Plans are those that the task ships, rewritten for the rest of a task where some of it
is done; a task that ships none teaches that it needs none. A milestone's state is the checkers' word, from the first
look on; the proof that the rater must quote is looked for on the page, and where there is none, the step teaches
nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from agent.episode.prompts import PolicyView, compact_text
from agent.run.discover_traces import discover_traces
from envs.core.action_languages import PROGRAM
from envs.core.actions import Back, Status
from envs.core.trace import Cause, Intent
from envs.core.trace_store import BlobStore, Trace
from judges.base import Progress
from judges.compact_autorater import check_answer, check_text, proof_of
from planners.base import Situation
from planners.compact_planner import plan_answer, plan_text
from planners.model_planner import PlannerSettings
from planners.replan_triggers import ReplanDetector, ReplanTrigger, StepSummary
from training.data.provenance import Provenance
from training.data.trace_views import policy_views
from training.embedded.lesson import Lesson

ASKED = PlannerSettings().k
"""Number of milestones in a plan; a task's own plan can be shorter."""
TROUBLES: tuple[Cause, ...] = ("stall", "loop", "stale_element", "parse_error")
"""Causes of re-planning; the rest of a plan is the same for all of them."""
OFTEN = 12
"""Consecutive steps within which each of `TROUBLES` is detected."""


def lessons_of(places: Sequence[Path]) -> list[Lesson]:
    """Extracts lessons from the traces below *places*, in order. Raises BadInput if a place holds none, TraceError for
    a trace that was edited after it was written."""
    files = [(one.read(), one.blobs) for one in discover_traces(places)]
    provenance = Provenance()
    for trace, _ in files:
        provenance.add(trace)
    clean = {trace.header.task: _targets(trace) for trace, _ in files if _succeeded(trace) and trace.policy == "oracle"}
    found: list[Lesson] = []
    for trace, blobs in files:
        found += _lessons(trace, blobs, clean.get(trace.header.task))
    return found


def _lessons(trace: Trace, blobs: BlobStore, clean: frozenset[tuple[str, str]] | None) -> Iterator[Lesson]:
    if trace.footer is None or trace.footer.outcome not in ("success", "failure") or not trace.steps:
        return
    steps = list(policy_views(trace, blobs))
    task = trace.header.task
    astray = _astray([intent for intent, _ in steps], clean)
    for number, (intent, view) in enumerate(steps):
        if is_oracles(trace) and _succeeded(trace) and number not in astray:
            prompts = (compact_text(view), compact_text(replace(view, next_milestone=None)))
            yield Lesson("act", task, prompts, intent.raw)
    configs = (trace.header.config, trace.config)  # they differ if a resume changed the planner or the judge
    if any((config.get("planner"), config.get("judge")) != ("reference", "state") for config in configs):
        return
    yield from (Lesson("plan", task, (prompt,), answer) for prompt, answer in _plans(trace, steps))
    yield from (Lesson("check", task, (prompt,), answer) for prompt, answer in _checks(trace, steps))


def is_oracles(trace: Trace) -> bool:
    """Whether an oracle chose every step; a resume can change the policy."""
    return all(policy.partition(":")[0] == "oracle" for policy in trace.policies)


def _succeeded(trace: Trace) -> bool:
    return trace.footer is not None and trace.footer.outcome == "success"


def _targets(trace: Trace) -> frozenset[tuple[str, str]]:
    """Returns (role, name) of every control that the episode acted on."""
    return frozenset((i.target.role, i.target.name) for i, _ in trace.steps if i.target is not None)


def _astray(intents: Sequence[Intent], clean: frozenset[tuple[str, str]] | None) -> frozenset[int]:
    """Returns the indices of clicks that were undone immediately, the episode's detours."""
    found: set[int] = set()
    for number, (intent, following) in enumerate(itertools.pairwise(intents)):
        target = intent.target
        if clean is None or target is None or not isinstance(following.action, Back):
            continue
        if (target.role, target.name) not in clean:
            found.add(number)
    return frozenset(found)


def _plans(trace: Trace, steps: Sequence[tuple[Intent, PolicyView]]) -> Iterator[tuple[str, str]]:
    """The first plan; and for every change of what is done, the rest of it. Without milestones, at every step."""
    milestones = trace.header.reference_milestones
    before: tuple[bool, ...] | None = None
    last: Intent | None = None
    for intent, view in steps:
        z = intent.rating.z if milestones else ()
        if len(z) == len(milestones) and (not milestones or (z != before and not all(z))):
            trouble = None if last is None else _trouble(TROUBLES[intent.step % len(TROUBLES)], last)
            situation = Situation(
                instruction=trace.header.instruction,
                category=trace.header.category,
                observation=view.observation,
                history=view.history,
                milestones=milestones,
                z=z,
                cause="initial" if trouble is None else trouble.cause,
                detail="" if trouble is None else trouble.detail,
            )
            rest = [milestone.text for milestone in situation.open]
            yield plan_text(situation, max(len(rest), ASKED - len(situation.anchors))), plan_answer(rest)
        before, last = z, intent


def _trouble(cause: Cause, last: Intent) -> ReplanTrigger:
    """Formats *cause* as in the planner's prompt, as if it resulted from repeating *last*."""
    watch = ReplanDetector()
    if cause == "parse_error":
        return next(trouble for number in range(OFTEN) if (trouble := watch.unreadable(number)) is not None)
    shown_action = PROGRAM.show(last.action)
    ticks = [
        StepSummary(
            step=number,
            action_text=f"{shown_action} ({number})" if cause == "stall" else shown_action,
            digest=last.seen.digest if cause in ("stall", "loop") else str(number),
            status=Status.STALE if cause == "stale_element" else Status.OK,
        )
        for number in range(1, OFTEN)
    ]
    found = (watch.check(ticks[:number]) for number in range(1, OFTEN))
    return next(trouble for trouble in found if trouble is not None)


def _checks(trace: Trace, steps: Sequence[tuple[Intent, PolicyView]]) -> Iterator[tuple[str, str]]:
    """Yields, for the first observation and every step, the first open milestone and those reached just before."""
    milestones = trace.header.reference_milestones
    z, previous = (False,) * len(milestones), None
    for intent, view in steps:
        after = intent.rating.z
        if not milestones or not len(z) == len(after) == len(milestones):
            return
        progress = Progress(
            instruction=trace.header.instruction,
            milestones=milestones,
            z=z,
            observation=view.observation,
            previous=previous,
            history=view.history,
            step=intent.step - 1,
        )
        for index, (held, holds) in enumerate(zip(z, after, strict=True)):
            if held:
                continue
            quote = proof_of(progress, index) if holds else None
            if not holds or quote is not None:
                yield check_text(progress, index), check_answer(quote)
            if not holds:
                break
        z, previous = after, view.observation
