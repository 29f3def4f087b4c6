"""Prints one trace: its plan, every step in words, and why it ended."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from agent.cli.output import print_table, printable, stdout
from agent.cli.tables import Column, FittedTable
from agent.episode.action_names import in_words
from agent.episode.refused_origins import blocked_in, kinds_of, name_of, print_refused
from agent.run.limits import ending_of
from envs.core.action_languages import PROGRAM
from envs.core.actions import Drag
from envs.core.errors import TraceError
from envs.core.observation import ElementKey
from envs.core.trace import Flip, Footer, Header, Intent
from envs.core.trace_store import BlobStore, Step, Trace, edited_message, read_element_keys
from envs.security.blocked_requests import merge_blocked_origins
from judges.trace_ratings import reached_after


def show_trace(trace: Trace, blobs: BlobStore) -> None:
    """Prints *trace* with the *blobs* of its run. If a blob is missing, only element names are omitted."""
    header, footer = trace.header, trace.footer
    _print_field("task", header.task.id)
    _print_field("goal", header.instruction)
    _print_field("start", header.start_url)
    if trace.plans:
        print_table(_milestones(trace))
    print_table(_steps(trace, blobs))
    for note in trace.notes:
        _print_field(f"note {note.number}", note.text)
    _show_refused(trace)
    for event in trace.events:
        stdout.print(Text(printable(f"step {event.step}: {event.name} {event.detail}"), "dim"))
    if trace.seal.edited is not None:
        stdout.print(Text(printable(edited_message(trace.path, trace.seal.edited)), "bold red"), soft_wrap=True)
    elif trace.seal.chained and not trace.seal.own:
        stdout.print(Text("not written on this machine, or its hash chain was recomputed", "yellow"))
    if trace.torn:
        stdout.print(Text("the last line is torn and not counted: the process died while writing it", "yellow"))
    if footer is None:
        stdout.print("the trace has no footer: resume the run to finish it")
    else:
        _show_end(header, footer)


def _print_field(name: str, text: str, style: str = "") -> None:
    if text:
        line = Text(f"{name:8} ", "dim").append(printable(" ".join(text.split())), style or "not dim")
        stdout.print(line)


def _show_end(header: Header, footer: Footer) -> None:
    stdout.print(Text(f"{footer.outcome}, ended by {ending_of(header, footer)}, judged by {footer.judged_by}", "bold"))
    if footer.answer is not None:
        _print_field("answer", footer.answer or "(empty)")
    if footer.score is not None:
        _print_field("check", footer.score.evidence)
    _print_field("judge", footer.verdict)
    if footer.failure is not None:
        _print_field("why", f"{footer.failure.category}: {footer.failure.reason}")
    _print_field("error", footer.error or "", "yellow")
    if footer.degraded:
        missing = f"{footer.degraded.planner} of the planner, {footer.degraded.rater} of the rater"
        _print_field("degraded", f"answers missing after errors of their models: {missing}", "yellow")
    if footer.resumable:
        stdout.print("no answer of a model, or no page: resume the run to continue from here")


def _show_refused(trace: Trace) -> None:
    for intent, commit in trace.steps:
        before = intent.seen.blocked_requests
        during = commit.result.blocked_requests if commit is not None else ()
        for when, blocked in (("before", before), ("in", during)):
            if blocked:
                named = ", ".join(f"{name_of(origin)} ({kinds_of(origin)})" for origin in blocked)
                stdout.print(Text(printable(f"{when} step {intent.step} refused: {named}"), "yellow"), soft_wrap=True)
    print_refused(stdout, merge_blocked_origins(blocked_in(trace.steps)))


def _milestones(trace: Trace) -> FittedTable:
    """A table of the last plan's milestones, with the step and evidence of each."""
    plan = trace.plans[-1]
    ratings = [step.intent.rating for step in trace.steps]
    if trace.footer is not None and trace.footer.rating is not None:
        ratings.append(trace.footer.rating)
    evidence = {flip.milestone: flip.evidence for rating in ratings for flip in rating.flips if flip.achieved}
    reached = reached_after(trace)
    replanned = "".join(f"; again before step {plan.step} ({plan.cause})" for plan in trace.plans[1:])
    table = FittedTable(
        Column(""),
        Column("milestone", wrap=32),
        Column("reached", wrap=10),
        Column("evidence", wrap=16, drop=1),
        title=f"planned by {plan.planner}{replanned}",
    )
    for milestone in plan.milestones:
        step = reached.get(milestone.id)
        when = "-" if step is None else "from the start" if step == 0 else f"step {step}"
        mark = "○" if step is None else Text("●", "green")
        table.row(mark, milestone.text, when, evidence.get(milestone.id, ""))
    return table


def _steps(trace: Trace, blobs: BlobStore) -> FittedTable:
    table = FittedTable(
        Column("step", right=True),
        Column("action", wrap=32),
        Column("result", wrap=16),
        Column("milestones", drop=2),
        Column("seconds", right=True, drop=1),
        title="steps",
    )
    names = {milestone.id: milestone.text for plan in trace.plans for milestone in plan.milestones}
    url = ""
    for place, (intent, commit) in enumerate(trace.steps):
        seconds = commit.timings.total if commit else 0.0
        result = f"{commit.result.status.value} {commit.result.remark}" if commit else "uncertain"
        lines = _action(trace.steps[place], intent.seen.url if intent.seen.url != url else "", blobs)
        cell = Text("\n").join([*lines, *_flips(_flips_after(trace, place), names)])
        dots = "".join("●" if done else "○" for done in intent.rating.z)
        table.row(str(intent.step), cell, result, dots, f"{seconds:.2f}")
        url = intent.seen.url
    return table


def _action(step: Step, url: str, blobs: BlobStore) -> Iterator[Text]:
    """The lines of a step: its page if that changed, the action in words and in its language, its place in the answer,
    and the rationale."""
    intent = step.intent
    if url:
        yield Text(url, "dim")
    target = intent.target.key if intent.target else None
    yield Text(in_words(intent.action, target, _onto(intent, blobs), intent.place))
    yield Text(PROGRAM.show(intent.action), "dim")
    if intent.batch is not None:
        yield Text(f"action {intent.batch.place} of {intent.batch.size} of one answer", "dim")
    for grounding in intent.groundings:
        yield Text(printable(f"found: {grounding.line}"), "dim")
    if intent.rationale:
        yield Text(printable(f"thought: {intent.rationale}"), "dim italic")


def _flips_after(trace: Trace, place: int) -> tuple[Flip, ...]:
    """Milestones that changed in the rating after this step."""
    if place + 1 < len(trace.steps):
        return trace.steps[place + 1].intent.rating.flips
    rating = trace.footer.rating if trace.footer is not None else None
    return rating.flips if rating is not None else ()


def _flips(flips: tuple[Flip, ...], names: dict[str, str]) -> Iterator[Text]:
    for flip in flips:
        mark, style = ("✓", "green") if flip.achieved else ("✗", "yellow")
        yield Text(f"{mark} {' '.join(names.get(flip.milestone, flip.milestone).split())}", style)


def _onto(intent: Intent, blobs: BlobStore) -> ElementKey | None:
    """The element on which a drag ended; None for other actions, or if the trace does not contain it."""
    if not isinstance(intent.action, Drag):
        return None
    try:
        rows = read_element_keys(blobs, intent.seen)
    except TraceError:
        return None
    return next((row.key for row in rows if row.ref == intent.action.to_ref), None)
