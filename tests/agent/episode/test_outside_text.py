"""Every string in a role's input stands in its prompt as data. The records are walked by reflection, so that a
new field is covered when it is added."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import judges.autorater_prompt
import judges.compact_autorater
import judges.fuzzy
import judges.orm
import judges.outcome
import judges.short_autorater
import models.prompting.prompt_text
import planners.compact_planner
import planners.prompts
import planners.short_planner
from agent.episode.policy import ModelPolicy, Turn
from agent.episode.profile_prompts import render_prompt
from agent.episode.prompts import PolicyView, render_policy_prompt
from agent.profiles.profile import Profile, named
from envs.core.action_languages import PROGRAM
from envs.core.observation import Observation
from envs.core.tasks import TaskRef
from judges.analysis import meaning
from judges.base import Ending, Progress
from models.base import Message
from models.providers.scripted_model import ScriptedModel
from planners.base import Situation
from tests.outside_text import Path, filled, hostile, obeyed, string_fields
from tests.past_actions import clicked
from training.loop.curriculum import model_similarity

PAGE_ROW = "\n".join(f"word {n}" for n in range(400))
"""Makes a page so long that a small model is shown a part."""


@dataclass(frozen=True)
class Prompted:
    """A role's record and what is rendered of it."""

    record: type
    render: Callable[[Any], Sequence[Message]]
    fixed: Mapping[Path, object]
    orders: frozenset[Path] = frozenset()
    """Strings that the role shall follow: they stand outside the data, on a line of their own."""
    compact: bool = False


def repair(view: PolicyView) -> Sequence[Message]:
    """The prompt after an answer that was no action, whose error quotes the page."""
    return _repaired(view, "full")


def short_repair(view: PolicyView) -> Sequence[Message]:
    return _repaired(view, "full", named("small"))


def _repaired(view: PolicyView, style: Any, profile: Profile | None = None) -> Sequence[Message]:
    model = ScriptedModel([f'do(action="{view.observation.title}")', "exit()"])
    turn = Turn(TaskRef(suite="open", name="x", seed=0), 1, 1, view)
    asyncio.run(ModelPolicy(model, PROGRAM, style, profile=profile).propose(turn))
    return [message for message in model.requests[-1].messages if message.role != "assistant"]


def plan_prompt(situation: Situation) -> Sequence[Message]:
    return planners.prompts.render(situation, (), 4)


VIEW: Mapping[Path, object] = {
    ("language",): PROGRAM,
    ("z",): (False,),
    ("next_milestone",): 0,
    ("observation", "elements", "0", "effect"): None,
}
NO_PROBLEMS: Mapping[Path, object] = {**VIEW, ("problems",): ()}
FAILED: Mapping[Path, object] = {**VIEW, ("missed",): None}
DONE: Mapping[Path, object] = {**VIEW, ("z",): (True,), ("next_milestone",): None}
GOAL = frozenset({("instruction",)})
COMPACT_ORDERS = frozenset({("instruction",), ("milestones", "0", "text")})
CASES = {
    "policy": Prompted(PolicyView, lambda view: render_policy_prompt("full", view), VIEW, GOAL),
    "policy, nothing missed": Prompted(PolicyView, lambda view: render_policy_prompt("full", view), FAILED, GOAL),
    "policy, repair": Prompted(PolicyView, repair, VIEW, GOAL),
    "policy, short": Prompted(PolicyView, lambda view: render_prompt(named("small"), view), VIEW, GOAL),
    "policy, short, nothing missed": Prompted(
        PolicyView, lambda view: render_prompt(named("small"), view), FAILED, GOAL
    ),
    "policy, short, repair": Prompted(PolicyView, short_repair, VIEW, GOAL),
    "policy, compact": Prompted(
        PolicyView, lambda view: render_policy_prompt("compact", view), VIEW, COMPACT_ORDERS, compact=True
    ),
    "policy, compact, missed": Prompted(
        PolicyView, lambda view: render_policy_prompt("compact", view), NO_PROBLEMS, COMPACT_ORDERS, compact=True
    ),
    "policy, compact, a milestone done": Prompted(
        PolicyView, lambda view: render_policy_prompt("compact", view), DONE, COMPACT_ORDERS, compact=True
    ),
    "planner": Prompted(Situation, plan_prompt, {("cause",): "initial"}),
    "planner, again": Prompted(Situation, plan_prompt, {("cause",): "milestone_lost"}),
    "planner, again, nothing achieved": Prompted(Situation, plan_prompt, {("cause",): "loop", ("z",): (False,)}),
    "planner, short": Prompted(Situation, lambda it: planners.short_planner.render(it, 4), {("cause",): "loop"}),
    "planner, compact": Prompted(
        Situation,
        lambda it: [Message("user", planners.compact_planner.plan_text(it, 4))],
        {("cause",): "loop"},
        GOAL,
        compact=True,
    ),
    "rater": Prompted(
        Progress, lambda it: judges.autorater_prompt.render(it, (0,)), {("z",): (False,), ("checks",): None}
    ),
    "rater, short": Prompted(
        Progress, lambda it: judges.short_autorater.render(it, 0).messages, {("z",): (False,), ("checks",): None}
    ),
    "rater, compact": Prompted(
        Progress,
        lambda it: [Message("user", judges.compact_autorater.check_text(it, 0))],
        {("z",): (False,), ("checks",): None},
        COMPACT_ORDERS,
        compact=True,
    ),
    "judge": Prompted(Ending, judges.outcome.render, {}),
    "judge, outcome reward model": Prompted(Ending, judges.orm.render, {}, GOAL, compact=True),
    "analyzer": Prompted(meaning.Question, lambda it: meaning.render(it.failed, it), {}),
    "fuzzy judge": Prompted(meaning.Question, lambda it: judges.fuzzy.render(it.failed, it.reference, it.failed), {}),
    "curriculum": Prompted(meaning.Question, lambda it: model_similarity.render(it.failed, [it.reference]), {}),
}
every_role = pytest.mark.parametrize("name", CASES)


