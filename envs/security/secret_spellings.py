"""Recognises the spellings of a secret value, for masking and for the check of outgoing requests.

A text is searched in several views. Each view reverses one family of encodings:

  - raw: the unchanged text, case-sensitive. Finds the value, its reverse and rot13, and base64 (standard and URL-safe,
    at each of the three byte phases) of its UTF-8 and UTF-16 bytes, its reverse, its hex digits and its base64.
  - unescaped: percent, HTML, JSON, JavaScript, CSS and quoted-printable escapes decoded, three levels deep.
  - folded: compatibility characters, accents, case, white space, invisible characters and punctuation removed. Finds
    spaced, hyphenated, re-cased or full-width spellings, and hex, base32, decimal, octal and binary character codes
    with any separators, each also reversed.

Not found: a value that was encrypted, hashed, cut into separate parts, reworded, or spelled with look-alike letters of
other scripts.
"""

from __future__ import annotations

import base64
import codecs
import html
import json
import re
import string
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import quote, quote_plus

MIN_CHARS: Final = 4
"""A shorter value would be masked in the middle of ordinary words, and could be guessed from the masks."""
CUT_CHARS: Final = 12
"""Length of the beginning of a longer spelling that is masked if the text was cut within it."""
LEVELS: Final = 3
"""Levels of nested escapes that are decoded."""
_MIN_LINE_CHARS: Final = 8
_MIN_BASE_CHARS: Final = 6
_MIN_FOLDED: Final = 8
_MIN_MIXED_FOLDED: Final = 6
"""The same for a value with both letters and digits, which ordinary words do not have."""


class Span(NamedTuple):
    """The position of a spelling of the secret *name*: characters *start* to *end* (exclusive)."""

    start: int
    end: int
    name: str


@dataclass(frozen=True, slots=True)
class _View:
    text: str
    owners: Callable[[], list[tuple[int, int]]]
    """For each character of `text`: the range in the original text that it represents. Computed on a match only."""


class Finder:
    """Finds all spellings of all *values* (by name) in a text."""

    def __init__(self, values: Mapping[str, str], *, any_case: bool = False) -> None:
        """*any_case*: ignore case, for texts that were converted to lower case, such as host names."""
        self._any_case = any_case
        self.is_ascii = all(value.isascii() for value in values.values())
        cased = str.lower if any_case else str

        def table(forms_of: Callable[[str], frozenset[str]]) -> _Table:
            return _Table((cased(form), name) for name, value in values.items() for form in forms_of(value))

        self._raw, self._based = table(raw_forms), table(base_forms)
        self._folded, self._coded = table(folded_forms), table(coded_forms)

    def spans(self, text: str, levels: int = LEVELS, *, cut: bool = True) -> list[Span]:
        """The spellings of values in *text*, sorted by position; spans may overlap. *levels*: levels of escapes to
        decode; *cut*: also match where the text was cut within a spelling."""
        spans: set[Span] = set()
        for view, matches in self._matches(text, levels, cut):
            owners = view.owners() if matches else []
            spans.update(Span(owners[start][0], owners[end - 1][1], name) for start, end, name in matches)
        return sorted(spans)

    def names(self, text: str, levels: int = LEVELS, *, cut: bool = True) -> frozenset[str]:
        """The names of the values that *text* spells."""
        return frozenset(name for _, matches in self._matches(text, levels, cut) for _, _, name in matches)

    def _matches(self, text: str, levels: int, cut: bool) -> Iterator[tuple[_View, list[Span]]]:
        """Each view of *text* with its matches, as positions in the view."""
        mark, folded_mark = ("…", _ELLIPSIS) if cut else ("", "")
        for view in _views(text.lower() if self._any_case else text, levels):
            based = _OF_BASE64.runs(view.text, self._based.shortest)
            yield view, [*_spans(view, self._raw, view.text, mark), *_spans(view, self._based, based, mark)]
            folded = _folded_view(view)
            coded = _OF_HEX.runs(folded.text, self._coded.shortest)
            yield (
                folded,
                [
                    *_spans(folded, self._folded, folded.text, folded_mark),
                    *_spans(folded, self._coded, coded, folded_mark),
                ],
            )


class _Form(NamedTuple):
    begin: str
    """Its first CUT_CHARS characters, which are searched for first."""
    full: str
    name: str


class _Table:
    """Spellings that are searched together."""

    def __init__(self, forms: Iterable[tuple[str, str]]) -> None:
        self.forms = tuple(_Form(form[:CUT_CHARS], form, name) for form, name in dict(forms).items())
        self.shortest = min((len(form.begin) for form in self.forms), default=0)


def raw_forms(value: str) -> frozenset[str]:
    """The spellings of *value* that are searched case-sensitively in the raw and unescaped views."""
    forms: set[str] = set()
    for plain in _plains(value):
        forms |= {plain, plain[::-1], codecs.encode(plain, "rot13"), plain.replace(" ", "+"), *_escaped(plain)}
    return frozenset(forms)


