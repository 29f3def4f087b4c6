"""Reads a trace for replay: its steps, the elements that they name, and their results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agent.inspection.replay.page import Page, Standing
from agent.run.changed_settings import CHANGEABLE
from agent.run.discover_traces import EpisodeFile
from agent.run.resume import RecoveredEpisode, SentAction, recover
from agent.run.run_store import OpenTask, RunFolder
from envs.core.actions import Action, Drag, Status, UseTool
from envs.core.errors import BadInput, TraceError
from envs.core.trace import Footer, Header, Intent, Line
from envs.core.trace_store import BlobStore, check_chain, iter_lines, read_element_keys
from envs.suites.open_web import SUITE as OPEN


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """A step that was committed, or may have happened."""

    sent: SentAction
    after: Intent | None
    """The next step's intent, whose observation shows the result of this step; None for the last step."""

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
    def names_unknown_element(self) -> bool:
        """Whether the action named an element that was not shown, so that it was not executed."""
        return getattr(self.action, "ref", None) is not None and self.sent.intent.target is None

    @property
    def was_declined(self) -> bool:
        """See :attr:`agent.run.resume.SentAction.declined`. Such a step is not repeated."""
        return self.sent.declined

    @property
    def is_repeatable(self) -> bool:
        """Whether the step reached the page. One that was declined, that named an element that was not shown, or that
        called a tool is not repeated."""
        return not (self.was_declined or self.names_unknown_element or isinstance(self.action, UseTool))


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded episode. Its pages are read on demand."""

    file: EpisodeFile
    header: Header
    """With the models and limits at the end, which a resume may have changed."""
    steps: tuple[RecordedStep, ...]
    footer: Footer | None
    blobs: BlobStore
    own: bool
    """Whether this machine wrote the header and steps in their present form."""
    start: OpenTask | None
    """The instruction and start URL of an open task; else None."""

    @classmethod
    def read(cls, file: EpisodeFile) -> Recording:
        """Reads the trace. Raises TraceError with file, line and field; BadInput for an open task without start URL."""
        lines = tuple(iter_lines(file.path))
        if not lines:
            raise TraceError(f"{file.path}:1: kind: the trace is empty")
        recovered = recover(lines)
        after = (*(sent.intent for sent in recovered.sent[1:]), None)
        steps = tuple(RecordedStep(sent, seen) for sent, seen in zip(recovered.sent, after, strict=False))
        seal = check_chain(file.path)
        own = seal.own_header and seal.own
        header = recovered.header.model_copy(update={"config": _config(recovered)})
        return cls(file, header, steps, _footer(lines), file.blobs, own, _start(file, header, own=own))

    def page(self, intent: Intent) -> Page:
        """The page that the policy saw; without blobs, as in imported traces, only the target."""
        target = intent.target
        seen = intent.seen
        if not seen.text_blob or not seen.keys_blob:
            return Page.recorded("", () if target is None else (target,))
        rows = read_element_keys(self.blobs, seen)
        known = {row.ref for row in rows}
        if target is not None and target.ref not in known:
            rows = (*rows, target)
        return Page.recorded(self.text(intent), rows)

    def text(self, intent: Intent) -> str:
        return self.blobs.text(intent.seen.text_blob) if intent.seen.text_blob else ""


def named_elements(step: RecordedStep, page: Page) -> dict[str, Standing]:
    """The elements that the action names, by field name. Raises TraceError if one is not in the trace."""
    action, target = step.action, step.sent.intent.target
    elements: dict[str, Standing] = {}
    if target is not None:
        key = target.key
        elements["ref"] = page.by_ref.get(target.ref) or Standing(target.ref, key, None)
    if isinstance(action, Drag):
        to = page.by_ref.get(action.to_ref)
        if to is None:
            raise TraceError(
                f"step {step.number}: the element {action.to_ref}, where the drag ends, is not in the trace"
            )
        elements["to_ref"] = to
    return elements


def _start(file: EpisodeFile, header: Header, *, own: bool) -> OpenTask | None:
    """The open task: from the run's manifest if this machine wrote both, else from the header.

    The header has the URL after redirects of the start URL."""
    if header.task.suite != OPEN:
        return None
    folder = RunFolder(file.folder)
    if own and folder.manifest.exists():
        manifest, own_run = folder.read_marked()
        if own_run and manifest.run_id == header.run_id and manifest.open_task is not None:
            return manifest.open_task
    if not header.start_url:
        raise BadInput(f"{file.path}: the header has no start URL (start_url)")
    return OpenTask(instruction=header.instruction, url=header.start_url)


def _config(recovered: RecoveredEpisode) -> dict[str, Any]:
    """The configuration of the header, with what a resume may change as it is at the end."""
    last = {key.partition(".")[0] for key in CHANGEABLE} & recovered.config.keys()
    return recovered.header.config | {key: recovered.config[key] for key in last}


def _footer(lines: Sequence[Line]) -> Footer | None:
    """The last line if it is a footer; earlier footers are superseded."""
    return lines[-1] if isinstance(lines[-1], Footer) else None
