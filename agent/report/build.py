"""Turns the traces of a run into one HTML file that works offline.

Everything from a page or a model is escaped by Jinja2; a content-security policy that names the hashes of the
report's own script and style forbids whatever would slip through. Episodes are rendered one at a time and
written as they come, so a run of thousands fits in memory.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import jinja2

from agent.run_store import RunFolder
from envs.languages import language
from envs.trace import Commit, Event, Failure, Flip, Intent
from envs.trace_store import BlobStore, Trace, read_trace

_HERE = Path(__file__).parent
_PAGE_CHARS = 20_000
"""Longest page text put into the report for one step; the whole text stays in the blob."""


class Tile(NamedTuple):
    value: str
    label: str


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One line of the summary: an average over the episodes of a task."""

    task: str
    episodes: int
    successes: int
    steps: float
    seconds: float
    tokens: int


@dataclass(frozen=True, slots=True)
class RunView:
    title: str
    subtitle: str
    tiles: tuple[Tile, ...]
    by_task: tuple[TaskRow, ...]


@dataclass(frozen=True, slots=True)
class MilestoneView:
    text: str
    achieved: bool
    evidence: str


@dataclass(frozen=True, slots=True)
class StepView:
    number: int
    action: str
    status: str
    message: str
    seconds: float
    url: str
    z: tuple[bool, ...]
    flips: tuple[Flip, ...]
    page: str
    raw: str
    screenshot: str
    is_key: bool


@dataclass(frozen=True, slots=True)
class EpisodeView:
    task: str
    instruction: str
    outcome: str
    verdict: str
    error: str | None
    answer: str | None
    failure: Failure | None
    seconds: float
    milestones: tuple[MilestoneView, ...]
    steps: tuple[StepView, ...]
    events: tuple[Event, ...]


def write_report(run: Path, out: Path | None = None) -> Path:
    """Writes `report.html` for the run in folder *run* and returns its path. Raises TraceError or BadInput."""
    folder = RunFolder(run)
    target = out or run / "report.html"
    traces = [read_trace(path) for path in folder.traces()]
    style, script = _asset("report.css"), _asset("report.js")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string((_HERE / "template.html.j2").read_text("utf-8"))
    blobs = BlobStore(folder.blobs)
    stream = template.stream(
        run=_run_view(folder, traces),
        episodes=_episodes(traces, blobs),
        style=style,
        script=script,
        style_hash=_csp_hash(style),
        script_hash=_csp_hash(script),
    )
    part = target.with_suffix(".part")
    stream.enable_buffering(200)
    with part.open("wb") as file:
        stream.dump(file, encoding="utf-8")
    part.replace(target)
    return target


def _asset(name: str) -> str:
    return "\n" + (_HERE / name).read_text("utf-8")


def _csp_hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _run_view(folder: RunFolder, traces: Sequence[Trace]) -> RunView:
    ended = [t for t in traces if t.footer is not None]
    wins = sum(1 for t in ended if t.footer and t.footer.outcome == "success")
    broken = sum(1 for t in ended if t.footer and t.footer.outcome == "broken")
    config = traces[0].header.config if traces else {}
    roles = " · ".join(f"{role} {config[role]}" for role in ("policy", "planner", "judge") if config.get(role))
    tokens = sum(t.footer.totals.tokens_in + t.footer.totals.tokens_out for t in ended if t.footer)
    tiles = (
        Tile(f"{wins}/{len(traces)}", "successful"),
        Tile(str(broken), "broken"),
        Tile(str(sum(len(t.steps) for t in traces)), "steps"),
        Tile(f"{tokens:,}", "tokens"),
        Tile(f"{sum(t.footer.totals.seconds for t in ended if t.footer):.1f} s", "episode time"),
    )
    return RunView(f"Mira run {folder.path.name}", roles, tiles, tuple(_by_task(traces)))


def _by_task(traces: Sequence[Trace]) -> Iterator[TaskRow]:
    names = dict.fromkeys(t.header.task.name for t in traces)
    for name in names:
        mine = [t for t in traces if t.header.task.name == name]
        feet = [t.footer for t in mine if t.footer is not None]
        n = max(1, len(feet))
        yield TaskRow(
            task=name,
            episodes=len(mine),
            successes=sum(f.outcome == "success" for f in feet),
            steps=sum(f.totals.steps for f in feet) / n,
            seconds=sum(f.totals.seconds for f in feet) / n,
            tokens=sum(f.totals.tokens_in + f.totals.tokens_out for f in feet) // n,
        )


def _episodes(traces: Sequence[Trace], blobs: BlobStore) -> Iterator[EpisodeView]:
    for trace in traces:
        yield _episode(trace, blobs)


def _episode(trace: Trace, blobs: BlobStore) -> EpisodeView:
    header, footer = trace.header, trace.footer
    key_step = footer.failure.key_step if footer and footer.failure else None
    return EpisodeView(
        task=header.task.id,
        instruction=header.instruction,
        outcome=footer.outcome if footer else "unfinished",
        verdict=_verdict(trace),
        error=footer.error if footer else "the trace has no end: resume the run to finish it",
        answer=footer.answer if footer else None,
        failure=footer.failure if footer else None,
        seconds=footer.totals.seconds if footer else 0.0,
        milestones=_milestones(trace),
        steps=tuple(_step(intent, commit, blobs, key_step) for intent, commit in trace.steps),
        events=tuple(trace.events),
    )


def _verdict(trace: Trace) -> str:
    footer = trace.footer
    if footer is None:
        return ""
    said = footer.score.evidence if footer.score else footer.verdict
    return f"ended by {footer.ended_by}, judged by {footer.judged_by}: {said}"


def _milestones(trace: Trace) -> tuple[MilestoneView, ...]:
    if not trace.plans:
        return ()
    evidence: dict[str, str] = {}
    ratings = [intent.rating for intent, _ in trace.steps]
    if trace.footer and trace.footer.rating:
        ratings.append(trace.footer.rating)
    for rating in ratings:
        evidence |= {flip.milestone: flip.evidence for flip in rating.flips if flip.achieved}
    z = ratings[-1].z if ratings else ()
    plan = trace.plans[-1].milestones
    return tuple(MilestoneView(m.text, i < len(z) and z[i], evidence.get(m.id, "")) for i, m in enumerate(plan))


def _step(intent: Intent, commit: Commit | None, blobs: BlobStore, key_step: int | None) -> StepView:
    shot = intent.seen.screenshot_blob
    seconds = commit.timings if commit else None
    return StepView(
        number=intent.step,
        action=language("program").show(intent.action),
        status=str(commit.result.status) if commit else "uncertain",
        message=commit.result.message if commit else "intended, but the process ended before the result was known",
        seconds=seconds.observe + seconds.reflect + seconds.act + seconds.execute if seconds else 0.0,
        url=intent.seen.url,
        z=intent.rating.z,
        flips=intent.rating.flips,
        page=_clip(blobs.text(intent.seen.text_blob)),
        raw=intent.raw,
        screenshot=base64.b64encode(blobs.read(shot)).decode() if shot else "",
        is_key=intent.step == key_step,
    )


def _clip(text: str) -> str:
    return text if len(text) <= _PAGE_CHARS else f"{text[:_PAGE_CHARS]}\n… {len(text) - _PAGE_CHARS} more characters"
