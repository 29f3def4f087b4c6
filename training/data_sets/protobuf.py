"""Reads the wire format of Protocol Buffers: fields by number, without a schema.

Source: the encoding specification of Protocol Buffers. Groups, which are deprecated, are not read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

Value = int | bytes


class DamagedMessage(ValueError):
    """The bytes are no message."""


def fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """The fields of a message in order: (number, value). A value is an unsigned integer, of a varint or of fixed width,
    or the bytes of a text, a message or packed numbers. Raises DamagedMessage."""
    position = 0
    while position < len(data):
        key, position = varint(data, position)
        match key & 7:
            case 0:
                value, position = varint(data, position)
            case 1:
                value, position = _fixed(data, position, 8)
            case 2:
                length, position = varint(data, position)
                if position + length > len(data):
                    raise DamagedMessage("a field ends after its message")
                value, position = data[position : position + length], position + length
            case 5:
                value, position = _fixed(data, position, 4)
            case kind:
                raise DamagedMessage(f"a field has the unknown wire type {kind}")
        yield key >> 3, value


def messages(data: bytes, number: int) -> Iterator[bytes]:
    """The texts or messages in the fields *number* of a message. Raises DamagedMessage."""
    for found, value in fields(data):
        if found == number:
            if not isinstance(value, bytes):
                raise DamagedMessage(f"field {number} is a number")
            yield value


def varint(data: bytes, position: int) -> tuple[int, int]:
    """An unsigned number of up to 64 bits, and the position after it. Raises DamagedMessage."""
    value = shift = 0
    while position < len(data) and shift < 64:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position
        shift += 7
    raise DamagedMessage("a number is cut off")


def signed(value: int) -> int:
    """An int32 or int64 of a varint: negative numbers are written in 64 bits."""
    return value - (1 << 64) if value >= 1 << 63 else value


def packed(data: bytes) -> Iterator[int]:
    """The signed numbers of a packed field. Raises DamagedMessage."""
    position = 0
    while position < len(data):
        value, position = varint(data, position)
        yield signed(value)


def _fixed(data: bytes, position: int, width: int) -> tuple[int, int]:
    if position + width > len(data):
        raise DamagedMessage("a number is cut off")
    return struct.unpack_from("<Q" if width == 8 else "<I", data, position)[0], position + width
