"""Forwards a browser's WebSocket messages (RFC 6455) and checks each before any of it is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Self

from envs.security.http1 import BLOCK, BadMessage, TooLarge, Write
from envs.security.outgoing_requests import BODY_BYTES

_CONTINUED, _CLOSE = 0x0, 0x8
_MASKED, _FINAL, _CONTROL = 0x80, 0x80, 0x8
_CONTROL_BYTES: Final = 125
_CODE_BYTES: Final = 2
"""Length of the status code at the beginning of a close frame; the rest is text of the page."""

CheckMessage = Callable[[bytes, bool], Awaitable[None]]
"""Receives the beginning of a message, and whether it is complete. Raises if it may not be sent."""


class PrefixedReader:
    """A reader that first returns bytes which were read before."""

    def __init__(self, early: bytes, reader: asyncio.StreamReader) -> None:
        self._early = early
        self._reader = reader

    async def exactly(self, count: int) -> bytes:
        """Reads *count* bytes. Raises asyncio.IncompleteReadError at the end."""
        early, self._early = self._early[:count], self._early[count:]
        return early + (await self._reader.readexactly(count - len(early)) if len(early) < count else b"")


@dataclass(frozen=True, slots=True)
class _Frame:
    opcode: int
    is_final: bool
    head: bytes
    """Unchanged, including the key."""
    key: bytes
    length: int

    @classmethod
    async def read(cls, reader: PrefixedReader) -> Self | None:
        """Reads the head of the next frame; None at the end. Raises BadMessage."""
        try:
            first = await reader.exactly(2)
        except asyncio.IncompleteReadError:
            return None
        if not first[1] & _MASKED:
            raise BadMessage("a WebSocket frame of a browser must be masked")
        short = first[1] & 0x7F
        more = await reader.exactly({126: 2, 127: 8}.get(short, 0))
        key = await reader.exactly(4)
        length = int.from_bytes(more) if more else short
        if first[0] & _CONTROL and length > _CONTROL_BYTES:
            raise BadMessage("a WebSocket control frame is too long")
        return cls(first[0] & 0x0F, bool(first[0] & _FINAL), first + more + key, key, length)

    def plain(self, payload: bytes) -> bytes:
        """Unmasks the beginning of the payload."""
        repeated = (self.key * (len(payload) // 4 + 1))[: len(payload)]
        return (int.from_bytes(payload) ^ int.from_bytes(repeated)).to_bytes(len(payload))


async def pass_messages(reader: PrefixedReader, write: Write, check: CheckMessage, limit: int) -> None:
    """Forwards frames until the end, at most *limit* bytes. Raises the exceptions of *check*, and BadMessage."""
    held, text = bytearray(), bytearray()
    is_passing = False
    """True within a message whose beginning was checked."""
    while (frame := await _Frame.read(reader)) is not None:
        limit -= frame.length
        if limit < 0:
            raise TooLarge("the WebSocket messages are too large")
        if frame.opcode & _CONTROL:
            await _pass_control(frame, reader, write, check)
            continue
        if frame.opcode != _CONTINUED:
            is_passing = False
        if not is_passing:
            start = await reader.exactly(min(frame.length, BODY_BYTES - len(text)))
            held += frame.head + start
            text += frame.plain(start)
            is_whole = frame.is_final and len(start) == frame.length
            if not is_whole and len(text) < BODY_BYTES:
                continue
            await check(bytes(text), is_whole)
            await write(bytes(held))
            held.clear()
            text.clear()
            await _pass(reader, write, frame.length - len(start))
        else:
            await write(frame.head)
            await _pass(reader, write, frame.length)
        is_passing = not frame.is_final


async def _pass_control(frame: _Frame, reader: PrefixedReader, write: Write, check: CheckMessage) -> None:
    """Forwards a control frame. The text of a close frame is checked, because a page can set it."""
    payload = await reader.exactly(frame.length)
    if frame.opcode == _CLOSE and len(payload) > _CODE_BYTES:
        await check(frame.plain(payload)[_CODE_BYTES:], True)
    await write(frame.head + payload)


async def _pass(reader: PrefixedReader, write: Write, count: int) -> None:
    while count > 0:
        block = await reader.exactly(min(BLOCK, count))
        count -= len(block)
        await write(block)