def base_forms(value: str) -> frozenset[str]:
    """The base64 and base32 spellings of *value*, without white space."""
    forms: set[str] = set()
    for plain in _plains(value):
        inner, hexed = base64.b64encode(plain.encode()), plain.encode().hex().encode()
        for data in {*_encodings(plain), plain[::-1].encode(), inner, hexed, hexed.upper()}:
            forms |= _base64(data)
        forms |= _base32(plain.encode())
    return frozenset(forms | {form[::-1] for form in forms})


def folded_forms(value: str) -> frozenset[str]:
    """The folded spellings of *value*, which are searched in the folded view."""
    forms = {fold(text) for plain in _plains(value) for text in (plain, codecs.encode(plain, "rot13"))}
    return frozenset(form for form in forms | {form[::-1] for form in forms} if _is_foldable(form))


def coded_forms(value: str) -> frozenset[str]:
    """The digits of the bytes or characters of *value*, as they appear in the folded view."""
    forms: set[str] = set()
    for plain in _plains(value):
        forms |= {"".join(str(ord(char)) for char in plain)}
        for data in _encodings(plain):
            forms |= {data.hex(), *("".join(f"{byte:{digits}}" for byte in data) for digits in _DIGITS)}
    return frozenset(forms | {form[::-1] for form in forms})


_DIGITS: Final = ("d", "03d", "o", "03o", "08b", "07b")


def _is_foldable(form: str) -> bool:
    mixed = any(char.isdigit() for char in form) and any(char.isalpha() for char in form)
    return len(form) >= (_MIN_MIXED_FOLDED if mixed else _MIN_FOLDED)


def _plains(value: str) -> set[str]:
    lines = [line for line in value.splitlines() if len(line) >= _MIN_LINE_CHARS]
    return {plain for plain in {value, value.strip(), value.replace("\n", "\r\n"), *lines} if len(plain) >= MIN_CHARS}


def _encodings(plain: str) -> set[bytes]:
    return {plain.encode(), plain.encode("utf-16-le"), plain.encode("utf-16-be")}


def _escaped(value: str) -> set[str]:
    """Escaped spellings of *value*, for values with characters that themselves begin an escape."""
    urls = {quote(value, safe=""), quote(value), quote_plus(value), quote(quote(value, safe=""))}
    jsons = {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1]}
    jsons |= {json.dumps(text)[1:-1] for text in jsons} | {text.replace("/", "\\/") for text in jsons}
    return urls | jsons | {html.escape(value), html.escape(value, quote=False)}


def _base64(data: bytes) -> set[str]:
    """The base64 characters that encode only *data*, for each offset of *data* in a longer encoded text."""
    forms: set[str] = set()
    for shift, skip in ((0, 0), (1, 2), (2, 3)):
        coded = base64.b64encode(bytes(shift) + data).decode()
        form = coded.rstrip("=")[: len(coded) if (shift + len(data)) % 3 == 0 else -1][skip:]
        if len(form) >= _MIN_BASE_CHARS:
            forms |= {form, form.replace("+", "-").replace("/", "_")}
    return forms


