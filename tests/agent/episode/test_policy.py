"""What a policy asks its model for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.episode.policy import REPEATS_NO_OP, ModelPolicy, Turn, deciding_call
from agent.episode.prompts import PolicyView, Style
from envs.core.action_languages import PROGRAM
from envs.core.actions import Click, Press
from envs.core.notes import NoteEdit
from envs.core.observation import Observation
from envs.core.tasks import TaskRef
from models.providers.scripted_model import ScriptedModel

VIEW = PolicyView(
    instruction="Open the section and submit",
    observation=Observation("http://a/", "", '[1] button "Submit"', (), (), "0" * 16, (160, 210), (0, 0), 1),
    language=PROGRAM,
)
TURN = Turn(TaskRef(suite="miniwob", name="click-collapsible", seed=0), 1, 1, VIEW)
OTHERS = (
    replace(TURN, task=TURN.task.model_copy(update={"seed": 1})),
    replace(TURN, task=TURN.task.model_copy(update={"name": "click-test"})),
    replace(TURN, task=TURN.task.model_copy(update={"written": "Submit without opening the section"})),
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
    assert len(set(drawn)) == 1 + len(OTHERS), "the page is the same, what is tried is not"
    assert set(drawn).isdisjoint(await seeds((TURN, *OTHERS), temperature=1.0, seed=1))
    assert all(seed is not None and 0 <= seed < 2**31 for seed in drawn), "what every server takes"


async def test_a_turn_that_is_played_again_is_played_alike() -> None:
    assert await seeds((TURN, *OTHERS), temperature=1.0) == await seeds((TURN, *OTHERS), temperature=1.0)


async def test_a_repair_is_drawn_anew() -> None:
    first, repair = await seeds((TURN,), answers=("hm", WAIT), temperature=1.0)
    assert first != repair


async def test_without_sampling_the_runs_seed_is_passed_on() -> None:
    assert await seeds((TURN, *OTHERS), seed=7) == [7] * (1 + len(OTHERS))


CLICK, PRESS = 'do(action="Click", element="1")', 'do(action="Press Enter")'
STUCK = replace(TURN, no_op=Click(ref=1))
"""A turn whose page is as it was before the last action."""


def sampling(
    answers: tuple[str, ...], *, temperature: float = 0.0, retry_temperature: float = 0.0
) -> tuple[ScriptedModel, ModelPolicy]:
    model = ScriptedModel(answers)
    policy = ModelPolicy(model, PROGRAM, "compact", temperature=temperature, retry_temperature=retry_temperature)
    return model, policy


async def test_a_repeated_no_op_action_is_sampled_again() -> None:
    model, policy = sampling((CLICK, CLICK, PRESS), retry_temperature=1.0)
    proposal = await policy.propose(STUCK)
    assert proposal.action == Press(keys="Enter")
    assert [request.temperature for request in model.requests] == [0.0, 1.0, 1.0]
    assert model.requests[1].seed != model.requests[2].seed
    assert [one.error for one in proposal.calls] == [REPEATS_NO_OP, REPEATS_NO_OP, None], (
        "the deciding call is the last one"
    )


async def test_an_action_that_is_repeated_after_all_retries_is_used() -> None:
    model, policy = sampling((CLICK, "hm", CLICK), retry_temperature=1.0)
    proposal = await policy.propose(STUCK)
    assert (proposal.action, proposal.raw) == (Click(ref=1), CLICK)
    assert len(model.requests) == 3, "asked a bounded number of times"
    assert proposal.calls[-1].error is None and all(call.error for call in proposal.calls[:-1])


@pytest.mark.parametrize(
    "answers",
    [(PRESS,), ("hm", PRESS), (CLICK, PRESS), (CLICK, "hm", PRESS), (CLICK, CLICK, "hm"), ("hm", CLICK, CLICK, "hm")],
    ids="/".join,
)
async def test_the_deciding_call_is_the_only_one_without_an_error(answers: tuple[str, ...]) -> None:
    _, policy = sampling(answers, retry_temperature=1.0)
    proposal = await policy.propose(STUCK)
    call = deciding_call(proposal.calls)
    assert call is not None and call is proposal.calls[-1] and call.reply.text == proposal.raw
    assert PROGRAM.parse(call.reply.text).action == proposal.action
    assert [one for one in proposal.calls if one.error is None] == [call]


async def test_a_turn_without_an_action_has_no_deciding_call() -> None:
    _, policy = sampling(("hm", "hm"))
    assert deciding_call((await policy.propose(TURN)).calls) is None


@pytest.mark.parametrize(
    ("turn", "answers", "options"),
    [
        pytest.param(TURN, (CLICK,), {"retry_temperature": 1.0}, id="the page has changed"),
        pytest.param(STUCK, (PRESS,), {"retry_temperature": 1.0}, id="another action"),
        pytest.param(STUCK, (CLICK,), {}, id="switched off"),
        pytest.param(STUCK, (CLICK,), {"retry_temperature": 1.0, "temperature": 1.0}, id="sampled anyway"),
    ],
)
async def test_an_answer_that_stands(turn: Turn, answers: tuple[str, ...], options: dict[str, float]) -> None:
    model, policy = sampling(answers, **options)
    proposal = await policy.propose(turn)
    assert (proposal.raw, len(model.requests)) == (answers[0], 1)


NOTED = replace(TURN, view=replace(VIEW, max_notes=20))
NOTE = "# Note: the total is 7\n"


def noting(*answers: str, style: Style = "full") -> ModelPolicy:
    return ModelPolicy(ScriptedModel(answers), PROGRAM, style, retry_temperature=1.0)


@pytest.mark.parametrize(
    ("answers", "turn"),
    [
        ((NOTE + CLICK,), NOTED),
        ((CLICK + "\n" + NOTE,), NOTED),
        ((NOTE + "hm", CLICK), NOTED),
        ((NOTE + "hm", NOTE + CLICK), NOTED),
        ((NOTE + "hm", "hm"), NOTED),
        ((NOTE + CLICK, PRESS), replace(NOTED, no_op=Click(ref=1))),
    ],
    ids=["before", "after", "repaired", "repeated", "no action", "resampled"],
)
async def test_no_note_of_a_turn_is_lost(answers: tuple[str, ...], turn: Turn) -> None:
    proposal = await noting(*answers).propose(turn)
    assert proposal.note_edits == (NoteEdit(None, "the total is 7"),)


async def test_notes_are_kept_only_where_the_prompt_offers_them() -> None:
    for policy, turn in ((noting(NOTE + CLICK), TURN), (noting(NOTE + CLICK, style="compact"), NOTED)):
        assert (await policy.propose(turn)).note_edits == ()
