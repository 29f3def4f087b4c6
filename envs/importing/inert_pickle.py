"""Reads the data of a pickle without running code in it.

A pickle is a program: loading it with its own classes can execute arbitrary code. This reader never imports a name from
it. Every class becomes :class:`Blank`, which stores its arguments; numbers, texts, lists and dicts are unchanged.
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
    """An object of an unknown class, reduced to its arguments and attributes."""

    def __new__(cls, *args: Any, **named: Any) -> Blank:
        instance = super().__new__(cls)
        instance.args = args
        return instance

    def __init__(self, *args: Any, **named: Any) -> None:
        self.args: tuple[Any, ...]

    def __setstate__(self, state: Any) -> None:
        """Sets attributes. The state is a dict of attributes, or a tuple of that and the slots."""
        parts = state if isinstance(state, tuple) else (state,)
        for part in parts:
            if isinstance(part, dict):
                self.__dict__.update({str(name): value for name, value in part.items()})

    def append(self, value: Any) -> None:
        """Ignores an item of a pickled list subclass."""

    def extend(self, values: Any) -> None: ...

    def __setitem__(self, key: Any, value: Any) -> None:
        """Stores an item of a pickled dict subclass."""
        self.__dict__[str(key)] = value


class _Reader(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str, /) -> Any:
        return Blank

    def persistent_load(self, pid: Any, /) -> Any:
        return None


def read_pickle(path: Path) -> Any:
    """The data of *path*, a pickle or a gzip-compressed one. Raises BadInput with the file's name."""
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
        # A damaged pickle can raise any exception; no own code runs in between.
        raise BadInput(f"{path}: cannot be read as a pickle: {type(error).__name__}: {error}") from None


def _check(data: bytes) -> None:
    """Raises for data that is no pickle, before an instruction is executed.

    The memo is an array: storing one value at index 2³⁰ allocates that length. Writers count indices up from 0, so no
    valid index exceeds the number of instructions.
    """
    for number, (code, argument, _) in enumerate(pickletools.genops(data)):
        if code.name in _MEMO_WRITES and isinstance(argument, int) and argument > number:
            raise ValueError(f"instruction {number} stores at index {argument} of the memo")
