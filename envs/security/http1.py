"""HTTP/1.1 messages for a forward proxy: parses the head strictly and streams the body unread.

A message whose end two readers could interpret differently (RFC 9112 §6.3, request smuggling) is refused, never
repaired.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

Write = Callable[[bytes], Awaitable[None]]

BLOCK: Final = 65_536
"""Bytes read at once."""
_LINE_BYTES: Final = 4_096
_TRAILER_BYTES: Final = 16_384

_REQUEST = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]{1,32}) ([!-~\x80-\xff]+) HTTP/1\.([01])")
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9]{2})(?: [\t -~\x80-\xff]*)?")
_FIELD = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\t -~\x80-\xff]*)")
_CHUNK = re.compile(rb"([0-9a-fA-F]{1,15})[ \t]*(?:;[\t -~\x80-\xff]*)?\r\n")

_HOP_BY_HOP = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"proxy-authorization", b"proxy-authenticate", b"te", b"host")
)

_FRAMING = frozenset((b"content-length", b"transfer-encoding"))
"""Never dropped, even if `Connection` names them: the server would read the body as a second request."""


class BadMessage(Exception):
    """The peer sent invalid or ambiguous HTTP/1.1. The message names the problem."""


class TooLarge(BadMessage):
    """A head or body exceeded its limit."""


@dataclass(frozen=True, slots=True)
class Head:
    """Version and header fields of a message; names in lower case."""

    minor: int
    """HTTP/1.*minor*."""
    fields: tuple[tuple[bytes, bytes], ...]

    def values(self, name: bytes) -> list[bytes]:
        """All values of a comma-separated field, trimmed and in lower case."""
        parts = (part for key, value in self.fields if key == name for part in value.split(b","))
        return [part.strip().lower() for part in parts]

    @property
    def keep_alive(self) -> bool:
        options = self.values(b"connection") + self.values(b"proxy-connection")
        return b"close" not in options and (self.minor == 1 or b"keep-alive" in options)


@dataclass(frozen=True, slots=True)
class Request(Head):
    method: bytes
    target: bytes


@dataclass(frozen=True, slots=True)
class Response(Head):
    line: bytes
    status: int


Framing = int | Literal["chunked", "until_close"]
"""How a body ends: after this number of bytes, with a last chunk, or with the connection."""


async def read_request(reader: asyncio.StreamReader, early: bytes = b"") -> Request | None:
    """Reads the next request, whose first bytes *early* were read before; None if the peer has closed. Raises
    BadMessage."""
    lines = await _read_head(reader, early)
    if lines is None:
        return None
    match = _REQUEST.fullmatch(lines[0])
    if match is None:
        raise BadMessage("the request line is malformed")
    return Request(int(match.group(3)), _fields(lines[1:]), match.group(1), match.group(2))


async def read_response(reader: asyncio.StreamReader) -> Response | None:
    """Reads the next response; None if the server closed without sending one. Raises BadMessage."""
    lines = await _read_head(reader, b"")
    if lines is None:
        return None
    match = _STATUS.fullmatch(lines[0])
    if match is None:
        raise BadMessage("the status line is malformed")
    return Response(int(match.group(1)), _fields(lines[1:]), lines[0], int(match.group(2)))


def request_framing(request: Request) -> Framing:
    framing = _framing(request)
    if framing == "chunked" and request.minor == 0:
        raise BadMessage("chunks in HTTP/1.0")
    return 0 if framing is None else framing


def response_framing(response: Response, method: bytes) -> Framing:
    if method == b"HEAD" or response.status < 200 or response.status in (204, 304):
        return 0
    framing = _framing(response)
    return "until_close" if framing is None else framing


def is_upgrade(request: Request) -> bool:
    """Whether *request* asks for a WebSocket."""
    return b"upgrade" in request.values(b"connection") and request.values(b"upgrade") == [b"websocket"]


def request_head(request: Request, host: bytes, target: bytes, added: Sequence[bytes] = ()) -> bytes:
    """The head with *target*: a path for the server, or an absolute address for another proxy. Only *host* as `Host`,
    no hop-by-hop fields but the lines *added*."""
    upgrade = is_upgrade(request)
    named = set(request.values(b"connection")) - _FRAMING - ({b"upgrade"} if upgrade else set())
    dropped = _HOP_BY_HOP | named
    lines = [
        b"%s %s HTTP/1.1" % (request.method, target),
        b"Host: " + host,
        b"Connection: " + (b"Upgrade" if upgrade else b"keep-alive"),
        *(b"%s: %s" % field for field in request.fields if field[0] not in dropped),
        *added,
    ]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def response_head(response: Response, connection: bytes) -> bytes:
    """The head for the browser, with *connection* as its `Connection` field."""
    fields = (b"%s: %s" % field for field in response.fields if field[0] not in _HOP_BY_HOP)
    return b"\r\n".join((response.line, b"Connection: " + connection, *fields)) + b"\r\n\r\n"


async def copy_body(framing: Framing, reader: asyncio.StreamReader, write: Write, limit: int) -> None:
    """Streams a body. Raises BadMessage if it ends early or exceeds *limit* bytes."""
    if framing == "chunked":
        await _copy_chunks(reader, write, limit)
    elif framing == "until_close":
        await _copy_until_close(reader, write, limit)
    elif framing > limit:
        raise TooLarge(f"a body of {framing} bytes")
    else:
        await _copy_bytes(framing, reader, write)


async def read_body_start(framing: Framing, reader: asyncio.StreamReader, limit: int) -> tuple[bytes, Framing]:
    """Reads the beginning of a request's body unchanged. Also returns the framing of the rest, 0 if there is none.

    A chunked body is read completely. Raises BadMessage if it ends early, TooLarge for chunks of more than *limit*
    bytes.
    """
    raw = bytearray()

    async def keep(block: bytes) -> None:
        raw.extend(block)

    count = min(framing, limit) if isinstance(framing, int) else framing
    await copy_body(count, reader, keep, limit)
    return bytes(raw), framing - len(raw) if isinstance(framing, int) else 0


def unchunked(raw: bytes) -> bytes:
    """Decodes the chunks that :func:`read_body_start` has read."""
    text = bytearray()
    place = 0
    while (match := _CHUNK.match(raw, place)) is not None and (size := int(match.group(1), 16)):
        text += raw[match.end() : match.end() + size]
        place = match.end() + size + 2
    return bytes(text)


async def _read_head(reader: asyncio.StreamReader, early: bytes) -> list[bytes] | None:
    try:
        data = early + await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise TooLarge("the head is too large") from None
    except asyncio.IncompleteReadError as error:
        if early or error.partial:
            raise BadMessage("the connection ended inside a head") from None
        return None
    return data[:-4].split(b"\r\n")


def _fields(lines: list[bytes]) -> tuple[tuple[bytes, bytes], ...]:
    matches = [_FIELD.fullmatch(line) for line in lines]
    fields = tuple((match.group(1).lower(), match.group(2).rstrip()) for match in matches if match is not None)
    if len(fields) != len(lines):
        raise BadMessage("a header line is malformed")
    return fields


def _framing(head: Head) -> Framing | None:
    """How the body ends according to the header; None if the header does not say it."""
    codings, lengths = head.values(b"transfer-encoding"), set(head.values(b"content-length"))
    if codings:
        if codings != [b"chunked"] or lengths:
            raise BadMessage("the length of the body is ambiguous")
        return "chunked"
    if not lengths:
        return None
    text = lengths.pop()
    if lengths or not re.fullmatch(rb"[0-9]{1,18}", text):
        raise BadMessage("the length of the body is ambiguous")
    return int(text)


async def _copy_bytes(count: int, reader: asyncio.StreamReader, write: Write) -> None:
    while count > 0:
        block = await reader.read(min(BLOCK, count))
        if not block:
            raise BadMessage("the connection ended inside a body")
        count -= len(block)
        await write(block)


async def _copy_until_close(reader: asyncio.StreamReader, write: Write, limit: int) -> None:
    while block := await reader.read(BLOCK):
        limit -= len(block)
        if limit < 0:
            raise TooLarge("the body is too large")
        await write(block)


async def _copy_chunks(reader: asyncio.StreamReader, write: Write, limit: int) -> None:
    while True:
        line = await _read_line(reader)
        match = _CHUNK.fullmatch(line)
        if match is None:
            raise BadMessage("a chunk is malformed")
        size = int(match.group(1), 16)
        limit -= size
        if limit < 0:
            raise TooLarge("the body is too large")
        if size == 0:
            await write(line + await _read_trailers(reader))
            return
        await write(line)
        await _copy_bytes(size, reader, write)
        end = await _read_line(reader)
        if end != b"\r\n":
            raise BadMessage("a chunk is malformed")
        await write(end)


async def _read_trailers(reader: asyncio.StreamReader) -> bytes:
    """Reads and drops the trailer section, which may contain anything."""
    left = _TRAILER_BYTES
    while (line := await _read_line(reader)) != b"\r\n":
        left -= len(line)
        if left < 0:
            raise TooLarge("the trailers are too large")
    return b"\r\n"


async def _read_line(reader: asyncio.StreamReader) -> bytes:
    try:
        line = await reader.readuntil(b"\r\n")
    except (asyncio.LimitOverrunError, asyncio.IncompleteReadError):
        raise BadMessage("the connection ended inside a body") from None
    if len(line) > _LINE_BYTES:
        raise TooLarge("a line is too long")
    return line
