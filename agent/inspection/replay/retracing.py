"""The policy of a branched run: proposes the steps of the parent trace, then delegates to another policy.

Because a policy proposes the old steps, they are handled like new ones: intents are written before actions are sent,
approvals are requested, limits apply, and a killed run resumes. If an element of the parent is missing, or a step leads
elsewhere, the action is not executed: the run ends as broken, or the other policy continues in a run that heals.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final

from agent.episode.policy import ActionProposal, Policy, Turn
from agent.inspection.replay.page import Page
from agent.inspection.replay.recorded import RecordedStep, Recording, named_elements
from agent.inspection.replay.resolve import Match, resolve
from agent.inspection.replay.steps import UNTOUCHED, aimed, led_to, place_of
from agent.run.discover_traces import EpisodeFile
from agent.run.run_store import Branch
from envs.core.action_languages import Language
from envs.core.actions import Action, Select, Stop, Type, UseTool, Wait
from envs.core.errors import BadInput
from envs.core.notes import edits_between
from envs.core.past_actions import PastAction
from models.base import ModelError

_NUMBER: Final = re.compile(r"\d+")
_VALUE: Final = re.compile(r' = "((?:[^"\\]|\\.)*)"')
"""The value of a field in a page's text, which an earlier step may have filled in."""
_TEXTS: Final = frozenset({"text", "option", "url"})
"""Fields of actions whose texts are replaced: what is typed, searched or chosen, and addresses."""
MAX_TRIES: Final = 4
"""Maximum waits and no-op attempts at one step; a wait lasts at most half of the settle timeout."""


class BranchLost(ModelError):
    """A step of the parent cannot be repeated, so the branch cannot start."""

    lasting = True


@dataclass(frozen=True, slots=True)
class _Position:
    """Progress in repeating the parent's steps."""

    done: int
    tries: int
    """Waits and no-op attempts at the next step."""
    lost: str = ""
    """Why the steps cannot be continued: the last one ended or led otherwise; empty if they can."""


