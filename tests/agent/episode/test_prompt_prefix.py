"""Consecutive full prompts share their beginning, which a server's prefix cache holds."""

from __future__ import annotations

import itertools
from dataclasses import replace
from statistics import mean

from agent.episode.prompts import PolicyView, render_policy_prompt
from envs.core.action_languages import PROGRAM
from envs.core.notes import Note
from envs.core.observation import Observation
from envs.core.past_actions import PageName, PastAction
from envs.core.tasks import Milestone
from tests.past_actions import clicked

PLAN = tuple(Milestone(id=f"m{n}", text=f"The orders of month {n} are read") for n in range(4))
STEPS = 100


def past(step: int) -> PastAction:
    return replace(
        clicked(f"Order {step}", "link"), page=PageName(f"http://shop.test/orders?page={step // 3}", "Orders")
    )


def view(step: int) -> PolicyView:
    """Step *step* of a walk through pages of 2,000 characters; a milestone is reached at every 25th."""
    text = "\n".join(f'[{n}] link "Order {step * 50 + n} of customer {n * step}"' for n in range(1, 50))
    done = step * len(PLAN) // STEPS
    return PolicyView(
        instruction="Find the order that was paid twice",
        observation=Observation(f"http://shop.test/{step}", "", text, (), (), "0" * 16, (1280, 800), (0, step), 50),
        language=PROGRAM,
        milestones=PLAN,
        z=tuple(n < done for n in range(len(PLAN))),
        next_milestone=done,
        history=tuple(past(n) for n in range(step)),
        notes=(Note(number=1, text="order 7 was paid"),) if step > 10 else (),
        max_notes=20,
    )


def text(view: PolicyView) -> str:
    return "".join(message.text for message in render_policy_prompt("full", view))


def common(one: str, other: str) -> int:
    """Length of the longest common prefix."""
    ends = (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(ends, min(len(one), len(other)))


def test_a_prompt_begins_with_the_prompt_before_up_to_the_last_action() -> None:
    prompts = [text(view(step)) for step in range(1, STEPS)]
    shared = [common(*pair) for pair in itertools.pairwise(prompts)]
    whole = [length >= earlier.index("⟦⟦END actions⟧⟧") for length, earlier in zip(shared, prompts, strict=False)]
    assert sum(whole) >= STEPS - 2 - 3 - 1, "except where a milestone is reached, and once for a summary"
    shares = [length / len(later) for length, later in zip(shared, prompts[1:], strict=True)]
    assert mean(shares) >= 0.55, "besides a page that is new at each step"


def test_what_changes_at_each_step_comes_last() -> None:
    shown = text(replace(view(50), problems=("the page was lost",)))
    parts = ("Notes\n", "Goal: ", "\nPlan\n", "Your actions", "Your notes", "\nProblems\n", "\nThe page\n")
    places = [shown.index(part) for part in parts]
    assert places == sorted(places)
