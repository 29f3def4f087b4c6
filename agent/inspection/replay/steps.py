"""Does recorded steps again in an environment that is at their start, one verdict each."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal
from urllib.parse import urlsplit

from pydantic import Field

from agent.episode.action_names import in_words
from agent.inspection.replay.page import Page, Standing
from agent.inspection.replay.recorded import RecordedStep, Recording, named_elements
from agent.inspection.replay.records import ReplayedStep, Verdict
from agent.inspection.replay.resolve import How, Match, key_text, resolve
from envs.core.action_languages import PROGRAM
from envs.core.actions import WAITING, Action, ActionResult, Drag, Status, Stop, UseTool, Wait
from envs.core.observation import ElementKey, Observation
from envs.core.record import Record
from envs.core.tasks import Environment
from envs.core.trace import Intent
from envs.observer.page_state import page_state, steady_text

UNTOUCHED: Final = frozenset(
    {Status.STALE, Status.AMBIGUOUS, Status.COVERED, Status.DISABLED, Status.NOT_ACTIONABLE, Status.NO_SUCH_REF}
)
"""Statuses of actions that did not reach the page and may be retried after the page has changed."""


class ReplayOptions(Record):
    """Which steps a replay repeats, and how it handles differences."""

    from_step: int = Field(default=1, ge=1)
    """Earlier steps are repeated without being listed."""
    until_step: int | None = Field(default=None, ge=1)
    """The last step to repeat; None for all."""
    on_difference: Literal["continue", "stop"] = "continue"
    """What to do after the first step that is missing or different."""
    patience_s: float = Field(default=5.0, ge=0)
    """Maximum wait for a late element or address, in seconds."""


@dataclass(slots=True)
class Walk:
    """The steps repeated so far."""

    steps: list[ReplayedStep] = field(default_factory=list[ReplayedStep])
    done: int = 0
    answer: str | None = None
    """The answer of the Stop action, if it was repeated."""
    complete: bool = False
    """Whether all steps were repeated, whatever their results, or the environment ended the episode."""


class Walker:
    """Repeats a recording in an environment that is at the start of its task."""

    def __init__(
        self,
        environment: Environment,
        recording: Recording,
        options: ReplayOptions,
        on_step: Callable[[ReplayedStep], None] | None = None,
    ) -> None:
        self._environment = environment
        self._recording = recording
        self._options = options
        self._on_step = on_step
        self._observation: Observation | None = None
        self._downloading = _downloading(recording.steps)
        self._downloads = 0
        """Downloads that the recording reports until now, refused ones too."""

    async def go(self) -> Walk:
        """Repeats all steps, or those that the options select. Raises TraceError for a missing blob."""
        walk = Walk()
        last = self._options.until_step
        for step in self._recording.steps:
            if last is not None and step.number > last:
                return walk
            replayed = await self._step(step)
            walk.done += 1
            deviates = replayed.verdict in (Verdict.MISSING, Verdict.DIFFERENT)
            if deviates or step.number >= self._options.from_step:
                walk.steps.append(replayed)
                if self._on_step is not None:
                    self._on_step(replayed)
            if isinstance(step.action, Stop):
                walk.answer = step.action.answer
            if deviates and self._options.on_difference == "stop":
                return walk
            if await self._environment.done():
                break
        walk.complete = last is None or walk.done == len(self._recording.steps)
        return walk

    async def _step(self, step: RecordedStep) -> ReplayedStep:
        began = time.monotonic()
        row = ReplayedStep(
            step=step.number,
            action=PROGRAM.show(step.action),
            words=self._words(step),
            verdict=Verdict.SAME,
            recorded_status=step.status,
        )
        if not step.is_repeatable:
            return row.model_copy(update={"note": f"not sent: in the recording, {_why_not_sent(step)}"})
        page = self._recording.page(step.sent.intent)
        targets = named_elements(step, page)
        target = key_text(targets["ref"].key) if "ref" in targets else ""
        self._permit_downloads(step)
        matches, result = await self._do(step, page, targets)
        await self._await_downloads(step)
        observation = self._observation = await self._arrived(step)
        how = _worst(matches)
        update: dict[str, object] = {"found": how, "target": target, "url": observation.url}
        if result is None:
            update |= {"verdict": Verdict.MISSING, "reason": _reasons(matches)}
        else:
            difference = _difference(step, result, observation)
            moved = Verdict.MOVED if how is How.MOVED else Verdict.SAME
            update |= {
                "verdict": Verdict.DIFFERENT if difference else moved,
                "status": result.status,
                "reason": difference or _reasons(matches),
                "note": self._note(step.after, observation),
            }
        return row.model_copy(update={**update, "seconds": round(time.monotonic() - began, 3)})

    def _permit_downloads(self, step: RecordedStep) -> None:
        """Where downloads need approval, permits those of a step that had one in the recording."""
        session = self._environment.session
        if session is not None and session.settings.downloads == "approved" and not isinstance(step.action, WAITING):
            session.downloads.permitted = step.number in self._downloading

    async def _await_downloads(self, step: RecordedStep) -> None:
        """Waits for the downloads that this step reported in the recording. One that began during the next step would
        be refused where that step's download was declined."""
        result = None if step.sent.commit is None else step.sent.commit.result
        if result is None:
            return
        self._downloads += len(result.downloads) + result.unapproved_downloads
        session = self._environment.session
        if session is not None and result.downloads:
            await session.downloads.begun.until(self._downloads, self._options.patience_s)
            await session.downloads.finish(self._options.patience_s)

    def _words(self, step: RecordedStep) -> str:
        intent = step.sent.intent
        onto: ElementKey | None = None
        if isinstance(step.action, Drag):
            to = self._recording.page(intent).by_ref.get(step.action.to_ref)
            onto = to.key if to is not None else None
        return in_words(step.action, intent.target.key if intent.target is not None else None, onto)

    async def _do(
        self, step: RecordedStep, page: Page, targets: Mapping[str, Standing]
    ) -> tuple[Mapping[str, Match], ActionResult | None]:
        """Finds the elements and executes the action, with retries while the page may be loading; None: not sent."""
        deadline = time.monotonic() + self._options.patience_s
        while True:
            observation = self._observation if self._observation is not None else await self._environment.observe()
            self._observation = None
            now = Page.live(observation)
            matches = {name: resolve(element, page, now) for name, element in targets.items()}
            if all(match.element is not None for match in matches.values()):
                result = await self._environment.execute(aimed(step.action, matches))
                went_well = step.status is None or result.status is step.status or result.status not in UNTOUCHED
                if went_well or time.monotonic() >= deadline:
                    return matches, result
            elif time.monotonic() >= deadline or observation.dialog is not None:
                return matches, None
            await self._environment.execute(Wait())

    async def _arrived(self, step: RecordedStep) -> Observation:
        """The observation after the step; waits for a late address."""
        observation = await self._environment.observe()
        deadline = time.monotonic() + self._options.patience_s
        while time.monotonic() < deadline and observation.dialog is None and _elsewhere(step, observation):
            waited = await self._environment.execute(Wait())
            observation = await self._environment.observe()
            if waited.reason is not None:  # nothing changed, or the wait failed
                break
        return observation

    def _note(self, after: Intent | None, observation: Observation) -> str:
        if after is None or after.seen.state == page_state(observation.url, observation.text):
            return ""
        then, now = _lines(self._recording.text(after)), _lines(observation.text)
        changed = (then - now).total() + (now - then).total()
        return f"{changed} lines of the page differ" if changed else ""


