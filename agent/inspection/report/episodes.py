"""Converts traces to the episode views of the report's templates."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from agent.episode.refused_origins import blocked_in, kinds_of, name_of
from agent.inspection.critic_values import StateValues
from agent.inspection.expert_steps import assisted
from agent.inspection.report.pairing import align_steps
from agent.inspection.report.pictures import Gallery
from agent.inspection.report.views import (
    CallView,
    EpisodeView,
    MessageView,
    MilestoneView,
    PairView,
    PictureView,
    ReferenceStepView,
    RowView,
    StepView,
)
from agent.run.limits import ending_of
from envs.core.action_languages import language
from envs.core.action_place import ActionPlace
from envs.core.actions import ClickAt, DragAt, ScrollAt
from envs.core.errors import TraceError
from envs.core.trace import Call, Failure, Flip, Intent, Loop
from envs.core.trace_store import BlobStore, Step, Trace
from envs.security.blocked_requests import merge_blocked_origins
from judges.analysis import Analysis
from judges.trace_ratings import reached_after

_RAW_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class Cut:
    """Limits on the content of an episode in the report."""

    text_chars: int
    """Maximum characters of a page text or of a prompt message; the blob keeps the full text."""
    pictures: bool
    """Whether all screenshots are included; else those at the key step, before it, and at the end."""
    no_pictures: bool = False


@dataclass(frozen=True, slots=True)
class Material:
    """A trace with its blobs, analysis and reference."""

    anchor: str
    trace: Trace
    blobs: BlobStore
    analysis: Analysis | None
    reference: Trace | None
    values: tuple[StateValues, ...] = ()
    """Critics' outputs for the states."""


