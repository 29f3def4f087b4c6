"""Milestones of the tasks that fill fields and choose options."""

from __future__ import annotations

import re

from envs.suites.miniwob.milestones.checks import (
    computed,
    exactly_checked,
    exactly_chosen,
    finished,
    holds,
    nth_checked,
    nth_holds,
    position,
    some_checked,
    some_chosen,
)
from envs.suites.miniwob.milestones.spec import Goal, MilestoneSpec, TaskMilestones, Verdict
from envs.suites.miniwob.state import PageState

SUBMITTED = MilestoneSpec("submitted", "The form is submitted and accepted", finished)


def _typed(key: str = "text", field: str = "text field") -> MilestoneSpec:
    return MilestoneSpec("typed", f'The {field} holds "{{{key}}}"', holds(key))


def _upper_or_lower(goal: Goal, state: PageState) -> str | None:
    return goal["text"].upper() if goal["case"] == "upper" else goal["text"].lower()


def _iso_date(goal: Goal, state: PageState) -> str | None:
    return f"{goal['year']}-{goal['month']}-{goal['day']}"


def _clock(goal: Goal, state: PageState) -> str | None:
    hour = int(goal["hour"]) % 12 + 12 * (goal["half"] == "PM")
    return f"{hour:02}:{goal['minute']}"


def _both_passwords(goal: Goal, state: PageState) -> Verdict:
    right = [field.value == goal["password"] for field in state.fields if field.type == "password"]
    return Verdict(len(right) > 1 and all(right), f"password fields right: {right!r}")


def _cell(label: str, state: PageState) -> str | None:
    """The cell right of *label* in the page's two-column table."""
    match = re.search(rf"^{re.escape(label)}\t(.*)$", state.text, re.MULTILINE)
    return match[1].strip() if match else None


def _nth_word(goal: Goal, state: PageState) -> str | None:
    words = state.text.split()
    at = position(goal["which"])
    return words[at].strip(",.") if at < len(words) else None


def _copied(goal: Goal, state: PageState) -> str | None:
    areas = [field.value for field in state.fields if field.type == "textarea"]
    at = position(goal["which"]) if goal["which"] else 0
    return areas[at] if at < len(areas) else None


def _captcha(goal: Goal, state: PageState) -> str | None:
    return "".join(state.text.replace("Submit", "").split())


def _sum(goal: Goal, state: PageState) -> str | None:
    match = re.search(r"(-?\d+) ([-+x×*]) (-?\d+) =", state.text)
    if match is None:
        return None
    a, b = int(match[1]), int(match[3])
    return str({"+": a + b, "-": a - b}.get(match[2], a * b))


def _unknown(goal: Goal, state: PageState) -> str | None:
    match = re.search(r"(-?\d+|x) ([+-]) (-?\d+|x) = (-?\d+)", state.text)
    if match is None:
        return None
    sign, total = (1 if match[2] == "+" else -1), int(match[4])
    return str(total - sign * int(match[3]) if match[1] == "x" else sign * (total - int(match[1])))


def _table_rows(state: PageState, at: slice) -> Verdict:
    """Checks that the fields of read-table-2 at *at* contain the value of the row that their label names."""
    labels = re.findall(r"^(.*):\s*$", state.text, re.MULTILINE)
    values = [field.value for field in state.fields if field.type in ("text", "textarea")]
    pairs = list(zip(labels, values, strict=False))[at]
    good = bool(pairs) and all(value and value == _cell(label.strip(), state) for label, value in pairs)
    return Verdict(good, f"fields hold {values!r}")


_BOXES = TaskMilestones(
    r"^Select (?P<names>.*) and click Submit",
    (
        MilestoneSpec("first", "At least one of the boxes {names} is checked", some_checked("names")),
        MilestoneSpec("all", "Exactly the boxes {names} are checked", exactly_checked("names")),
        SUBMITTED,
    ),
)
_LOGIN = TaskMilestones(
    r'username "(?P<user>.*)" and the password "(?P<password>.*)" into',
    (
        MilestoneSpec("name", 'The username field holds "{user}"', holds("user", ident="username")),
        MilestoneSpec("password", "The password field holds the password", holds("password", ident="password")),
        MilestoneSpec("submitted", "The login is submitted and accepted", finished),
    ),
)
_MOVIES = TaskMilestones(
    r"^Search for (?P<genre>.*) movies directed by (?P<director>.*) from year (?P<year>\d+)",
    (
        MilestoneSpec("genre", 'The genre field holds "{genre}"', holds("genre")),
        MilestoneSpec("director", 'The director field holds "{director}"', holds("director")),
        MilestoneSpec("year", 'The year field holds "{year}"', holds("year")),
        MilestoneSpec("submitted", "The search is submitted and accepted", finished),
    ),
)
_ENTER = TaskMilestones(r'^Enter "(?P<text>.*)" into the text field', (_typed(), SUBMITTED))