def marker(path: Path) -> str:
    return f"OBEY-{'-'.join(path) or 'it'}-NOW"


def planted(case: Prompted, text: Callable[[Path], str]) -> Any:
    return filled(case.record, text, case.fixed)


def followed(case: Prompted, text: Callable[[Path], str]) -> set[Path]:
    """The strings whose marker stands outside the data, the orders apart."""
    messages = case.render(planted(case, text))
    paths = set(string_fields(case.record)) - case.orders
    return {path for path in paths if obeyed(messages, marker(path), compact=case.compact)}


def alone(case: Prompted) -> set[Path]:
    """The same with each string hostile in turn and all others harmless."""
    paths = set(string_fields(case.record)) - case.orders
    return {
        one
        for one in paths
        if one in followed(case, lambda path, one=one: hostile(marker(path)) if path == one else "x")
    }


@every_role
def test_no_string_of_the_record_stands_outside_the_data(name: str) -> None:
    case = CASES[name]
    assert len(list(string_fields(case.record))) >= 2
    assert followed(case, lambda path: hostile(marker(path))) == set()
    assert alone(case) == set()


def test_the_walk_knows_every_carrier_that_was_once_obeyed() -> None:
    """The fields of find's output, element names, covering text, options, downloads, dialogs, tabs and origins."""
    paths = set(string_fields(PolicyView))
    assert paths >= {
        ("problems", "0"),
        ("history", "0", "target", "role"),
        ("history", "0", "place", "where"),
        ("history", "0", "page", "title"),
        ("notes", "0", "text"),
        ("note_remarks", "0"),
        ("observation", "elements", "0", "key", "name"),
        ("observation", "elements", "0", "options", "0"),
        ("observation", "tabs", "0", "title"),
        ("observation", "tabs", "0", "url"),
        ("observation", "dialog", "message"),
        ("observation", "blocked", "0", "origin"),
        ("last", "message"),
        ("last", "output"),
        ("last", "downloads", "0", "name"),
        ("last", "dialogs", "0", "message"),
        ("milestones", "0", "text"),
        ("provided", "secrets", "0", "1"),
        ("provided", "files", "0"),
    }


def unfenced(label: str, text: str) -> str:
    return text


