"""Reads dates: `January 16, 2023`, `Monday, 16 Jan 2023`, `1/16/23`, `29.01.2023`, `2023-01-16T08:00`.

The first of three numbers is the month if possible: `29.01.2023` is the 29th, `2023/01/29` begins with the year. A time
of day is skipped. Missing parts are None.
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
"""Tokens that may separate the parts."""
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
    """The parts of a date in a text; None for a missing part."""

    year: int | None = None
    month: int | None = None
    day: int | None = None

    def on(self, otherwise: date) -> date | None:
        """The date, with missing parts from *otherwise*; None if there is no such date."""
        year = otherwise.year if self.year is None else self.year
        month = otherwise.month if self.month is None else self.month
        try:
            return date(year, month, otherwise.day if self.day is None else self.day)
        except ValueError:
            return _last_day(year, month) if self.day is None else None

    def complete(self) -> date | None:
        """The date if no part is missing, else None."""
        return None if None in (self.year, self.month, self.day) else self.on(date.min)


def read_date(text: str) -> DateParts | None:
    """The parts of the date in *text*; None if it is no date or contains other text."""
    tokens = _tokens(_DECIMALS.sub(r"\1", _TIME.sub(" ", text.strip().lower())))
    if not tokens:
        return None
    parts = _resolved(tokens)
    return None if parts is None else replace(parts, year=_full_year(parts.year, tokens))


def _tokens(text: str) -> list[str]:
    """Numbers and names of months, in order; empty if there is other text."""
    tokens: list[str] = []
    for token in _TOKEN.findall(text):
        if token.isdigit():
            tokens += _split_digits(token) if not tokens else [token]
        elif _MONTH.fullmatch(token):
            tokens.append(token[:3])
        elif token not in _BETWEEN and not _WEEKDAY.fullmatch(token):
            return []
    return tokens if len(tokens) <= 3 else []


def _split_digits(digits: str) -> list[str]:
    """The parts of `20230116` and `230116`."""
    year = len(digits) - 4
    return [digits[:year], digits[year : year + 2], digits[year + 2 :]] if year in (2, 4) else [digits]


def _resolved(tokens: list[str]) -> DateParts | None:
    named = [n for n, part in enumerate(tokens) if not part.isdigit()]
    values = [int(part) if part.isdigit() else _MONTHS.index(part) + 1 for part in tokens]
    if len(named) > 1:
        return None
    if named:
        month = values.pop(named[0])
        return _with_month(month, values, [n for n, value in enumerate(values) if value >= _YEAR_FROM])
    return _numeric(values)


def _with_month(month: int, values: list[int], years: list[int]) -> DateParts | None:
    """Assigns day and year to the values beside a named month: `16 Jan 23` begins with the day."""
    if not values:
        return DateParts(month=month)
    if len(values) == 1:
        return DateParts(year=values[0], month=month) if years else DateParts(month=month, day=values[0])
    if len(years) > 1:
        return None
    return DateParts(values[0], month, values[1]) if years == [0] else DateParts(values[1], month, values[0])


def _numeric(values: list[int]) -> DateParts | None:
    match values:
        case [first]:
            return DateParts(year=first) if first >= _YEAR_FROM else DateParts(day=first)
        case [first, second] if first >= _YEAR_FROM:
            return DateParts(year=first, month=second)
        case [first, second] if second >= _YEAR_FROM:
            return DateParts(year=second, month=first)
        case [first, second]:
            return DateParts(month=first, day=second)
        case [first, second, third] if first >= _YEAR_FROM:
            return DateParts(first, second, third)
        case [first, second, third] if first > 12:
            return DateParts(third, second, first)
        case [first, second, third]:
            return DateParts(third, first, second)
        case _:
            return None


def _full_year(year: int | None, tokens: list[str]) -> int | None:
    """Expands `23` to 2023, the year with this ending that is within fifty years of now."""
    if year is None or year >= 100 or any(part.isdigit() and int(part) > 100 for part in tokens):
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
