"""The hash chain over the lines of a trace, and the mark of the machine that wrote them.

Every line ends with two more keys::

    {"kind":"commit", … ,"chain":"CHAIN","mark":"MARK"}

CHAIN is SHA-256 of the line before's chain (of `START` for the first) and of this line without the two keys. A line
that was changed, removed, added or moved therefore fits no more, nor does any line after it. The chain needs no key:
whoever computes it anew for all lines makes an edited trace look whole. MARK is an HMAC of CHAIN under the key of the
machine (:mod:`envs.core.local_key`), so such a trace is seen not to come from here. Imported traces have no mark.

What a chain cannot show is that last lines were cut off: the trace is then one of an unfinished episode.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from envs.core.errors import TraceError
from envs.core.local_key import local_key

START: Final = hashlib.sha256(b"mira trace chain").digest()
CHAINED_SINCE: Final = 4
"""Schema version from which on every line has a chain value."""
_PURPOSE: Final = "trace line"
_LINKS: Final = re.compile(
    rb',\s*"chain"\s*:\s*"([0-9a-f]{64})"(?:\s*,\s*"mark"\s*:\s*"([0-9a-f]{64})")?\s*\}\s*\Z', re.ASCII
)
_LINKS_BYTES: Final = 512
"""At the end of a line, where the two keys are looked for; they take some 160."""
_VERSION: Final = re.compile(rb'\A\s*\{\s*"kind"\s*:\s*"header"\s*,\s*"schema_version"\s*:\s*(\d{1,9})\b')


class Linked(NamedTuple):
    """A line taken apart."""

    body: bytes
    """The record as JSON, without the chain."""
    chain: str | None
    mark: str | None


@dataclass(frozen=True, slots=True)
class Seal:
    """What the chain of a trace says."""

    chained: bool
    """False for a trace of a version that kept no chain: nothing can be said about it."""
    edited: int | None
    """Number of the first line that does not fit the chain; None where all do."""
    own_header: bool
    """This machine wrote the header, as it is now."""
    own: bool
    """This machine wrote the last line, and the lines before it were then as they are now."""


NO_CHAIN: Final = Seal(chained=False, edited=None, own_header=False, own=False)
"""Of what was never in a file, and of traces of a version that kept no chain."""


def take_apart(raw: bytes) -> Linked:
    """*raw* is one line, with or without its line break."""
    found = _LINKS.search(raw, max(0, len(raw) - _LINKS_BYTES))
    if found is None:
        return Linked(raw.rstrip(b"\r\n"), None, None)
    mark = found[2]
    return Linked(raw[: found.start()] + b"}", found[1].decode(), None if mark is None else mark.decode())


def next_value(before: bytes, body: bytes) -> bytes:
    """The chain value of the line *body* after one whose value is *before*."""
    return hashlib.sha256(before + body).digest()


def linked_line(before: bytes, body: bytes, *, own: bool) -> tuple[bytes, bytes]:
    """(the line to be written, without its line break; its chain value). *own*: with this machine's mark."""
    value = next_value(before, body)
    links = f',"chain":"{value.hex()}"'
    if own:
        links += f',"mark":"{local_key().mark(_PURPOSE, value)}"'
    return body[:-1] + links.encode() + b"}", value


def last_value(path: Path) -> bytes:
    """The chain value of the last whole line in *path*, computed from what stands there; `START` where none does."""
    value = START
    for raw in _whole_lines(path):
        value = next_value(value, take_apart(raw).body)
    return value


class Checker:
    """Follows the chain of one trace, line by line."""

    def __init__(self) -> None:
        self._value = START
        self._number = 0
        self._chained = False
        self._edited: int | None = None
        self._own_header = False
        self._mark: str | None = None

    def take(self, raw: bytes) -> bytes:
        """Counts the next line; returns it without its chain."""
        body, chain, self._mark = take_apart(raw)
        self._number += 1
        self._value = next_value(self._value, body)
        if self._number == 1:
            self._chained = _version(body) >= CHAINED_SINCE
            self._own_header = self._fits()
        self._chained = self._chained or chain is not None
        if self._edited is None and self._chained and chain != self._value.hex():
            self._edited = self._number
        return body

    def _fits(self) -> bool:
        return self._mark is not None and local_key().fits(self._mark, _PURPOSE, self._value)

    def seal(self) -> Seal:
        return Seal(self._chained, self._edited, self._own_header, self._fits())


def check_chain(path: Path) -> Seal:
    """Of the whole lines in *path*, none of which is parsed. Raises TraceError where it cannot be read."""
    checker = Checker()
    try:
        for raw in _whole_lines(path):
            checker.take(raw)
    except OSError as error:
        raise TraceError(f"{path}: cannot read: {error.strerror}") from None
    return checker.seal()


def edited_message(path: Path, line: int) -> str:
    """One line that says where *path* stops being what was written."""
    return f"{path}:{line}: chain: this line, or one that stood before it, was changed after it was written"


def check_unedited(path: Path, seal: Seal) -> None:
    """Raises TraceError naming the line from which on the trace at *path* is not what was written."""
    if seal.edited is not None:
        raise TraceError(edited_message(path, seal.edited))


def _version(header: bytes) -> int:
    """The schema version that a header names; 0 where that cannot be read, which readers refuse."""
    found = _VERSION.match(header)
    return int(found[1]) if found is not None else 0


def _whole_lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        for raw in file:
            if raw.endswith(b"\n"):
                yield raw
