"""Reads the header of a GGUF file, without its tensors.

Layout: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. The `gguf` package reads it too, but makes an
array of every string of a vocabulary, which takes seconds.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_MAGIC: Final = b"GGUF"
_VERSIONS: Final = (2, 3)
_STRING, _ARRAY = 8, 9
_SIZES: Final = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of a value, by its type; strings and arrays contain their length."""
_FLOATS: Final = {0: "float32", 1: "float16", 30: "bfloat16"}
"""Types of tensors that are not quantized."""


@dataclass(frozen=True, slots=True)
class GgufHeader:
    architecture: str
    elements: int
    """Number of elements of all tensors."""
    quantized: bool
    """Whether any tensor is stored in blocks of few bits."""
    parts: int
    """Number of files of the model."""


def read_header(path: Path) -> GgufHeader:
    """Reads the header of *path*. Raises ValueError, in one line, if it is no GGUF file or truncated."""
    with path.open("rb") as file:
        if file.read(4) != _MAGIC:
            raise ValueError(f"{path.name} is not a GGUF file")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as blob:
            try:
                return _Reader(blob).header()
            except (struct.error, IndexError, KeyError, UnicodeDecodeError) as error:
                raise ValueError(f"{path.name} is cut off or damaged: {type(error).__name__} in its header") from error


class _Reader:
    def __init__(self, blob: mmap.mmap) -> None:
        self._blob = blob
        self._at = 4

    def header(self) -> GgufHeader:
        version = self._number("<I")
        if version not in _VERSIONS:
            raise ValueError(f"GGUF version {version} is not read, only {' and '.join(map(str, _VERSIONS))}")
        tensors, entries = self._number("<Q"), self._number("<Q")
        architecture, parts = "", 1
        for _ in range(entries):
            key, kind = self._string(), self._number("<I")
            if key == "general.architecture" and kind == _STRING:
                architecture = self._string()
            elif key == "split.count" and kind == 2:
                parts = self._number("<H")
            else:
                self._skip(kind)
        elements, quantized = 0, False
        for _ in range(tensors):
            count, kind = self._tensor()
            elements += count
            quantized |= kind not in _FLOATS
        if not architecture:
            raise ValueError("the GGUF file names no general.architecture")
        return GgufHeader(architecture, elements, quantized, parts)

    def _tensor(self) -> tuple[int, int]:
        """(elements, type)."""
        self._string()
        count = 1
        for _ in range(self._number("<I")):
            count *= self._number("<Q")
        kind = self._number("<I")
        self._number("<Q")  # its offset
        return count, kind

    def _skip(self, kind: int) -> None:
        if kind == _STRING:
            self._at += 8 + struct.unpack_from("<Q", self._blob, self._at)[0]
        elif kind == _ARRAY:
            inner, count = self._number("<I"), self._number("<Q")
            if inner in _SIZES:
                self._at += _SIZES[inner] * count
            else:
                for _ in range(count):
                    self._skip(inner)
        else:
            self._at += _SIZES[kind]

    def _number(self, form: str) -> int:
        (value,) = struct.unpack_from(form, self._blob, self._at)
        self._at += struct.calcsize(form)
        return int(value)

    def _string(self) -> str:
        length = self._number("<Q")
        raw = self._blob[self._at : self._at + length]
        if len(raw) < length:
            raise IndexError
        self._at += length
        return raw.decode()
