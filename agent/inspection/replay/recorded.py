"""A trace as a replay reads it: the steps that count, what they named, and what came of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import TypeAdapter, ValidationError

from agent.inspection.replay.page import Page, Standing
from agent.run.discover_traces import EpisodeFile
from agent.run.resume import Sent, recover
from agent.run.run_store import OpenTask, RunFolder
from envs.core.actions import Action, Drag, Status
from envs.core.errors import BadInput, TraceError
from envs.core.trace import ElementKeyRecord, Footer, Header, Intent, Line
from envs.core.trace_store import BlobStore, check_chain, iter_lines
from envs.suites.open_web import SUITE as OPEN

_ROWS: Final = TypeAdapter(tuple[ElementKeyRecord, ...])


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """A step that counts: it was committed, or may have happened."""

    sent: Sent
    after: Intent | None
    """The next step's intent, whose look is what this step led to; None for the last."""

    @property
    def number(self) -> int:
        return self.sent.intent.step

    @property
    def action(self) -> Action:
        return self.sent.intent.action

    @property
    def status(self) -> Status | None:
        return self.sent.status

    @property
    def names_nothing(self) -> bool:
        """The action named an element that was not shown, so nothing was done."""
        return getattr(self.action, "ref", None) is not None and self.sent.intent.target is None

    @property
    def was_declined(self) -> bool:
        """A person said no to it: it was never sent."""
        return self.sent.declined


@dataclass(frozen=True, slots=True)
class Recording:
    """One episode, read once; its pages are read when they are asked for."""

    file: EpisodeFile
    header: Header
    steps: tuple[RecordedStep, ...]
    footer: Footer | None
    blobs: BlobStore
    own: bool
    """This machine wrote the header and the steps, as they are now."""
    start: OpenTask | None
    """Of an open task: what is done again, and where it starts."""

    @classmethod
    def read(cls, file: EpisodeFile) -> Recording:
        """Raises TraceError naming file, line and field, and BadInput for an open task without an address."""
        lines = tuple(iter_lines(file.path))
        if not lines:
            raise TraceError(f"{file.path}:1: kind: the trace is empty")
        found = recover(lines)
        after = (*(sent.intent for sent in found.sent[1:]), None)
        steps = tuple(RecordedStep(sent, seen) for sent, seen in zip(found.sent, after, strict=False))
        seal = check_chain(file.path)
        own = seal.own_header and seal.own
        return cls(file, found.header, steps, _footer(lines), file.blobs, own, _start(file, found.header, own=own))

    def page(self, intent: Intent) -> Page:
        """The page that the policy saw. Without the blobs (an imported trace), the target alone."""
        target = intent.target
        seen = intent.seen
        if not seen.text_blob or not seen.keys_blob:
            return Page.recorded("", () if target is None else (target,))
        try:
            rows = _ROWS.validate_json(self.blobs.read(seen.keys_blob))
        except ValidationError:
            raise TraceError(f"blob {seen.keys_blob} in {self.blobs.folder} holds no keys of elements") from None
        known = {row.ref for row in rows}
        if target is not None and target.ref not in known:
            rows = (*rows, target)
        return Page.recorded(self.text(intent), rows)

    def text(self, intent: Intent) -> str:
        return self.blobs.text(intent.seen.text_blob) if intent.seen.text_blob else ""


def wanted(step: RecordedStep, page: Page) -> dict[str, Standing]:
    """The elements that the action names, by the field that names them. Raises TraceError where one is not known."""
    action, target = step.action, step.sent.intent.target
    found: dict[str, Standing] = {}
    if target is not None:
        key = target.key
        found["ref"] = page.by_ref.get(target.ref) or Standing(target.ref, key, None)
    if isinstance(action, Drag):
        to = page.by_ref.get(action.to_ref)
        if to is None:
            raise TraceError(f"step {step.number}: the element {action.to_ref} that it drags to is not in the trace")
        found["to_ref"] = to
    return found


def _start(file: EpisodeFile, header: Header, *, own: bool) -> OpenTask | None:
    """As the run's manifest has it where this machine wrote both; else from the header, which has the address that the
    start led to."""
    if header.task.suite != OPEN:
        return None
    folder = RunFolder(file.folder)
    if own and folder.manifest.exists():
        manifest, own_run = folder.read_marked()
        if own_run and manifest.run_id == header.run_id and manifest.open_task is not None:
            return manifest.open_task
    if not header.start_url:
        raise BadInput(f"{file.path}: the header names no address to start at (start_url)")
    return OpenTask(instruction=header.instruction, url=header.start_url)


def _footer(lines: Sequence[Line]) -> Footer | None:
    """The last line, if it is one: a footer before it was taken out of force."""
    return lines[-1] if isinstance(lines[-1], Footer) else None