class EpisodeMaker:
    """Builds episode views, and collects what could not be read."""

    def __init__(self, cut: Cut, gallery: Gallery) -> None:
        self._cut = cut
        self._gallery = gallery
        self.problems: list[str] = []

    def view(self, material: Material) -> EpisodeView:
        trace = material.trace
        header, footer = trace.header, trace.footer
        failure = failure_of(trace, material.analysis)
        steps = [self._step(material, place, failure) for place in range(len(trace.steps))]
        return EpisodeView(
            row=row_of(trace, material.anchor, failure),
            instruction=self._clip(header.instruction),
            ended=f"ended by {ending_of(header, footer)}"
            if footer
            else "the trace has no footer: resume the run to finish it",
            verdict=_verdict(trace),
            error=footer.error or "" if footer else "",
            answer=footer.answer if footer else None,
            analysis=material.analysis,
            failure=failure,
            milestones=milestones_of(trace),
            memory=trace.notes,
            pairs=tuple(self._pairs(material, steps)),
            reference=_name(material.reference),
            refused=footer.blocked_requests if footer else merge_blocked_origins(blocked_in(trace.steps)),
            events=trace.events,
            values=material.values,
            parent=f"{header.parent.run_id}/{header.parent.episode_id} at step {header.parent.step}"
            if header.parent
            else "",
        )

    def _pairs(self, material: Material, steps: list[StepView]) -> Iterator[PairView]:
        analysis = material.analysis
        gone = analysis.divergence.step if analysis and analysis.divergence else None
        if material.reference is None:
            yield from (PairView(step, None, same=False, diverges=False) for step in steps)
            return
        known = analysis.pairs if analysis and analysis.nearest == material.reference.header.episode_id else ()
        for own, other, same in align_steps(material.trace.steps, material.reference.steps, known):
            step = steps[own] if own is not None else None
            beside = _reference_step(material.reference.steps[other]) if other is not None else None
            yield PairView(step, beside, same=same, diverges=step is not None and step.number == gone)

    def _step(self, material: Material, place: int, failure: Failure | None) -> StepView:
        intent, commit = material.trace.steps[place]
        loop = failure.loop if failure else None
        is_key = failure is not None and failure.key_step == intent.step
        timings = commit.timings if commit else None
        problems: list[str] = []
        picture, left_out = self._picture(material, place, failure, problems)
        flips = _flips_after(material.trace, place)
        return StepView(
            number=intent.step,
            action=self._clip(language("program").show(intent.action)),
            aim=_aim(intent),
            status=str(commit.result.status) if commit else "uncertain",
            message=commit.result.remark if commit else "the process ended before the result was recorded",
            seconds=timings.total if timings else 0.0,
            url=intent.seen.url[:2000],
            title=intent.seen.title[:500],
            flips=flips,
            names=_names(material.trace) if flips else {},
            page=self._blob_text(material.blobs, intent.seen.text_blob, problems),
            raw=intent.raw[:_RAW_CHARS],
            notes=intent.notes,
            rationale=intent.rationale,
            batch=f"{intent.batch.place} of {intent.batch.size}" if intent.batch is not None else "",
            groundings=tuple(grounding.line for grounding in intent.groundings),
            calls=tuple(self._call(call, material.blobs, problems) for call in intent.calls),
            picture=picture,
            picture_left_out=left_out,
            problems=tuple(problems),
            refused=tuple(f"{name_of(origin)} ({kinds_of(origin)})" for origin in blocked_in([(intent, commit)])),
            is_key=is_key,
            in_loop=loop is not None and loop.entry <= intent.step < loop_end(loop),
            loop_begins=loop is not None and loop.entry == intent.step,
            open=is_key,
        )

    def _picture(
        self, material: Material, place: int, failure: Failure | None, problems: list[str]
    ) -> tuple[PictureView | None, str]:
        intent = material.trace.steps[place].intent
        shot = intent.seen.screenshot_blob
        if shot is None:
            return None, ""
        if self._cut.no_pictures or not (self._cut.pictures or _is_important(material.trace, place, failure)):
            self._gallery.left_out += 1
            return None, "this report omits the screenshot"
        try:
            uri, width, height = self._gallery.uri(material.blobs, shot)
        except TraceError as error:
            self._note(str(error), problems)
            return None, ""
        wide, high = intent.seen.viewport or (width, height)
        return PictureView(uri, wide, high, intent.target_box, _points(intent)), ""

    def _call(self, call: Call, blobs: BlobStore, problems: list[str]) -> CallView:
        usage = [f"{call.tokens_in:,} tokens in, {call.tokens_out:,} out", f"{call.seconds:.2f} s"]
        if call.cost_usd is not None:
            usage.append(f"${call.cost_usd:.4f}")
        prompt = self._prompt(blobs, call.prompt_blob, problems) if call.prompt_blob else ()
        return CallView(
            call.role, call.model, " · ".join(usage), prompt, call.completion[:_RAW_CHARS], (call.error or "")[:2000]
        )

    def _prompt(self, blobs: BlobStore, name: str, problems: list[str]) -> tuple[MessageView, ...]:
        try:
            text = blobs.text(name)
        except TraceError as error:
            self._note(str(error), problems)
            return ()
        try:
            messages: Any = json.loads(text)
            return tuple(MessageView(str(message["role"]), self._clip(_message_text(message))) for message in messages)
        except (ValueError, KeyError, TypeError):
            # Imported traces keep prompts in their original form.
            return (MessageView("prompt", self._clip(text)),)

    def _blob_text(self, blobs: BlobStore, name: str, problems: list[str]) -> str:
        try:
            return self._clip(blobs.text(name))
        except TraceError as error:
            self._note(str(error), problems)
            return ""

    def _note(self, problem: str, problems: list[str]) -> None:
        problems.append(problem)
        self.problems.append(problem)

    def _clip(self, text: str) -> str:
        most = self._cut.text_chars
        return text if len(text) <= most else f"{text[:most]}\n… {len(text) - most:,} more characters in the trace"


def failure_of(trace: Trace, analysis: Analysis | None) -> Failure | None:
    """The failure of the analysis if there is one, else the one recorded in the trace."""
    if analysis is not None:
        return analysis.failure
    return trace.footer.failure if trace.footer else None


