"""Solved episodes for training: what a policy would have seen at each step, and what the solver did.

Seeds below `FIRST_TRAINING_SEED` are for evaluation and demos and are refused here: nothing is ever trained on them.
The same tasks, seeds and recovery rate give the same demonstrations, whatever the number of pages that play them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from random import Random

from envs.core.actions import Action, ActionResult, Click, Select, Type
from envs.core.errors import BadInput, EnvError
from envs.core.observation import ElementKey, Observation
from envs.core.tasks import EpisodeStart, MilestoneCheck, Score, TaskRef
from envs.suites.miniwob.environment import MiniwobEnvironment
from envs.suites.miniwob.solvers import SOLVERS, Past, Screen, Solver, Unsolvable

FIRST_TRAINING_SEED = 1_000_000
MAX_STEPS = 30
"""Longest demonstration: the longest solution needs about 25 steps."""


@dataclass(frozen=True, slots=True)
class DemoStep:
    """One step of a demonstration."""

    observation: Observation
    past: tuple[Past, ...]
    """The actions before this step, with the elements that they named."""
    results: tuple[ActionResult, ...]
    """What came of them."""
    checks: tuple[MilestoneCheck, ...]
    """State of the milestones before the action; empty where the task has none."""
    action: Action
    """What the solver did."""


@dataclass(frozen=True, slots=True)
class Demonstration:
    """One episode as the solver played it."""

    task: TaskRef
    start: EpisodeStart
    steps: tuple[DemoStep, ...]
    """Only what the solver did: the slips that it recovered from are in `past`, never here."""
    score: Score
    note: str = ""
    """Why the solver gave up, where it did."""

    @property
    def solved(self) -> bool:
        """Only solved demonstrations are worth learning from."""
        return self.score.status == "success"


async def demonstrate(
    environments: Sequence[MiniwobEnvironment],
    tasks: Sequence[TaskRef],
    *,
    recoveries: float = 0.0,
    solvers: dict[str, Solver] = SOLVERS,
) -> AsyncIterator[Demonstration]:
    """Yields a demonstration of each task, in the order of *tasks*, played on all *environments* at once.

    *recoveries* (0 to 1) is the chance that a step is first done wrongly (another box, another text), so that the
    demonstration shows the way back. Raises BadInput for an evaluation seed or a task without solver.
    """
    for task in tasks:
        if task.seed < FIRST_TRAINING_SEED:
            raise BadInput(f"{task.id}: seeds below {FIRST_TRAINING_SEED} are for evaluation, never for training")
        if task.name not in solvers:
            raise BadInput(f"{task.id}: there is no solver for {task.name!r}")
    free = list(environments)
    running: list[tuple[asyncio.Task[Demonstration], MiniwobEnvironment]] = []
    waiting = iter(tasks)
    try:
        while True:
            while free and (task := next(waiting, None)) is not None:
                environment = free.pop()
                playing = play(environment, task, solvers[task.name], recoveries=recoveries)
                running.append((asyncio.ensure_future(playing), environment))
            if not running:
                return
            oldest, environment = running.pop(0)
            done = await oldest
            free.append(environment)
            yield done
    finally:
        for playing, _ in running:
            playing.cancel()


async def play(
    environment: MiniwobEnvironment,
    task: TaskRef,
    solver: Solver,
    *,
    recoveries: float = 0.0,
    max_steps: int = MAX_STEPS,
) -> Demonstration:
    """Plays one episode with *solver* until the benchmark ends it, the solver gives up or *max_steps* are done.

    Never raises for what the page or the browser does: such a demonstration is `broken`.
    """
    try:
        return await _played(environment, task, solver, recoveries, max_steps)
    except EnvError as error:
        nothing = EpisodeStart(instruction="", category="")
        broken = Score(status="broken", reward=0.0, evidence=str(error))
        return Demonstration(task, nothing, (), broken, type(error).__name__)


async def _played(
    environment: MiniwobEnvironment, task: TaskRef, solver: Solver, recoveries: float, max_steps: int
) -> Demonstration:
    random = Random(f"{task.id} {recoveries}")
    start = await environment.reset(task)
    steps: list[DemoStep] = []
    past: list[Past] = []
    results: list[ActionResult] = []
    note = ""
    while len(past) < max_steps and not await environment.done():
        seen = await environment.observe()
        screen = Screen(start.instruction, seen, tuple(past))
        try:
            action = solver(screen)
        except Unsolvable as error:
            note = str(error)
            break
        slip = slipped(action, screen, random) if random.random() < recoveries else None
        if slip is None:
            checks = await environment.check_milestones() or ()
            steps.append(DemoStep(seen, tuple(past), tuple(results), checks, action))
        past.append(Past(slip or action, _target(seen, slip or action)))
        results.append(await environment.execute(slip or action))
    score = await environment.score(None)
    assert score is not None, "MiniWoB++ scores every task"
    return Demonstration(task, start, tuple(steps), score, note)


def slipped(action: Action, screen: Screen, random: Random) -> Action | None:
    """A harmless mistake in place of *action*: another box, option or text; None where no mistake is harmless."""
    target = screen.observation.element(action.ref) if isinstance(action, Click | Type | Select) else None
    if target is None or "password" in target.states:
        return None
    if isinstance(action, Type) and action.text and target.key.role == "textbox":
        wrong = random.choice((action.text[: len(action.text) // 2], action.text.swapcase(), action.text[::-1]))
        return action.model_copy(update={"text": wrong}) if wrong != action.text else None
    if isinstance(action, Select) and target.key.role == "combobox":
        others = [option for option in target.options if option and option != action.option]
        return action.model_copy(update={"option": random.choice(others)}) if others else None
    if isinstance(action, Click) and target.key.role in ("checkbox", "radio", "tab"):
        others = [e for e in screen.all(target.key.role) if e.ref != target.ref and "disabled" not in e.states]
        return Click(ref=random.choice(others).ref) if others else None
    return None


def _target(seen: Observation, action: Action) -> ElementKey | None:
    element = seen.element(action.ref) if "ref" in type(action).model_fields and action.ref is not None else None  # type: ignore
    return element.key if element else None
