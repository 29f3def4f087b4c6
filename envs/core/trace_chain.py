"""The hash chain over the lines of a trace, and the signature mark of the machine that wrote them.

Every line ends with two additional keys::

    {"kind":"commit", … ,"chain":"CHAIN","mark":"MARK"}

CHAIN is the SHA-256 of the previous line's chain (`START` for the first line) and of this line without the two keys.
Changing, removing, adding or moving a line invalidates the chain from that line on. The chain needs no key: an edited
trace becomes valid if all values are computed again. MARK is an HMAC of CHAIN with the machine's key
(:mod:`envs.core.local_key`), so such a trace does not count as written here. Imported traces have no mark.

The chain does not detect truncation: a trace without its last lines looks like that of an unfinished episode.
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
"""The keys are searched for in this many bytes at the end of a line; they take about 160."""
_VERSION: Final = re.compile(rb'\A\s*\{\s*"kind"\s*:\s*"header"\s*,\s*"schema_version"\s*:\s*(\d{1,9})\b')


class Linked(NamedTuple):
    """A line split into record, chain and mark."""

    body: bytes
    """The record as JSON, without the chain."""
    chain: str | None
    mark: str | None


@dataclass(frozen=True, slots=True)
class Seal:
    """Result of checking the chain of a trace."""

    chained: bool
    """False for a schema version without a chain, which cannot be checked."""
    edited: int | None
    """Number of the first line that does not match the chain; None if all match."""
    own_header: bool
    """This machine wrote the header, which is unchanged."""
    own: bool
    """This machine wrote the last line, and no earlier line has changed since."""


NO_CHAIN: Final = Seal(chained=False, edited=None, own_header=False, own=False)
"""For traces that were never in a file, and for schema versions without a chain."""


def take_apart(raw: bytes) -> Linked:
    """Splits *raw*, one line with or without its line break."""
    match = _LINKS.search(raw, max(0, len(raw) - _LINKS_BYTES))
    if match is None:
        return Linked(raw.rstrip(b"\r\n"), None, None)
    mark = match[2]
    return Linked(raw[: match.start()] + b"}", match[1].decode(), None if mark is None else mark.decode())


def next_value(before: bytes, body: bytes) -> bytes:
    """Returns the chain value of the line *body*; *before* is the previous value."""
    return hashlib.sha256(before + body).digest()


def linked_line(before: bytes, body: bytes, *, own: bool) -> tuple[bytes, bytes]:
    """Returns the line to write, without its line break, and its chain value. *own*: adds this machine's mark."""
    value = next_value(before, body)
    links = f',"chain":"{value.hex()}"'
    if own:
        links += f',"mark":"{local_key().mark(_PURPOSE, value)}"'
    return body[:-1] + links.encode() + b"}", value


def last_value(path: Path) -> bytes:
    """Computes the chain value of the last complete line in *path*; `START` if there is none."""
    value = START
    for raw in _complete_lines(path):
        value = next_value(value, take_apart(raw).body)
    return value


class Checker:
    """Checks the chain of one trace, line by line."""

    def __init__(self) -> None:
        self._value = START
        self._number = 0
        self._chained = False
        self._edited: int | None = None
        self._own_header = False
        self._mark: str | None = None

    def take(self, raw: bytes) -> bytes:
        """Checks the next line and returns it without its chain."""
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
    """Checks the complete lines in *path* without parsing them. Raises TraceError if the file cannot be read."""
    checker = Checker()
    try:
        for raw in _complete_lines(path):
            checker.take(raw)
    except OSError as error:
        raise TraceError(f"{path}: cannot read: {error.strerror}") from None
    return checker.seal()


def edited_message(path: Path, line: int) -> str:
    """Returns a one-line message that names the first changed line of *path*."""
    return f"{path}:{line}: chain: this line, or one that stood before it, was changed after it was written"


def check_unedited(path: Path, seal: Seal) -> None:
    """Raises TraceError, which names the line, if the trace at *path* was changed after it was written."""
    if seal.edited is not None:
        raise TraceError(edited_message(path, seal.edited))


def _version(header: bytes) -> int:
    """Returns the schema version of a header; 0 if it is unreadable, which readers refuse."""
    match = _VERSION.match(header)
    return int(match[1]) if match is not None else 0


def _complete_lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        for raw in file:
            if raw.endswith(b"\n"):
                yield raw
