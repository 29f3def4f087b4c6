"""The solvers that suites ship, as policies: they see what a policy sees and leave the traces that a policy leaves.

`oracle` plays MiniWoB++'s solvers and the sites' oracles; `oracle:detours` lets the latter go astray and recover.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

from agent.episode.policy import ActionProposal, Policy, ScriptedPolicy, Turn, storable_action
from envs.core.action_languages import Language
from envs.core.actions import Action, ActionResult, Status, Stop
from envs.core.errors import BadInput
from envs.core.observation import Observation
from envs.suites.open_web import SUITE as OPEN
from envs.suites.sites.detours import DetourStage
from envs.suites.sites.page_driver import PageDriver, Unsolvable
from envs.suites.sites.suite import InstanceSampler
from envs.suites.sites.templates import Instance, Params


def oracle_policy(spec: str, suite: str, language: Language) -> Policy:
    """The policy that *suite* ships. Raises BadInput where it ships none of this kind."""
    if suite == "miniwob" and spec == "oracle":
        return ScriptedPolicy(solved_by_script, language)
    if suite == "sites":
        return SitesOracle(language, detours=spec == "oracle:detours")
    what = "an open task has no solver" if suite == OPEN else f"the suite {suite} ships no such solver"
    raise BadInput(f"policy {spec!r}: {what}; name a model, see mira models")


def solved_by_script(turn: Turn) -> Action:
    """MiniWoB++'s own solver; Stop where it has none or does not know the page."""
    from envs.suites.miniwob import solvers

    solver = solvers.SOLVERS.get(turn.task.name)
    past = tuple(solvers.Past(one.action, one.target) for one in turn.past)
    try:
        screen = solvers.Screen(turn.view.instruction, turn.view.observation, past)
        return Stop() if solver is None else solver(screen)
    except solvers.Unsolvable:
        return Stop()


class SitesOracle:
    """Runs a task's solver step by step. An episode that comes from another process is given up: a solver cannot be
    entered in its middle."""

    def __init__(self, language: Language, *, detours: bool = False) -> None:
        self.spec = "oracle:detours" if detours else "oracle"
        self._language = language
        self._detours = detours
        self._sampler = InstanceSampler()
        self._plays: dict[tuple[str, int], _Play] = {}

    async def propose(self, turn: Turn) -> ActionProposal:
        key = (turn.task.id, turn.attempt)
        if not turn.past:
            rng = random.Random(f"detours {key}") if self._detours else None
            self._plays[key] = _Play(await self._sampler.instance(turn.task), rng)
        play = self._plays.get(key)
        if play is None:
            return self._proposal(Stop(), "the solver cannot go on in the middle of an episode")
        action = await play.next(turn)
        if isinstance(action, Stop):
            del self._plays[key]
        return self._proposal(action, play.problem)

    def _proposal(self, action: Action, note: str) -> ActionProposal:
        clean = storable_action(action)
        return ActionProposal(clean, self._language.show(clean), notes=(note,) if note else ())


class _Play:
    """A solver that waits, at each of its actions, for the next turn."""

    def __init__(self, instance: Instance[Params], rng: random.Random | None) -> None:
        self.problem = ""
        self._page: Observation | None = None
        self._asked: asyncio.Queue[Action] = asyncio.Queue()
        self._results: asyncio.Queue[ActionResult] = asyncio.Queue()
        driver = PageDriver(self if rng is None else DetourStage(self, rng))
        self._solving = asyncio.create_task(instance.template.solve(driver, instance.params))

    async def next(self, turn: Turn) -> Action:
        """What the solver does on the page of this turn; Stop once it has ended."""
        self._page = turn.view.observation
        if turn.past:
            last = turn.past[-1].result or ActionResult(status=Status.FAILED, message="what came of it is not known")
            self._results.put_nowait(last)
        asked = asyncio.create_task(self._asked.get())
        try:
            await asyncio.wait({asked, self._solving}, return_when=asyncio.FIRST_COMPLETED)
            return asked.result() if asked.done() else self._ended()
        finally:
            asked.cancel()
            with suppress(asyncio.CancelledError):
                await asked

    def _ended(self) -> Stop:
        try:
            return Stop(answer=self._solving.result())
        except Unsolvable as error:
            self.problem = str(error)
            return Stop()

    async def observe(self) -> Observation:
        assert self._page is not None
        return self._page

    async def execute(self, action: Action) -> ActionResult:
        self._asked.put_nowait(action)
        return await self._results.get()
