"""Analysis of failed traces: the result, when a model is called, and what must not happen."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.core.trace import EndedBy
from envs.core.trace_reader import Trace
from judges.analysis import Analysis, Analyzer, Recorded
from judges.analysis.meaning import MeaningFailed, ModelMeaning
from models.base import ModelBusy
from models.providers.scripted_model import ScriptedModel
from tests.judges.analysis.episodes import NO_PAGES, checked, trace

WAY = (
    "/ | type searchbox Search = accommodation close to campus",
    "/ 1 | click button Search",
    "/search?q=a | click link University Inn",
    "/p/1 | stop",
)
PARAPHRASE = (
    "/ | type searchbox Search = hotels near the university",
    "/ 2 | click button Search",
    "/search?q=b | click link University Hostel",
    "/p/2 | stop",
)


async def analyzed(failed: Trace, *references: Trace, meaning: ModelMeaning | None = None) -> Analysis:
    analyzer = Analyzer(meaning=meaning)
    known = [analyzer.reference(Recorded(one, NO_PAGES)) for one in references]
    return await analyzer.analyze(Recorded(failed, NO_PAGES), known)


def success(*lines: str) -> Trace:
    return trace(*lines, outcome="success", ended_by="stop", episode_id="won")


async def test_the_summary_says_what_the_checker_said_and_no_more():
    failed = trace(
        "/ | click link Account",
        "/profile | click link Edit",
        "/edit | stop done",
        z=("00", "00", "10"),
        ended_by="stop",
        answer="done",
        milestone_checks=checked(True, False),
    )
    assert (await analyzed(failed)).summary == (
        "Achieved: Milestone 0 (seen in the database). Not achieved: Milestone 1. The agent ended the episode itself "
        "after 3 steps, answering 'done'. Final check: FAILED (the name is unchanged)."
    )


async def test_a_judge_is_no_checker():
    failed = trace(
        "/ | click link A",
        "/a | click link B",
        "/b | stop",
        ended_by="stop",
        judged_by="judge",
        score=None,
        verdict="NO: x",
    )
    assert "Outcome judge, without a checker: FAILED (NO: x)." in (await analyzed(failed)).summary


async def test_what_broke_is_no_failed_check():
    failed = trace("/ | click link A", ended_by="error", outcome="broken", score=None, error="PageCrashed: gone")
    analysis = await analyzed(failed)
    assert "NOT DONE" in analysis.summary and "FAILED" not in analysis.summary
    assert (analysis.failure.category, analysis.failure.key_step) == ("other", 1)


async def test_a_wrong_stop_began_where_the_reference_was_left():
    failed = trace(
        *WAY[:2], "/search?q=a | click link Blog", "/blog | click link News", "/news | stop", ended_by="stop"
    )
    analysis = await analyzed(failed, success(*WAY))
    assert (analysis.failure.category, analysis.failure.key_step) == ("stop_at_wrong_page", 3)
    assert analysis.divergence is not None and analysis.divergence.reference_step == 3
    alone = await analyzed(failed)
    assert (alone.failure.key_step, alone.divergence, alone.references) == (4, None, 0)


async def test_everything_done_and_never_stopped_needs_no_milestones():
    failed = trace(*WAY[:3], "/p/1 | click link Blog", "/blog | click link News")
    analysis = await analyzed(failed, success(*WAY))
    assert (analysis.failure.category, analysis.failure.key_step) == ("no_reasonable_attempt", 4)


WAITING = ("/ | click button Build", *["/job | wait"] * 4, "/job done | click link Log", "/log | stop")


async def test_what_the_reference_repeats_as_often_is_no_loop():
    cut = trace(*WAITING[:4], z=("00", "10", "10", "10"))
    assert (await analyzed(cut)).failure.category == "stuck_midway"
    analysis = (await analyzed(cut, success(*WAITING))).failure
    assert (analysis.category, analysis.key_step, analysis.cut_short) == ("other", 4, True)
    assert "the limit of steps ended it after 4 steps" in analysis.reason and "it followed won" in analysis.reason


async def test_what_is_repeated_more_often_than_by_the_reference_is_a_loop():
    longer = trace(WAITING[0], *["/job | wait"] * 9)
    analysis = (await analyzed(longer, success(*WAITING))).failure
    assert (analysis.category, analysis.key_step) == ("stuck_midway", 2)
    assert analysis.reason.startswith("from step 2 on, wait was repeated 9 times")


async def test_equal_actions_that_lead_away_from_the_reference_are_no_progress():
    """Each leads to a new page, but the reference turned the other way."""
    right = [f"/ {n} | click button Next" for n in range(4)]
    wrong = [f"/ {-n} | click button Prev" for n in range(1, 6)]
    analysis = (await analyzed(trace(right[0], *wrong), success(*right, "/ 4 | stop"))).failure
    assert (analysis.category, analysis.key_step, analysis.cut_short) == ("other", 2, False)


async def test_equal_actions_that_reach_a_milestone_are_progress_on_another_way_than_the_reference():
    ways = ("/ | click textbox Date", *[f"/ {n} | click button Prev" for n in range(5)])
    short = ("/ | click textbox Date", "/ 0 | type textbox Date = 1 May", "/ 9 | click button Go", "/done | stop")
    cut = trace(*ways, z=["000", *["100"] * 5], milestone_checks=checked(True, True, False))
    analysis = (await analyzed(cut, success(*short))).failure
    assert (analysis.category, analysis.key_step, analysis.cut_short) == ("other", 6, True)


async def test_a_first_click_that_no_success_does():
    failed = trace(
        "/ | click link Kitchen",
        "/k | click link Cups",
        "/c | click link Pots",
        "/pots | scroll",
        z=("00", "10", "10", "10"),
    )
    assert (await analyzed(failed, success(*WAY))).failure.category == "no_reasonable_attempt"
    like_it = success("/ | click link Kitchen", "/k | click link Oakley", "/o | stop")
    assert (await analyzed(failed, like_it)).failure.category == "other"


async def test_a_model_is_asked_what_is_undecided_and_no_more():
    model = ScriptedModel([json.dumps({"reason": "both look for a place to stay", "same": True})])
    failed = trace(*PARAPHRASE, ended_by="stop")
    alone = await analyzed(failed, success(*WAY))
    assert (alone.failure.key_step, alone.asked) == (1, 0)
    analysis = await analyzed(failed, success(*WAY), meaning=ModelMeaning(model))
    assert (analysis.failure.key_step, analysis.asked) == (3, 1)
    text = model.requests[0].messages[-1].text
    assert "hotels near the university" in text and "accommodation close to campus" in text


async def test_one_pair_is_asked_about_once():
    model = ScriptedModel([json.dumps({"reason": "no", "same": False})])
    meaning = ModelMeaning(model)
    for _ in range(3):
        await analyzed(trace(*PARAPHRASE, ended_by="stop"), success(*WAY), meaning=meaning)
    assert len(model.requests) == 1


async def test_an_answer_that_is_none_is_an_error_and_never_a_verdict():
    meaning = ModelMeaning(ScriptedModel(["yes, sure"] * 5))
    with pytest.raises(MeaningFailed, match="gave no verdict"):
        await analyzed(trace(*PARAPHRASE, ended_by="stop"), success(*WAY), meaning=meaning)


async def test_a_judge_that_was_unreachable_is_not_asked_again():
    model = ScriptedModel([ModelBusy("the server is away"), "perhaps"])
    meaning = ModelMeaning(model)
    for _ in range(2):
        with pytest.raises(MeaningFailed, match="the server is away"):
            await analyzed(trace(*PARAPHRASE, ended_by="stop"), success(*WAY), meaning=meaning)
    assert len(model.requests) == 1


@pytest.mark.parametrize("outcome", ["success", "unjudged"])
async def test_what_did_not_fail_is_not_analyzed(outcome: Any):
    with pytest.raises(ValueError, match=outcome):
        await analyzed(trace("/ | stop", ended_by="stop", outcome=outcome))


LINE = st.sampled_from(
    [
        f"{page} | {action}"
        for page in ("/", "/ 1", "/a", "/a?q=1")
        for action in (
            "click link A",
            "click button B #1",
            "!click link A",
            "type searchbox Search = x y ⏎",
            "type textbox Name = 7",
            "select combobox Size = M",
            "goto /a",
            "press Enter",
            "back",
            "scroll",
            "find x",
            "stop",
            "stop 7",
        )
    ]
)
WAYS = st.lists(LINE, max_size=10).map(tuple)
ENDS = st.sampled_from(["stop", "environment", "max_steps", "max_tokens", "declined", "error", "interrupted"])


@settings(max_examples=60)
@given(WAYS, st.lists(WAYS, max_size=2), ENDS)
async def test_every_failed_trace_is_explained(way: tuple[str, ...], references: list[tuple[str, ...]], end: EndedBy):
    analysis = await analyzed(trace(*way, ended_by=end), *(success(*one) for one in references))
    numbers = set(range(1, len(way) + 1))
    assert analysis.failure.key_step in (numbers or {None})
    assert analysis.failure.reason and analysis.summary
    assert analysis.divergence is None or analysis.divergence.step in numbers
    assert analysis.failure.loop is None or (
        analysis.failure.loop.entry in numbers and analysis.failure.loop.repetitions >= 2
    )


@settings(max_examples=40)
@given(WAYS, WAYS, st.integers(2, 500))
async def test_the_numbers_of_elements_change_nothing(way: tuple[str, ...], reference: tuple[str, ...], offset: int):
    failed = trace(*way)
    moved = [
        step._replace(intent=step.intent.model_validate(_renumbered(step.intent.model_dump(), offset * (i + 1))))
        for i, step in enumerate(failed.steps)
    ]
    renumbered = Trace(failed.path, failed.header, (), tuple(moved), (), failed.footer, torn=False)
    assert await analyzed(renumbered, success(*reference)) == await analyzed(failed, success(*reference))


def _renumbered(intent: dict[str, Any], offset: int) -> dict[str, Any]:
    if intent["target"] is not None:
        intent["target"]["ref"] += offset
        intent["action"]["ref"] += offset
    return intent


@settings(max_examples=40)
@given(WAYS)
async def test_a_success_does_not_diverge_from_itself(way: tuple[str, ...]):
    analysis = await analyzed(trace(*way), success(*way))
    assert analysis.divergence is None or analysis.divergence.reason.startswith("from step")
