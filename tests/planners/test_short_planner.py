"""The planner of small general models: up to K milestones after worked examples; a re-plan keeps what is achieved."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from envs.core.tasks import Milestone
from models.base import ModelInvalidAnswer
from models.providers.scripted_model import ScriptedModel
from planners.base import Situation
from planners.model_planner import MAX_MILESTONE_CHARS, PlannerSettings
from planners.prompts import CAUSE_TEXT
from planners.short_planner import PAGE_CHARS, ShortPlanner, answer_schema, render
from tests.past_actions import clicked

Situate = Callable[..., Situation]
OPENED = Milestone(id="m1", text="The tea page is open")
PAID = Milestone(id="m2", text="The tea is paid")


def answer(*milestones: str) -> str:
    return json.dumps({"milestones": milestones})


def planner(*answers: str, **options: Any) -> tuple[ShortPlanner, ScriptedModel]:
    model = ScriptedModel(answers)
    return ShortPlanner(model, PlannerSettings(**options)), model


def texts(milestones: tuple[Milestone, ...]) -> list[tuple[str, str]]:
    return [(one.id, one.text) for one in milestones]


def test_the_task_follows_the_page(situate: Situate) -> None:
    """After a page of rows the model of `docs/results/planning.md` planned to click each row."""
    assert render(situate(), 4)[-1].text.split("\n") == [
        "The page",
        "⟦⟦DATA page⟧⟧",
        "textbox “Email”",
        "⟦⟦END page⟧⟧",
        "Task",
        "⟦⟦DATA task⟧⟧",
        "Buy tea",
        "⟦⟦END task⟧⟧",
        "Give at most 4 milestones of this task.",
    ]


def test_no_prompt_shows_a_straight_quote_that_a_milestone_could_copy(situate: Situate) -> None:
    """A copied quote without an escape ends the text of the JSON: `Link "aliquet" is clicked` became `Link`."""
    asked = situate(
        instruction='Click on the link "aliquet".',
        text='[3] link "aliquet"\n[4] textbox "Name" = "ann"',
        anchors=(Milestone(id="m1", text='The tab "One" is open'),),
        cause="loop",
        history=(clicked("One", "tab"),),
    )
    messages = render(asked, 3)
    for turn in messages[1:]:
        straight = [
            text
            for text in ([turn.text] if turn.role == "user" else json.loads(turn.text)["milestones"])
            if '"' in text
        ]
        assert straight == []
    for shown in ("link “aliquet”\n", "“Name” = “ann”", "The tab “One” is open", "click tab “One”"):
        assert shown in messages[-1].text


async def test_milestones_have_the_straight_quotes_of_pages_and_prompts(situate: Situate) -> None:
    tested, _ = planner(answer("Name holds “ann”", 'The link "aliquet" is clicked'))
    plan = await tested.plan(situate())
    assert [one.text for one in plan.milestones] == ['Name holds "ann"', 'The link "aliquet" is clicked']


def test_prompts_begin_alike_with_examples_in_the_form_of_the_question(situate: Situate) -> None:
    one, other = render(situate(), 4), render(situate(instruction="Sell tea"), 4)
    assert one[:-1] == other[:-1]
    for turn in one[1:-1]:
        if turn.role == "assistant":
            assert 1 <= len(answer_schema(4).model_validate_json(turn.text).milestones) <= 4
        else:
            assert turn.text.startswith("The page\n")
            assert turn.text.endswith("Give at most 4 milestones of this task.")


async def test_a_plan_has_as_many_milestones_as_the_model_gives(situate: Situate) -> None:
    tested, model = planner(answer("1. The tea page is open", "The tea is paid"))
    plan = await tested.plan(situate())
    assert texts(plan.milestones) == [("m1", "The tea page is open"), ("m2", "The tea is paid")]
    assert model.requests[0].schema is answer_schema(4, frozenset())


async def test_a_list_that_is_too_long_is_cut_and_not_asked_for_again(situate: Situate) -> None:
    """As of a recorded episode: after "List should have at most 4 items" the plan was that sentence."""
    tested, model = planner(answer("a", "b", "c", "d", "e", "e"))
    assert [text for _, text in texts((await tested.plan(situate())).milestones)] == ["a", "b", "c", "d"]
    assert len(model.requests) == 1
    assert model.requests[0].schema is not None
    assert model.requests[0].schema.model_json_schema()["properties"]["milestones"]["maxItems"] == 4


async def test_a_new_plan_keeps_what_is_achieved_and_says_what_was_done(situate: Situate) -> None:
    tested, model = planner(answer("The card is entered", "The tea is paid by card"))
    situation = situate(anchors=(OPENED,), open=(PAID,), cause="loop", history=(clicked("Tea", "link"),))
    plan = await tested.plan(situation)
    assert texts(plan.milestones) == [
        ("m1", "The tea page is open"),
        ("m3", "The card is entered"),
        ("m4", "The tea is paid by card"),
    ]
    asked = model.requests[0].messages[-1].text
    assert "click link “Tea”" in asked and asked.endswith("Give at most 3 milestones of this task.")
    assert asked.index(CAUSE_TEXT["loop"]) < asked.index("\nTask\n"), "else the cause becomes a milestone"
    assert "⟦⟦DATA achieved⟧⟧\nThe tea page is open\n⟦⟦END achieved⟧⟧" in asked


@pytest.mark.parametrize(
    ("milestones", "problem"),
    [
        ((), "at least 1"),
        (("a", "A."), "milestone 2 repeats"),
        (("a", " - "), "milestone 2 is empty"),
        (("x" * (MAX_MILESTONE_CHARS + 1),), "longer than"),
    ],
)
async def test_a_plan_that_cannot_be_used_is_an_error(
    situate: Situate, milestones: tuple[str, ...], problem: str
) -> None:
    tested, _ = planner(answer(*milestones), answer(*milestones))
    with pytest.raises(ModelInvalidAnswer, match=problem):
        await tested.plan(situate())


@pytest.mark.parametrize(("cause", "allowed"), [("loop", False), ("milestone_lost", True)])
async def test_only_what_was_lost_may_be_planned_again(situate: Situate, cause: str, allowed: bool) -> None:
    tested, _ = planner(answer(OPENED.text, "The tea is paid"), answer(OPENED.text, "The tea is paid"))
    situation = situate(anchors=(OPENED,), open=(PAID,), cause=cause, history=(clicked("Tea", "link"),))
    if allowed:
        assert len((await tested.plan(situation)).milestones) == 3
        return
    with pytest.raises(ModelInvalidAnswer, match="repeats"):
        await tested.plan(situation)


def test_of_a_long_page_the_lines_are_shown_that_the_task_speaks_of(situate: Situate) -> None:
    page = "\n".join([f"Paragraph {i} about nothing in particular" for i in range(200)] + ['[7] link "Tea"'])
    text = render(situate(text=page), 4)[-1].text
    assert "link “Tea”" in text and "[7]" not in text and len(text) < PAGE_CHARS + 500