SHOWN_UNFENCED = {
    "policy": {
        ("problems", "0"),
        ("history", "0", "target", "role"),
        ("history", "0", "page", "title"),
        ("notes", "0", "text"),
        ("note_remarks", "0"),
        ("last", "message"),
        ("milestones", "0", "text"),
    },
    "policy, repair": {("observation", "title")},
    "policy, short": {
        ("problems", "0"),
        ("history", "0", "target", "role"),
        ("notes", "0", "text"),
        ("last", "message"),
        ("milestones", "0", "text"),
        ("observation", "text"),
    },
    "planner": {("instruction",), ("observation", "text")},
    "planner, again": {
        ("milestones", "0", "text"),
        ("detail",),
        ("notes", "0", "text"),
        ("history", "0", "target", "role"),
    },
    "planner, again, nothing achieved": {("milestones", "0", "text"), ("detail",)},
    "rater": {("instruction",), ("milestones", "0", "text"), ("observation", "text")},
    "judge": {
        *(("instruction",), ("answer",), ("history", "0", "target", "role"), ("notes", "0", "text")),
        *(("pages", "0", "text"), ("pages", "0", "url"), ("milestones", "0", "text"), ("proofs", "0", "quotes", "0")),
    },
    "analyzer": {("failed",), ("reference",)},
    "fuzzy judge": {("failed",), ("reference",)},
    "curriculum": {("failed",), ("reference",)},
}


@pytest.mark.parametrize("name", SHOWN_UNFENCED)
def test_without_the_fence_the_same_strings_are_obeyed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: what renders outside text is replaced by the identity."""
    monkeypatch.setattr(models.prompting.prompt_text, "fence", unfenced)
    assert followed(CASES[name], lambda path: hostile(marker(path))) >= SHOWN_UNFENCED[name]


@pytest.mark.parametrize("name", ["policy, compact", "policy, compact, missed", "planner, compact", "rater, compact"])
def test_without_the_fold_a_text_begins_lines_of_a_compact_prompt(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control of the compact prompts, whose fence is the line."""
    for module in (models.prompting.prompt_text, judges.compact_autorater):
        monkeypatch.setattr(module, "folded", str)
    assert alone(CASES[name])


@every_role
def test_an_order_stays_on_its_line(name: str) -> None:
    """The goal says what to do, and a compact prompt's milestone too: neither can begin a line or a fence."""
    case = CASES[name]
    text = "\n".join(
        message.text
        for message in case.render(planted(case, lambda path: hostile(marker(path)) if path in case.orders else "x"))
    )
    heading = "The User Intent:"  # it has a line of its own
    text = text.replace(f"{heading}\n", f"{heading} ", 1)
    labels = ("Goal: ", "Next: ", "Have: ", "Plan 4: ", "Check: ", f"{heading} ")
    for path in case.orders:
        lines = [line for line in text.split("\n") if marker(path) in line]
        assert all(line.startswith(labels) for line in lines), lines


@every_role
def test_a_page_that_is_shown_in_part_is_data_too(name: str) -> None:
    case = CASES[name]
    at = ("observation", "text")
    assert followed(case, lambda path: hostile(marker(path)) + ("\n" + PAGE_ROW if path == at else "")) == set()


PIECES = (
    "⟦⟦",
    "⟧⟧",
    "⟦",
    "⟧",
    "〚〚",
    "\\",
    "END page",
    "DATA page",
    "\n",
    "\u200b",
    "\U000e0041",
    "\u202e",
    "\r",
    "\u2028",
)


@every_role
@settings(max_examples=40, deadline=None)
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=12))
def test_no_mixture_of_delimiters_lets_a_string_out(name: str, pieces: list[str]) -> None:
    mixed = "".join(pieces)
    assert followed(CASES[name], lambda path: f"{mixed}{marker(path)}{mixed}\n{marker(path)}{mixed}") == set()


def test_a_compact_prompt_of_a_plain_page_has_no_trace_of_fences() -> None:
    observation = Observation("http://x.test/", "T", '[1] button "Ok"', (), (), "0" * 16, (1, 1), (0, 0), 1)
    view = PolicyView(instruction="Press", observation=observation, language=PROGRAM, history=(clicked("No"),))
    (prompt,) = render_policy_prompt("compact", view)
    assert prompt.text == 'Goal: Press\nDone: click button "No"\nPage:\n[1] button "Ok"'
