"""Reimplements WebArena-Verified's readers of typed values. They raise Unreadable.

The benchmark uses libraries (price-parser, pytimeparse2, pint, python-dateutil, geopy, word2number). These readers
cover the forms that occur in answers.
"""

from __future__ import annotations

import calendar
import json
import math
import re
from datetime import date
from decimal import Decimal, InvalidOperation

from envs.suites.webarena.coordinates import named_parts
from envs.suites.webarena.dates import read_date
from envs.suites.webarena.json_text import load_json
from envs.suites.webarena.number_words import number_in_words
from envs.suites.webarena.task import Json


class Unreadable(ValueError):
    """The value cannot be read as its type."""


_TRUE, _FALSE = ("true", "yes", "y", "1", "t", "on"), ("false", "no", "n", "0", "f", "off")
_PRICE = re.compile(r"([.]?\d[\d\s.,']*)\s*?(?:[^%\d]|$)")
_UNITS = {
    31_536_000.0: r"ys?|yrs?.?|years?",
    2_592_000.0: r"mos?.?|mths?.?|months?",
    604_800.0: r"w|wks?|weeks?",
    86_400.0: r"d|dys?|days?",
    3_600.0: r"h|hrs?|hours?",
    60.0: r"m|mins?|minutes?",
    1.0: r"s|secs?|seconds?",
    0.001: r"ms|msecs?|millis|milliseconds?",
}
_TIMES = re.compile(
    r"\s*" + r"\s*".join(rf"(?:([\d.]+)\s*(?:{names})\s*(?:[,/]\s*)?)?" for names in _UNITS.values()) + r"\s*", re.I
)
_CLOCKS = (
    (re.compile(r"\s*(\d{1,2}):(\d{2}(?:\.\d+)?)\s*"), (60, 1)),
    (re.compile(r"\s*(\d+):(\d{2}):(\d{2}(?:\.\d+)?)\s*"), (3_600, 60, 1)),
    (re.compile(r"\s*(\d+):(\d{2}):(\d{2}):(\d{2}(?:\.\d+)?)\s*"), (86_400, 3_600, 60, 1)),
    (re.compile(r"\s*:(\d{2}(?:\.\d+)?)\s*"), (1,)),
)
_LENGTHS = {
    **dict.fromkeys(("m", "meter", "meters", "metre", "metres"), 1.0),
    **dict.fromkeys(("km", "kilometer", "kilometers", "kilometre", "kilometres"), 1_000.0),
    **dict.fromkeys(("cm", "centimeter", "centimeters", "centimetre", "centimetres"), 0.01),
    **dict.fromkeys(("mm", "millimeter", "millimeters", "millimetre", "millimetres"), 0.001),
    **dict.fromkeys(("mi", "mile", "miles"), 1_609.344),
    **dict.fromkeys(("ft", "foot", "feet"), 0.3048),
    **dict.fromkeys(("in", "inch", "inches"), 0.0254),
    **dict.fromkeys(("yd", "yard", "yards"), 0.9144),
}
_LENGTH = re.compile(r"([+-]?(?:\d+\.\d*|\.\d+|0+|[1-9]\d*)(?:e[+-]?\d+)?) ?\*? ?([a-z]+)")
_AROUND_LENGTHS = "!?$'`().;: "
"""Characters that pint ignores at the ends of a length."""
_DEGREES, _BETWEEN = r"[+-]?\d+(?:\.\d+)?", r"\s*[,;/\s]\s*"
_HEIGHT = rf"(?:{_BETWEEN}{_DEGREES} *(?:km|mi|m|ft|nmi|nm))?"
_POINT = re.compile(rf".*?({_DEGREES}){_BETWEEN}({_DEGREES}){_HEIGHT}\s*", re.DOTALL)


def read_text(value: Json) -> str:
    return str(value).lower().strip() if value else ""


def read_number(value: Json) -> float:
    if isinstance(value, int | float):
        return float(value)
    if not value:
        raise Unreadable("no value")
    try:
        return float(str(value).replace(",", "").replace(" ", ""))
    except ValueError as error:
        number = number_in_words(str(value), alone=False)
        if number is None:
            raise Unreadable(str(value)) from error
        return number


def read_boolean(value: Json) -> bool:
    if isinstance(value, int | float):
        return bool(value)
    text = value.strip().lower() if isinstance(value, str) else ""
    if text not in (*_TRUE, *_FALSE):
        raise Unreadable(text)
    return text in _TRUE


def read_amount(value: Json) -> Decimal:
    """The first number of a text that is no percentage. A single comma or point is decimal, even before 3 digits."""
    if not value and not isinstance(value, int | float):
        raise Unreadable("no value")
    text = str(value)
    negative = text.startswith("-")
    text = text.replace("-", "") if negative else text
    decimal = "." if text.rfind(".") > text.rfind(",") else ","
    match = _PRICE.search(text)
    if match is None and "free" in text.lower():
        return Decimal(0)
    number = match[1].rstrip(",.").replace("'", "").replace(" ", "") if match else ""
    number = number if number.count(".") == 1 else number.lstrip(",.")
    number = number.replace(",", "") if decimal == "." else number.replace(".", "").replace(",", ".")
    try:
        amount = Decimal(str(float(Decimal(number))))
    except (InvalidOperation, OverflowError) as error:
        raise Unreadable(text) from error
    return -amount if negative else amount


