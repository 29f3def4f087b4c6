"""Volatile numbers, which comparisons of pages ignore."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from judges.analysis import Case, explain
from judges.analysis.history import history_of
from judges.analysis.numbers import split
from tests.judges.analysis.episodes import observed_steps

AGAIN = "click link ada"
"""A link to its own page."""


class Observations(NamedTuple):
    template: str
    """Of the page's text; `{}` is the number."""
    numbers: Sequence[object]
    actions: Sequence[str] = ()
    """One action for each observation; default the same link again."""
    apart_s: float = 1.0
    places: Sequence[str] = ()
    """One address for each observation; default the same."""


VOLATILE = {
    "seconds_since": Observations("Seen {}", ["4s", "5s", "6s", "7s"]),
    "seconds_since_with_no_times_in_the_trace": Observations("Seen {}", ["4s", "5s", "6s"], apart_s=0.0),
    "seconds_that_pass_while_the_steps_are_fast": Observations("Seen {}", ["4s", "4s", "5s", "5s"], apart_s=0.4),
    "seconds_in_words": Observations("Active for {}.", ["4 seconds", "9 seconds", "14 seconds"], apart_s=5.0),
    "one_second_two_seconds": Observations("Seen {}", ["1 second", "2 seconds", "3 seconds"]),
    "from_seconds_to_minutes": Observations("Seen {}", ["58s", "59s", "1m", "1m"]),
    "just_now": Observations("Seen\n{}", ["now", "1s", "2s", "3s"]),
    "an_age_that_starts_again": Observations("Seen {}", ["31s", "33s", "1s", "3s"], apart_s=2.0),
    "minutes_and_seconds": Observations("Up {}", ["2 min 58 s", "2 min 59 s", "3 min 0 s"]),
    "a_countdown": Observations("{} to go", ["30 s", "25 s", "20 s"], apart_s=5.0),
    "a_stop_watch": Observations("Time {}", ["0:04", "0:05", "0:06", "0:07"]),
    "a_wall_clock": Observations("It is {}", ["10:31", "10:31", "10:32", "10:32"], apart_s=30.0),
    "seconds_since_1970": Observations("t={}", ["1795613601", "1795613603", "1795613604"], apart_s=1.5),
    "views": Observations("Seen by {} views", [17, 18, 19]),
    "users_online": Observations("{} users online", [3, 5, 4]),
    "a_bare_counter_that_ticks": Observations("Counter {}", [4, 4, 5, 5, 6, 6, 7, 7, 8], apart_s=0.5),
    "a_bare_counter_that_ticks_while_nothing_is_done": Observations(
        "Counter {}", [4, 5, 7, 8], [AGAIN, "wait", "find x", AGAIN]
    ),
    "a_bare_counter_that_changes_while_actions_are_refused": Observations(
        "Counter {}", [4, 5, 7, 8], ["!click link ada", "!click link ada", "!click link ada", AGAIN]
    ),
    "a_bare_counter_of_a_page_left_and_reached_again": Observations(
        "Served {}", [11, 0, 14, 0, 15], [AGAIN, "back"] * 2 + [AGAIN], 0.1, ["/a", "/b"] * 2 + ["/a"]
    ),
    "a_bare_counter_of_a_page_reached_by_a_link_to_it": Observations(
        "Served {}", [0, 11, 12, 13], [AGAIN] * 4, 0.1, ["/", "/a", "/a", "/a"]
    ),
}
MEANINGFUL = {
    "page_2_of_9": Observations("Page {} of 9", [2, 3, 4, 5], ["click link Next"] * 4),
    "a_page_in_a_list_of_pages": Observations("Page\n{}", [2, 3, 4, 5], ["click link Next"] * 4),
    "a_quantity": Observations("Quantity {}", [1, 2, 3, 4], ["click button +"] * 4),
    "a_bare_number_that_a_button_counts": Observations("Guests\nAdults\n{}", [1, 2, 3, 4], ["click button +"] * 4),
    "a_bare_number_that_counts_with_the_seconds": Observations("Adults\n{}", [1, 2, 3, 4, 5], ["click button +"] * 5),
    "hours_that_a_button_counts": Observations("Rent for {}", ["1 h", "2 h", "3 h", "4 h"], ["click button More"] * 4),
    "minutes_that_a_button_counts": Observations("Timer {}", ["5 min", "10 min", "15 min"], ["click button More"] * 3),
    "a_time_that_a_button_sets": Observations("Alarm {}", ["10:00", "10:30", "11:00"], ["click button Later"] * 3),
    "a_year": Observations("January {}", [2016, 2015, 2014, 2013], ["click clickable Prev"] * 4),
    "a_month": Observations("Month {}", [12, 11, 10, 9], ["click clickable Prev"] * 4),
    "a_cell": Observations(
        '[4] textbox "r1c1" = "{}"', ["", 1, 2, 3], [f"type textbox r1c1 = {n}" for n in range(1, 5)], 0.1
    ),
    "a_page_that_shows_late": Observations(
        "Item {}", [1, 1, 2, 2, 3, 3, 4], ["click button Next", "wait"] * 3 + ["wait"], 0.7
    ),
    "a_page_that_shows_late_with_the_seconds": Observations(
        "Nr {}", [1, 1, 2, 2, 3, 3, 4], ["click button Next", "wait"] * 3 + ["wait"], 0.5
    ),
    "a_basket_that_a_link_fills": Observations(
        "Basket: {} items", [1, 0, 2, 0, 3], ["back", AGAIN] * 2 + ["back"], 0.1, ["/a", "/b"] * 2 + ["/a"]
    ),
    "progress_in_percent": Observations("{} % done", [10, 20, 30, 40], ["wait"] * 4),
    "a_model_name": Observations("Phone {}", ["4s", "5s", "4s"], ["click button Other"] * 3),
}


