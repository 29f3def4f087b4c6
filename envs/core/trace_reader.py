"""Reads traces: completely, line by line, or only header and footer."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter, ValidationError

from envs.core.blobs import BlobStore
from envs.core.errors import TraceError
from envs.core.notes import Note
from envs.core.trace import (
    LIMITS,
    LINE,
    SCHEMA_VERSION,
    Commit,
    ElementKeyRecord,
    Event,
    Footer,
    Header,
    Intent,
    Line,
    ObservationRecord,
    PlanRecord,
)
from envs.core.trace_chain import NO_CHAIN, Checker, Seal, take_apart


def _named_parent(line: dict[str, Any]) -> dict[str, Any]:
    """Migrates version 1, in which a parent was only an episode id."""
    if line.get("kind") == "header":
        parent = line.get("parent")
        named = None if parent is None else {"run_id": line.get("run_id", ""), "episode_id": parent, "step": 0}
        return line | {"parent": named}
    return line


def _unchanged(line: dict[str, Any]) -> dict[str, Any]:
    """Versions 3 and 4 only add fields; version 5 renames a value, which its field still reads."""
    return line


MIGRATIONS: Final[Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]]] = {
    1: _named_parent,
    2: _unchanged,
    3: _unchanged,
    4: _unchanged,
}
"""Maps a schema version to the function that migrates one line (as JSON) to the next version."""

_TAIL_BYTES = 65_536


class Step(NamedTuple):
    intent: Intent
    commit: Commit | None
    """None: the process ended between intent and commit, so the action may or may not have happened."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The trace of one episode."""

    path: Path
    header: Header
    plans: tuple[PlanRecord, ...]
    steps: tuple[Step, ...]
    """In order. A resumed run may contain the same number twice, first without and then with a commit."""
    events: tuple[Event, ...]
    footer: Footer | None
    """None while the episode runs, after it was resumed, or if it was killed."""
    torn: bool
    """The last line is incomplete and was ignored."""
    seal: Seal = NO_CHAIN
    """Whether the lines are unchanged, and whether this machine wrote them."""
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The resolved run configuration at the end: that of the header, unless a resume changed it."""
    policies: tuple[str, ...] = ()
    """Specs of the policies that chose the steps, in order: several if a resume changed the policy."""

    @property
    def policy(self) -> str:
        """`policies` as text; without a step the configured one, empty if none is known."""
        return ", then ".join(self.policies) or str((self.config or self.header.config).get("policy", ""))

    @property
    def notes(self) -> tuple[Note, ...]:
        """The policy's notes at the end, by number. An action that was chosen again after a kill left none."""
        later = {step.intent.step: step.intent for step in self.steps}.values()
        written = [(record.step, isinstance(record, Intent), record.notebook) for record in (*self.events, *later)]
        kept = [notebook for _, _, notebook in sorted(written, key=itemgetter(0, 1)) if notebook is not None]
        return kept[-1].notes if kept else ()


class Summary(NamedTuple):
    header: Header
    footer: Footer | None
    """See :attr:`Trace.footer`."""


def read_trace(path: Path) -> Trace:
    """Reads a trace. Raises TraceError, which names file, line and field, also for an impossible order of lines."""
    builder = _Builder(path)
    torn = False
    checker = Checker()
    for number, line in _lines(path, checker):
        if line is None:
            torn = True
        else:
            builder.add(number, line)
    return builder.trace(torn, checker.seal())


_ELEMENT_KEYS: Final = TypeAdapter(tuple[ElementKeyRecord, ...])


def read_element_keys(blobs: BlobStore, seen: ObservationRecord) -> tuple[ElementKeyRecord, ...]:
    """The elements that the page *seen* showed. Raises TraceError where *blobs* do not have them."""
    try:
        return _ELEMENT_KEYS.validate_json(blobs.read(seen.keys_blob))
    except ValidationError:
        raise TraceError(f"blob {seen.keys_blob} in {blobs.folder} is not a list of element keys") from None


def has_header(path: Path) -> bool:
    """Whether the file has a complete first line."""
    if not path.exists():
        return False
    with path.open("rb") as file:
        return file.readline().endswith(b"\n")


def iter_lines(path: Path) -> Iterator[Line]:
    """Yields the records in constant memory and ignores a torn last line. Raises TraceError."""
    return (line for _, line in _lines(path, None) if line is not None)


def read_summary(path: Path) -> Summary:
    """Reads header and footer from the first and last line only. Raises TraceError."""
    try:
        with path.open("rb") as file:
            first = file.readline()
            last = _last_line(file.fileno(), len(first))
    except OSError as error:
        raise TraceError(f"{path}: cannot read: {error.strerror}") from None
    migrate = _migration(path, first)
    header = _parse(path, 1, take_apart(first).body, migrate)
    if not isinstance(header, Header):
        raise TraceError(f"{path}:1: kind: the first line must be a header, not {header.kind!r}")
    footer = _parse(path, None, take_apart(last).body, migrate) if last.startswith(b'{"kind":"footer"') else None
    return Summary(header, footer if isinstance(footer, Footer) else None)


_Migrate = Callable[[dict[str, Any]], dict[str, Any]] | None


