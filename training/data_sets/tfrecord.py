"""Reads TFRecord files of tf.Example messages without TensorFlow, whose package has hundreds of megabytes.

A record is its length (8 bytes), a checksum (4), the data and a checksum (4), all little-endian. Checksums are masked
CRC-32C of the bytes before them (TensorFlow: TFRecord and tf.train.Example); the one of the length is verified, which
detects files that are damaged or of another format. The one of the data would take Python seconds a screenshot; files
are compressed with gzip, whose own checksum covers the data.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final, cast

from envs.core.errors import BadInput
from training.data_sets.protobuf import DamagedMessage, Value, fields, messages, packed, signed

_MASK: Final = 0xA282EAD8
_POLYNOMIAL: Final = 0x82F63B78
_GZIP: Final = b"\x1f\x8b"
_LARGEST: Final = 1 << 32
Feature = tuple[int, ...] | tuple[bytes, ...]


def read_examples(path: Path) -> Iterator[Mapping[str, Feature]]:
    """The features of each tf.Example of a file, compressed with gzip or not: lists of integers or of bytes. Lists of
    floats are left out. Raises BadInput."""
    try:
        with path.open("rb") as file:
            zipped = file.read(2) == _GZIP
        with cast("BinaryIO", gzip.open(path) if zipped else path.open("rb")) as file:
            for number, record in enumerate(_records(file), 1):
                try:
                    yield features(record)
                except DamagedMessage as error:
                    raise BadInput(f"{path.name} record {number} is not a tf.Example: {error}") from None
    except (OSError, EOFError, zlib.error, DamagedMessage) as error:
        raise BadInput(f"{path} is not a readable TFRecord file: {error}") from None


def features(record: bytes) -> dict[str, Feature]:
    """The features of a serialized tf.Example. Raises DamagedMessage."""
    found: dict[str, Feature] = {}
    for table in messages(record, 1):
        for entry in messages(table, 1):
            parts = dict(fields(entry))
            name, feature = parts.get(1), parts.get(2, b"")
            if not isinstance(name, bytes) or not isinstance(feature, bytes):
                raise DamagedMessage("a feature has no name")
            for kind, value in fields(feature):
                if kind in (1, 3):
                    found[name.decode("utf-8", "replace")] = _values(kind, value)
    return found


def _values(kind: int, data: Value) -> Feature:
    if not isinstance(data, bytes):
        raise DamagedMessage("a feature is not a list")
    if kind == 1:
        return tuple(messages(data, 1))
    numbers: list[int] = []
    for number, value in fields(data):
        if number == 1:
            numbers += packed(value) if isinstance(value, bytes) else [signed(value)]
    return tuple(numbers)


def _records(file: BinaryIO) -> Iterator[bytes]:
    while header := file.read(12):
        if len(header) < 12 or struct.unpack_from("<I", header, 8)[0] != masked_crc(header[:8]):
            raise DamagedMessage("a record does not begin with its length and checksum")
        length: int = struct.unpack_from("<Q", header)[0]
        record = file.read(length) if length < _LARGEST else b""
        if len(record) != length or len(file.read(4)) != 4:
            raise DamagedMessage("the last record is cut off")
        yield record


def masked_crc(data: bytes) -> int:
    """The masked CRC-32C of a few bytes."""
    crc = 0xFFFF_FFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
    crc ^= 0xFFFF_FFFF
    return ((crc >> 15 | crc << 17) + _MASK) & 0xFFFF_FFFF