def _base32(data: bytes) -> set[str]:
    """Like `_base64`, in upper and in lower case."""
    forms: set[str] = set()
    for shift in range(5):
        coded = base64.b32encode(bytes(shift) + data).decode()
        form = coded[-(-8 * shift // 5) : 8 * (shift + len(data)) // 5]
        if len(form) >= _MIN_BASE_CHARS:
            forms |= {form, form.lower()}
    return forms


def _spans(view: _View, table: _Table, haystack: str, ellipsis: str) -> Iterator[Span]:
    """The spellings of *table* in *view*. *haystack*: the part of the view that can contain one."""
    hits = [form for form in table.forms if form.begin in haystack] if haystack else []
    return (Span(start, end, form.name) for form in hits for start, end in _positions(view.text, form.full, ellipsis))


def _positions(text: str, form: str, ellipsis: str) -> Iterator[tuple[int, int]]:
    """The positions of *form* in *text*: complete, or its beginning where *text* was cut, before *ellipsis* or at its
    end. Only complete if *ellipsis* is empty."""
    start = text.find(form)
    while start >= 0:
        yield start, start + len(form)
        start = text.find(form, start + 1)
    if len(form) <= CUT_CHARS or not ellipsis:
        return
    for cut in (*(match.start() for match in re.finditer(re.escape(ellipsis), text)), len(text)):
        start = text.find(form[:CUT_CHARS], max(0, cut - len(form) + 1), cut)
        while start >= 0:
            if form.startswith(text[start:cut]):
                yield start, cut
                break
            start = text.find(form[:CUT_CHARS], start + 1, cut)


def _views(text: str, levels: int) -> Iterator[_View]:
    """The text, and the text with its escapes decoded, level by level."""
    view = _View(text, lambda: [(i, i + 1) for i in range(len(text))])
    for _ in range(levels):
        yield view
        if not _may_hold_escapes(view.text):
            return
        inner = _unescaped(view)
        if inner.text == view.text:
            return
        view = inner
    yield view


def _may_hold_escapes(text: str) -> bool:
    return any(mark in text for mark in ("%", "&", "\\", "0x")) or ("=" in text and bool(_PRINTABLE.search(text)))


_PRINTABLE: Final = re.compile(r"=(?:[0-9A-F]{2}|\r?\n)")
_ESCAPE: Final = re.compile(
    r"(?=[%&\\=0])(?:"  # a fast first test, so that the rest is tried at few positions
    r"(?P<percent>(?:%[0-9A-Fa-f]{2})+)"
    r"|(?P<unit>(?:[\\%]u[0-9A-Fa-f]{4})+)"
    r"|(?P<point>\\u\{[0-9A-Fa-f]{1,6}\})"
    r"|(?P<byte>(?:\\x[0-9A-Fa-f]{2}|0x[0-9A-Fa-f]{2}[,;]?[ ]?)+)"
    r"|(?P<css>\\(?:[0-9A-Fa-f]{2,6}[ ]|00[0-9A-Fa-f]{2,4}))"
    r"|(?P<octal>(?:\\[0-3][0-7]{2})+)"
    r"|(?P<plain>\\.)"
    r"|(?P<html>&(?:\#[0-9]{1,7}|\#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});?)"
    r"|(?P<printable>(?:=[0-9A-F]{2})+|=\r?\n)"
    r")",
    re.VERBOSE | re.DOTALL,
)


def _unescaped(view: _View) -> _View:
    def owners() -> list[tuple[int, int]]:
        outer, inner, done = view.owners(), list[tuple[int, int]](), 0
        for match in _ESCAPE.finditer(view.text):
            inner += outer[done : match.start()]
            inner += [(outer[match.start()][0], outer[match.end() - 1][1])] * len(_decoded(match))
            done = match.end()
        return inner + outer[done:]

    return _View(_ESCAPE.sub(_decoded, view.text), owners)


def _decoded(match: re.Match[str]) -> str:
    text = match.group()
    match match.lastgroup:
        case "unit":
            return bytes.fromhex(re.sub(r"[\\%]u", "", text)).decode("utf-16-be", "replace")
        case "point" | "css":
            return _char(int(re.sub(r"[^0-9A-Fa-f]", "", text.removeprefix("\\u")), 16))
        case "percent" | "byte" | "printable":
            return _bytes_text(bytes.fromhex("".join(re.findall(r"(?<=[%x=])[0-9A-Fa-f]{2}", text))))
        case "octal":
            return _bytes_text(bytes(int(code, 8) for code in text.split("\\")[1:]))
        case "plain":
            return {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}.get(text[1], text[1])
        case _:
            return html.unescape(text)


def _bytes_text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _char(point: int) -> str:
    return chr(point) if point < 0x110000 and not 0xD800 <= point < 0xE000 else "\ufffd"


_ELLIPSIS: Final = "\x1e"
"""Replaces `…` in folded text; other punctuation is removed."""
_BARRIERS: Final = '[]"'
"""Kept in folded text: they delimit the controls of an observation, whose numbers and names are no part of a value."""
_KEPT: Final = frozenset(_BARRIERS + _ELLIPSIS)
_ASCII: Final = bytes(range(128))
_DROPPED_ASCII: Final = bytes(code for code in _ASCII if not chr(code).isalnum() and chr(code) not in _KEPT)


def fold(text: str) -> str:
    """*text* in the form of the folded view. UTF-8 bytes become one character each, because removing those is fast."""
    if text.isascii():
        return text.lower().encode().translate(None, _DROPPED_ASCII).decode()
    text = unicodedata.normalize("NFKD", text.replace("…", _ELLIPSIS)).casefold()
    others = set(text.encode("utf-8", "replace").translate(None, _ASCII).decode())
    dropped = {char for char in others if not char.isalnum()}
    if len(dropped) > _MANY:
        text = text.translate(dict.fromkeys(map(ord, dropped)))
    else:
        for char in dropped:
            text = text.replace(char, "")
    return text.encode("utf-8", "replace").translate(None, _DROPPED_ASCII).decode("latin-1")


class _Alphabet:
    """Extracts runs of certain characters from a text. Most texts have few, so the search is fast."""

    def __init__(self, characters: str) -> None:
        members = characters.encode()
        self._blank = bytes(code if code in members else 32 for code in range(256))
        self._mark = bytes(120 if code in members else 32 for code in range(256))

    def runs(self, text: str, shortest: int) -> str:
        """The runs of at least *shortest* characters in *text*, one per line."""
        data = text.encode("utf-8", "replace")
        if not shortest or b"x" * shortest not in data.translate(self._mark):
            return ""
        return "\n".join(run.decode() for run in data.translate(self._blank).split() if len(run) >= shortest)


_MANY: Final = 16
"""Up to this many different characters are removed faster one by one than all at once."""

_OF_BASE64: Final = _Alphabet(string.ascii_letters + string.digits + "+/-_")
_OF_HEX: Final = _Alphabet(string.digits + "abcdef")


def _folded_view(view: _View) -> _View:
    def owners() -> list[tuple[int, int]]:
        return [owner for char, owner in zip(view.text, view.owners(), strict=True) for _ in fold(char)]

    return _View(fold(view.text), owners)
