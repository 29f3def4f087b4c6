"""Runs the solvers of suites as policies. They get the same observations and leave the same traces as other policies.

`oracle` runs the solvers of MiniWoB++ and of the sites. `oracle:detours` adds wrong steps with recovery to the latter.
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
    """Returns the oracle of *suite*. Raises BadInput if the suite has none for this *spec*."""
    if suite == "miniwob" and spec == "oracle":
        return ScriptedPolicy(miniwob_oracle, language)
    if suite == "sites":
        return SitesOracle(language, detours=spec == "oracle:detours")
    reason = "an open task has no solver" if suite == OPEN else f"the suite {suite} ships no such solver"
    raise BadInput(f"policy {spec!r}: {reason}; name a model, see mira models")


def miniwob_oracle(turn: Turn) -> Action:
    """Runs the MiniWoB++ solver of the task. Returns Stop without a solver, or on an unknown page."""
    from envs.suites.miniwob import solvers

    solver = solvers.SOLVERS.get(turn.task.name)
    past = tuple(solvers.Past(step.action, step.target) for step in turn.past)
    try:
        screen = solvers.Screen(turn.view.instruction, turn.view.observation, past)
        return Stop() if solver is None else solver(screen)
    except solvers.Unsolvable:
        return Stop()


class SitesOracle:
    """Runs a site task's solver step by step. It stops an episode that another process began, because a solver cannot
    start in the middle."""

    def __init__(self, language: Language, *, detours: bool = False) -> None:
        self.spec = "oracle:detours" if detours else "oracle"
        self._language = language
        self._detours = detours
        self._sampler = InstanceSampler()
        self._runs: dict[tuple[str, int], SolverRun] = {}

    async def propose(self, turn: Turn) -> ActionProposal:
        key = (turn.task.id, turn.attempt)
        if not turn.past:
            rng = random.Random(f"detours {key}") if self._detours else None
            self._runs[key] = SolverRun(await self._sampler.instance(turn.task), rng)
        run = self._runs.get(key)
        if run is None:
            return self._proposal(Stop(), "the solver cannot start in the middle of an episode")
        action = await run.next(turn)
        if isinstance(action, Stop):
            del self._runs[key]
        return self._proposal(action, run.problem)

    def _proposal(self, action: Action, note: str) -> ActionProposal:
        clean = storable_action(action)
        return ActionProposal(clean, self._language.show(clean), notes=(note,) if note else ())


class SolverRun:
    """One run of a solver, which pauses at each action until the next turn."""

    def __init__(self, instance: Instance[Params], rng: random.Random | None = None) -> None:
        """*rng*: draws detours; None takes none."""
        self.problem = ""
        self._page: Observation | None = None
        self._actions: asyncio.Queue[Action] = asyncio.Queue()
        self._results: asyncio.Queue[ActionResult] = asyncio.Queue()
        driver = PageDriver(self if rng is None else DetourStage(self, rng))
        self._solving = asyncio.create_task(instance.template.solve(driver, instance.params))

    async def next(self, turn: Turn) -> Action:
        """Returns the solver's action for the page of this turn, or Stop once the solver ended."""
        self._page = turn.view.observation
        if turn.past:
            last = turn.past[-1].result or ActionResult(status=Status.FAILED, message="what came of it is not known")
            self._results.put_nowait(last)
        requested = asyncio.create_task(self._actions.get())
        try:
            await asyncio.wait({requested, self._solving}, return_when=asyncio.FIRST_COMPLETED)
            return requested.result() if requested.done() else self._ended()
        finally:
            requested.cancel()
            with suppress(asyncio.CancelledError):
                await requested

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
        self._actions.put_nowait(action)
        return await self._results.get()
