"""Compares texts of answers, pages and references after normalising them.

Looser than the benchmark's own comparison, which refuses right answers: it ignores letter case, white space, HTML
entities, typographic quotes, trademark signs, and differences such as "canceled" and "cancelled", "$0.00" and "0",
"1,200" and "1200". Stricter where the benchmark accepts wrong answers: a number must be separate ("2" is not in "12"
and not in "2.5"), and so must a word of up to three letters ("Lo" is not in "Hello").

A comma between digits has two readings, and either may match: "914,915" is the number 914915 and the list of 914 and
915. "$1,914" and "1,014" are no lists: an amount, and a part with a leading zero.
"""

from __future__ import annotations

import html
import re
import unicodedata
from decimal import Decimal

SHORT = 3
"""References of up to this many characters must be separate words."""
PHONE_DIGITS = 9
"""A longer sequence of digits is a code, not an amount, and is compared as text."""
TRUNCATED_DECIMALS = 3
"""A reference with this many decimals is a truncated coordinate: more decimals may follow."""

_MARKS = dict.fromkeys(map(ord, "™®©℠"))
_ASCII = {ord(a): b for a, b in zip("‘’‚‛“”„‟‐‑‒–—−", "''''\"\"\"\"------", strict=True)}
_CANCEL = re.compile(r"\bcancell(ed|ing|ation)\b")
_CURRENCY = re.compile(r"(?:us\$|usd|eur|gbp|[$€£])(?=\s*-?\d)|(?<=\d)\s*(?:usd|eur|gbp|[$€£])")
_NUMERAL = r"-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
_WHOLE = re.compile(_NUMERAL)
_NUMBERS = re.compile(rf"(?<!\w)(?<!(?<!\.)\.)(?<!(?<!\w)-)(?<!\d,){_NUMERAL}(?!\d)(?!\.\d)")
"""A number that follows no letter, digit, decimal point, or own sign."""
_GROUPED = re.compile(r"(?<!\d)(?:[$€£]\s*|\b(?:usd|eur|gbp)\s*)?\d{1,3}(?:,\d{3})+(?!\d)")
_NO_LIST = re.compile(r"^\D|,0")
"""Matches a grouped number that is no list: it begins with a currency, or one of its groups with a zero."""
_QUOTED = re.compile(r"(['\"])(.*)\1", re.DOTALL)


def plain(text: str) -> str:
    """*text* normalised for comparison."""
    text = html.unescape(text).translate(_MARKS)
    text = unicodedata.normalize("NFKC", text).translate(_ASCII).casefold()
    text = " ".join(text.split())
    quoted = _QUOTED.fullmatch(text)
    return _CANCEL.sub(r"cancel\1", quoted[2].strip() if quoted else text)


def same(reference: str, text: str) -> bool:
    """True if *text* equals the reference. A full stop at its end is ignored."""
    expected, actual = plain(reference), plain(text)
    if expected == actual or expected == actual.removesuffix("."):
        return True
    number = _number(expected)
    return number is not None and number == _number(actual)


def includes(reference: str, text: str) -> bool:
    """True if *text* contains the reference."""
    expected, actual = plain(reference), plain(text)
    if not expected:
        return True
    number = _number(expected)
    if number is not None:
        readings = (actual, _as_lists(actual))
        return any(_holds_number(number, expected, _CURRENCY.sub(" ", reading)) for reading in readings)
    return re.search(_edge(expected, 0) + re.escape(expected) + _edge(expected, -1), actual) is not None


def _number(text: str) -> Decimal | None:
    """*text* as an amount; None for anything else, including codes such as `06516`."""
    bare = _CURRENCY.sub("", text).strip()
    if not _WHOLE.fullmatch(bare):
        return None
    digits = bare.lstrip("-").partition(".")[0].replace(",", "")
    if len(digits) > PHONE_DIGITS or (len(digits) > 1 and digits.startswith("0")):
        return None
    return Decimal(bare.replace(",", ""))


def _holds_number(number: Decimal, expected: str, text: str) -> bool:
    is_truncated = len(expected.partition(".")[2]) >= TRUNCATED_DECIMALS
    for numeral in (match.replace(",", "") for match in _NUMBERS.findall(text)):
        if Decimal(numeral) == number or (is_truncated and numeral.startswith(expected)):
            return True
    return False


def _as_lists(text: str) -> str:
    """*text* with every comma as a list separator, except for those that can only group thousands."""
    parts: list[str] = []
    end = 0
    for grouped in _GROUPED.finditer(text):
        if _NO_LIST.search(grouped[0]):
            parts += [text[end : grouped.start()].replace(",", ", "), grouped[0]]
            end = grouped.end()
    return "".join([*parts, text[end:].replace(",", ", ")])


def _edge(expected: str, at: int) -> str:
    """A pattern of characters that must not adjoin the reference at its first (0) or last (-1) character."""
    character = expected[at]
    if character.isdigit():
        return r"(?<!\d)(?<!\d\.)" if at == 0 else r"(?!\d)(?!\.\d)"
    if character.isalnum() and len(expected) <= SHORT:
        return r"(?<!\w)" if at == 0 else r"(?!\w)"
    return ""
