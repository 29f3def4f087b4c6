"""The policy of a branched run: first the steps of its parent, then whoever takes over.

Because the old steps come from a policy, everything else holds for them as for new ones: their intents are on disk
before they are sent, a person is asked where the run asks for approval, limits count, and a run that is killed on the
way resumes where it was. Where the parent's element is missing the run ends as broken: nothing is done in its place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from agent.episode.policy import ActionProposal, Policy, Turn
from agent.inspection.replay.page import Page
from agent.inspection.replay.recorded import RecordedStep, Recording, wanted
from agent.inspection.replay.resolve import Match, resolve
from agent.inspection.replay.steps import UNTOUCHED, aimed, led_to, place_of
from agent.run.discover_traces import EpisodeFile
from agent.run.run_store import Branch
from envs.core.action_languages import Language
from envs.core.actions import Stop, Wait
from envs.core.errors import BadInput
from envs.core.past_actions import PastAction
from models.base import ModelError

_NUMBER: Final = re.compile(r"\d+")
MAX_TRIES: Final = 4
"""Waits and vain attempts at one step before it is given up; a wait lasts at most half of the settle bound."""


class BranchLost(ModelError):
    """A step of the parent cannot be done again: there is nothing to hand over."""

    lasting = True


@dataclass(frozen=True, slots=True)
class _Position:
    """How far the parent's steps have been done again."""

    done: int
    tries: int
    """Waits and vain attempts at the next one."""
    other_end: str = ""
    """How the last one ended, where it ended otherwise than then."""
    just_done: bool = False
    """Nothing was done after it."""


class Retracing:
    """Proposes the steps of *recording* up to *last*, then what *then* proposes. Stateless, as every policy."""

    def __init__(self, recording: Recording, last: int, then: Policy, language: Language) -> None:
        self.spec = then.spec
        self._recording = recording
        self._steps = steps_again(recording, last)
        self._then = then
        self._language = language

    async def propose(self, turn: Turn) -> ActionProposal:
        """Raises BranchLost where a step cannot be done again, and what the other policy raises."""
        position = self._position(turn.past)
        elsewhere = position.other_end or self._elsewhere(position, turn)
        if elsewhere:
            raise BranchLost(self._told(self._steps[position.done - 1], elsewhere))
        if position.done == len(self._steps):
            return await self._then.propose(turn)
        step = self._steps[position.done]
        matches = self._matches(step, turn)
        missing = next((match.reason for match in matches.values() if match.element is None), "")
        vain = bool(position.tries) and not isinstance(turn.past[-1].action, Wait)
        if not missing and not vain:
            action = aimed(step.action, matches)
            why = "; ".join(match.reason for match in matches.values() if match.reason)
            return ActionProposal(action, self._language.show(action), notes=(self._told(step, why or "done again"),))
        if position.tries >= MAX_TRIES:
            raise BranchLost(self._told(step, missing or "its element cannot be reached"))
        late = self._told(step, missing or "its element cannot be reached yet")
        return ActionProposal(Wait(), self._language.show(Wait()), notes=(late,))

    def _matches(self, step: RecordedStep, turn: Turn) -> dict[str, Match]:
        page, now = self._recording.page(step.sent.intent), Page.live(turn.view.observation)
        return {name: resolve(one, page, now) for name, one in wanted(step, page).items()}

    def _elsewhere(self, position: _Position, turn: Turn) -> str:
        """Where the last step led, if it was another page then; numbers in addresses may be others."""
        then = led_to(self._steps[position.done - 1]) if position.just_done else ""
        now = turn.view.observation.url
        if not then or _NUMBER.sub("#", place_of(now)) == _NUMBER.sub("#", place_of(then)):
            return ""
        return f"it led to {place_of(now)}, then to {place_of(then)}"

    def _position(self, past: Sequence[PastAction]) -> _Position:
        at = _Position(0, 0)
        for one in past:
            if at.done == len(self._steps):
                return replace(at, tries=0, just_done=False)
            step = self._steps[at.done]
            status = None if one.result is None else one.result.status
            waited = isinstance(one.action, Wait) and not isinstance(step.action, Wait)
            if waited or (status in UNTOUCHED and status is not step.status):
                at = replace(at, tries=at.tries + 1, just_done=False)
                continue
            differs = status is not None and step.status not in (None, status)
            at = _Position(at.done + 1, 0, f"{status}, then {step.status}" if differs else "", just_done=True)
            if at.other_end:
                return at
        return at

    def _told(self, step: RecordedStep, what: str) -> str:
        header = self._recording.header
        return f"step {step.number} of {header.run_id}/{header.episode_id}: {what}"


def steps_again(recording: Recording, last: int) -> tuple[RecordedStep, ...]:
    """The steps up to *last* that reached the page."""
    return tuple(
        step
        for step in recording.steps
        if step.number <= last and not (step.was_declined or step.names_nothing or isinstance(step.action, Stop))
    )


def retraced(branch: Branch, then: Policy, language: Language) -> Retracing:
    """*then*, after the steps of the parent. Raises BadInput where the parent's trace is not there any more."""
    if not branch.trace.is_file():
        raise BadInput(f"this run branches from {str(branch.trace)!r}, which is not there: put it back to go on")
    return Retracing(Recording.read(EpisodeFile(branch.trace)), branch.parent.step, then, language)