def row_of(trace: Trace, anchor: str, failure: Failure | None) -> RowView:
    header, footer = trace.header, trace.footer
    z = footer.rating.z if footer and footer.rating else trace.steps[-1].intent.rating.z if trace.steps else ()
    totals = footer.totals if footer else None
    return RowView(
        anchor=anchor,
        run=header.run_id,
        task=header.task.id,
        site=header.category,
        policy=trace.policy,
        outcome=footer.outcome if footer else "unfinished",
        failure=failure.category if failure else "",
        steps=len(trace.steps),
        seconds=totals.seconds if totals else 0.0,
        tokens=totals.tokens if totals else 0,
        cost=totals.cost_usd if totals else 0.0,
        done=sum(z),
        milestones=len(z),
        instruction=header.instruction[:220],
        degraded=footer is not None and bool(footer.degraded),
        assisted=assisted(header, footer),
    )


def milestones_of(trace: Trace) -> tuple[MilestoneView, ...]:
    """The last plan's milestones, with evidence for those that were reached."""
    if not trace.plans:
        return ()
    ratings = [step.intent.rating for step in trace.steps]
    if trace.footer is not None and trace.footer.rating is not None:
        ratings.append(trace.footer.rating)
    evidence = {flip.milestone: flip.evidence for rating in ratings for flip in rating.flips if flip.achieved}
    reached = reached_after(trace)
    z = ratings[-1].z if ratings else ()
    plan = trace.plans[-1].milestones
    return tuple(
        MilestoneView(m.text, i < len(z) and z[i], evidence.get(m.id, ""), reached.get(m.id))
        for i, m in enumerate(plan)
    )


def loop_end(loop: Loop) -> int:
    """Number of the first step after the loop."""
    return loop.last + 1 if loop.last is not None else loop.entry + loop.period * loop.repetitions


def _flips_after(trace: Trace, place: int) -> tuple[Flip, ...]:
    """Milestones that changed in the rating after this step; at the first step also those done from the start."""
    after = trace.steps[place + 1].intent.rating if place + 1 < len(trace.steps) else None
    if after is None and trace.footer is not None:
        after = trace.footer.rating
    return after.flips if after is not None else ()


def _names(trace: Trace) -> dict[str, str]:
    return {milestone.id: milestone.text for plan in trace.plans for milestone in plan.milestones}


def _is_important(trace: Trace, place: int, failure: Failure | None) -> bool:
    """Whether the step is the key step, the one before it, or the last one."""
    key = failure.key_step if failure else None
    return place == len(trace.steps) - 1 or (key is not None and 0 <= key - trace.steps[place].intent.step <= 1)


def _aim(intent: Intent) -> str:
    """The element of the action, with its place, or what lies at its coordinates."""
    place = intent.place or ActionPlace()
    named = f'{intent.target.role} "{intent.target.name[:120]}"' if intent.target else place.at
    return " ".join(part for part in (named, place.where) if part)


def _points(intent: Intent) -> tuple[tuple[float, float], ...]:
    """The points of the action, or those at which a grounder found its controls."""
    match intent.action:
        case ClickAt(x=x, y=y) | ScrollAt(x=x, y=y):
            return ((x, y),)
        case DragAt() as drag:
            return ((drag.x, drag.y), (drag.to_x, drag.to_y))
        case _:
            return tuple(grounding.point for grounding in intent.groundings)


def _reference_step(step: Step) -> ReferenceStepView:
    intent = step.intent
    action = language("program").show(intent.action)
    return ReferenceStepView(intent.step, action[:400], _aim(intent), intent.seen.title[:200], intent.seen.url[:500])


def _message_text(message: Mapping[str, Any]) -> str:
    text = message["text"]
    images = cast("list[object]", message.get("images") or [])
    suffix = "".join(f"\n[picture: {image}]" for image in images)
    return f"{text}{suffix}"


def _verdict(trace: Trace) -> str:
    footer = trace.footer
    if footer is None or footer.judged_by == "none":
        return "not judged" if footer else ""
    reason = footer.score.evidence if footer.judged_by == "checker" and footer.score else footer.verdict
    return f"judged by {footer.judged_by}: {reason}"[:4000]


def _name(reference: Trace | None) -> str:
    if reference is None:
        return ""
    header = reference.header
    return f"{header.run_id}/{header.episode_id} ({reference.policy})"