def states(folder: Path, observations: Observations) -> list[str]:
    """Of the observations that show the number."""
    actions = observations.actions or [AGAIN] * len(observations.numbers)
    places = observations.places or ["/a"] * len(observations.numbers)
    rows = [
        (f"{place} {i} | {action}", observations.template.format(number) if place == "/a" else place)
        for i, (place, number, action) in enumerate(zip(places, observations.numbers, actions, strict=True))
    ]
    steps, pages = observed_steps(folder, *rows, apart_s=observations.apart_s)
    found = history_of(steps, pages).states
    return [state for state, place in zip(found, places, strict=True) if place == "/a"]


@pytest.mark.parametrize("observations", VOLATILE.values(), ids=VOLATILE.keys())
def test_a_number_that_changes_by_itself_makes_no_new_page(observations: Observations, tmp_path: Path):
    assert len(set(states(tmp_path, observations))) == 1


@pytest.mark.parametrize("observations", MEANINGFUL.values(), ids=MEANINGFUL.keys())
def test_a_number_that_carries_state_makes_a_new_page(observations: Observations, tmp_path: Path):
    shown = [
        number
        for number, place in zip(observations.numbers, observations.places or ["/a"] * 99, strict=False)
        if place == "/a"
    ]
    assert len(set(states(tmp_path, observations))) == len(set(shown))


def test_a_volatile_number_beside_one_that_carries_state(tmp_path: Path):
    rows = [("/a | click link Next", f"Page {n} of 9, seen {n + 3}s") for n in (1, 2, 3)]
    rows += [("/a | click link Next", f"Page 3 of 9, seen {n}s") for n in (7, 8, 9)]
    steps, pages = observed_steps(tmp_path, *rows, apart_s=1.0)
    found = history_of(steps, pages).states
    assert len(set(found)) == 3 and len(set(found[2:])) == 1


def test_without_page_texts_nothing_is_searched(tmp_path: Path):
    steps, _ = observed_steps(tmp_path, *[(f"/a {n} | {AGAIN}", f"Seen {n}s") for n in (4, 5, 6)], apart_s=1.0)
    assert len(set(history_of(steps).states)) == 3


def test_the_profile_link_in_seven_of_ten_steps_is_a_loop(tmp_path: Path):
    """The page counts seconds, and other steps lie in between."""
    actions = [AGAIN, AGAIN, AGAIN, "scroll", AGAIN, AGAIN, "find x", AGAIN, AGAIN, "scroll up"]
    rows = [("/ | click link Topic", "A topic"), *((f"/a | {act}", f"Seen {n}s") for n, act in enumerate(actions, 4))]
    steps, pages = observed_steps(tmp_path, *rows, apart_s=1.0)
    failure = explain(Case(steps, "max_steps", "failure", pages=pages))
    assert (failure.category, failure.key_step) == ("stuck_midway", 2)
    assert failure.loop is not None
    assert (failure.loop.period, failure.loop.repetitions, failure.loop.last) == (1, 7, 10)
    assert "click on link 'ada'" in failure.reason


def test_a_round_on_two_pages_that_count(tmp_path: Path):
    rows = [
        (f"/{'ab'[n % 2]} | click link {'AB'[n % 2]}", f"{('This', 'That')[n % 2]} page, request {n}") for n in range(6)
    ]
    steps, pages = observed_steps(tmp_path, *rows, apart_s=1.0)
    failure = explain(Case(steps, "max_steps", "failure", pages=pages))
    assert (failure.category, failure.key_step) == ("stuck_midway", 1)
    assert failure.loop is not None
    assert (failure.loop.entry, failure.loop.period, failure.loop.repetitions) == (1, 2, 3)


def test_an_age_in_the_name_of_a_link_does_not_make_it_another(tmp_path: Path):
    rows: list[tuple[str, str]] = []
    for n in range(3):
        name = f"A topic {3 * n + 1}s"
        rows += [("/ | click link " + name, f'[1] link "{name}"'), ("/t | click link Home", f"A topic, {3 * n + 2}s")]
    steps, pages = observed_steps(tmp_path, *rows, apart_s=1.5)
    failure = explain(Case(steps, "max_steps", "failure", pages=pages))
    assert (failure.category, failure.key_step) == ("stuck_midway", 1)


def test_two_names_on_one_page_are_two_elements(tmp_path: Path):
    text = '[1] link "Phone 4s"\n[2] link "Phone 5s"'
    rows = [
        ("/ | click link Phone 4s", text),
        ("/4s | back", "a"),
        ("/ | click link Phone 5s", text),
        ("/5s | back", "b"),
    ]
    steps, pages = observed_steps(tmp_path, *rows, apart_s=1.0)
    history = history_of(steps, pages)
    assert history.acts[0] != history.acts[2]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("no number", []),
        ("1 h 5 min and 3 s", ["1 h 5 min and 3 s"]),
        ("5 menus", ["5"]),
        ("10:32", ["10:32"]),
        ("1:2:3", ["1", "2", "3"]),
        ("£1,234.50 or 2.5", ["1,234.50", "2.5"]),
        ("x" * 5_000 + "7", ["7"]),
    ],
)
def test_numbers_of_a_text(text: str, numbers: list[str]):
    assert [number.text for number in split(text).numbers] == numbers
    assert split(text).letters == split(text.replace("7", "8")).letters
