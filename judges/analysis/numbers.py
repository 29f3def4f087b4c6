"""Separates volatile numbers on a page, which change by themselves, from numbers that carry state.

Two observations of one page often differ in numbers alone: "seen 4s" became "5s", a count of visits went up. Such
numbers are *volatile*, and comparisons of pages ignore them. The page of a pager, a quantity or the year of a date
picker is not volatile. The form of a number is not enough; the episode's observations must contain evidence:

* an elapsed or remaining time, or a time of day (`4s`, `2 min`, `10:32`, seconds since 1970), changed as time passed;
  an age may start again;
* a count of views (`17 views`, `3 users online`) changed;
* a number changed while nothing was done to the page: the agent waited, searched the text, or its action was refused.
  Effects of an action may be late: one change is enough if nothing was done right before either; otherwise two are
  needed, each right after a change by the previous action;
* a number changed while the page was reached again by links, addresses and Back alone, or by a link that leads to it;
* a number rose or fell by the elapsed seconds, and one action changed it by different amounts.

The last three do not count for a number whose context says that it carries state: `page 3 of 9`, `quantity: 2`, `40 %`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import pairwise
from typing import Final, NamedTuple

_UNITS: Final = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3_600.0),
    **dict.fromkeys(("d", "day", "days"), 86_400.0),
    **dict.fromkeys(("w", "week", "weeks"), 604_800.0),
}
_UNIT: Final = "|".join(sorted(_UNITS, key=len, reverse=True))
_ONE_TIME: Final = re.compile(rf"(\d+(?:\.\d+)?) ?({_UNIT})\b", re.IGNORECASE)
_NUMBER: Final = re.compile(
    rf"""
      (?P<time>(?<![\w.,])\d+(?:\.\d+)?[ ]?(?:{_UNIT})\b(?:[ ,]+(?:and[ ])?\d+[ ]?(?:{_UNIT})\b)*)
    | (?P<now>(?:(?<=^)|(?<=[ ]))now(?=$|"))
    | (?P<clock>(?<![\w.,:])\d{{1,3}}:\d{{2}}(?![\d:]))
    | (?P<bare>\d+(?:[.,]\d+)*)
    """,
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_NEAR: Final = 24
"""Characters on each side of a number that are its context."""
_STATE_BEFORE: Final = re.compile(
    r"(?:\b(?:pages?|steps?|qty|quantity|amount|sum|sub-?total|total|basket|cart|bag|guests?|persons?|rooms?|years?|months?"
    r"|days?|dates?|levels?|scores?|points?|balance|prices?|rows?|questions?|items?|slides?|chapters?|volume|size|of"
    r"|selected|chosen|value)\W{0,3}|[$€£¥#№/×])$",
    re.IGNORECASE,
)
_STATE_AFTER: Final = re.compile(
    r"^\s*(?:%|/\s*\d|[$€£¥×]|(?:of|out of|items?|pages?|pieces?|selected|chosen|guests?|points?|euros?|dollars?)\b)",
    re.IGNORECASE,
)
_VIEWS_BEFORE: Final = re.compile(r"\b(?:views?|visits?|visitors?|hits|viewed|online)\W{0,3}$", re.IGNORECASE)
_VIEWS_AFTER: Final = re.compile(
    r"^\s*(?:(?:page )?(?:views?|visits?|visitors?|hits)\b|times? (?:viewed|visited)\b"
    r"|(?:users?|guests?|members?|people|visitors?)? ?(?:are )?(?:online|watching|viewing)\b)",
    re.IGNORECASE,
)
_LEAST_SECONDS: Final = 3.0
"""Time for which a bare number must follow the clock to count as a time."""
_SLACK: Final = 1.5
"""Tolerance in seconds."""


class Form(Enum):
    TIME = auto()
    """With a unit of time; the value is in seconds."""
    CLOCK = auto()
    """Hours and minutes, or minutes and seconds; the value is in the smaller of the two."""
    BARE = auto()


class Number(NamedTuple):
    form: Form
    value: float
    unit: float
    """Seconds of its smallest unit; 0 for bare numbers."""
    text: str
    carries_state: bool
    """Its context says that it carries state."""
    counts_views: bool


class Split(NamedTuple):
    """A text separated from its numbers."""

    letters: str
    """Hash of the text without numbers: equal for texts that differ in numbers alone."""
    numbers: tuple[Number, ...]

    def without(self, slots: frozenset[int]) -> tuple[str, ...]:
        """Equal for equal texts; the numbers at the positions *slots* do not count."""
        kept = (number.text for slot, number in enumerate(self.numbers) if slot not in slots)
        return self.letters, *kept


class PageNumbers(NamedTuple):
    """The numbers of one observation of a page."""

    step: int
    """0-based index of the step."""
    at: float
    """Seconds since the epoch."""
    numbers: tuple[Number, ...]


@dataclass(frozen=True, slots=True)
class StepEffects:
    """Effects of the steps between observations, by 0-based step."""

    idle: Sequence[bool]
    """The step did nothing to the page."""
    navigations: Sequence[bool]
    """The step led to an address and sent nothing."""
    harmless: Sequence[bool]
    """The step observed, did nothing, or navigated."""
    acts: Sequence[object]
    """Equal for equal actions."""
    timed: bool
    """The steps have times."""


def split(text: str) -> Split:
    """Separates *text* from its numbers. Times with a unit are one number: `1 h 5 min`."""
    numbers: list[Number] = []

    def taken(match: re.Match[str]) -> str:
        number = _number(match)
        numbers.append(number)
        return f"\0{number.form.name}"

    letters = _NUMBER.sub(taken, text)
    return Split(hashlib.sha256(letters.encode("utf-8", "replace")).hexdigest()[:16], tuple(numbers))


def without_numbers(text: str) -> str:
    """*text* with every number masked: equal for names that differ in numbers alone."""
    return _NUMBER.sub(lambda match: f"\0{match.lastgroup}", text)


def volatile(observations: Sequence[PageNumbers], effects: StepEffects) -> frozenset[int]:
    """Positions of volatile numbers. *observations* are at one address, equal except for their numbers."""
    if len(observations) < 2:
        return frozenset()
    slots = range(len(observations[0].numbers))
    return frozenset(slot for slot in slots if _is_volatile(_Slot(slot, observations), effects))


def passed(one: Number, other: Number, seconds: float) -> bool:
    """Whether both show the same time, *seconds* apart, in two episodes. False for numbers without a unit of time."""
    if one.form is not Form.TIME or other.form is not Form.TIME:
        return False
    unit = max(one.unit, other.unit)
    slack = 2.0 if unit <= 1 else unit if abs(seconds) > unit / 2 else 0.0
    return abs(one.value - other.value) <= abs(seconds) + slack


@dataclass(frozen=True, slots=True)
class _Slot:
    """One number of a page in all its observations."""

    slot: int
    observations: Sequence[PageNumbers]

    def number(self, observation: PageNumbers) -> Number:
        return observation.numbers[self.slot]

    def changes(self) -> Iterator[tuple[PageNumbers, PageNumbers]]:
        """Consecutive observations with different numbers."""
        return ((a, b) for a, b in pairwise(self.observations) if self.number(a).text != self.number(b).text)


def _is_volatile(slot: _Slot, effects: StepEffects) -> bool:
    if not any(slot.changes()):
        return False
    first = slot.number(slot.observations[0])
    if first.counts_views or (first.form is not Form.BARE and _follows_time(slot, effects)):
        return True
    if first.carries_state:
        return False
    return _changed_untouched(slot, effects) or _changed_on_return(slot, effects) or _counts_seconds(slot, effects)


def _follows_time(slot: _Slot, effects: StepEffects) -> bool:
    """Whether each change, and their sum, fits the elapsed time."""
    scales = (1.0, 60.0) if slot.number(slot.observations[0]).form is Form.CLOCK else (1.0,)
    return any(_fits(slot, scale, timed=effects.timed) for scale in scales)


def _fits(slot: _Slot, scale: float, *, timed: bool) -> bool:
    """Whether it only grows, or only falls, except for restarts."""
    grown: list[float] = []
    waited = 0.0
    largest = max(slot.number(observation).unit for observation in slot.observations) * scale
    for one, other in pairwise(slot.observations):
        before, after = slot.number(one), slot.number(other)
        unit = max(before.unit, after.unit) * scale
        change, seconds = (after.value - before.value) * scale, other.at - one.at
        if timed and change < 0 and after.value * scale <= seconds + 2 and all(change >= 0 for change in grown):
            continue  # an age that started again
        if timed and abs(abs(change) - seconds) > unit + 1:
            return False
        grown.append(change)
        waited += seconds
    if not any(grown):
        return False
    if not timed:  # only seconds are small enough to be taken for time that passed
        return largest <= 1 and all(change >= 0 for change in grown)
    one_way = all(change >= 0 for change in grown) or all(change <= 0 for change in grown)
    return one_way and abs(abs(sum(grown)) - waited) <= largest + 1


def _changed_untouched(slot: _Slot, effects: StepEffects) -> bool:
    """Whether it changed while nothing was done to the page."""
    changed = {one.step for one, other in slot.changes() if other.step == one.step + 1}
    idle = {step for step in changed if effects.idle[step]}
    alone = any(step == 0 or effects.idle[step - 1] for step in idle)
    return alone or sum(step - 1 in changed for step in idle) > 1


def _changed_on_return(slot: _Slot, effects: StepEffects) -> bool:
    """Whether it changed while the page was reached again, and nothing else was done."""
    return any(
        any(effects.navigations[one.step : other.step]) and all(effects.harmless[one.step : other.step])
        for one, other in slot.changes()
    )


def _counts_seconds(slot: _Slot, effects: StepEffects) -> bool:
    """Whether it rose or fell by the elapsed seconds, independent of the action."""
    if not effects.timed or len(slot.observations) < 4:
        return False
    values, times = (
        [slot.number(observation).value for observation in slot.observations],
        [observation.at for observation in slot.observations],
    )
    grown, waited = [b - a for a, b in pairwise(values)], [b - a for a, b in pairwise(times)]
    one_way = all(change >= 0 for change in grown) or all(change <= 0 for change in grown)
    each = all(abs(abs(change) - seconds) <= _SLACK for change, seconds in zip(grown, waited, strict=True))
    whole = abs(abs(sum(grown)) - sum(waited)) <= _SLACK
    return one_way and each and whole and sum(waited) >= _LEAST_SECONDS and _unsteady(slot, effects)


def _unsteady(slot: _Slot, effects: StepEffects) -> bool:
    """Whether one action twice left the number unchanged and twice changed it, or changed it by two amounts in three
    times."""
    grown: dict[object, list[float]] = {}
    for one, other in pairwise(slot.observations):
        if other.step == one.step + 1:
            change = slot.number(other).value - slot.number(one).value
            grown.setdefault(effects.acts[one.step], []).append(change)
    return any(
        min(changes.count(0), len(changes) - changes.count(0)) >= 2
        or (len(set(changes) - {0.0}) >= 2 and len(changes) >= 3)
        for changes in grown.values()
    )


def _number(match: re.Match[str]) -> Number:
    matched, text = match.group(), match.string
    before = text[max(0, match.start() - _NEAR) : match.start()]
    after = text[match.end() : match.end() + _NEAR]
    state = bool(_STATE_BEFORE.search(before) or _STATE_AFTER.match(after))
    views = bool(_VIEWS_BEFORE.search(before) or _VIEWS_AFTER.match(after))
    match match.lastgroup:
        case "time":
            parts = [(float(value), _UNITS[unit.lower()]) for value, unit in _ONE_TIME.findall(matched)]
            return Number(Form.TIME, sum(v * u for v, u in parts), min(u for _, u in parts), matched, state, views)
        case "now":
            return Number(Form.TIME, 0.0, 1.0, matched, state, views)
        case "clock":
            large, small = matched.split(":")
            return Number(Form.CLOCK, int(large) * 60.0 + int(small), 1.0, matched, state, views)
        case _:
            return Number(*_bare(matched), matched, state, views)


def _bare(text: str) -> tuple[Form, float, float]:
    """Seconds and milliseconds since 1970 are times, for the years 2001 to 2065."""
    value = _value(text)
    scale = {10: 1.0, 13: 0.001}.get(len(text) if text.isdigit() else 0)
    if scale is not None and 1e9 <= value * scale < 3e9:
        return Form.TIME, value * scale, 1.0
    return Form.BARE, value, 0.0


def _value(text: str) -> float:
    """A comma before three digits groups thousands; any other separator begins the decimals."""
    plain = re.sub(r",(?=\d{3}(?:\D|$))", "", text).replace(",", ".")
    whole, _, rest = plain.partition(".")
    return float(f"{whole}.{rest.replace('.', '')}" if rest else whole)
