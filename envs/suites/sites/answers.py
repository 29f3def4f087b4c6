"""Typed answers: what a task asks for, compared after normalisation, never by substring.

Each kind knows which texts say its value (`accepts`) and how to be wrong on purpose (`mutants`): the suite's proof
feeds it those.
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
    """What a task expects to be told."""

    def accepts(self, text: str) -> bool: ...

    def mutants(self) -> tuple[str, ...]:
        """Texts near the truth that must be rejected."""
        ...

    def truth(self) -> str:
        """A text that is accepted."""
        ...


def normalised(text: str) -> str:
    """Compatibility form, one case, single blanks, without quotes around it and punctuation after it."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    plain = plain.translate(str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "-", "−": "-"}))
    return " ".join(plain.split()).strip(" \"'.,;:!*`")


def numbers_in(text: str) -> tuple[Decimal, ...]:
    """Every number that *text* states, thousands separators removed."""
    found = _NUMBER.findall(unicodedata.normalize("NFKC", _THOUSANDS.sub("", text)))
    return tuple(Decimal(one.replace("−", "-")) for one in found)


def dates_in(text: str) -> tuple[date, ...]:
    """Every date written as 2026-03-16, 16 March 2026 or March 16, 2026; other forms are ambiguous and not read."""
    plain = normalised(text)
    found: list[date] = []
    for form in _DATES:
        for match in form.finditer(plain):
            named = match.groupdict()
            month = int(named["m"]) if named.get("m") else _MONTHS[named["w"]]
            try:
                found.append(date(int(named["y"]), month, int(named["d"])))
            except ValueError:
                continue
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Number:
    """A number, the only one in the answer; amounts of money and measures too, with or without their unit."""

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
    """A date, the only one in the answer."""

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
    """A name, a title, a code: equal to the value, or one of the other ways to write it, after normalisation."""

    value: str
    others: tuple[str, ...] = ()

    def accepts(self, text: str) -> bool:
        return bool(normalised(text)) and normalised(text) in {normalised(one) for one in (self.value, *self.others)}

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
        wanted = {normalised(value) for value in self.values}
        return any({normalised(one) for one in parts if normalised(one)} == wanted for parts in _split(text))

    def mutants(self) -> tuple[str, ...]:
        ordered = sorted(self.values)
        fewer = ("; ".join(ordered[1:]),) if len(ordered) > 1 else ()
        return (*fewer, "; ".join([*ordered, "Nobody Else"]), "; ".join([*ordered[1:], ordered[0] + "x"]), "")

    def truth(self) -> str:
        return "; ".join(sorted(self.values))


def _split(text: str) -> tuple[list[str], ...]:
    """The ways in which a list can be meant; a name may itself hold a comma or `and`."""
    lines = [re.sub(r"^\s*([-*•]|\d+[.)])\s+", "", line) for line in text.splitlines()]
    joined = "\n".join(lines)
    strict = re.split(r"[;\n]", joined)
    commas = re.split(r"[;,\n]", joined)
    words = re.split(r"[;,\n]|\band\b|&", joined)
    return strict, commas, [re.sub(r"^\s*and\s+", "", one) for one in commas], words


@dataclass(frozen=True, slots=True)
class Refusal:
    """The task cannot be done: the answer says so first (`N/A`, `not possible`, `cannot` …) and names the reason."""

    reason: str
    """The truth, for people and for the oracle."""
    mentions: tuple[str, ...]
    """Regular expressions, lower case; the reason given must fit at least one of them."""

    def accepts(self, text: str) -> bool:
        plain = normalised(text)
        opening = _REFUSALS.match(plain)
        if opening is None:
            return False
        return any(re.search(one, plain) for one in self.mentions)

    def mutants(self) -> tuple[str, ...]:
        return ("", "done", "N/A", "N/A: I do not want to", self.reason if not self.accepts(self.reason) else "")

    def truth(self) -> str:
        return f"N/A: {self.reason}"