class Retracing:
    """Proposes the steps of *recording* up to *last*, then the proposals of *then*. Stateless, like every policy.

    *heals*: *then* continues where a step cannot be repeated. *texts*: (recorded, new) texts of actions."""

    def __init__(
        self,
        recording: Recording,
        last: int,
        then: Policy,
        language: Language,
        *,
        heals: bool = False,
        texts: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.spec = then.spec
        self._recording = recording
        self._heals = heals
        self._texts = texts
        steps = repeatable_steps(recording, last)
        kept = tuple(takewhile(self._is_independent, recording.steps)) if heals else recording.steps
        self._steps = tuple(step for step in steps if step in kept)
        self._ends_alike = heals and kept == recording.steps and _has_no_answer(recording)
        """Whether the run may end as the parent did, without the other policy: after all steps, with no answer, which
        could be another one today."""
        self._then = then
        self._language = language

    async def propose(self, turn: Turn) -> ActionProposal:
        """Raises BranchLost if a step cannot be repeated and *heals* is not set, and the errors of the other policy."""
        position = self._position(turn.past, turn.view.observation.url)
        if position.lost:
            return await self._lost(turn, self._steps[max(0, position.done - 1)], position.lost)
        if position.done == len(self._steps):
            return self._end if self._ends_alike else await self._then.propose(turn)
        step = self._steps[position.done]
        matches = self._matches(step, turn)
        missing = next((match.reason for match in matches.values() if match.element is None), "")
        no_op = bool(position.tries) and not isinstance(turn.past[-1].action, Wait)
        if position.tries >= MAX_TRIES and (missing or no_op or self._heals):
            return await self._lost(turn, step, missing or "its element cannot be acted on")
        if self._heals and not missing and (emptied := self._emptied(position.done, turn)):
            return await self._lost(turn, step, emptied)
        if not missing and not no_op:
            action = self._with_texts(aimed(step.action, matches))
            why = "; ".join(match.reason for match in matches.values() if match.reason)
            remark, edits = self._message(step, why or "repeated"), edits_between(turn.view.notes, step.sent.notes)
            return ActionProposal(action, self._language.show(action), notes=(remark,), note_edits=edits)
        late = self._message(step, missing or "its element cannot be acted on yet")
        return ActionProposal(Wait(), self._language.show(Wait()), notes=(late,))

    async def _lost(self, turn: Turn, step: RecordedStep, why: str) -> ActionProposal:
        if self._heals:
            return await self._then.propose(turn)
        raise BranchLost(self._message(step, why))

    @property
    def _end(self) -> ActionProposal:
        stop = Stop()
        return ActionProposal(stop, self._language.show(stop), notes=("ends as the parent did",))

    def _is_independent(self, step: RecordedStep) -> bool:
        """Whether the step can be repeated without a decision: it calls no tool, and no text that is replaced is in the
        name or the line of its element, which would be another one."""
        if isinstance(step.action, UseTool):
            return False
        page = self._recording.page(step.sent.intent)
        for element in named_elements(step, page).values():
            line = "" if element.line is None else _VALUE.sub("", page.lines[element.line])
            if any(old in element.key.name or old in line for old, _ in self._texts):
                return False
        return True

    def _emptied(self, done: int, turn: Turn) -> str:
        """Says which text of an earlier step was in a field at the step after *done* ones and is not now, as where a
        resume has reopened the page; empty if none."""
        shown = self._values(self._recording.page(self._steps[done].sent.intent))
        now = self._values(Page.live(turn.view.observation))
        filled = [one.action for one in self._steps[:done] if isinstance(one.action, Type | Select)]
        texts = [action.text if isinstance(action, Type) else action.option for action in filled]
        lost = [text for text in texts if text in shown and replaced(text, self._texts) not in now]
        return f"the field with {lost[0]!r} is empty" if lost else ""

    @staticmethod
    def _values(page: Page) -> set[str]:
        return {re.sub(r"\\(.)", r"\1", value[1]) for line in page.lines for value in _VALUE.finditer(line)}

    def _with_texts(self, action: Action) -> Action:
        changed = {
            name: replaced(value, self._texts) for name, value in action if name in _TEXTS and isinstance(value, str)
        }
        return action.model_copy(update=changed) if changed else action

    def _matches(self, step: RecordedStep, turn: Turn) -> dict[str, Match]:
        page, now = self._recording.page(step.sent.intent), Page.live(turn.view.observation)
        return {name: resolve(element, page, now) for name, element in named_elements(step, page).items()}

    def _position(self, past: Sequence[PastAction], url: str) -> _Position:
        """*url*: of the page after the last action."""
        at = _Position(0, 0)
        afterwards = [*("" if action.page is None else action.page.url for action in past[1:]), url]
        for past_action, after in zip(past, afterwards, strict=False):  # nothing is past at the first step
            if at.lost or at.done == len(self._steps):
                return replace(at, tries=0)
            step = self._steps[at.done]
            if self._heals and not self._is_repeated(past_action):  # the other policy's, and so are all after it
                return replace(at, lost="the other policy has continued")
            status = None if past_action.result is None else past_action.result.status
            waited = isinstance(past_action.action, Wait) and not isinstance(step.action, Wait)
            if waited or (status in UNTOUCHED and status is not step.status):
                at = replace(at, tries=at.tries + 1)
                continue
            differs = status is not None and step.status not in (None, status)
            lost = f"{status}, recorded {step.status}" if differs else self._elsewhere(step, after)
            at = _Position(at.done + 1, 0, lost)
        return at

    def _elsewhere(self, step: RecordedStep, now: str) -> str:
        """Describes the page *now* after *step* if it is not the recorded one; numbers in addresses are ignored, and so
        are new texts."""
        then = replaced(led_to(step), self._texts)
        if not then or not now or _NUMBER.sub("#", place_of(now)) == _NUMBER.sub("#", place_of(then)):
            return ""
        return f"it led to {place_of(now)}, recorded {place_of(then)}"

    def _is_repeated(self, past_action: PastAction) -> bool:
        """Whether this policy proposed the action: its remark names the parent."""
        return any(self._parent in note for note in past_action.notes)

    @property
    def _parent(self) -> str:
        return f" of {self._recording.header.run_id}/{self._recording.header.episode_id}: "

    def _message(self, step: RecordedStep, text: str) -> str:
        return f"step {step.number}{self._parent}{text}"


def repeatable_steps(recording: Recording, last: int) -> tuple[RecordedStep, ...]:
    """The steps up to *last* that reached the page."""
    return tuple(
        step
        for step in recording.steps
        if step.number <= last and step.is_repeatable and not isinstance(step.action, Stop)
    )


def _has_no_answer(recording: Recording) -> bool:
    last = recording.steps[-1].action if recording.steps else None
    return isinstance(last, Stop) and last.answer is None


def replaced(text: str, texts: Sequence[tuple[str, str]]) -> str:
    """*text* with each recorded text of *texts* replaced by the new one, in one pass, longer ones first."""
    new = dict(texts)
    if not new:
        return text
    pattern = "|".join(map(re.escape, sorted(new, key=len, reverse=True)))
    return re.sub(pattern, lambda match: new[match.group()], text)


def retraced(branch: Branch, then: Policy, language: Language) -> Retracing:
    """Builds the policy of a branched run. Raises BadInput if the parent's trace does not exist any more."""
    if not branch.trace.is_file():
        raise BadInput(f"this run branches from {str(branch.trace)!r}, which does not exist: restore it to continue")
    recording = Recording.read(EpisodeFile(branch.trace))
    return Retracing(recording, branch.parent.step, then, language, heals=branch.heals, texts=branch.texts)