def _why_not_sent(step: RecordedStep) -> str:
    """Why a step is not repeated."""
    if isinstance(step.action, UseTool):
        return "it called a tool"
    if not step.was_declined:
        return "it named an element that was not shown"
    commit = step.sent.commit
    held = commit is not None and commit.result.held_requests
    return "a request that it caused was declined" if held else "it was declined"


def _downloading(steps: Sequence[RecordedStep]) -> frozenset[int]:
    """Numbers of the steps in which an approved download may have begun: one that reports a file, and the one before
    it, because a download may end late. Not one in which a download was refused."""
    begun: list[int] = []
    numbers: set[int] = set()
    for step in steps:
        if not isinstance(step.action, WAITING):
            begun.append(step.number)
        result = None if step.sent.commit is None else step.sent.commit.result
        if result is not None and result.downloads:
            numbers.update(begun[-2:])
        if result is not None and result.unapproved_downloads:
            numbers.discard(step.number)
    return frozenset(numbers)


def aimed(action: Action, matches: Mapping[str, Match]) -> Action:
    """The action with the references of the matched elements."""
    refs = {name: match.element.ref for name, match in matches.items() if match.element is not None}
    return action.model_copy(update=refs) if refs else action


def _worst(matches: Mapping[str, Match]) -> How | None:
    kinds = {match.how for match in matches.values()}
    return next((how for how in (How.MISSING, How.MOVED, How.SAME) if how in kinds), None)


def _reasons(matches: Mapping[str, Match]) -> str:
    return "; ".join(match.reason for match in matches.values() if match.reason)


def _difference(step: RecordedStep, result: ActionResult, observation: Observation) -> str:
    """How the result differs from the recorded one; empty if it does not."""
    commit = step.sent.commit
    if commit is None:
        return ""
    then = commit.result
    if result.status is not then.status:
        return f"{result.status.value}, recorded {then.status.value}" + (
            f": {result.message}" if result.message else ""
        )
    if _elsewhere(step, observation):
        return f"it led to {place_of(observation.url)}, recorded {place_of(led_to(step))}"
    if (opened := _dialogs(result)) != (recorded := _dialogs(then)):
        return f"dialogs opened: {opened}; recorded: {recorded}"
    if result.new_tabs != then.new_tabs:
        return f"{result.new_tabs} tabs opened, recorded {then.new_tabs}"
    return ""


def _dialogs(result: ActionResult) -> str:
    """The types of the dialogs that opened, in order."""
    return ", ".join(dialog.type for dialog in result.dialogs) or "none"


def _elsewhere(step: RecordedStep, observation: Observation) -> bool:
    then = led_to(step)
    return bool(then) and place_of(observation.url) != place_of(then)


def led_to(step: RecordedStep) -> str:
    """The recorded address after the step; empty if unknown."""
    if step.after is not None:
        return step.after.seen.url
    return step.sent.commit.result.url if step.sent.commit is not None else ""


def place_of(url: str) -> str:
    """Host and path of *url*, without port and query, which differ between runs."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    return f"{parts.hostname or ''}{parts.path.rstrip('/')}" or url


def _lines(text: str) -> Counter[str]:
    return Counter(steady_text(text).splitlines())
