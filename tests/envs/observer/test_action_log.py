"""The log of actions within a budget: nothing is left out in silence, and it rarely changes at its beginning."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.core.action_place import ActionPlace
from envs.core.actions import Status
from envs.core.past_actions import PageName, PastAction
from envs.observer.action_log import action_log, action_log_lines
from envs.observer.page_text import LOG_LINE_CHARS
from tests.past_actions import WAITED, clicked, failed, typed


def on(path: str, past: PastAction, title: str = "") -> PastAction:
    return replace(past, page=PageName(f"http://shop.test{path}", title))


def walk(steps: int) -> list[PastAction]:
    """Five actions on each of many pages."""
    return [on(f"/item/{n // 5}", clicked(f"Part {n % 5} of the assembly"), f"Item {n // 5}") for n in range(steps)]


def numbers(line: str) -> range:
    """The steps of a line."""
    if line.startswith("at "):
        return range(0)
    label = line.removeprefix("steps ").removeprefix("step ")
    first, _, last = label.partition(" ")[0].rstrip(".:").partition("-")
    return range(int(first), int(last or first) + 1)


def test_every_action_is_a_line_under_its_page() -> None:
    place = ActionPlace(where='in row "Invoice 17"')
    history = [
        on("/", typed("mug", "Search"), "Shop"),
        on("/", clicked("Go"), "Shop (2)"),
        on("/#/results", replace(clicked("delete", "clickable"), place=place)),
        on("/#/results", clicked("Next", result=failed(Status.STALE, "gone\nnow"))),
        on("/", replace(WAITED, result=None)),
    ]
    assert action_log(history).split("\n") == [
        'at "Shop" /',
        '1. type "mug" into textbox "Search"',
        '2. click button "Go"',
        "at /#/results",
        '3. click clickable "delete" in row "Invoice 17"',
        '4. click button "Next": stale, gone now',
        "at /",
        "5. wait: unknown whether it happened",
    ]
    assert action_log([]) == "(no action yet)"
    assert action_log_lines([WAITED]) == ["1. wait"], "older traces have no page"


def test_older_actions_are_summarised_by_page() -> None:
    history = [
        on("/list", typed("mug", "Search"), "List"),
        *(on("/list", clicked("Next"), "List") for _ in range(9)),
        *(on("/list", clicked(f"Sort {n}"), "List") for n in range(4)),
        on("/list", clicked("Open", result=failed(Status.COVERED)), "List"),
        *(on("/item/0", clicked("Next")) for _ in range(400)),
    ]
    first = action_log_lines(history)[0]
    assert first == (
        'steps 1-15 on "List" /list: type "mug" into textbox "Search"; click button "Next" ×9; click button "Sort 0"; '
        'click button "Sort 1"; 3 more; 1 failed or unknown; then /item/0'
    )


def test_the_oldest_summaries_are_merged_with_counts() -> None:
    history = [*walk(1_000), on("/", typed("mug", "Search")), *walk(1_000)]
    lines = action_log_lines(history, 4_000)
    assert lines[0].startswith("steps 1-1") and " pages (/item/0 ×10, /item/1 ×10, " in lines[0]
    assert ", and " in lines[0] and lines[0].endswith('click, 1 type; among them type "mug" into textbox "Search"')


@settings(max_examples=30, deadline=None)
@given(steps=st.integers(0, 400), chars=st.integers(4_000, 12_000))
def test_every_step_is_counted_once_within_the_budget(steps: int, chars: int) -> None:
    lines = action_log_lines(walk(steps), chars)
    assert [number for line in lines for number in numbers(line)] == list(range(1, steps + 1))
    assert sum(len(line) + 1 for line in lines) <= chars
    assert all(len(line) <= LOG_LINE_CHARS for line in lines)


def test_the_last_action_is_always_a_line() -> None:
    long = [on("/", typed("x" * 5_000, "Body")) for _ in range(9)]
    assert action_log_lines(long, 4_000)[-1].startswith('9. type "xxx')


@pytest.mark.parametrize("steps", [60, 300])
def test_the_log_of_most_steps_begins_with_that_of_the_step_before(steps: int) -> None:
    logs = [action_log(walk(n)) for n in range(1, steps)]
    kept = [later.startswith(earlier) for earlier, later in itertools.pairwise(logs)]
    assert sum(kept) >= 0.97 * len(kept)
