"""Searches bytes (a request body, a downloaded file) for the spellings of :mod:`envs.security.secret_spellings`.

The bytes are decoded as UTF-8, UTF-16 and Latin-1. Compressed and encoded parts are unpacked and searched too,
PACKED_LEVELS deep and at most MAX_UNPACKED bytes in total: gzip, zlib (including PDF streams) and zip members at any
offset, raw deflate, and base64 of at least MIN_TOKEN characters. Other archives, encrypted data and images are not
searched.
"""

from __future__ import annotations

import base64
import binascii
import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from typing import Final

from envs.security.secret_spellings import LEVELS, Finder

PACKED_LEVELS: Final = 3
MAX_UNPACKED: Final = 32_000_000
MIN_TOKEN: Final = 16
WINDOW: Final = 8_000_000
"""Characters searched at once."""
OVERLAP: Final = 100_000
"""Characters shared by two windows, so that a spelling at their border is found; a longer spelling may be missed."""
_MAX_STREAMS: Final = 256
_MAX_TOKENS: Final = 5_000
_SHORT_TOKEN: Final = 4_096
"""A longer run of base64 is decoded from its beginning only, a shorter one from each of four offsets."""

_GZIP: Final = re.compile(rb"\x1f\x8b\x08")
_ZLIB: Final = re.compile(rb"\x78[\x01\x5e\x9c\xda]")
_READABLE: Final = re.compile(rb"[\t\n\r -~]{8,}")
_TOKEN: Final = re.compile(rb"[A-Za-z0-9+/_-]{%d,}" % MIN_TOKEN)


def names_in(finder: Finder, data: bytes) -> frozenset[str]:
    """The names of the secrets whose values *data* contains."""
    left = MAX_UNPACKED
    names: set[str] = set()
    layer = [data]
    for _ in range(PACKED_LEVELS + 1):
        inner: list[bytes] = []
        for part in layer:
            names |= _names_in_plain(finder, part)
            for unpacked in _unpacked(part, left):
                left -= len(unpacked)
                inner.append(unpacked)
                if left <= 0:
                    break
        layer = inner
    return frozenset(names)


def _names_in_plain(finder: Finder, data: bytes) -> frozenset[str]:
    names: set[str] = set()
    texts = [(text, 0 if is_binary else LEVELS) for text, is_binary in _texts(data, ascii_only=finder.is_ascii)]
    texts.append((_strings(data) if any(not levels for _, levels in texts) else "", LEVELS))
    for text, levels in texts:
        for start in range(0, len(text), WINDOW):
            names |= finder.names(text[start : start + WINDOW + OVERLAP], levels)
    return frozenset(names)


def _strings(data: bytes) -> str:
    """The readable parts of binary data. Escapes are decoded only in these."""
    return "\n".join(run.decode() for run in _READABLE.findall(data))


def _texts(data: bytes, *, ascii_only: bool) -> Iterator[tuple[str, bool]]:
    """Each decoding of *data*, and whether it is binary data.

    *ascii_only*: only ASCII values are searched for; UTF-16 of those is ASCII with a zero byte beside each character.
    """
    text = data.decode("utf-8", "replace")
    is_binary = "\0" in text or "\ufffd" in text
    yield text, is_binary
    if b"\0" in data:
        yield data.replace(b"\0", b"").decode("utf-8", "replace"), is_binary
    if ascii_only or not is_binary:
        return
    yield data.decode("latin-1"), is_binary
    for start in (0, 1):
        yield data[start:].decode("utf-16-le", "replace"), is_binary
        yield data[start:].decode("utf-16-be", "replace"), is_binary


def _unpacked(data: bytes, most: int) -> Iterator[bytes]:
    """The unpacked contents of *data*, each at most *most* bytes."""
    yield from _inflated(data, _GZIP, 31, most)
    yield from _inflated(data, _ZLIB, 15, most)
    if raw := _inflate(data, -15, most):
        yield raw
    yield from _zipped(data, most)
    yield from _decoded(data)


def _inflated(data: bytes, magic: re.Pattern[bytes], wbits: int, most: int) -> Iterator[bytes]:
    for number, match in enumerate(magic.finditer(data)):
        if number >= _MAX_STREAMS:
            return
        if plain := _inflate(memoryview(data)[match.start() :], wbits, most):
            yield plain


def _inflate(data: bytes | memoryview, wbits: int, most: int) -> bytes:
    """Inflates the stream at the beginning of *data*; empty if there is none. If its end is damaged, the part before is
    returned."""
    unpacker, plain = zlib.decompressobj(wbits), bytearray()
    try:
        for start in range(0, len(data), 65_536):
            plain += unpacker.decompress(data[start : start + 65_536], max(1, most - len(plain)))
            if unpacker.eof or len(plain) >= most:
                break
    except zlib.error:
        pass
    return bytes(plain)


def _zipped(data: bytes, most: int) -> Iterator[bytes]:
    start = data.find(b"PK\x03\x04")
    if start < 0:
        return
    try:
        with zipfile.ZipFile(io.BytesIO(data[start:])) as archive:
            for member in archive.infolist()[:_MAX_STREAMS]:
                yield member.filename.encode("utf-8", "replace")
                with archive.open(member) as file:
                    yield file.read(most)
    except (zipfile.BadZipFile, zlib.error, OSError, RuntimeError, NotImplementedError, EOFError, ValueError):
        return  # damaged, encrypted, or compressed by a method that the standard library does not support


def _decoded(data: bytes) -> Iterator[bytes]:
    for number, match in enumerate(_TOKEN.finditer(data)):
        if number >= _MAX_TOKENS:
            return
        token = match.group().replace(b"-", b"+").replace(b"_", b"/")
        for start in range(4 if len(token) <= _SHORT_TOKEN else 1):
            groups = token[start : start + (len(token) - start) // 4 * 4]
            try:
                yield base64.b64decode(groups)
            except binascii.Error:
                continue
