"""What a policy asks its model for."""

from __future__ import annotations

from dataclasses import replace

from agent.policy import ModelPolicy, Turn
from agent.prompts import PolicyView
from envs.languages import PROGRAM
from envs.observation import Observation
from envs.tasks import TaskRef
from models.scripted import ScriptedModel

VIEW = PolicyView(
    instruction="Open the section and submit",
    observation=Observation("http://a/", "", '[1] button "Submit"', (), (), "0" * 16, (160, 210), (0, 0), 1),
    language=PROGRAM,
)
TURN = Turn(TaskRef(suite="miniwob", name="click-collapsible", seed=0), 1, 1, VIEW)
OTHERS = (
    replace(TURN, task=TURN.task.model_copy(update={"seed": 1})),
    replace(TURN, task=TURN.task.model_copy(update={"name": "click-test"})),
    replace(TURN, attempt=2),
    replace(TURN, step=2),
)
WAIT = 'do(action="Wait")'


async def seeds(
    turns: tuple[Turn, ...], *, answers: tuple[str, ...] = (WAIT,) * 9, **options: float
) -> list[int | None]:
    model = ScriptedModel(answers)
    policy = ModelPolicy(model, PROGRAM, "compact", **options)  # pyright: ignore[reportArgumentType]
    for turn in turns:
        await policy.propose(turn)
    return [request.seed for request in model.requests]


async def test_a_sampled_answer_is_drawn_anew_in_every_episode_step_and_run() -> None:
    drawn = await seeds((TURN, *OTHERS), temperature=1.0)
    assert len(set(drawn)) == 5, "the page is the same, what is tried is not"
    assert set(drawn).isdisjoint(await seeds((TURN, *OTHERS), temperature=1.0, seed=1))
    assert all(seed is not None and 0 <= seed < 2**31 for seed in drawn), "what every server takes"


async def test_a_turn_that_is_played_again_is_played_alike() -> None:
    assert await seeds((TURN, *OTHERS), temperature=1.0) == await seeds((TURN, *OTHERS), temperature=1.0)


async def test_a_repair_is_drawn_anew() -> None:
    first, repair = await seeds((TURN,), answers=("hm", WAIT), temperature=1.0)
    assert first != repair


async def test_without_sampling_the_runs_seed_is_passed_on() -> None:
    assert await seeds((TURN, *OTHERS), seed=7) == [7] * 5
