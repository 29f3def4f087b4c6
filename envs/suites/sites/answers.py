"""Typed answers of tasks. An answer is compared with the expected value after normalisation, never by substring.

Each type defines which texts state its value (`accepts`) and derives wrong texts (`mutants`) that `mira sites verify`
expects to be rejected.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Protocol

_NUMBER = re.compile(r"(?<![\w.])[-−]?\d+(?:\.\d+)?")
_THOUSANDS = re.compile(r"(?<=\d)[,'\u202f\u00a0](?=\d{3}(?!\d))")
_MONTH_NAMES = (
    ("january", "jan"),
    ("february", "feb"),
    ("march", "mar"),
    ("april", "apr"),
    ("may",),
    ("june", "jun"),
    ("july", "jul"),
    ("august", "aug"),
    ("september", "sept", "sep"),
    ("october", "oct"),
    ("november", "nov"),
    ("december", "dec"),
)
_MONTHS = {name: number for number, names in enumerate(_MONTH_NAMES, 1) for name in names}
_WORDS = "|".join(_MONTHS)
_DATES = (
    re.compile(r"(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})"),
    re.compile(rf"\b(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<w>{_WORDS})\b\.?,? (?P<y>\d{{4}})"),
    re.compile(rf"\b(?P<w>{_WORDS})\b\.? (?P<d>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<y>\d{{4}})"),
)
_REFUSALS = re.compile(
    r"^(n/?a\b|not (possible|available|applicable)|impossible|(this |it |the task )?(cannot|can't|can not)\b|unable\b)"
)


class Answer(Protocol):
    """The answer that a task expects."""

    def accepts(self, text: str) -> bool: ...

    def mutants(self) -> tuple[str, ...]:
        """Wrong texts similar to the right answer. Each must be rejected."""
        ...

    def truth(self) -> str:
        """The right answer as text; `accepts` accepts it."""
        ...


def normalised(text: str) -> str:
    """*text* in Unicode compatibility form and lower case, with single spaces, without outer quotes and punctuation."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    plain = plain.translate(str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "-", "−": "-"}))
    return " ".join(plain.split()).strip(" \"'.,;:!*`")


def numbers_in(text: str) -> tuple[Decimal, ...]:
    """All numbers in *text*, with thousands separators removed."""
    numbers = _NUMBER.findall(unicodedata.normalize("NFKC", _THOUSANDS.sub("", text)))
    return tuple(Decimal(number.replace("−", "-")) for number in numbers)


def dates_in(text: str) -> tuple[date, ...]:
    """All dates written as 2026-03-16, 16 March 2026 or March 16, 2026. Other formats are ambiguous and ignored."""
    plain = normalised(text)
    dates: list[date] = []
    for form in _DATES:
        for match in form.finditer(plain):
            groups = match.groupdict()
            month = int(groups["m"]) if groups.get("m") else _MONTHS[groups["w"]]
            try:
                dates.append(date(int(groups["y"]), month, int(groups["d"])))
            except ValueError:
                continue
    return tuple(dates)


@dataclass(frozen=True, slots=True)
class Number:
    """A number, an amount of money or a measure, with or without unit. The answer must contain no other number."""

    value: Decimal | int
    within: Decimal | int = 0
    """Largest allowed difference."""

    def accepts(self, text: str) -> bool:
        stated = set(numbers_in(text))
        return len(stated) == 1 and abs(stated.pop() - Decimal(self.value)) <= Decimal(self.within)

    def mutants(self) -> tuple[str, ...]:
        value, step = Decimal(self.value), Decimal(self.within) + 1
        both = f"{value} or {value + step}"
        return (str(value + step), str(value - step), str(value * 10 + step), both, "", "unknown")

    def truth(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Day:
    """A date. The answer must contain no other date."""

    value: date

    def accepts(self, text: str) -> bool:
        return set(dates_in(text)) == {self.value}

    def mutants(self) -> tuple[str, ...]:
        next_day, year = self.value + timedelta(days=1), self.value + timedelta(days=365)
        both = f"{self.value.isoformat()} or {next_day.isoformat()}"
        return (next_day.isoformat(), year.isoformat(), both, "", str(self.value.year))

    def truth(self) -> str:
        return self.value.isoformat()


@dataclass(frozen=True, slots=True)
class Text:
    """A name, title or code. After normalisation the answer equals `value` or one of `others`."""

    value: str
    others: tuple[str, ...] = ()
    """Other accepted spellings."""

    def accepts(self, text: str) -> bool:
        accepted = {normalised(spelling) for spelling in (self.value, *self.others)}
        return bool(normalised(text)) and normalised(text) in accepted

    def mutants(self) -> tuple[str, ...]:
        shorter = self.value[:-1]
        return (self.value + " x", *(() if self.accepts(shorter) else (shorter,)), f"not {self.value}", "", "unknown")

    def truth(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Names:
    """A set of names in any order, separated by commas, semicolons, line breaks or `and`."""

    values: frozenset[str]

    def accepts(self, text: str) -> bool:
        expected = {normalised(value) for value in self.values}
        return any({normalised(part) for part in parts if normalised(part)} == expected for parts in _split(text))

    def mutants(self) -> tuple[str, ...]:
        ordered = sorted(self.values)
        fewer = ("; ".join(ordered[1:]),) if len(ordered) > 1 else ()
        return (*fewer, "; ".join([*ordered, "Nobody Else"]), "; ".join([*ordered[1:], ordered[0] + "x"]), "")

    def truth(self) -> str:
        return "; ".join(sorted(self.values))


def _split(text: str) -> tuple[list[str], ...]:
    """All readings of *text* as a list. A name may itself contain a comma or `and`."""
    lines = [re.sub(r"^\s*([-*•]|\d+[.)])\s+", "", line) for line in text.splitlines()]
    joined = "\n".join(lines)
    strict = re.split(r"[;\n]", joined)
    commas = re.split(r"[;,\n]", joined)
    words = re.split(r"[;,\n]|\band\b|&", joined)
    return strict, commas, [re.sub(r"^\s*and\s+", "", part) for part in commas], words


@dataclass(frozen=True, slots=True)
class Refusal:
    """Refuses an impossible task: the answer starts with `N/A`, `not possible`, `cannot` … and gives the reason."""

    reason: str
    """The true reason. Reports show it and the oracle answers with it."""
    mentions: tuple[str, ...]
    """Regular expressions in lower case. The answer must match at least one of them."""

    def accepts(self, text: str) -> bool:
        plain = normalised(text)
        opening = _REFUSALS.match(plain)
        if opening is None:
            return False
        return any(re.search(pattern, plain) for pattern in self.mentions)

    def mutants(self) -> tuple[str, ...]:
        return ("", "done", "N/A", "N/A: I do not want to", self.reason if not self.accepts(self.reason) else "")

    def truth(self) -> str:
        return f"N/A: {self.reason}"
