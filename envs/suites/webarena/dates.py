"""Dates as people write them: `January 16, 2023`, `Monday, 16 Jan 2023`, `1/16/23`, `29.01.2023`, `2023-01-16T08:00`.

Of three numbers the first is the month, unless it cannot be: `29.01.2023` is the 29th, `2023/01/29` begins with the
year. A time of day is read and left out. Parts that are missing stay missing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date, datetime

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = re.compile(
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?"
)
_WEEKDAY = re.compile(r"mon(?:day)?|tue(?:sday)?|wed(?:nesday)?|thu(?:rsday)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?")
_BETWEEN = frozenset([*".,;-/'", "at", "on", "and", "ad", "of", "t", "st", "nd", "rd", "th"])
"""What may stand between the parts."""
_ZONE = r"(?:\s*(?:z|utc|gmt|[+-]\d{2}:?\d{2}))?"
_TIME = re.compile(
    rf"(?:(?<=\d)t)?(?<!\d)\d{{1,2}}:\d{{2}}(?::\d{{2}}(?:\.\d+)?)?(?:\s*[ap]m?\b)?{_ZONE}|\b\d{{1,2}}\s*[ap]m\b"
)
_DECIMALS = re.compile(r"(?<![\d./-])(\d+)\.\d+(?=[\s,]|$)")
"""`2.0` is 2, but `29.01.2023` has three parts."""
_TOKEN = re.compile(r"\d+|[a-z]+|[^\s\w]|\S")
_YEAR_FROM = 32
"""A larger number is a year."""


@dataclass(frozen=True, slots=True)
class DateParts:
    """What a text says of a date; None where it says nothing."""

    year: int | None = None
    month: int | None = None
    day: int | None = None

    def on(self, otherwise: date) -> date | None:
        """The date, with the parts of *otherwise* where some are missing; None where the calendar has none such."""
        year = otherwise.year if self.year is None else self.year
        month = otherwise.month if self.month is None else self.month
        try:
            return date(year, month, otherwise.day if self.day is None else self.day)
        except ValueError:
            return _last_day(year, month) if self.day is None else None

    def whole(self) -> date | None:
        """The date, if all of it was said."""
        return None if None in (self.year, self.month, self.day) else self.on(date.min)


def read_date(text: str) -> DateParts | None:
    """The parts that *text* names; None where it is no date, or holds anything else."""
    found = _parts(_DECIMALS.sub(r"\1", _TIME.sub(" ", text.strip().lower())))
    if not found:
        return None
    parts = _resolved(found)
    return None if parts is None else replace(parts, year=_full_year(parts.year, found))


def _parts(text: str) -> list[str]:
    """Numbers and names of months, in order; empty where something else is there as well."""
    found: list[str] = []
    for token in _TOKEN.findall(text):
        if token.isdigit():
            found += _run(token) if not found else [token]
        elif _MONTH.fullmatch(token):
            found.append(token[:3])
        elif token not in _BETWEEN and not _WEEKDAY.fullmatch(token):
            return []
    return found if len(found) <= 3 else []


def _run(digits: str) -> list[str]:
    """The parts of `20230116` and `230116`."""
    year = len(digits) - 4
    return [digits[:year], digits[year : year + 2], digits[year + 2 :]] if year in (2, 4) else [digits]


def _resolved(found: list[str]) -> DateParts | None:
    named = [n for n, part in enumerate(found) if not part.isdigit()]
    values = [int(part) if part.isdigit() else _MONTHS.index(part) + 1 for part in found]
    if len(named) > 1:
        return None
    if named:
        month = values.pop(named[0])
        return _with_month(month, values, [n for n, value in enumerate(values) if value >= _YEAR_FROM])
    return _numeric(values)


def _with_month(month: int, values: list[int], years: list[int]) -> DateParts | None:
    """Day and year besides a named month: `16 Jan 23` begins with the day."""
    if not values:
        return DateParts(month=month)
    if len(values) == 1:
        return DateParts(year=values[0], month=month) if years else DateParts(month=month, day=values[0])
    if len(years) > 1:
        return None
    return DateParts(values[0], month, values[1]) if years == [0] else DateParts(values[1], month, values[0])


def _numeric(values: list[int]) -> DateParts | None:
    match values:
        case [one]:
            return DateParts(year=one) if one >= _YEAR_FROM else DateParts(day=one)
        case [one, two] if one >= _YEAR_FROM:
            return DateParts(year=one, month=two)
        case [one, two] if two >= _YEAR_FROM:
            return DateParts(year=two, month=one)
        case [one, two]:
            return DateParts(month=one, day=two)
        case [one, two, three] if one >= _YEAR_FROM:
            return DateParts(one, two, three)
        case [one, two, three] if one > 12:
            return DateParts(three, two, one)
        case [one, two, three]:
            return DateParts(three, one, two)
        case _:
            return None


def _full_year(year: int | None, found: list[str]) -> int | None:
    """`23` is 2023: of the years that end so, the one within fifty of this one."""
    if year is None or year >= 100 or any(part.isdigit() and int(part) > 100 for part in found):
        return year
    now = datetime.now().year
    full = now // 100 * 100 + year
    return full - 100 if full >= now + 50 else full + 100 if full < now - 50 else full


def _last_day(year: int, month: int) -> date | None:
    for day in (31, 30, 29, 28):
        try:
            return date(year, month, day)
        except ValueError:
            continue
    return None
