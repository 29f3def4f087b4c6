"""Parses coordinates in an answer, in the formats that models write. Used by all rewards.

Formats:

* plain numbers and brackets: `130, 215`, `(130, 215)`, `[[100, 200], [160, 230]]`;
* named numbers: `x=130, y=215`, `x1=… y1=… x2=… y2=…`, `{"x": 100, "y": 200, "width": 60, "height": 30}`,
  `{"bbox": [100, 200], "width": 60, "height": 30}`;
* JSON of grounding models, in a code fence or not: `[{"bbox_2d": [100, 200, 160, 230]}]`, `{"point_2d": [130, 215]}`;
* tags such as `<point>130 215</point>`.

Digits in a name (`bbox_2d`, `x1`, `2nd`, `1920x1080`) are not numbers. Unicode minus signs and full-width characters
are read as ASCII, and so are brackets and commas of Chinese and Japanese. Nothing is evaluated.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

_FRACTION = r"\.\d{1,30}(?:[eE][-+]?\d{1,2})?"
_END = r"(?!\.\d)(?=(?:px|pixels?)?(?!\w))"
_NUMBER = rf"(?:(?<![\w.])[-+]?{_FRACTION}|(?<!\w)(?<!\d\.)[-+]?\d{{1,30}}(?:{_FRACTION})?){_END}"
"""A sign is part of a number if no digit or letter precedes it: `100-160` is a range. An exponent needs a decimal point
(`1.3e2`): `1e9` may be a name."""
_UNIT = r"(?:\s?(?:px|pixels?)\b)?"
_NUMBERS = re.compile(_NUMBER)
_GAP = re.compile(rf"{_UNIT}\s*[,;]?\s*", re.IGNORECASE)
"""Separator between the numbers of one point or box."""
_BRACKETS = re.compile(rf"[(\[]\s*({_NUMBER}{_UNIT}(?:(?:\s*[,;]\s*|\s+){_NUMBER}{_UNIT})+)\s*[)\]]", re.IGNORECASE)
"""Brackets that hold two or more numbers and nothing else."""
_BETWEEN_CORNERS = re.compile(r"\s*(?:[,;]|->|-|to)?\s*", re.IGNORECASE)
_NAMES = (
    "x|y|x1|y1|x2|y2|cx|cy|x_?min|y_?min|x_?max|y_?max|left|top|right|bottom|width|height|w|h"  # in lower case, no `_`
)
_NAMED = re.compile(rf"(?<!\w)({_NAMES})[\"']?\s*[:=]\s*({_NUMBER})", re.IGNORECASE)
_CORNERS = (("x1", "y1", "x2", "y2"), ("left", "top", "right", "bottom"), ("xmin", "ymin", "xmax", "ymax"))
_POINTS = (("x", "y"), ("cx", "cy"), ("x1", "y1"), ("left", "top"))
_SIZES = (("width", "height"), ("w", "h"))
_SIZE_FIRST = re.compile(r"box\w*[\"']?\s*[:=]?\s*[{(\[]\s*[\"']?(?:width|height|w|h)\b", re.IGNORECASE)
"""A box whose first name is its width or height."""
_CORNER_AND_SIZE = re.compile(
    rf"box\w*[\"']?\s*[:=]\s*[(\[]?\s*({_NUMBER})[\s,;]+({_NUMBER})[\s,;)\]]*[\"']?"
    rf"(?:width|w)[\"']?\s*[:=]?\s*({_NUMBER})[\s,;]*[\"']?(?:height|h)[\"']?\s*[:=]?\s*({_NUMBER})",
    re.IGNORECASE,
)
"""A box with a corner of two numbers and a named size: `{"bbox": [100, 200], "width": 60, "height": 30}`."""
_QUOTED = re.compile(rf"([\"'])({_NUMBER})\1")
_ASCII = (
    {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
    | dict.fromkeys(map(ord, "−–‒‐‑﹣⁻"), "-")
    | dict(zip(map(ord, "【】〔〕「」〈〉⟨⟩、﹐"), "[][][]()(),,", strict=True))
)
"""Maps full-width characters, Unicode minus signs, and brackets and commas of Chinese and Japanese to ASCII."""

Place = tuple[float, ...]
"""x and y of a point, or left, top, right and bottom of a box."""


def plain_ascii(text: str) -> str:
    """Replaces Unicode minus signs and full-width characters by ASCII. The length stays."""
    return text.translate(_ASCII)


def numbers_in(text: str) -> tuple[float, ...]:
    """Returns the finite numbers written in *text*, in order."""
    return _floats(match.group() for match in _NUMBERS.finditer(plain_ascii(text)))


def places_in(text: str) -> tuple[Place, ...]:
    """Returns the distinct points and boxes in *text*, in order; empty if its numbers form none.

    Ambiguous text is read in its most explicit form: named numbers, then brackets, then adjacent numbers, then all
    numbers of the text if there are two or four.
    """
    plain = _QUOTED.sub(r"\2", plain_ascii(text))
    places = _explicit(plain)
    if len({len(place) for place in places}) == len(places) > 0:
        return places
    numbers = numbers_in(plain)
    return (numbers,) if len(numbers) in (2, 4) else places


def holds_several_points(text: str) -> bool:
    """Whether *text* names different points that are not written as the corners of a box: `(1, 2) or (30, 40)`."""
    return sum(len(place) == 2 for place in _explicit(_QUOTED.sub(r"\2", plain_ascii(text)))) > 1


def names_axes(text: str) -> bool:
    """Whether *text* says which of its numbers is which: `x=1, y=2`."""
    return bool(_named(_QUOTED.sub(r"\2", plain_ascii(text))))


def _explicit(plain: str) -> tuple[Place, ...]:
    """The distinct points and boxes in the most explicit form of *plain* text."""
    candidates = _named(plain) or _sized_boxes(plain) or _bracketed(plain) or _side_by_side(plain)
    return tuple(dict.fromkeys(place for place in candidates if len(place) in (2, 4)))


def _floats(texts: Iterable[str]) -> tuple[float, ...]:
    return tuple(number for number in map(float, texts) if math.isfinite(number))


def _named(text: str) -> list[Place]:
    """Returns the point or box that named numbers form; empty if a name has two values."""
    values: dict[str, set[float]] = defaultdict(set)
    for name, number in _NAMED.findall(text):
        values[name.lower().replace("_", "")].add(float(number))
    named = {name: next(iter(numbers)) for name, numbers in values.items() if len(numbers) == 1}
    if len(named) < len(values):
        return []
    for corners in _CORNERS:
        if named.keys() >= set(corners):
            return [tuple(named[name] for name in corners)]
    for x, y in _POINTS:
        if x in named and y in named:
            return [_sized(named, x, y, size_first=_SIZE_FIRST.search(text) is not None) or (named[x], named[y])]
    return []


def _sized_boxes(text: str) -> list[Place]:
    boxes = (_floats(match.groups()) for match in _CORNER_AND_SIZE.finditer(text))
    return [(box[0], box[1], box[0] + box[2], box[1] + box[3]) for box in boxes if len(box) == 4]


def _sized(named: dict[str, float], x: str, y: str, *, size_first: bool) -> Place | None:
    """The box at its corner or centre *x*, *y*; None without its size. A size before them is that of the screen unless
    a box begins with it (*size_first*)."""
    order = list(named)
    for wide, high in _SIZES:
        if wide in named and high in named and (size_first or order.index(wide) > order.index(y)):
            width, height = named[wide], named[high]
            left, top = (named[x] - width / 2, named[y] - height / 2) if x == "cx" else (named[x], named[y])
            return (left, top, left + width, top + height)
    return None


def _bracketed(text: str) -> list[Place]:
    """Returns the points and boxes in brackets. Two adjacent pairs are the corners of one box."""
    matches = list(_BRACKETS.finditer(text))
    groups = [numbers_in(match.group(1)) for match in matches]
    if [len(group) for group in groups] == [2, 2]:
        between = text[matches[0].end() : matches[1].start()]
        if _BETWEEN_CORNERS.fullmatch(between):
            return [groups[0] + groups[1]]
    return groups


def _side_by_side(text: str) -> list[Place]:
    return [_floats(run) for run in _runs(text) if len(run) > 1]


def _runs(text: str) -> Iterator[list[str]]:
    """Yields runs of numbers separated only by white space, a comma or a unit."""
    run: list[str] = []
    end = 0
    for match in _NUMBERS.finditer(text):
        if run and not _GAP.fullmatch(text, end, match.start()):
            yield run
            run = []
        run.append(match.group())
        end = match.end()
    yield run
