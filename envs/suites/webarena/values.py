"""Reads and compares typed values in answers: amounts, durations, dates …

The rules follow WebArena-Verified: texts without accents and surrounding punctuation, amounts within
0.1, dates by value, durations within three minutes or 10 %, distances within ten metres or 2 %,
coordinates within a metre, names of places by similarity. An expected text that begins with `^` is a
pattern, and a list in place of a plain value contains alternatives. A value that cannot be read as its
type equals nothing. `envs.suites.webarena.evaluators.original` implements the exact original rules.
"""

from __future__ import annotations

import calendar
import math
import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal

from envs.suites.webarena.coordinates import read_coordinates
from envs.suites.webarena.dates import read_date
from envs.suites.webarena.folding import EDGES, bare, plain_letters
from envs.suites.webarena.json_text import load_json
from envs.suites.webarena.number_words import number_in_words
from envs.suites.webarena.similarity import similarity
from envs.suites.webarena.sites import Sites
from envs.suites.webarena.task import Format, Json, Shape
from envs.suites.webarena.texts import plain

MAX_CHARS = 200_000
"""Longer texts equal nothing, because a pattern of the task file must not search megabytes."""
MAX_URL_CHARS = 20_000
MAX_TYPED_CHARS = 1_000
MAX_MARKDOWN_CHARS = 10_000
"""The same limit for values that are read by own patterns, some of which take quadratic time."""
AMOUNT = Decimal("0.1")
DURATION_S = 180.0
DURATION_SHARE = 0.10
DISTANCE_M = 10.0
DISTANCE_SHARE = 0.02
DEGREES = 1e-5
PLACE_SIMILARITY = 80
"""Percent."""

_SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_UNIT_OF_TIME = re.compile(
    r"(\d+(?:\.\d+)?)\s*(weeks?|wks?|w|days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)(?![a-z])"
)
_CLOCK = re.compile(r"(\d+):(\d{2})(?::(\d{2}))?(?:\s*(h(?:ou)?rs?|h))?")
_METRES = {
    "km": 1000.0,
    "k": 1000.0,
    "kilometer": 1000.0,
    "kilometre": 1000.0,
    "m": 1.0,
    "meter": 1.0,
    "metre": 1.0,
    "cm": 0.01,
    "mi": 1609.344,
    "mile": 1609.344,
    "ft": 0.3048,
    "foot": 0.3048,
    "feet": 0.3048,
    "yd": 0.9144,
    "yard": 0.9144,
}
_LENGTH = re.compile(r"(\d+(?:,\d{3})*(?:\.\d+)?)\s*([a-z]+)\.?")
_AROUND = EDGES + "() "
_NUMERAL = re.compile(r"\d{1,3}(?:[ ,.']\d{3})+(?:[.,]\d+)?(?!\d)|\d+(?:[.,]\d+)?|\.\d+")
_MINUS = re.compile(r"(?<![\w.,])-\s*[a-z]{0,3}[$€£]?\s*$")
_PICTURES = re.compile("[\u2190-\u21ff\u2300-\u27bf\u2b00-\u2bff\ufe0f\U0001f000-\U0001faff]")
_SSH = re.compile(
    r"(?:ssh://(?:(?P<user>[\w.-]+)@)?|(?P<short>[\w.-]+)@)(?P<host>[\w.-]+)(?::\d+(?=/))?[:/](?P<path>.+?)(?:\.git)?/?",
    re.IGNORECASE,
)
_OF_PARTS = ("coordinates", "json", "string_list")
"""Formats whose values can be lists or objects."""
_TEXTS = ("location-name", "url", "json", "string_list")
_TRUE, _FALSE = ("true", "yes", "y", "1", "t", "on"), ("false", "no", "n", "0", "f", "off")


