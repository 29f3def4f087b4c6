"""Records demonstrations for training: the observation of each step and the action of a scripted solver.

Seeds below `FIRST_TRAINING_SEED` are for evaluation and demos. They are refused here, so nothing is trained on them.
The same tasks, seeds and recovery rate give the same demonstrations, whatever the number of pages used.
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
from envs.suites.miniwob.task_sets import FIRST_TRAINING_SEED

MAX_STEPS = 30
"""Longest demonstration: the longest solution needs about 25 steps."""


@dataclass(frozen=True, slots=True)
class DemoStep:
    """One step of a demonstration."""

    observation: Observation
    past: tuple[Past, ...]
    """The actions before this step, with their target elements."""
    results: tuple[ActionResult, ...]
    """Their results."""
    checks: tuple[MilestoneCheck, ...]
    """State of the milestones before the action; empty if the task has none."""
    action: Action
    """The solver's action."""


@dataclass(frozen=True, slots=True)
class Demonstration:
    """One episode of a solver."""

    task: TaskRef
    start: EpisodeStart
    steps: tuple[DemoStep, ...]
    """Only actions of the solver. Injected mistakes are in `past`, never here."""
    score: Score
    note: str = ""
    """Why the solver gave up; empty if it did not."""

    @property
    def solved(self) -> bool:
        """True for a success; only these are used for training."""
        return self.score.status == "success"


async def demonstrate(
    environments: Sequence[MiniwobEnvironment],
    tasks: Sequence[TaskRef],
    *,
    recoveries: float = 0.0,
) -> AsyncIterator[Demonstration]:
    """Yields a demonstration of each task, in the order of *tasks*, using all *environments* in parallel.

    *recoveries* (0 to 1) is the probability that a mistake precedes a step (another box, another text), so that the
    demonstration shows the recovery. Raises BadInput for an evaluation seed or a task without solver.
    """
    for task in tasks:
        if task.seed < FIRST_TRAINING_SEED:
            raise BadInput(f"{task.id}: seeds below {FIRST_TRAINING_SEED} are for evaluation, never for training")
        if task.name not in SOLVERS:
            raise BadInput(f"{task.id}: there is no solver for {task.name!r}")
    free = list(environments)
    running: list[tuple[asyncio.Task[Demonstration], MiniwobEnvironment]] = []
    waiting = iter(tasks)
    try:
        while True:
            while free and (task := next(waiting, None)) is not None:
                environment = free.pop()
                playing = run_demonstration(environment, task, SOLVERS[task.name], recoveries=recoveries)
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


async def run_demonstration(
    environment: MiniwobEnvironment,
    task: TaskRef,
    solver: Solver,
    *,
    recoveries: float = 0.0,
) -> Demonstration:
    """Runs one episode with *solver* until the benchmark ends it, the solver gives up or `MAX_STEPS` are reached.

    Failures of page or browser raise no exception: the demonstration is `broken`.
    """
    try:
        return await _run_solver(environment, task, solver, recoveries)
    except EnvError as error:
        nothing = EpisodeStart(instruction="", category="")
        broken = Score(status="broken", reward=0.0, evidence=str(error))
        return Demonstration(task, nothing, (), broken, type(error).__name__)


async def _run_solver(
    environment: MiniwobEnvironment, task: TaskRef, solver: Solver, recoveries: float
) -> Demonstration:
    random = Random(f"{task.id} {recoveries}")
    start = await environment.reset(task)
    steps: list[DemoStep] = []
    past: list[Past] = []
    results: list[ActionResult] = []
    note = ""
    while len(past) < MAX_STEPS and not await environment.done():
        seen = await environment.observe()
        screen = Screen(start.instruction, seen, tuple(past))
        try:
            action = solver(screen)
        except Unsolvable as error:
            note = str(error)
            break
        mistake = harmless_mistake(action, screen, random) if random.random() < recoveries else None
        if mistake is None:
            checks = await environment.check_milestones() or ()
            steps.append(DemoStep(seen, tuple(past), tuple(results), checks, action))
        past.append(Past(mistake or action, _target(seen, mistake or action)))
        results.append(await environment.execute(mistake or action))
    score = await environment.score(None)
    assert score is not None, "MiniWoB++ scores every task"
    return Demonstration(task, start, tuple(steps), score, note)


def harmless_mistake(action: Action, screen: Screen, random: Random) -> Action | None:
    """A harmless mistake in place of *action*: another box, option or text; None if there is none."""
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
