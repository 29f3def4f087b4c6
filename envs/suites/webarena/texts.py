"""When two texts say the same: what an answer, a page and a reference are reduced to before they are compared.

Looser than the benchmark's own comparison where its users found right answers refused: letter case,
white space, HTML entities, typographic quotes, trademark signs, "canceled" and "cancelled", "$0.00"
and "0", "1,200" and "1200". Stricter where it lets wrong ones pass: a number must stand by itself
("2" is not in "12" and not in "2.5"), and so must a word of up to three letters ("Lo" is not in "Hello").

A comma between digits is read both ways, and either will do: "914,915" is the number 914915 and the list of 914 and
915. Only "$1,914" and "1,014" are no lists: an amount, and a part with a leading zero.
"""

from __future__ import annotations

import html
import re
import unicodedata
from decimal import Decimal

SHORT = 3
"""References of up to so many characters must stand as words of their own."""
PHONE_DIGITS = 9
"""A longer row of digits is a code, not an amount: it is compared as text."""
TRUNCATED_DECIMALS = 3
"""A reference with so many decimals is a coordinate that its author cut: more may follow."""

_MARKS = dict.fromkeys(map(ord, "™®©℠"))
_ASCII = {ord(a): b for a, b in zip("‘’‚‛“”„‟‐‑‒–—−", "''''\"\"\"\"------", strict=True)}
_CANCEL = re.compile(r"\bcancell(ed|ing|ation)\b")
_CURRENCY = re.compile(r"(?:us\$|usd|eur|gbp|[$€£])(?=\s*-?\d)|(?<=\d)\s*(?:usd|eur|gbp|[$€£])")
_NUMERAL = r"-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
_WHOLE = re.compile(_NUMERAL)
_NUMBERS = re.compile(rf"(?<!\w)(?<!(?<!\.)\.)(?<!(?<!\w)-)(?<!\d,){_NUMERAL}(?!\d)(?!\.\d)")
"""It follows neither a letter or digit, nor a decimal point, nor its own sign."""
_GROUPED = re.compile(r"(?<!\d)(?:[$€£]\s*|\b(?:usd|eur|gbp)\s*)?\d{1,3}(?:,\d{3})+(?!\d)")
_NO_LIST = re.compile(r"^\D|,0")
"""A grouped number that is no list: it begins with a currency, or one of its groups with a zero."""
_QUOTED = re.compile(r"(['\"])(.*)\1", re.DOTALL)


def plain(text: str) -> str:
    """*text* reduced to what is compared."""
    text = html.unescape(text).translate(_MARKS)
    text = unicodedata.normalize("NFKC", text).translate(_ASCII).casefold()
    text = " ".join(text.split())
    quoted = _QUOTED.fullmatch(text)
    return _CANCEL.sub(r"cancel\1", quoted[2].strip() if quoted else text)


def same(reference: str, text: str) -> bool:
    """Is *text* the reference and nothing else? A full stop at its end does not count."""
    wanted, found = plain(reference), plain(text)
    if wanted == found or wanted == found.removesuffix("."):
        return True
    number = _number(wanted)
    return number is not None and number == _number(found)


def includes(reference: str, text: str) -> bool:
    """Does *text* hold the reference?"""
    wanted, found = plain(reference), plain(text)
    if not wanted:
        return True
    number = _number(wanted)
    if number is not None:
        return any(_holds_number(number, wanted, _CURRENCY.sub(" ", reading)) for reading in (found, _as_lists(found)))
    return re.search(_edge(wanted, 0) + re.escape(wanted) + _edge(wanted, -1), found) is not None


def _number(text: str) -> Decimal | None:
    """The amount that *text* is; None for anything else, also for codes such as `06516`."""
    bare = _CURRENCY.sub("", text).strip()
    if not _WHOLE.fullmatch(bare):
        return None
    digits = bare.lstrip("-").partition(".")[0].replace(",", "")
    if len(digits) > PHONE_DIGITS or (len(digits) > 1 and digits.startswith("0")):
        return None
    return Decimal(bare.replace(",", ""))


def _holds_number(number: Decimal, wanted: str, text: str) -> bool:
    may_go_on = len(wanted.partition(".")[2]) >= TRUNCATED_DECIMALS
    for found in (numeral.replace(",", "") for numeral in _NUMBERS.findall(text)):
        if Decimal(found) == number or (may_go_on and found.startswith(wanted)):
            return True
    return False


def _as_lists(text: str) -> str:
    """*text* with every comma as a separator of a list, but for those that can only group thousands."""
    parts: list[str] = []
    end = 0
    for grouped in _GROUPED.finditer(text):
        if _NO_LIST.search(grouped[0]):
            parts += [text[end : grouped.start()].replace(",", ", "), grouped[0]]
            end = grouped.end()
    return "".join([*parts, text[end:].replace(",", ", ")])


def _edge(wanted: str, at: int) -> str:
    """What must not adjoin the reference on its first (0) or last (-1) side, as a pattern."""
    character = wanted[at]
    if character.isdigit():
        return r"(?<!\d)(?<!\d\.)" if at == 0 else r"(?!\d)(?!\.\d)"
    if character.isalnum() and len(wanted) <= SHORT:
        return r"(?<!\w)" if at == 0 else r"(?!\w)"
    return ""
