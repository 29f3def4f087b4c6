"""Reads the data out of a pickle without running anything in it.

A pickle is a program: loading one with its own classes can do whatever its author wanted. Here no name in it is ever
looked up. Every class becomes :class:`Blank`, which keeps what it was given; numbers, texts, lists and dicts come out
as they are.
"""

from __future__ import annotations

import gzip
import io
import pickle
import pickletools
from pathlib import Path
from typing import Any, Final

from envs.core.errors import BadInput
from envs.importing.files import LARGEST_BYTES, read_regular

_MEMO_WRITES: Final = frozenset({"PUT", "BINPUT", "LONG_BINPUT"})


class Blank:
    """An object of an unknown class: its arguments and its attributes, nothing else."""

    def __new__(cls, *args: Any, **named: Any) -> Blank:
        made = super().__new__(cls)
        made.args = args
        return made

    def __init__(self, *args: Any, **named: Any) -> None:
        self.args: tuple[Any, ...]

    def __setstate__(self, state: Any) -> None:
        """Objects are pickled as a dict of their attributes, or that and their slots."""
        parts = state if isinstance(state, tuple) else (state,)
        for part in parts:
            if isinstance(part, dict):
                self.__dict__.update({str(name): value for name, value in part.items()})

    def append(self, value: Any) -> None:
        """A subclass of list hands over its items so."""

    def extend(self, values: Any) -> None: ...

    def __setitem__(self, key: Any, value: Any) -> None:
        """A subclass of dict hands over its items so."""
        self.__dict__[str(key)] = value


class _Reader(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str, /) -> Any:
        return Blank

    def persistent_load(self, pid: Any, /) -> Any:
        return None


def read_pickle(path: Path) -> Any:
    """What *path* (a pickle, or one packed with gzip) holds. Raises BadInput naming the file."""
    data = read_regular(path, LARGEST_BYTES)
    try:
        if path.suffix == ".gz":
            with gzip.open(io.BytesIO(data)) as file:
                data = file.read(LARGEST_BYTES + 1)
        if len(data) > LARGEST_BYTES:
            raise BadInput(f"{path}: larger than {LARGEST_BYTES // 2**20} MiB")
        _check(data)
        return _Reader(io.BytesIO(data)).load()
    except BadInput:
        raise
    except Exception as error:  # noqa: BLE001
        # A damaged pickle can raise anything at all; nothing of ours runs in between.
        raise BadInput(f"{path}: cannot be read as a pickle: {type(error).__name__}: {error}") from None


def _check(data: bytes) -> None:
    """Raises on whatever is no pickle before a single instruction is followed.

    The memo is an array: storing one value at place 2³⁰ makes it that long. Writers count places up from 0, so no
    place is beyond the number of instructions.
    """
    for number, (code, argument, _) in enumerate(pickletools.genops(data)):
        if code.name in _MEMO_WRITES and isinstance(argument, int) and argument > number:
            raise ValueError(f"instruction {number} stores at place {argument} of the memo")