def _lines(path: Path, checker: Checker | None) -> Iterator[tuple[int, Line | None]]:
    """Yields numbered records, None for a torn last line. *checker* checks the hash chain."""
    try:
        with path.open("rb") as file:
            migrate: _Migrate = None
            for number, raw in enumerate(file, start=1):
                if not raw.endswith(b"\n"):
                    yield number, None
                    return
                if number == 1:
                    migrate = _migration(path, raw)
                body = take_apart(raw).body if checker is None else checker.take(raw)
                yield number, _parse(path, number, body, migrate)
    except OSError as error:
        raise TraceError(f"{path}: cannot read: {error.strerror}") from None


def _migration(path: Path, first: bytes) -> _Migrate:
    """Returns the function that migrates each line of this file to the current schema; None if none is needed."""
    try:
        header = json.loads(first)
        kind, version = header["kind"], header["schema_version"]
    except (ValueError, KeyError, TypeError, RecursionError):
        kind = version = None
    if kind != "header":
        raise TraceError(f"{path}:1: kind: this is not a trace, or its header is torn")
    if version == SCHEMA_VERSION:
        return None
    if not isinstance(version, int) or version > SCHEMA_VERSION:
        raise TraceError(
            f"{path}:1: schema_version: this trace has version {version!r}, this Mira reads up to {SCHEMA_VERSION}; "
            "install a newer one"
        )
    if any(step not in MIGRATIONS for step in range(version, SCHEMA_VERSION)):
        raise TraceError(f"{path}:1: schema_version: version {version} is too old to be read")
    return lambda line: _migrated(line, version)


def _migrated(line: dict[str, Any], version: int) -> dict[str, Any]:
    for step in range(version, SCHEMA_VERSION):
        line = MIGRATIONS[step](line)
    return line | {"schema_version": SCHEMA_VERSION} if line.get("kind") == "header" else line


def _parse(path: Path, number: int | None, raw: bytes, migrate: _Migrate) -> Line:
    place = f"{path}:{number if number is not None else 'last line'}"
    try:
        return LINE.validate_json(raw) if migrate is None else LINE.validate_python(migrate(json.loads(raw)))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        field_path = ".".join(str(part) for part in first["loc"]) or "line"
        raise TraceError(f"{place}: {field_path}: {first['msg']}") from None
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{place}: line: {error}") from None


def _last_line(handle: int, first: int) -> bytes:
    """Returns the last complete line after the first *first* bytes; empty if there is none or the end is torn."""
    size = os.fstat(handle).st_size
    start, tail = size, b""
    while start > first and b"\n" not in tail[:-1]:
        step = min(_TAIL_BYTES, start - first)
        start -= step
        tail = os.pread(handle, step, start) + tail
    return tail[:-1].rpartition(b"\n")[2] if tail.endswith(b"\n") else b""


@dataclass(slots=True)
class _Builder:
    """Collects the lines of one file and checks their order."""

    path: Path
    header: Header | None = None
    plans: list[PlanRecord] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    footer: Footer | None = None
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    policies: list[str] = field(default_factory=list[str])

    def add(self, number: int, line: Line) -> None:
        if self.footer is not None:
            self._continue_after(self.footer, number, line)
        if (self.header is None) != isinstance(line, Header):
            raise self._error(number, "a second header" if self.header else f"{line.kind} before the header")
        match line:
            case Header():
                self.header, self.config = line, line.config
            case PlanRecord():
                self.plans.append(line)
            case Intent():
                self._add_intent(number, line)
            case Commit():
                self._add_commit(number, line)
            case Event():
                self.events.append(line)
                self.config = self.config if line.config is None else line.config
            case Footer():
                self.footer = line

    def _continue_after(self, footer: Footer, number: int, line: Line) -> None:
        """An event after a resumable footer, or after one of a limit, makes the footer invalid."""
        if not (footer.resumable or footer.ended_by in LIMITS) or not isinstance(line, Event):
            raise self._error(number, f"{line.kind} after the footer")
        self.footer = None

    def _add_intent(self, number: int, intent: Intent) -> None:
        last = self.steps[-1] if self.steps else None
        # A run that was killed between intent and commit may repeat the step.
        least = 1 if last is None else last.intent.step + (last.commit is not None)
        if intent.step < least:
            raise self._error(number, f"step {intent.step} where {least} or more was expected", "step")
        self.steps.append(Step(intent, None))
        policy = str(self.config.get("policy", ""))
        if self.policies[-1:] != [policy]:
            self.policies.append(policy)

    def _add_commit(self, number: int, commit: Commit) -> None:
        last = self.steps[-1] if self.steps else None
        if last is None or last.intent.step != commit.step:
            raise self._error(number, f"commit of step {commit.step} without its intent", "step")
        if last.commit is not None:
            raise self._error(number, f"step {commit.step} is committed twice", "step")
        self.steps[-1] = Step(last.intent, commit)

    def trace(self, torn: bool, seal: Seal) -> Trace:
        if self.header is None:
            raise TraceError(f"{self.path}:1: kind: the trace is empty")
        return Trace(
            self.path,
            self.header,
            tuple(self.plans),
            tuple(self.steps),
            tuple(self.events),
            self.footer,
            torn,
            seal,
            self.config,
            tuple(self.policies),
        )

    def _error(self, number: int, message: str, field_name: str = "kind") -> TraceError:
        return TraceError(f"{self.path}:{number}: {field_name}: {message}")
