"""A scripted policy that plays recorded steps again, as many in one answer as the page shows controls for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agent.episode.policy import ActionProposal, Turn
from agent.run.discover_traces import discover_traces
from envs.core.action_languages import Language
from envs.core.actions import FORM_FILLING, Action, Stop
from envs.core.observation import ElementKey, Observation
from envs.core.trace_store import Trace


@dataclass(frozen=True, slots=True)
class Recorded:
    """A step of an earlier episode: its action and the element that it named."""

    action: Action
    target: ElementKey | None

    def on(self, observation: Observation) -> Action | None:
        """The action with the number that its element has in *observation*; None where it is not shown."""
        if self.target is None:
            return self.action
        found = next(
            (element for element in observation.elements if element.key == self.target and element.shown), None
        )
        return None if found is None else self.action.model_copy(update={"ref": found.ref})


def recorded(run: Path) -> dict[str, tuple[Recorded, ...]]:
    """The steps of every episode of *run*, by the id of its task."""
    return {trace.header.task.id: _steps(trace) for trace in (file.read() for file in discover_traces([run]))}


def _steps(trace: Trace) -> tuple[Recorded, ...]:
    intents = (step.intent for step in trace.steps if step.commit is not None)
    return tuple(Recorded(intent.action, None if intent.target is None else intent.target.key) for intent in intents)


class BatchingPolicy:
    """Answers with the next recorded steps in one text, which is parsed as that of a model. It counts its answers."""

    spec = "scripted"

    def __init__(self, script: Mapping[str, Sequence[Recorded]], language: Language, most: int) -> None:
        self._script = script
        self._language = language
        self._most = most
        self.answers = 0

    async def propose(self, turn: Turn) -> ActionProposal:
        self.answers += 1
        actions = self._next(self._script[turn.task.id][len(turn.past) :], turn.view.observation)
        raw = "\n".join(map(self._language.show, actions or [Stop()]))
        first, *then = self._language.parse_all(raw)
        return replace(ActionProposal(first.action, raw), then=tuple(then))

    def _next(self, left: Sequence[Recorded], observation: Observation) -> list[Action]:
        actions: list[Action] = []
        for step in left[: self._most]:
            action = step.on(observation)
            if action is None:
                break
            actions.append(action)
            if not isinstance(action, FORM_FILLING):
                break
        return actions


class ScriptedAnswers:
    """Answers with the actions that a function of the turn returns, as one text in the action language."""

    spec = "scripted"

    def __init__(self, script: Callable[[Turn], Sequence[Action]], language: Language) -> None:
        self._script = script
        self._language = language

    async def propose(self, turn: Turn) -> ActionProposal:
        raw = "\n".join(map(self._language.show, self._script(turn)))
        first, *then = self._language.parse_all(raw)
        return replace(ActionProposal(first.action, raw), then=tuple(then))
