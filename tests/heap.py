"""What the C heap of this process holds."""

from __future__ import annotations

import ctypes
from typing import Any, Final

HAS_STATISTICS: Final = hasattr(ctypes.CDLL(None), "mallinfo2")
"""Whether the C library has `mallinfo2` (glibc 2.33)."""


class _Statistics(ctypes.Structure):
    """glibc's `struct mallinfo2`."""

    _fields_ = [(f"field_{number}", ctypes.c_size_t) for number in range(10)]


def heap_bytes() -> tuple[int, int]:
    """(allocated, free): bytes on the heap (`uordblks`, `fordblks`), without blocks that are mapped for themselves."""
    read: Any = ctypes.CDLL(None).mallinfo2
    read.restype = _Statistics
    statistics = read()
    return statistics.field_7, statistics.field_8