def matches(expected: Json, actual: Json, shape: Shape, sites: Sites, *, ordered: bool = False) -> bool:
    """True if *actual* equals *expected*, both read by *shape*. *ordered*: lists must have the same order."""
    actual = _parsed(expected, actual, shape)
    if isinstance(expected, dict):
        if shape.format == "coordinates":
            return _same_place_on_earth(expected, actual)
        if not isinstance(actual, dict) or set(expected) != set(actual):
            return False
        parts = ((value, actual[name], shape.properties.get(name, Shape())) for name, value in expected.items())
        return all(matches(want, got, part, sites, ordered=ordered) for want, got, part in parts)
    if isinstance(expected, list):
        if shape.type == "array" or isinstance(actual, list):
            return _lists(expected, actual, shape.items or Shape(), sites, ordered=ordered)
        return any(matches(alternative, actual, shape, sites, ordered=ordered) for alternative in expected)
    return _scalar(expected, actual, shape, sites)


def _parsed(expected: Json, actual: Json, shape: Shape) -> Json:
    """Parses *actual* if it is text and an object or list is expected."""
    opening = "{" if isinstance(expected, dict) else "[" if isinstance(expected, list) and shape.type == "array" else ""
    if not opening or not isinstance(actual, str) or not actual.lstrip().startswith(opening):
        return actual
    try:
        return load_json(actual)
    except ValueError:
        return actual


def same_items(expected: tuple[Json, ...], actual: list[Json], shape: Shape, sites: Sites, *, ordered: bool) -> bool:
    """True if *actual* contains exactly the expected items, each matched by one item or alternative."""
    return _lists(list(expected), actual, shape, sites, ordered=ordered)


def _lists(expected: list[Json], actual: Json, shape: Shape, sites: Sites, *, ordered: bool) -> bool:
    if not isinstance(actual, list) or len(actual) != len(expected):
        return False
    if ordered:
        pairs = zip(expected, actual, strict=True)
        return all(matches(want, got, shape, sites, ordered=True) for want, got in pairs)
    fits = [[matches(want, got, shape, sites) for got in actual] for want in expected]
    return _can_be_paired(fits)


def _can_be_paired(fits: list[list[bool]]) -> bool:
    """True if there is a perfect matching (augmenting paths), because an item may fit several alternatives."""
    taken: dict[int, int] = {}

    def place(row: int, tried: set[int]) -> bool:
        for column, fit in enumerate(fits[row]):
            if fit and column not in tried:
                tried.add(column)
                if column not in taken or place(taken[column], tried):
                    taken[column] = row
                    return True
        return False

    return all(place(row, set()) for row in range(len(fits)))


def _scalar(expected: Json, actual: Json, shape: Shape, sites: Sites) -> bool:
    if expected is None or actual is None:
        return expected in (None, "") and actual in (None, "")
    if isinstance(actual, list | dict) and shape.format not in _OF_PARTS:
        return False
    if len(str(actual)) > _longest(shape):
        return False
    if isinstance(expected, str) and expected.startswith("^"):
        return any(matches_pattern(expected, text, sites) for text in (str(actual), _words(str(actual))))
    if shape.format is not None:
        return _FORMATS[shape.format](expected, actual, sites)
    match shape.type:
        case "number" | "integer":
            return _equal(_number, expected, actual)
        case "boolean":
            return _equal(_boolean, expected, actual)
        case _:
            return _same_text(expected, actual, sites)


def _longest(shape: Shape) -> int:
    if shape.format == "markdown":
        return MAX_MARKDOWN_CHARS
    texts = shape.type in (None, "string") and shape.format is None
    return MAX_CHARS if texts or shape.format in _TEXTS else MAX_TYPED_CHARS


def matches_pattern(pattern: str, text: str, sites: Sites, *, heed_case: bool = False) -> bool:
    """True if *text* matches a pattern of the task file, in which placeholders stand for addresses."""
    flags = re.DOTALL if heed_case else re.DOTALL | re.IGNORECASE
    return re.fullmatch(sites.fill(pattern, escape=True), text.strip(), flags) is not None


