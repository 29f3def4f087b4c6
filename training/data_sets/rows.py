"""Reads the files of data sets row by row. Errors name the file and the row."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from envs.core.errors import BadInput
from models.optional import install_command, missing_modules
from training.data_sets.items import Corners, Picture, Size
from training.data_sets.pictures import upright_size

__all__ = ["Row", "rows_in"]

_BATCH: Final = 16
"""Rows of parquet that are in memory at a time; each may hold a screenshot of megabytes."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row with unchecked *values*. Its methods raise BadInput, which names *where* it is."""

    values: Mapping[str, Any]
    where: str

    def bad(self, problem: str) -> BadInput:
        return BadInput(f"{self.where}: {problem}")

    def text(self, key: str, default: str | None = None) -> str:
        """The text of *key*; *default* where it is missing or null."""
        value = self.values.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise self.bad(f"{key!r} must be a text, not {_short(value)}")
        return value

    def number(self, key: str) -> float:
        return self.finite(key, self.values.get(key))

    def numbers(self, key: str, *counts: int) -> tuple[float, ...]:
        """A list of numbers, as a list or as its JSON; its length is one of *counts*."""
        value = self.values.get(key)
        value = self.json(key) if isinstance(value, str) else value
        found = _sequence(value)
        if found is None or len(found) not in counts:
            raise self.bad(f"{key!r} must be a list of {' or '.join(map(str, counts))} numbers, not {_short(value)}")
        return tuple(self.finite(key, one) for one in found)

    def finite(self, key: str, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise self.bad(f"{key!r} must be a number, not {_short(value)}")
        return float(value)

    def inner(self, key: str) -> Row:
        """The object of *key*, as an object or as its JSON."""
        value = self.values.get(key)
        value = self.json(key) if isinstance(value, str) else value
        if not isinstance(value, Mapping):
            raise self.bad(f"{key!r} must be an object, not {_short(value)}")
        return Row(cast("Mapping[str, Any]", value), self.where)

    def items(self, key: str) -> list[Any]:
        """The list of *key*, as a list or as its JSON."""
        value = self.values.get(key)
        found = _sequence(self.json(key) if isinstance(value, str) else value)
        if found is None:
            raise self.bad(f"{key!r} must be a list, not {_short(value)}")
        return list(found)

    def json(self, key: str) -> Any:
        try:
            return json.loads(self.text(key))
        except ValueError:
            raise self.bad(f"{key!r} is not valid JSON: {_short(self.values.get(key))}") from None

    def file(self, key: str, *folders: Path) -> Path:
        """The file that *key* names, in the first of *folders* that has it."""
        name = self.text(key)
        found = next((path for folder in folders if (path := folder / name).is_file()), None)
        if found is None:
            looked = ", ".join(dict.fromkeys(str(folder) for folder in folders))
            raise self.bad(f"the image {name!r} is not in {looked}")
        return found

    def picture(self, key: str, *folders: Path) -> Picture:
        """The picture of *key*: the bytes of a parquet file of images, or the file that it names."""
        value = self.values.get(key)
        if isinstance(value, bytes):
            return value
        if isinstance(value, Mapping):
            image = cast("Mapping[str, Any]", value)
            if isinstance(image.get("bytes"), bytes):
                return cast("bytes", image["bytes"])
            return Row({key: image.get("path")}, self.where).file(key, *folders)
        return self.file(key, *folders)

    def size(self, picture: Picture) -> Size:
        """Width and height of *picture* in pixels when it is upright; reads no more than its header from a file."""
        try:
            return upright_size(picture)
        except (OSError, SyntaxError, ValueError) as error:  # raised by Pillow for damaged files
            raise self.bad(f"the image cannot be read: {error}") from None

    def corners(self, key: str, *, wide: bool) -> Corners:
        """The box of *key*: left, top, width and height if *wide*, else left, top, right and bottom."""
        left, top, third, fourth = self.numbers(key, 4)
        return (left, top, left + third, top + fourth) if wide else (left, top, third, fourth)


def rows_in(path: Path) -> Iterator[Row]:
    """The rows of a file, by its suffix: a list in `.json`, lines of `.jsonl`, `.csv`, `.parquet`. Raises BadInput."""
    match path.suffix.lower():
        case ".json":
            yield from _json_rows(path)
        case ".jsonl":
            yield from _json_lines(path)
        case ".csv":
            yield from _csv_rows(path)
        case ".parquet":
            yield from _parquet_rows(path)
        case suffix:
            raise BadInput(
                f"{path}: files with {suffix or 'no suffix'!r} are not read: use .json, .jsonl, .csv, .parquet"
            )


def read_json(path: Path) -> Any:
    """Raises BadInput if *path* is no JSON."""
    try:
        return json.loads(read_text(path))
    except ValueError as error:
        raise BadInput(f"{path} is not valid JSON: {error}") from None


def read_text(path: Path) -> str:
    """Raises BadInput if *path* cannot be read as UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def row_of(value: object, where: str) -> Row:
    """Raises BadInput unless *value* is an object."""
    if not isinstance(value, Mapping):
        raise BadInput(f"{where}: an object is expected, not {_short(value)}")
    return Row(cast("Mapping[str, Any]", value), where)


def _json_rows(path: Path) -> Iterator[Row]:
    values = read_json(path)
    if not isinstance(values, list):
        raise BadInput(f"{path}: a list of rows is expected")
    for number, value in enumerate(cast("list[object]", values), 1):
        yield row_of(value, f"{path.name} row {number}")


def _json_lines(path: Path) -> Iterator[Row]:
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if line.strip():
            where = f"{path.name} row {number}"
            try:
                value = json.loads(line)
            except ValueError:
                raise BadInput(f"{where}: not valid JSON") from None
            yield row_of(value, where)


def _csv_rows(path: Path) -> Iterator[Row]:
    reader = csv.DictReader(io.StringIO(read_text(path)), strict=True)
    try:
        for number, values in enumerate(reader, 1):
            where = f"{path.name} row {number}"
            if None in values or None in values.values():
                raise BadInput(f"{where}: {len(reader.fieldnames or ())} values are expected, as in the first line")
            yield Row({key: value for key, value in values.items() if value != ""}, where)
    except csv.Error as error:
        raise BadInput(f"{path}: {error}") from None


def _parquet_rows(path: Path) -> Iterator[Row]:
    if missing := missing_modules("pyarrow"):
        raise BadInput(f"parquet files need {', '.join(missing)}: {install_command('training')}")
    import pyarrow
    from pyarrow import parquet

    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_BATCH):
                for value in batch.to_pylist():
                    number += 1
                    yield Row(value, f"{path.name} row {number}")
    except (OSError, pyarrow.ArrowException) as error:
        raise BadInput(f"{path} is not a readable parquet file: {' '.join(str(error).split())[:100]}") from None


def _sequence(value: object) -> Sequence[Any] | None:
    return cast("Sequence[Any]", value) if isinstance(value, list | tuple) else None


def _short(value: object) -> str:
    shown = repr(value)
    return "nothing" if value is None else shown if len(shown) <= 60 else f"{shown[:59]}…"
