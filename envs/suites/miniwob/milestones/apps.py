"""Milestones of the small applications: mail, social media, shop, calendar, auto-complete."""

from __future__ import annotations

import re

from envs.suites.miniwob.milestones.checks import computed, finished, holds, view
from envs.suites.miniwob.milestones.spec import Checker, Goal, MilestoneSpec, TaskMilestones, Verdict
from envs.suites.miniwob.state import PageState

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)

_OPENED = MilestoneSpec("opened", "The e-mail by {name} is open", view("email", "reply", "forward"), lasting=True)

_REPLY = TaskMilestones(
    r'email by (?P<name>\w+) and reply to them with the text "(?P<text>.*)"\.$',
    (
        _OPENED,
        MilestoneSpec("form", "The reply form is open", view("reply"), lasting=True),
        MilestoneSpec("typed", 'The reply says "{text}"', holds("text", ident="reply-text")),
        MilestoneSpec("sent", "The reply to {name} is sent", finished),
    ),
)
_FORWARD = TaskMilestones(
    r"email by (?P<name>\w+) and forward that email to (?P<to>\w+)\.$",
    (
        _OPENED,
        MilestoneSpec("form", "The forward form is open", view("forward"), lasting=True),
        MilestoneSpec("typed", 'The addressee is "{to}"', holds("to", types=("text",))),
        MilestoneSpec("sent", "The e-mail by {name} is forwarded to {to}", finished),
    ),
)


def _ordered(goal: Goal) -> list[str]:
    return goal["items"].split(", ")


def _quantity(item: str, state: PageState) -> int:
    """The ordered quantity of *item* in the menu: the number between its − and +."""
    match = re.search(rf"^{re.escape(item)}\s*\n\s*-\s*(\d*)\s*\+", state.text, re.MULTILINE)
    return int(match[1] or 0) if match else 0


def _some_ordered(goal: Goal, state: PageState) -> Verdict:
    counts = {item: _quantity(item, state) for item in _ordered(goal)}
    return Verdict(state.won or any(counts.values()), f"quantities {counts!r}")


def _all_ordered(goal: Goal, state: PageState) -> Verdict:
    counts = {item: _quantity(item, state) for item in _ordered(goal)}
    return Verdict(state.won or set(counts.values()) == {1}, f"quantities {counts!r}")


def _calendar(goal: Goal, state: PageState) -> Verdict:
    picked = any(re.fullmatch(r"\d\d/\d\d/\d{4}", field.value) for field in state.fields)
    return Verdict("ui-datepicker-div" in state.parts or picked, f"calendar shown or date {picked}")


def _month(goal: Goal, state: PageState) -> Verdict:
    target = MONTHS[int(goal["month"]) - 1]
    shown = target in state.items
    return Verdict(shown or _date_is(goal, state), f"{target} is {'' if shown else 'not '}shown")


def _date_is(goal: Goal, state: PageState) -> bool:
    return f"{goal['month']}/{goal['day']}/{goal['year']}" in state.values("text")


def _airport(key: str, ident: str) -> Checker:
    """Checks that the field *ident* holds an airport of the list whose city or code is the goal's *key*."""

    def check(goal: Goal, state: PageState) -> Verdict:
        values = [field.value for field in state.fields if field.id == ident]
        return Verdict(any(goal[key] in value and value.endswith(")") for value in values), f"field holds {values!r}")

    return check


def _day_picked(goal: Goal, state: PageState) -> Verdict:
    return Verdict(_date_is(goal, state), f"fields hold {list(state.values('text'))!r}")


def _begun(goal: Goal, state: PageState) -> Verdict:
    values = state.values()
    return Verdict(any(value.startswith(goal["start"]) for value in values), f"fields hold {list(values)!r}")


def _completed(goal: Goal, state: PageState) -> Verdict:
    values = state.values()
    good = any(v.startswith(goal["start"]) and v.endswith(goal["end"]) and len(v) > len(goal["start"]) for v in values)
    return Verdict(good, f"fields hold {list(values)!r}")


_DATE = TaskMilestones(
    r"^Select (?P<month>\d\d)/(?P<day>\d\d)/(?P<year>\d{4}) as the date",
    (
        MilestoneSpec("calendar", "The calendar is open", _calendar, lasting=True),
        MilestoneSpec("month", "The calendar shows the month of {month}/{day}/{year}", _month, lasting=True),
        MilestoneSpec(
            "picked",
            "The date field holds {month}/{day}/{year}",
            computed(lambda goal, state: f"{goal['month']}/{goal['day']}/{goal['year']}"),
        ),
        MilestoneSpec("submitted", "The form is submitted and accepted", finished),
    ),
)
_COMPLETE = TaskMilestones(
    r'starts with "(?P<start>[^"]*)"(?: and ends with "(?P<end>[^"]*)")?',
    (
        MilestoneSpec("typed", 'The field begins with "{start}"', _begun),
        MilestoneSpec("completed", 'The field holds an item from "{start}" to "{end}"', _completed),
        MilestoneSpec("submitted", "The form is submitted and accepted", finished),
    ),
)

_FLIGHT = TaskMilestones(
    r"^Book the (?P<which>cheapest|shortest) one-way flight from: (?P<origin>.*) to: (?P<destination>.*) on "
    r"(?P<month>\d\d)/(?P<day>\d\d)/(?P<year>\d{4})\.$",
    (
        MilestoneSpec("from", "The flight is from {origin}", _airport("origin", "flight-from"), lasting=True),
        MilestoneSpec("to", "The flight is to {destination}", _airport("destination", "flight-to"), lasting=True),
        MilestoneSpec("date", "The flight is on {month}/{day}/{year}", _day_picked, lasting=True),
        MilestoneSpec("booked", "The {which} flight is booked", finished),
    ),
)

APP_TASKS: dict[str, tuple[TaskMilestones, ...]] = {
    "email-inbox": (_REPLY, _FORWARD),
    "email-inbox-noscroll": (_REPLY, _FORWARD),
    "email-inbox-reply": (_REPLY,),
    "email-inbox-star-reply": (_REPLY,),
    "email-inbox-forward": (_FORWARD,),
    "order-food": (
        TaskMilestones(
            r"^Order one of each item: (?P<items>.*)$",
            (
                MilestoneSpec("first", "At least one of {items} is in the order", _some_ordered),
                MilestoneSpec("all", "One each of {items} is in the order", _all_ordered),
                MilestoneSpec("submitted", "The order is submitted and accepted", finished),
            ),
        ),
    ),
    "book-flight": (_FLIGHT,),
    "book-flight-nodelay": (_FLIGHT,),
    "choose-date-easy": (_DATE,),
    "choose-date-medium": (_DATE,),
    "choose-date-nodelay": (_DATE,),
    "choose-date": (_DATE,),
    "use-autocomplete": (_COMPLETE,),
    "use-autocomplete-nodelay": (_COMPLETE,),
}
