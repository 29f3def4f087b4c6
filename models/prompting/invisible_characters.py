"""Removes invisible characters from untrusted text, and escapes characters that reorder a line.

A page can hide text from people and still send it to a model: tag characters encode ASCII, variation selectors and
zero-width characters encode bits. A prompt contains only what a person would see.

* Tag characters U+E0000-E007F are removed, except in the flags of England, Scotland and Wales, the only ones in use.
* Zero-width space, joiner and non-joiner stay if one follows a letter of a script that needs it (Arabic, Persian,
  the Indic and South-East Asian scripts, Mongolian), the joiner between two emoji as well. Others are removed.
* A variation selector stays after a character that has variants (emoji, keycaps, mathematical signs, CJK, Mongolian).
  Others are removed.
* Marks, embeddings and isolates of direction stay in a line with letters written from right to left, at most two in a
  row. Others are removed.
* Overrides of direction are shown as `\\u202d` and `\\u202e`, because a person sees another order than the text.
* Control characters are shown as `\\x1b`, white space excepted.
* Soft hyphen, word joiner, byte order mark, invisible operators, annotation marks and non-characters are removed, a
  Hangul filler that is drawn as a blank becomes one.
* Characters of private use, which icon fonts draw, and all others stay.

Text without any such character is returned unchanged.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_FLAGS: Final = "|".join(
    "\U0001f3f4" + "".join(chr(0xE0000 + ord(letter)) for letter in region) + "\U000e007f"
    for region in ("gbeng", "gbsct", "gbwls")
)
_MARKS: Final = "\u061c\u200e\u200f\u202a-\u202c\u2066-\u2069"
"""Direction marks, without overrides."""
_HIDDEN: Final = re.compile(
    rf"{_FLAGS}"
    r"|[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]"
    rf"|[{_MARKS}]"
    "|[\u202d\u202e]+"
    "|[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufffb\ufdd0-\ufdef\ud800-\udfff\ufffe\uffff"
    "\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    + "".join(f"|[{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}]" for plane in range(0x10000, 0x110000, 0x10000))
)
_COMPLEX: Final = re.compile(
    "[\u0620-\u08ff\u0900-\u0fff\u1000-\u109f\u1780-\u18af\u1900-\u1cff\ua800-\uabff\ufb50-\ufdcf\ufdf0-\ufdff"
    "\ufe70-\ufefc\U00010a00-\U00011fff\U0001e900-\U0001e95f]"
)
"""Letters and marks of scripts in which a joiner, non-joiner or invisible word boundary changes the meaning."""
_EMOJI: Final = re.compile(
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_IDEOGRAPH: Final = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U000323af]")
_CJK: Final = re.compile("[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U000323af]")
_MYANMAR: Final = re.compile("[\u1000-\u109f\uaa60-\uaa7f\ua840-\ua877]")
_MONGOLIAN: Final = re.compile("[\u1807-\u18aa]")
_JAMO: Final = re.compile("[\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff]")
MARKS_IN_A_ROW: Final = 2


def visible(text: str) -> str:
    """*text* as a person would see it, by the rules above. Idempotent."""
    if text.isascii():
        return text if text.isprintable() else _HIDDEN.sub(_escape, text)
    if _HIDDEN.search(text) is None:
        return text
    return "\n".join(_visible_line(line) for line in text.split("\n"))


def _visible_line(line: str) -> str:
    from_right = _writes_from_right(line)
    shown: list[str] = []
    """Characters, flags and escapes."""
    end = 0
    for match in _HIDDEN.finditer(line):
        shown += line[end : match.start()]
        end = match.end()
        shown += _replacement(match[0], shown, line[end : end + 1], from_right=from_right)
    return "".join([*shown, line[end:]])


def _replacement(hidden: str, before: list[str], after: str, *, from_right: bool) -> list[str]:
    """The characters shown for *hidden* between *before* and the character *after*."""
    if len(hidden) > 1 and hidden[0] == "\U0001f3f4":
        return [hidden]
    code = ord(hidden[0])
    last = before[-1] if before else ""
    if hidden[0] in "\u202d\u202e" or unicodedata.category(hidden[0]) == "Cc":
        return [_escaped(hidden[0])]
    if 0xD800 <= code <= 0xDFFF:
        return ["\ufffd"]
    if hidden in "\u3164\uffa0":
        return [" "]
    if hidden in "\u061c\u200e\u200f\u202a\u202b\u202c\u2066\u2067\u2068\u2069":
        return [hidden] if from_right and _marks_at_end(before) < MARKS_IN_A_ROW else []
    return [hidden] if _belongs(hidden, code, before, last, after) else []


def _belongs(hidden: str, code: int, before: list[str], last: str, after: str) -> bool:
    """Whether a joiner or a variation selector follows a character that it applies to."""
    if hidden in "\u200b\u200c\u200d" and _COMPLEX.fullmatch(last):
        return True
    if hidden == "\u200d":
        bare = before[-2] if last == "\ufe0f" and len(before) > 1 else last
        return bool(_is_emoji(bare) and _is_emoji(after))
    if hidden in "\ufe0e\ufe0f":
        return _is_emoji(last) or (last != "" and last in "0123456789#*" and after == "\u20e3")
    if 0xFE00 <= code <= 0xFE0D:
        return bool(_CJK.fullmatch(last) or _MYANMAR.fullmatch(last)) or _is_mathematical(last)
    if 0xE0100 <= code <= 0xE01EF:
        return _IDEOGRAPH.fullmatch(last) is not None
    if 0x180B <= code <= 0x180F:
        return _MONGOLIAN.fullmatch(last) is not None
    return hidden in "\u115f\u1160" and bool(_JAMO.fullmatch(last) or _JAMO.fullmatch(after))


def _is_emoji(character: str) -> bool:
    return _EMOJI.fullmatch(character) is not None or (len(character) > 1 and character[0] == "\U0001f3f4")


def _is_mathematical(character: str) -> bool:
    return character != "" and not character.isascii() and unicodedata.category(character[0]) == "Sm"


def _marks_at_end(shown: list[str]) -> int:
    count = 0
    while count < len(shown) and re.fullmatch(f"[{_MARKS}]", shown[-1 - count]):
        count += 1
    return count


def _writes_from_right(line: str) -> bool:
    return any(
        unicodedata.bidirectional(character) in ("R", "AL") for character in line if character not in "\u200f\u061c"
    )


def _escape(match: re.Match[str]) -> str:
    return _escaped(match[0])


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
