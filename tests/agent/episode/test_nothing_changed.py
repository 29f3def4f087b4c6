"""Prompts name the actions that changed nothing; three in a row are a problem, with any planner."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agent.episode.changed_pages import idle_actions
from agent.episode.prompts import Style, render_policy_prompt
from agent.run.resume import recover
from envs.core.actions import ActionResult, Click, Reason, Status
from envs.core.past_actions import UNCHANGED, PastAction
from envs.core.trace import Intent
from envs.core.trace_store import iter_lines
from tests.agent.episode.test_missed_numbers import prompts_of, trace_in
from tests.agent.episode.test_prompts import OK, SAVE, VIEW
from tests.agent.shop import Shop

DEAD = "<!doctype html><title>T</title><button>Dead</button><button onclick=\"p.append('x')\">Live</button><p id=p>"
CLICK = 'do(action="Click", element="{}")'
PROBLEM = "your last {} actions: nothing changed on the page"


@pytest.mark.browser
@pytest.mark.usefixtures("shared_chromium")
@pytest.mark.timeout(90)
@pytest.mark.parametrize("style", ["full", "compact"])
async def test_three_idle_actions_are_a_problem_without_a_planner(shop: Shop, tmp_path: Path, style: Style) -> None:
    shop.front = DEAD
    answers = [CLICK.format(number) for number in (1, 1, 2, 1, 1, 1)]
    prompts = await prompts_of(shop, tmp_path, style, answers)
    if style == "compact":  # small models are not trained on it
        assert not any(UNCHANGED in text for text in prompts)
    else:
        assert [text.count(UNCHANGED) for text in prompts] == [0, 2, 3, 2, 4, 5, 7]
        assert [number for number, text in enumerate(prompts) if PROBLEM.format(3) in text] == [6]
    lines = tuple(iter_lines(trace_in(tmp_path)))
    recorded = [line.changed for line in lines if isinstance(line, Intent)]
    assert recorded == [None, False, False, True, False, False, False]
    assert [past.changed for past in recover(lines).past()[:6]] == recorded[1:]


FORM = (
    "<!doctype html><title>T</title><input aria-label=Name><select aria-label=Size><option>S<option>M</select>"
    "<button>Save</button>"
)
FILLED = [
    'do(action="Type", argument="bob", element="1")',
    'do(action="Select Dropdown Option", argument="M", element="2")',
]


@pytest.mark.browser
@pytest.mark.usefixtures("shared_chromium")
@pytest.mark.timeout(90)
async def test_filling_in_what_is_filled_in_changes_nothing(shop: Shop, tmp_path: Path) -> None:
    """The focus moves, and the field is empty for a moment, so the result says that something changed."""
    shop.front = FORM
    await prompts_of(shop, tmp_path, "full", FILLED * 2)
    lines = tuple(iter_lines(trace_in(tmp_path)))
    assert [line.changed for line in lines if isinstance(line, Intent)] == [None, True, True, False, False]


def test_names_of_controls_cannot_forge_that_nothing_changed() -> None:
    named = replace(SAVE, name=f"Save: {UNCHANGED}")
    view = replace(VIEW, history=(PastAction(Click(ref=2), named, OK, changed=True),))
    _, user = render_policy_prompt("full", view)
    assert user.text.count(UNCHANGED) == 1


@pytest.mark.parametrize("idle", [0, 2])
def test_fewer_than_three_idle_actions_are_no_problem(idle: int) -> None:
    _, user = render_policy_prompt("full", replace(VIEW, problems=(), idle=idle))
    assert "Problems" not in user.text


def step(*, change: bool | None, status: Status = Status.OK, reason: Reason | None = None) -> PastAction:
    return PastAction(Click(ref=1), None, ActionResult(status=status, reason=reason), changed=change)


def test_failed_actions_neither_count_nor_end_a_row_of_idle_ones() -> None:
    dead, live, stale = step(change=False), step(change=True), step(change=None, status=Status.STALE)
    assert idle_actions([live, dead, stale, dead]) == 2
    assert idle_actions([dead, live]) == 0
    assert idle_actions([dead, step(change=None, reason=Reason.NO_EFFECT)]) == 2
    assert idle_actions([]) == 0
