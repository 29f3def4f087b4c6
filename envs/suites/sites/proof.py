"""Verifies one task instance, for `mira sites verify`.

The oracle must succeed and meet the milestones in order. An idle agent and a random agent must fail. The checker must
reject every wrong outcome that is derived from the right one.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from envs.core.actions import Action, ActionResult, Back, Click, Select, Type
from envs.core.errors import EnvError
from envs.core.observation import TEXT_ROLES, Element, Observation
from envs.core.record import Record
from envs.core.tasks import TaskRef
from envs.suites.sites.catalog import noise
from envs.suites.sites.changes import Noise
from envs.suites.sites.environment import SitesEnvironment
from envs.suites.sites.evidence import Evidence
from envs.suites.sites.kinds import SiteName
from envs.suites.sites.mutations import mutants
from envs.suites.sites.page_driver import PageDriver, Unsolvable
from envs.suites.sites.templates import Outcome

RANDOM_ACTIONS = 6
"""Actions of the random agent before it gives a random answer."""
MOST_ACTIONS = 15
LEAST_ACTIONS = 3
SOLVE_S = 180.0


class Proof(Record):
    """The result of verifying one instance. It is proven if `problems` is empty."""

    template: str
    seed: int
    instruction: str
    actions: int
    """The oracle's actions, including the final stop."""
    seconds: float
    mutants: int
    """Number of wrong outcomes tried."""
    problems: tuple[str, ...]

    @property
    def proven(self) -> bool:
        return not self.problems


class _CountingStage:
    """Executes actions in an environment, counts them and records when each milestone is met."""

    def __init__(self, environment: SitesEnvironment) -> None:
        self._environment = environment
        self.actions = 0
        self.first_met: dict[int, int] = {}
        """Milestone to the number of the action after which it was first met."""

    async def observe(self) -> Observation:
        return await self._environment.observe()

    async def execute(self, action: Action) -> ActionResult:
        result = await self._environment.execute(action)
        self.actions += 1
        await self._record_milestones()
        return result

    async def _record_milestones(self) -> None:
        checks = await self._environment.check_milestones() or ()
        for index, check in enumerate(checks):
            if check.achieved:
                self.first_met.setdefault(index, self.actions)


async def prove(environment: SitesEnvironment, task: TaskRef, *, random_agent: bool = True) -> Proof:
    """Verifies one instance. All errors become problems of the proof; raises only CancelledError."""
    began = time.monotonic()
    problems: list[str] = []
    stage, instruction, tried = _CountingStage(environment), "", 0
    try:
        async with asyncio.timeout(SOLVE_S):
            instruction = (await environment.reset(task)).instruction
            problems += await _idle_agent_problems(environment)
            answer = await environment.task.template.solve(PageDriver(stage), environment.task.params)
            problems += await _oracle_problems(environment, stage, answer)
            if not problems:
                evidence = replace(await environment.evidence(), answer=answer)
                accepted, tried = await asyncio.to_thread(_accepted, environment.task.outcome, evidence, task.seed)
                problems += accepted
            if random_agent:
                problems += await _random_agent_problems(environment, task)
    except TimeoutError:
        problems.append(f"not done within {SOLVE_S:g} s")
    except (EnvError, Unsolvable, sqlite3.Error) as error:
        problems.append(f"{type(error).__name__}: {error}")
    return Proof(
        template=task.name,
        seed=task.seed,
        instruction=instruction,
        actions=stage.actions + 1,
        seconds=round(time.monotonic() - began, 2),
        mutants=tried,
        problems=tuple(problems),
    )


async def _idle_agent_problems(environment: SitesEnvironment) -> list[str]:
    scores = [await environment.score(answer) for answer in (None, "")]
    met = [check for check in await environment.check_milestones() or () if check.achieved]
    problems = [
        f"an agent that does nothing: {score.status}" for score in scores if score and score.status != "failure"
    ]
    return problems + (["all milestones are met before the first action"] if len(met) == 4 else [])


async def _oracle_problems(environment: SitesEnvironment, stage: _CountingStage, answer: str | None) -> list[str]:
    score = await environment.score(answer)
    problems: list[str] = []
    if score is None or score.status != "success":
        problems.append(f"the oracle: {score.evidence if score else 'no verdict'}")
    met = [stage.first_met.get(index) for index in range(4)]
    times = [action for action in met if action is not None]
    if len(times) < 4:
        problems.append(f"milestones never met: {[i + 1 for i, action in enumerate(met) if action is None]}")
    elif times != sorted(times):
        problems.append(f"milestones met out of order, after actions {times}")
    if not LEAST_ACTIONS <= stage.actions + 1 <= MOST_ACTIONS:
        problems.append(f"the oracle needs {stage.actions + 1} actions, not {LEAST_ACTIONS} to {MOST_ACTIONS}")
    return problems


def _accepted(outcome: Outcome, evidence: Evidence, seed: int) -> tuple[list[str], int]:
    """The wrong outcomes that were accepted, and the number of those tried."""
    noises: dict[SiteName, Noise] = {name: noise(name) for name in evidence.sites}
    accepted: list[str] = []
    tried = 0
    with tempfile.TemporaryDirectory(prefix="mira-mutants-") as folder:
        for mutant in mutants(outcome, evidence, Path(folder), noises, seed):
            tried += 1
            if not outcome.problem(mutant.evidence):
                accepted.append(f"a wrong outcome is accepted: {mutant.description}"[:300])
    return accepted, tried


async def _random_agent_problems(environment: SitesEnvironment, task: TaskRef) -> list[str]:
    await environment.reset(task)
    rng = random.Random(f"random agent {task.id}")
    words = ["unknown"]
    for _ in range(RANDOM_ACTIONS):
        page = await environment.observe()
        words = page.text.split() or words
        usable = [element for element in page.elements if element.shown and "disabled" not in element.states]
        await environment.execute(_any_action(rng.choice(usable), words, rng) if usable else Back())
    score = await environment.score(rng.choice(words))
    return [] if score is None or score.status != "success" else ["the random agent succeeded"]


def _any_action(element: Element, words: list[str], rng: random.Random) -> Action:
    if element.options:
        return Select(ref=element.ref, option=rng.choice(element.options))
    if element.key.role in TEXT_ROLES:
        return Type(ref=element.ref, text=rng.choice(words), enter=rng.random() < 0.5)
    return Click(ref=element.ref)