FORM_TASKS: dict[str, TaskMilestones] = {
    "login-user": _LOGIN,
    "login-user-popup": _LOGIN,
    "enter-text": _ENTER,
    "enter-text-dynamic": _ENTER,
    "enter-text-2": TaskMilestones(
        r'^Type "(?P<text>.*)" in all (?P<case>upper|lower) case',
        (MilestoneSpec("typed", 'The field holds "{text}" in {case} case', computed(_upper_or_lower)), SUBMITTED),
    ),
    "enter-password": TaskMilestones(
        r'^Enter the password "(?P<password>.*)" into both',
        (
            MilestoneSpec("first", "One password field holds the password", holds("password")),
            MilestoneSpec("both", "Both password fields hold the password", _both_passwords),
            SUBMITTED,
        ),
    ),
    "enter-date": TaskMilestones(
        r"^Enter (?P<month>\d\d)/(?P<day>\d\d)/(?P<year>\d{4}) as the date",
        (MilestoneSpec("typed", "The date field holds {month}/{day}/{year}", computed(_iso_date)), SUBMITTED),
    ),
    "enter-time": TaskMilestones(
        r"^Enter (?P<hour>\d+):(?P<minute>\d+) (?P<half>AM|PM) as the time",
        (MilestoneSpec("typed", "The time field holds {hour}:{minute} {half}", computed(_clock)), SUBMITTED),
    ),
    "click-checkboxes": _BOXES,
    "click-checkboxes-large": _BOXES,
    "click-checkboxes-transfer": _BOXES,
    "click-option": TaskMilestones(
        r"^Select (?P<names>.*) and click Submit",
        (MilestoneSpec("chosen", "The option {names} is chosen", exactly_checked("names")), SUBMITTED),
    ),
    "choose-list": TaskMilestones(
        r"^Select (?P<names>.*) from the list",
        (MilestoneSpec("chosen", "The option {names} is chosen", exactly_chosen("names")), SUBMITTED),
    ),
    "click-scroll-list": TaskMilestones(
        r"^Select (?P<names>.*) from the scroll list",
        (
            MilestoneSpec("first", "At least one of {names} is chosen", some_chosen("names")),
            MilestoneSpec("all", "Exactly {names} are chosen", exactly_chosen("names")),
            SUBMITTED,
        ),
    ),
    "multi-layouts": _MOVIES,
    "multi-orderings": _MOVIES,
    "form-sequence-2": TaskMilestones(
        r'the (?P<radio>\d\w\w) radio button and enter the number "(?P<number>.*)" into the (?P<box>\d\w\w)',
        (
            MilestoneSpec("radio", "The {radio} radio button is checked", nth_checked("radio", "radio")),
            MilestoneSpec("number", 'The {box} textbox holds "{number}"', nth_holds("box", "number")),
            SUBMITTED,
        ),
    ),
    "form-sequence-3": TaskMilestones(
        r'^Choose (?P<option>.*) from the dropdown, then click the button labeled "(?P<button>.*)"',
        (
            MilestoneSpec("chosen", "The drop-down shows {option}", exactly_chosen("option")),
            MilestoneSpec("pressed", 'The button "{button}" is pressed and accepted', finished),
        ),
    ),
    "read-table": TaskMilestones(
        r"^Enter the value of (?P<label>.*) into the text field",
        (
            MilestoneSpec(
                "typed",
                "The field holds the table's value of {label}",
                computed(lambda goal, state: _cell(goal["label"], state)),
            ),
            SUBMITTED,
        ),
    ),
    "read-table-2": TaskMilestones(
        r"^Enter the value that corresponds",
        (
            MilestoneSpec(
                "first",
                "The first field holds the value of its label",
                lambda goal, state: _table_rows(state, slice(0, 1)),
            ),
            MilestoneSpec(
                "both",
                "Both fields hold the values of their labels",
                lambda goal, state: _table_rows(state, slice(0, 2)),
            ),
            SUBMITTED,
        ),
    ),
    "find-word": TaskMilestones(
        r"^Find the (?P<which>\d+\w\w) word",
        (MilestoneSpec("typed", "The field holds the {which} word", computed(_nth_word)), SUBMITTED),
    ),
    "copy-paste": TaskMilestones(
        r"^Copy the text in(?P<which>) the textarea",
        (MilestoneSpec("typed", "The field holds the text of the text area", computed(_copied)), SUBMITTED),
    ),
    "copy-paste-2": TaskMilestones(
        r"from the (?P<which>\d\w\w) text area",
        (MilestoneSpec("typed", "The field holds the text of the {which} text area", computed(_copied)), SUBMITTED),
    ),
    "text-transform": TaskMilestones(
        r"^Type the text below",
        (MilestoneSpec("typed", "The field holds the letters shown", computed(_captcha)), SUBMITTED),
    ),
    "simple-arithmetic": TaskMilestones(
        r"^Solve the math problem",
        (MilestoneSpec("typed", "The field holds the right result", computed(_sum)), SUBMITTED),
    ),
    "simple-algebra": TaskMilestones(
        r"^Solve for x",
        (MilestoneSpec("typed", "The field holds the right x", computed(_unknown)), SUBMITTED),
    ),
    "use-spinner": TaskMilestones(
        r"^Select (?P<number>-?\d+) with the spinner", (_typed("number", "spinner"), SUBMITTED)
    ),
    "sign-agreement": TaskMilestones(
        r'enter the name "(?P<name>.*)" ?then press "(?P<button>\w+)"',
        (
            MilestoneSpec("name", 'The name field holds "{name}"', holds("name", ident="name")),
            MilestoneSpec("pressed", 'The button "{button}" is pressed and accepted', finished),
        ),
    ),
}
