"""Lists episodes, one row each, from the headers and footers of their traces."""

from __future__ import annotations

from pathlib import Path

from agent.episode.refused_origins import blocked_in
from envs.core.errors import TraceError
from envs.core.record import Record
from envs.core.trace import EndedBy
from envs.core.trace_store import Seal, Trace, check_chain, edited_message, read_summary, read_trace
from envs.security.blocked_requests import BlockedOrigin, merge_blocked_origins


class EpisodeRow(Record):
    """An episode in a list."""

    run: str
    episode: str
    task: str
    instruction: str
    outcome: str
    """As in the trace; `unfinished` without a footer, `damaged` if it cannot be read."""
    ended_by: EndedBy | None
    steps: int
    z: tuple[bool, ...]
    """Milestones reached; empty without subgoals."""
    torn: bool = False
    """Whether the last line is incomplete because the process died while writing it."""
    blocked_requests: tuple[BlockedOrigin, ...] = ()
    """Requests refused by the allowlist proxy, by origin."""
    problem: str = ""
    """One line that describes a problem of the trace; empty without one."""


def episode_row(path: Path) -> EpisodeRow:
    """Reads the row of the trace at *path*; a damaged trace has a row too.

    Only a trace without a footer is parsed completely. The hash chain of every trace is verified."""
    try:
        header, footer = read_summary(path)
        if footer is None:
            return _unfinished(read_trace(path))
        seal = check_chain(path)
    except TraceError as error:
        return EpisodeRow(
            run=path.parent.parent.name,
            episode=path.stem,
            task="",
            instruction="",
            outcome="damaged",
            ended_by=None,
            steps=0,
            z=(),
            problem=str(error),
        )
    return EpisodeRow(
        run=header.run_id,
        episode=header.episode_id,
        task=header.task.id,
        instruction=header.instruction,
        outcome=footer.outcome,
        ended_by=footer.ended_by,
        steps=footer.totals.steps,
        z=footer.rating.z if footer.rating else (),
        blocked_requests=footer.blocked_requests,
        problem=_edited(path, seal),
    )


def _edited(path: Path, seal: Seal) -> str:
    return "" if seal.edited is None else edited_message(path, seal.edited)


def _unfinished(trace: Trace) -> EpisodeRow:
    header = trace.header
    return EpisodeRow(
        run=header.run_id,
        episode=header.episode_id,
        task=header.task.id,
        instruction=header.instruction,
        outcome="unfinished" if trace.footer is None else trace.footer.outcome,
        ended_by=None,
        steps=len(trace.steps),
        z=trace.steps[-1].intent.rating.z if trace.steps else (),
        torn=trace.torn,
        blocked_requests=merge_blocked_origins(blocked_in(trace.steps)),
        problem=_edited(trace.path, trace.seal)
        or (f"{trace.path}: the last line is torn and not counted" if trace.torn else ""),
    )
