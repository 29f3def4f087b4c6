"""Writes imported episodes as traces."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from envs.core.actions import Action, ActionResult, Status, Stop
from envs.core.errors import BadInput
from envs.core.record import storable
from envs.core.tasks import Score, TaskRef
from envs.core.trace import (
    Call,
    Commit,
    ElementKeyRecord,
    EndedBy,
    Event,
    Footer,
    Header,
    Intent,
    ObservationRecord,
    Outcome,
    Rating,
    Timings,
    Totals,
)
from envs.core.trace_store import BlobStore, TraceWriter, now
from envs.observer.page_state import page_state

_NODE: Final = re.compile(r"^\s*\[(?P<id>[\w.-]+)\]\s+(?P<role>\w[\w-]*)(?:\s+(?P<mark>['\"])(?P<name>.*?)(?P=mark))?")
"""A line of an accessibility tree as text: `[1507] link 'Reviews'`, `[a51] button "Send", focused`."""


@dataclass(frozen=True, slots=True)
class ForeignStep:
    """One action and the observation before it."""

    url: str
    title: str
    text: str
    """The page as it was shown to the policy."""
    action: Action
    raw: str
    """The policy's unparsed text."""
    target: ElementKeyRecord | None = None
    status: Status = Status.OK
    message: str = ""
    screenshot: bytes | None = None
    """PNG."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ForeignEpisode:
    """One imported episode; fields that the log does not contain are empty."""

    source: str
    """The format of the log, e.g. `webarena`."""
    task: TaskRef
    instruction: str
    category: str
    policy: str
    outcome: Outcome
    ended_by: EndedBy
    evidence: str
    """The basis of the outcome, as the log states it."""
    steps: tuple[ForeignStep, ...] = ()
    answer: str | None = None
    reward: float | None = None
    error: str | None = None
    problems: tuple[str, ...] = ()
    """Parts that could not be read; stored as events."""

    @property
    def episode_id(self) -> str:
        name = re.sub(r"[^A-Za-z0-9._-]+", "_", self.task.name)[:80].lstrip(".") or "task"
        return f"{name}-{self.task.seed}-a1"


@dataclass(slots=True)
class Nodes:
    """The elements of an accessibility tree in text form, by their foreign ids."""

    rows: dict[str, ElementKeyRecord] = field(default_factory=dict[str, ElementKeyRecord])

    @classmethod
    def of(cls, text: str) -> Nodes:
        """Parses *text*. Elements are numbered in line order; the ordinal counts elements of equal role and name."""
        nodes, seen = cls(), dict[tuple[str, str], int]()
        for line in text.splitlines():
            if (match := _NODE.match(line)) is None:
                continue
            role, name = match["role"].lower(), storable(match["name"] or "")
            ordinal = seen.get((role, name), 0)
            seen[role, name] = ordinal + 1
            digest = hashlib.sha256(f"{role}\n{name}".encode()).hexdigest()[:8]
            row = ElementKeyRecord(
                ref=len(nodes.rows) + 1, frame="", role=role, name=name, ordinal=ordinal, digest=digest
            )
            nodes.rows.setdefault(match["id"], row)
        return nodes

    def ref(self, foreign_id: str) -> int:
        """The number of an element; 0, which no element has, for an id that is not in the text."""
        row = self.rows.get(foreign_id)
        return 0 if row is None else row.ref


def write_episodes(episodes: Iterable[ForeignEpisode], out: Path) -> Iterator[Path]:
    """Writes traces below *out* (`episodes/`, `blobs/`) and yields the path of each.

    Raises BadInput before writing if *out* is not empty.
    """
    if out.exists() and any(out.iterdir()):
        raise BadInput(f"{str(out)!r} is not empty: choose another folder with --out")
    blobs = BlobStore(out / "blobs")
    used: set[str] = set()
    for episode in episodes:
        episode_id = _unused_id(episode.episode_id, used)
        path = out / "episodes" / f"{episode_id}.jsonl"
        _write(episode, episode_id, path, blobs, out.name)
        yield path


def _unused_id(episode_id: str, used: set[str]) -> str:
    """The id with the next free attempt number, because a log may contain several attempts of a task."""
    base, attempt = episode_id.removesuffix("-a1"), 1
    while f"{base}-a{attempt}" in used:
        attempt += 1
    used.add(f"{base}-a{attempt}")
    return f"{base}-a{attempt}"


def _write(episode: ForeignEpisode, episode_id: str, path: Path, blobs: BlobStore, run_id: str) -> None:
    writer = TraceWriter(path, blobs, own=False)  # its content comes from another machine's log
    try:
        writer.append(_header(episode, episode_id, run_id))
        for number, step in enumerate(episode.steps, 1):
            writer.append(_intent(step, number, episode.policy, blobs))
            result = ActionResult(status=step.status, message=storable(step.message), seconds=step.seconds)
            writer.append(Commit(step=number, result=result, timings=Timings(execute=step.seconds), at=now()))
        for problem in episode.problems:
            writer.append(Event(step=len(episode.steps), name="import", detail=storable(problem), at=now()))
        writer.append(_footer(episode))
    finally:
        writer.close()


def _header(episode: ForeignEpisode, episode_id: str, run_id: str) -> Header:
    return Header(
        run_id=run_id,
        episode_id=episode_id,
        task=episode.task,
        attempt=int(episode_id.rpartition("-a")[2]),
        instruction=storable(episode.instruction),
        category=episode.category,
        start_url=storable(episode.steps[0].url) if episode.steps else "",
        config={"policy": episode.policy, "imported_from": episode.source},
        versions={},
        started_at=now(),
    )


def _intent(step: ForeignStep, number: int, policy: str, blobs: BlobStore) -> Intent:
    url, text = storable(step.url), storable(step.text)
    seen = ObservationRecord(
        url=url,
        title=storable(step.title),
        digest=hashlib.sha256(f"{url}\n{text}".encode()).hexdigest()[:16],
        state=page_state(url, text),
        text_blob=blobs.put_text(text),
        keys_blob=blobs.put_json([row.model_dump() for row in Nodes.of(text).rows.values()]),
        controls_total=len(Nodes.of(text).rows),
        screenshot_blob=None if step.screenshot is None else blobs.put(step.screenshot),
    )
    raw = storable(step.raw)
    call = Call(role="policy", model=policy, completion=raw)
    return Intent(
        step=number,
        seen=seen,
        rating=Rating(z=()),
        action=step.action,
        raw=raw,
        target=step.target,
        calls=(call,),
        at=now(),
    )


def _footer(episode: ForeignEpisode) -> Footer:
    judged = episode.outcome in ("success", "failure")
    status = "success" if episode.outcome == "success" else "failure"
    reward = episode.reward if episode.reward is not None else float(episode.outcome == "success")
    return Footer(
        outcome=episode.outcome,
        ended_by=episode.ended_by,
        judged_by="checker" if judged else "none",
        score=Score(status=status, reward=reward, evidence=storable(episode.evidence)) if judged else None,
        answer=None if episode.answer is None else storable(episode.answer),
        totals=Totals(
            steps=len(episode.steps),
            seconds=round(sum(step.seconds for step in episode.steps), 3),
            model_calls=len(episode.steps),
        ),
        error=None if episode.error is None else storable(episode.error),
        at=now(),
    )


def ended_by(last: Action | None, *, broken: bool) -> EndedBy:
    """Derives how an episode ended if its log does not state it."""
    if broken:
        return "error"
    return "stop" if isinstance(last, Stop) else "max_steps"