def _same_text(expected: Json, actual: Json, sites: Sites) -> bool:
    """Compares texts without surrounding punctuation, unless a text is only punctuation: `???` is not empty."""
    want, got = (_words(sites.neutral(_plain_number(value))) for value in (expected, actual))
    return want == got or (bare(want) == bare(got) != "")


def _plain_number(value: Json) -> str:
    """Text of a value: `1` for `1.0`, `true` for True."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _words(text: str) -> str:
    """Normalises a text. A hyphen beside a letter becomes a space ("Hawkeye-Yoga"), between digits it is kept
    ("555-1234"). Accents and pictographs beside words are removed.
    """
    text = plain_letters(plain(text))
    words = " ".join(re.sub(r"(?<=[^\W\d_])-|-(?=[^\W\d_])", " ", text).split())
    return " ".join(_PICTURES.sub(" ", words).split()) or words


def _tidy(value: Json) -> str:
    """The normalised text from which a typed value is read, without surrounding punctuation; `.75` keeps its point."""
    text = _words(str(value)).lstrip(_AROUND.replace(".", ""))
    return ("." if re.match(r"\.\d", text) else "") + text.strip(_AROUND)


def _equal(read: Callable[[Json], object | None], expected: Json, actual: Json) -> bool:
    want = read(expected)
    return want is not None and want == read(actual)


def _number(value: Json) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value) if math.isfinite(value) else None
    text = _tidy(value)
    digits = text.replace(",", "").replace(" ", "")
    number = re.fullmatch(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?", digits)
    return float(digits) if number else number_in_words(text)


def _boolean(value: Json) -> bool | None:
    if isinstance(value, bool):
        return value
    text = _tidy(value)
    return True if text in _TRUE else False if text in _FALSE else None


def _amount(value: Json) -> Decimal | None:
    """The amount in a text with one number: `US$555.2`, `68.51 items`, `1.603,69`. A percentage is no amount."""
    if isinstance(value, int | float):
        return None if isinstance(value, bool) or not math.isfinite(value) else Decimal(str(value))
    text = _tidy(value)
    numerals = list(_NUMERAL.finditer(text))
    if len(numerals) != 1 or text[numerals[0].end() :].lstrip().startswith("%"):
        return Decimal(0) if text == "free" else None
    amount = Decimal(_with_point(numerals[0][0]))
    return -amount if _MINUS.search(text[: numerals[0].start()]) else amount


def _with_point(numeral: str) -> str:
    """*numeral* with a decimal point. A comma before three digits groups thousands; of comma and point, the later one
    is decimal."""
    numeral = re.sub(r"[ ']", "", numeral)
    comma, point = numeral.rfind(","), numeral.rfind(".")
    if point > comma >= 0 or numeral.count(",") > 1 or (point < 0 and len(numeral) - comma == 4):
        return numeral.replace(",", "")
    return numeral.replace(".", "").replace(",", ".") if comma > 0 or numeral.count(".") > 1 else numeral


def _same_amount(expected: Json, actual: Json) -> bool:
    want, got = _amount(expected), _amount(actual)
    return want is not None and got is not None and abs(want - got) <= AMOUNT


def _month(value: Json) -> int | None:
    text = _tidy(value)
    if text.isdigit():
        return int(text) if 1 <= int(text) <= 12 else None
    names = [name.lower() for name in calendar.month_name]
    months = [n for n, name in enumerate(names) if name and len(text) >= 3 and name.startswith(text)]
    return months[0] if months else None


def _date(value: Json) -> date | None:
    parts = read_date(_tidy(value).removeprefix("the "))
    return parts.complete() if parts else None


def _duration(value: Json) -> float | None:
    """Seconds; a bare number is no duration."""
    text = _tidy(value)
    clock = _CLOCK.fullmatch(text)
    if clock:
        first, second, third = int(clock[1]), int(clock[2]), clock[3]
        if third is not None:
            return float(first * 3600 + second * 60 + int(third))
        return float(first * 3600 + second * 60) if clock[4] else float(first * 60 + second)
    parts = _UNIT_OF_TIME.findall(text)
    rest = re.sub(r"[\s,.]|and", "", _UNIT_OF_TIME.sub("", text))
    if not parts or rest:
        return None
    return sum(float(count) * _SECONDS[unit[0]] for count, unit in parts)


def _distance(value: Json) -> float | None:
    """Metres; a bare number is no distance."""
    match = _LENGTH.fullmatch(_tidy(value))
    unit = match[2] if match else ""
    metres = _METRES.get(unit) or _METRES.get(unit.removesuffix("s"))
    return float(match[1].replace(",", "")) * metres if match and metres else None


def _near(read: Callable[[Json], float | None], absolute: float, share: float, expected: Json, actual: Json) -> bool:
    want, got = read(expected), read(actual)
    return want is not None and got is not None and abs(want - got) <= max(absolute, share * max(want, got))


def _place_name(expected: Json, actual: Json) -> bool:
    want, got = (bare(_words(str(value))) for value in (expected, actual))
    return want == got or similarity(want, got) >= PLACE_SIMILARITY


def _same_place_on_earth(expected: Json, actual: Json) -> bool:
    want, got = read_coordinates(expected), read_coordinates(actual)
    return want is not None and got is not None and all(abs(a - b) <= DEGREES for a, b in zip(want, got, strict=True))


def _same_address(expected: Json, actual: Json, sites: Sites) -> bool:
    """Compares addresses. In a repository's clone address, `__SSH_HOST__` matches any host."""
    want, got = _SSH.fullmatch(str(expected)), _SSH.fullmatch(str(actual).strip())
    if want and got:
        hosts = want["host"] == "__SSH_HOST__" or want["host"].lower() == got["host"].lower()
        return hosts and _user_and_path(want) == _user_and_path(got)
    left, right = (sites.neutral(sites.fill(str(v))).strip().rstrip("/").lower() for v in (expected, actual))
    return left == right


