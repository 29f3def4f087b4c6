"""What each role is given of a step: one context, cut to what the role may see."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import planners.prompts
from agent.config import RunConfig
from agent.episode.episode import Episode
from agent.episode.nodes.act import _turn
from agent.episode.nodes.judge import _ending
from agent.episode.nodes.plan import _situation
from agent.episode.nodes.reflect import _progress
from agent.episode.state import State, rows_of
from agent.episode.tools import NO_TOOLS
from envs.core.action_languages import PROGRAM
from envs.core.blobs import BlobStore
from envs.core.notes import Note, Notebook
from envs.core.observation import Observation
from envs.core.step_context import StepContext
from envs.core.tasks import EpisodeStart, Milestone, TaskRef
from envs.core.trace import Rating
from planners.compact_planner import plan_text
from tests.past_actions import typed

ABSENT = cast(Any, None)
PAGE = Observation("http://x/", "X", "text", (), (), "0" * 16, (1280, 800), (0, 0), 0)
PLAN = (Milestone(id="m1", text="See tea"), Milestone(id="m2", text="Buy tea"))
REFERENCE = (Milestone(id="r1", text="The answer key"),)
NOTES = (Note(number=1, text="tea is 3 euros"),)
STATE = State(step=1, plan=rows_of(PLAN), z=(True, False), next_milestone=1, answer="done")


@pytest.fixture
def episode(tmp_path: Path) -> Episode:
    """An episode after one action on a page that is observed; it has neither browser nor models."""

    def mask(text: str) -> str:
        return text.replace("s3cret", "<secret>KEY</secret>")

    playing = Episode(
        identity=cast(Any, SimpleNamespace(task=TaskRef(suite="open", name="x"), attempt=1)),
        config=RunConfig(),
        components=cast(
            Any,
            SimpleNamespace(answers=None, language=PROGRAM, full_planner=True, pictured=frozenset(), tools=NO_TOOLS),
        ),
        environment=cast(Any, SimpleNamespace(session=None)),
        trace=cast(Any, SimpleNamespace(mask=mask)),
        blobs=BlobStore(tmp_path),
        start=EpisodeStart(instruction="Buy tea", category="shop", milestones=REFERENCE),
        notify=ABSENT,
        saved=ABSENT,
        stopping=ABSENT,
    )
    playing.acted(typed("s3cret", "Password"), ABSENT, ABSENT)
    playing.steps.clear()  # the recorded step is not needed
    playing.observation, playing.notebook = PAGE, Notebook(notes=NOTES)
    playing.rating = Rating(z=(True, True))
    return playing


async def test_every_role_is_given_the_same_context_with_secrets_masked(episode: Episode) -> None:
    known = await episode.context(STATE)
    assert known == StepContext("Buy tea", PAGE, episode.history, PLAN, (True, False), NOTES)
    assert "s3cret" not in repr(known) and "<secret>KEY</secret>" in repr(known)
    view, situation = (await _turn(STATE, episode)).view, await _situation(STATE, episode, "loop", "again")
    assert view.shared() == situation.shared() == known.shared()


async def test_the_policy_is_not_given_a_hidden_plan(episode: Episode) -> None:
    episode.config = RunConfig(show_plan=False)
    known = await episode.context(STATE)
    view = (await _turn(STATE, episode)).view
    assert view.shared() == replace(known, milestones=(), z=()).shared() and view.next_milestone is None
    assert "See tea" not in repr(view) and "See tea" in repr(known)


async def test_the_rater_is_not_given_the_policys_notes(episode: Episode) -> None:
    progress = await _progress(STATE, episode)
    assert progress is not None
    assert progress.shared() == replace(await episode.context(STATE), notes=()).shared()


async def test_the_judge_is_given_the_status_of_the_last_rating(episode: Episode) -> None:
    ending = await _ending(STATE, episode)
    assert ending.shared() == replace(await episode.context(STATE), z=(True, True)).shared()


async def test_reference_milestones_are_in_no_prompt(episode: Episode) -> None:
    """Only the planner `reference` reads them; it has no prompt."""
    situation = await _situation(STATE, episode, "initial", "")
    assert situation.reference == REFERENCE
    prompts = [plan_text(situation, 4), *(message.text for message in planners.prompts.render(situation, (), 4))]
    assert not any(REFERENCE[0].text in prompt for prompt in prompts)
    others = ((await _turn(STATE, episode)).view, await _progress(STATE, episode), await _ending(STATE, episode))
    assert all(REFERENCE[0].text not in repr(given) for given in others)