def read_month(value: Json) -> str:
    if isinstance(value, int | float):
        month = int(value) if value == int(value) else 0
    elif re.fullmatch(r"[+-]?\d+", str(value).strip()):
        month = int(value)
    else:
        parts = read_date(str(value))
        day = parts.on(date(2000, 1, 1)) if parts else None
        month = day.month if day else 0
    if not 1 <= month <= 12:
        raise Unreadable(str(value))
    return calendar.month_name[month]


def read_day(value: Json) -> date:
    """A date; missing parts are today's. Names of time zones are invalid: the benchmark knows them only in upper case,
    and the text is in lower case."""
    if not value or not isinstance(value, str) or re.search(r"\b(?:utc|gmt)\b", value):
        raise Unreadable(str(value))
    parts = read_date(re.sub(r",(?! )", ", ", value))
    day = parts.on(date.today()) if parts else None
    if day is None:
        raise Unreadable(value)
    return day


def read_duration(value: Json) -> float:
    """Seconds. `1:35` is minutes and seconds, `1:35 hours` is hours and minutes; a number alone is no duration."""
    text = re.sub(r"(\d+):(\d+)\s*hours?", r"\1h\2m", str(value or ""))
    if not text.strip() or _is_number(text):
        raise Unreadable(text)
    sign = -1.0 if re.match(r"\s*-", text) else 1.0
    text = re.sub(r"^\s*[+|-]?\s*", "", text)
    units = _TIMES.fullmatch(text)
    if units and units[0].strip():
        return sign * sum(_seconds(count) * unit for count, unit in zip(units.groups(), _UNITS, strict=True) if count)
    for clock, sizes in _CLOCKS:
        if parts := clock.fullmatch(text):
            return sign * sum(float(part) * size for part, size in zip(parts.groups(), sizes, strict=True))
    raise Unreadable(text)


def _seconds(count: str) -> float:
    try:
        return float(count)
    except ValueError as error:
        raise Unreadable(count) from error


def read_distance(value: Json) -> Decimal:
    """Metres; a number alone is no distance."""
    text = re.sub(r"(\d+(?:\.\d+)?)\s*k(?=\s|$)", r"\1 km", str(value or "")).replace(",", "")
    text = text.strip(_AROUND_LENGTHS)
    match = _LENGTH.fullmatch(text) if str(value).count("'") < 2 else None
    if match is None or match[2] not in _LENGTHS:
        raise Unreadable(text)
    return Decimal(str(float(match[1]) * _LENGTHS[match[2]]))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_place_name(value: Json) -> str:
    return read_text(value)


def read_coordinates(value: Json) -> tuple[float, float]:
    """(latitude, longitude) in degrees, of an object, a pair or a text with two numbers."""
    if isinstance(value, dict):
        parts = named_parts(value)
        if parts is None:
            raise Unreadable(", ".join(value))
        latitude, longitude = parts
    elif isinstance(value, list | tuple) and len(value) == 2:
        latitude, longitude = value
    elif isinstance(value, str) and (match := _POINT.fullmatch(value)):
        latitude, longitude = match[1], match[2]
    else:
        raise Unreadable(str(value))
    degrees = _degrees(latitude), _degrees(longitude)
    if not all(map(math.isfinite, degrees)) or abs(degrees[0]) > 90:
        raise Unreadable(str(value))
    return degrees[0], (degrees[1] + 180) % 360 - 180 if abs(degrees[1]) > 180 else degrees[1]


def _degrees(value: Json) -> float:
    try:
        return float(value or 0.0)
    except (TypeError, ValueError) as error:
        raise Unreadable(str(value)) from error


def read_json(value: Json) -> str:
    if not isinstance(value, str):
        raise Unreadable("no text")
    try:
        return json.dumps(load_json(value), sort_keys=True)
    except ValueError as error:
        raise Unreadable(value) from error


def read_markdown(value: Json) -> str:
    """Markdown with normalised line ends, blank lines, list markers and link texts."""
    if not isinstance(value, str) or not value:
        raise Unreadable(str(value))
    text = value.replace("\r\n", "\n").replace("\r", "\n")
    text = re.sub(r"[ \t]+$", "", text, flags=re.M)
    text = re.sub(r"\n{3,}", "\n\n", text)
    text = re.sub(r"^(\s*)(#{1,6})[ \t]+", r"\1\2 ", text, flags=re.M)
    text = re.sub(r"^(\s*)[*+][ \t]+", r"\1- ", text, flags=re.M)
    text = re.sub(r"^[ \t]+(-)", r"  \1", text, flags=re.M)
    text = re.sub(r"\[([^\]]*?)\n\s*([^\]]*?)\](\([^)]+\))", r"[\1 \2]\3", text)
    text = re.sub(r"\[([^\]]+)\]", lambda link: f"[{' '.join(link[1].split())}]", text)
    return re.sub(r"\(\s*([^)]+?)\s*\)", r"(\1)", text).strip()


def read_list(value: Json) -> tuple[str, ...]:
    items = sorted(item.strip() for item in str(value or "").split(",") if item.strip())
    if not items:
        raise Unreadable(str(value))
    return tuple(items)