def _user_and_path(address: re.Match[str]) -> tuple[str, str]:
    user = address["user"] or address["short"] or "git"
    return user.casefold(), address["path"].strip("/").casefold()


def _same_json(expected: Json, actual: Json, sites: Sites) -> bool:
    try:
        want, got = (
            load_json(sites.neutral(value)) if isinstance(value, str) else value for value in (expected, actual)
        )
    except ValueError:
        return False
    return want == got


def _markdown(value: Json) -> str:
    """The words of a Markdown text, without white space, list markers and escapes."""
    return plain(re.sub(r"(?m)^\s*[-*+]\s+|\\(?=[^\w\s])", " ", str(value)))


def _set_of_texts(value: Json) -> frozenset[str]:
    parts = value if isinstance(value, list) else str(value).split(",")
    return frozenset(plain(str(part)) for part in parts)


_FORMATS: dict[Format, Callable[[Json, Json, Sites], bool]] = {
    "currency": lambda want, got, _: _same_amount(want, got),
    "duration": lambda want, got, _: _near(_duration, DURATION_S, DURATION_SHARE, want, got),
    "distance": lambda want, got, _: _near(_distance, DISTANCE_M, DISTANCE_SHARE, want, got),
    "date": lambda want, got, _: _equal(_date, want, got),
    "month": lambda want, got, _: _equal(_month, want, got),
    "coordinates": lambda want, got, _: _same_place_on_earth(want, got),
    "location-name": lambda want, got, _: _place_name(want, got),
    "url": _same_address,
    "json": _same_json,
    "markdown": lambda want, got, sites: _markdown(sites.neutral(str(want))) == _markdown(sites.neutral(str(got))),
    "string_list": lambda want, got, _: _set_of_texts(want) == _set_of_texts(got),
}
