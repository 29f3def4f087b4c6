"""Lets an expert label the states that a policy visits, for imitation of the expert on them (DAgger, Ross et al. 2011).

The policy plays; at every step the expert, a solver of the suite, says what it would do there. The label is stored with
the step, and `mira train sft` learns it in place of the policy's answer. A solver of MiniWoB++ knows an action for most
pages. A solver of the sites runs from the start of a task to its end: where the policy does something else, it is let
through only if the solver can undo it, and the labels after it lead back.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Final, Protocol

from agent.episode.policy import ActionProposal, Policy, Turn, storable_action
from agent.episode.profile_prompts import answer_text
from agent.run.oracle import SolverRun, miniwob_oracle
from envs.core.action_languages import Language
from envs.core.actions import Action, Back, Click, Find, Scroll, Select, Stop, Type, Wait
from envs.core.errors import BadInput
from envs.core.observation import ElementKey, Observation
from envs.suites.sites.detours import is_harmless_link
from envs.suites.sites.suite import InstanceSampler

MAX_MISTAKES: Final = 4
"""Actions of the policy in one episode that lead away from the solver's path; others are replaced by the label."""
MAX_RECOVERY: Final = 2 * MAX_MISTAKES + 2
"""Labels in a row that lead back to the solver's path."""


class Expert(Protocol):
    """Labels states."""

    async def label(self, turn: Turn) -> Action | None:
        """The expert's action at the state of *turn*; None where it knows none."""
        ...

    def permits(self, turn: Turn, action: Action) -> bool:
        """Whether the policy's *action* may be done in place of the label of the same turn."""
        ...


def expert_of(suite: str) -> Expert:
    """The expert `oracle` of a *suite*. Raises BadInput where it ships no solver."""
    match suite:
        case "miniwob":
            return MiniwobExpert()
        case "sites":
            return SitesExpert()
        case _:
            raise BadInput(
                f"--expert oracle: the suite {suite} ships no solver: leave out --expert, or use a suite with one"
            )


class MiniwobExpert:
    """The solvers of MiniWoB++, which choose by the page and the past actions. Everything is permitted except the end
    of an episode that the solver would not end."""

    async def label(self, turn: Turn) -> Action | None:
        action = miniwob_oracle(turn)
        return None if action == Stop() else action

    def permits(self, turn: Turn, action: Action) -> bool:
        return not isinstance(action, Stop)


class SitesExpert:
    """The solvers of the sites. An episode that another process began has no labels."""

    def __init__(self) -> None:
        self._sampler = InstanceSampler()
        self._followed: dict[tuple[str, int], _Followed] = {}

    async def label(self, turn: Turn) -> Action | None:
        key = (turn.task.id, turn.attempt)
        if not turn.past:
            self._followed[key] = _Followed(SolverRun(await self._sampler.instance(turn.task)))
        followed = self._followed.get(key)
        label = None if followed is None else await followed.label(turn)
        if label is None:  # the episode ends with this turn
            self._followed.pop(key, None)
        return label

    def permits(self, turn: Turn, action: Action) -> bool:
        key = (turn.task.id, turn.attempt)
        followed = self._followed.get(key)
        permitted = followed is not None and followed.permits(turn.view.observation, action)
        if permitted and isinstance(action, Stop):  # the episode ends with this turn
            del self._followed[key]
        return permitted


class _Followed:
    """A run of a solver beside a policy: its next action, and the way back to the page of that action."""

    def __init__(self, run: SolverRun) -> None:
        self._run = run
        self._action: Action | None = None
        """The solver's next action, with the element number of the last page that showed the element."""
        self._key: ElementKey | None = None
        """The element of that action."""
        self._url = ""
        """The page of that action."""
        self._label: Action | None = None
        """What the last turn was labelled with."""
        self._recovery = 0
        self._mistakes = 0
        self._typed_on = ""

    async def label(self, turn: Turn) -> Action | None:
        observation = turn.view.observation
        done = turn.past[-1].action if turn.past else None
        if isinstance(done, Type | Select):
            self._typed_on = observation.url
        if not turn.past or (done == self._label == self._action):
            self._action = storable_action(await self._run.next(turn))
            ref = getattr(self._action, "ref", None)
            element = observation.element(ref) if isinstance(ref, int) else None
            self._key, self._url, self._recovery = element and element.key, observation.url, 0
            self._label = None if self._run.problem else self._action
        else:
            self._recovery += 1
            self._label = self._way_back(observation) if self._recovery <= MAX_RECOVERY else None
        return self._label

    def _way_back(self, observation: Observation) -> Action | None:
        """The solver's action with the number of its element on this page, or what leads to it."""
        if observation.url != self._url:
            return Back()
        if self._key is None:
            return self._action
        element = next((one for one in observation.elements if one.key == self._key), None)
        if element is None or self._action is None:
            return None
        if not element.shown:
            return Find(text=element.key.name)
        self._action = self._action.model_copy(update={"ref": element.ref})
        return self._action

    def permits(self, observation: Observation, action: Action) -> bool:
        if action == self._label:
            return True
        if self._mistakes >= MAX_MISTAKES or not self._can_be_undone(observation, action):
            return False
        self._mistakes += 1
        return True

    def _can_be_undone(self, observation: Observation, action: Action) -> bool:
        """Looking around, following a link to a page without effects, or a wrong value that the solver's next action
        replaces. Typed text would be lost with the page."""
        match action:
            case Find() | Scroll() | Wait():
                return True
            case Click():
                element = observation.element(action.ref)
                return element is not None and observation.url != self._typed_on and is_harmless_link(element)
            case Type():
                label = self._label
                return isinstance(label, Type) and label.ref == action.ref and label.clear and not action.enter
            case Select():
                return isinstance(self._label, Select) and self._label.ref == action.ref
            case _:
                return False


class LabelledPolicy:
    """Plays *policy* and adds the label of *expert* to every step. A step is the expert's with probability *share*, and
    where the policy has no action or none that is permitted. An episode ends where the expert is lost."""

    def __init__(
        self,
        policy: Policy,
        expert: Expert,
        language: Language,
        *,
        named: bool = False,
        share: float = 0.0,
        seed: int = 0,
    ) -> None:
        """*named*: the prompts of *policy* ask for a line that names the control, so labels have one."""
        self.spec = policy.spec
        self._policy = policy
        self._expert = expert
        self._language = language
        self._named = named
        self._share = share
        self._seed = seed

    async def propose(self, turn: Turn) -> ActionProposal:
        label = await self._expert.label(turn)
        proposal = await self._policy.propose(turn)
        if label is None:
            return _with_action(proposal, Stop(), "")
        text = answer_text(self._language, label, turn.view.observation, named=self._named)
        own = proposal.action
        if own is None or self._draws_expert(turn) or not self._expert.permits(turn, own):
            return _with_action(proposal, label, text)
        return replace(proposal, then=(), label=text)

    def _draws_expert(self, turn: Turn) -> bool:
        drawn = random.Random(f"expert {self._seed} {turn.task.id} {turn.attempt} {turn.step}")
        return drawn.random() < self._share


def _with_action(proposal: ActionProposal, action: Action, label: str) -> ActionProposal:
    """*proposal* with the expert's *action* in place of its own."""
    return replace(
        proposal,
        action=action,
        label=label,
        by_expert=proposal.action != action,
        error="",
        wrong_form="",
        then=(),
        described=(),
        groundings=(),
        checks=(),
    )
