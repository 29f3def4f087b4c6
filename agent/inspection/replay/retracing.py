"""The policy of a branched run: proposes the steps of the parent trace, then delegates to another policy.

Because a policy proposes the old steps, they are handled like new ones: intents are written before actions are sent,
approvals are requested, limits apply, and a killed run resumes. If an element of the parent is missing, the run ends as
broken and the action is not executed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from agent.episode.policy import ActionProposal, Policy, Turn
from agent.inspection.replay.page import Page
from agent.inspection.replay.recorded import RecordedStep, Recording, named_elements
from agent.inspection.replay.resolve import Match, resolve
from agent.inspection.replay.steps import UNTOUCHED, aimed, led_to, place_of
from agent.run.discover_traces import EpisodeFile
from agent.run.run_store import Branch
from envs.core.action_languages import Language
from envs.core.actions import Stop, Wait
from envs.core.errors import BadInput
from envs.core.notes import edits_between
from envs.core.past_actions import PastAction
from models.base import ModelError

_NUMBER: Final = re.compile(r"\d+")
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
    other_end: str = ""
    """How the last step's status differs from the recorded one; empty if it does not."""
    just_done: bool = False
    """Whether the last action of the episode completed a step of the parent."""


class Retracing:
    """Proposes the steps of *recording* up to *last*, then the proposals of *then*. Stateless, like every policy."""

    def __init__(self, recording: Recording, last: int, then: Policy, language: Language) -> None:
        self.spec = then.spec
        self._recording = recording
        self._steps = repeatable_steps(recording, last)
        self._then = then
        self._language = language

    async def propose(self, turn: Turn) -> ActionProposal:
        """Raises BranchLost if a step cannot be repeated, and the errors of the other policy."""
        position = self._position(turn.past)
        elsewhere = position.other_end or self._elsewhere(position, turn)
        if elsewhere:
            raise BranchLost(self._message(self._steps[position.done - 1], elsewhere))
        if position.done == len(self._steps):
            return await self._then.propose(turn)
        step = self._steps[position.done]
        matches = self._matches(step, turn)
        missing = next((match.reason for match in matches.values() if match.element is None), "")
        no_op = bool(position.tries) and not isinstance(turn.past[-1].action, Wait)
        if not missing and not no_op:
            action = aimed(step.action, matches)
            why = "; ".join(match.reason for match in matches.values() if match.reason)
            remark, edits = self._message(step, why or "repeated"), edits_between(turn.view.notes, step.sent.notes)
            return ActionProposal(action, self._language.show(action), notes=(remark,), note_edits=edits)
        if position.tries >= MAX_TRIES:
            raise BranchLost(self._message(step, missing or "its element cannot be acted on"))
        late = self._message(step, missing or "its element cannot be acted on yet")
        return ActionProposal(Wait(), self._language.show(Wait()), notes=(late,))

    def _matches(self, step: RecordedStep, turn: Turn) -> dict[str, Match]:
        page, now = self._recording.page(step.sent.intent), Page.live(turn.view.observation)
        return {name: resolve(element, page, now) for name, element in named_elements(step, page).items()}

    def _elsewhere(self, position: _Position, turn: Turn) -> str:
        """Describes the page after the last step if it is not the recorded one; numbers in addresses are ignored."""
        then = led_to(self._steps[position.done - 1]) if position.just_done else ""
        now = turn.view.observation.url
        if not then or _NUMBER.sub("#", place_of(now)) == _NUMBER.sub("#", place_of(then)):
            return ""
        return f"it led to {place_of(now)}, recorded {place_of(then)}"

    def _position(self, past: Sequence[PastAction]) -> _Position:
        at = _Position(0, 0)
        for past_action in past:
            if at.done == len(self._steps):
                return replace(at, tries=0, just_done=False)
            step = self._steps[at.done]
            status = None if past_action.result is None else past_action.result.status
            waited = isinstance(past_action.action, Wait) and not isinstance(step.action, Wait)
            if waited or (status in UNTOUCHED and status is not step.status):
                at = replace(at, tries=at.tries + 1, just_done=False)
                continue
            differs = status is not None and step.status not in (None, status)
            at = _Position(at.done + 1, 0, f"{status}, recorded {step.status}" if differs else "", just_done=True)
            if at.other_end:
                return at
        return at

    def _message(self, step: RecordedStep, text: str) -> str:
        header = self._recording.header
        return f"step {step.number} of {header.run_id}/{header.episode_id}: {text}"


def repeatable_steps(recording: Recording, last: int) -> tuple[RecordedStep, ...]:
    """The steps up to *last* that reached the page."""
    return tuple(
        step
        for step in recording.steps
        if step.number <= last and step.is_repeatable and not isinstance(step.action, Stop)
    )


def retraced(branch: Branch, then: Policy, language: Language) -> Retracing:
    """Builds the policy of a branched run. Raises BadInput if the parent's trace does not exist any more."""
    if not branch.trace.is_file():
        raise BadInput(f"this run branches from {str(branch.trace)!r}, which does not exist: restore it to continue")
    return Retracing(Recording.read(EpisodeFile(branch.trace)), branch.parent.step, then, language)
