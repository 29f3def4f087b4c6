"""Result files of a phase's parts: a part whose file exists is skipped when the loop is resumed."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from envs.core.atomic_write import write_atomically
from envs.core.errors import BadInput
from envs.core.record import Record
from envs.core.run_lock import LOCK_NAME, RunLock

R = TypeVar("R", bound=Record)


class RunLocation(Record):
    """The location of a phase's run, stored as `rollouts.json` or `evaluation.json`, read by :func:`run_location`."""

    run: Path
    """Relative to the file's folder if the run is below it, so that the folder may be moved; else absolute."""


def write_json(path: Path, values: Any) -> None:
    """Writes JSON atomically."""
    write_atomically(path, json.dumps(values, indent=1, ensure_ascii=False) + "\n")


def write_record(path: Path, record: Record) -> None:
    write_json(path, record.model_dump(mode="json"))


def read_record(path: Path, kind: type[R]) -> R:
    """Reads what `write_record` wrote. Raises BadInput where *path* is no such file."""
    try:
        return kind.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{str(path)!r} cannot be read: {' '.join(str(error).split())[:200]}") from error


def run_location(mark: Path) -> Path:
    """The run that the file *mark*, a :class:`RunLocation`, names. Raises BadInput."""
    return (mark.parent / read_record(mark, RunLocation).run).resolve()


def load_or_compute(path: Path, kind: type[R], compute: Callable[[], R]) -> R:
    """Reads the record at *path*; if there is none, calls *compute* and writes its result to *path*."""
    if path.exists():
        return read_record(path, kind)
    record = compute()
    write_record(path, record)
    return record


def begin_or_continue(path: Path, inputs: Record, work: str, file: Path | None = None) -> None:
    """Writes *inputs* to *path*, or compares them with those of the *work* that began in this folder, or in *file*.
    Raises BadInput, which names what differs."""
    known = load_or_compute(path, type(inputs), lambda: inputs)
    if known != inputs:
        place, other = (path.parent, "folder") if file is None else (file, "file")
        differences = ", ".join(_differences(known, inputs))
        raise BadInput(f"{str(place)!r} holds {work} with {differences}: restore this, or choose another {other}")


@contextmanager
def owning(path: Path, inputs: Record, work: str) -> Generator[None]:
    """Locks the folder of *path* during the body, and begins or continues the *work* in it. Raises RunLocked, and
    BadInput as `begin_or_continue` does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with RunLock(path.parent):
        begin_or_continue(path, inputs, work)
        yield


def check_folder(out: Path, mark: str, work: str) -> None:
    """Raises BadInput where *out* is a file, or a folder with files but without the file *mark* of earlier *work*.
    Files of work that was killed while it began, its lock and `*.part`, do not count."""
    if out.exists() and not out.is_dir():
        raise BadInput(f"{str(out)!r} is a file: name a folder")
    if (
        out.is_dir()
        and not (out / mark).is_file()
        and any(path.name != LOCK_NAME and path.suffix != ".part" for path in out.iterdir())
    ):
        raise BadInput(f"{str(out)!r} is not an empty folder and holds no {work}: name another folder")


def changed_keys(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The keys whose values differ, sorted, as `--set` names them: `optimization.epochs`."""
    changed: list[str] = []
    for key in sorted(old.keys() | new.keys()):
        before, now = old.get(key), new.get(key)
        if isinstance(before, dict) and isinstance(now, dict):
            below = changed_keys(cast("dict[str, Any]", before), cast("dict[str, Any]", now))
            changed += [f"{key}.{name}" for name in below]
        elif before != now:
            changed.append(key)
    return changed


_INPUTS: Final = {
    "start": "another start",
    "policy": "another policy",
    "judge": "another judge",
    "rows": "other rows",
    "validation": "other validation rows",
    "examples": "other examples",
    "held_out": "other held-out examples",
}
"""Names of inputs in messages. All other fields of a record of inputs are settings, by themselves or as `settings`."""


def _differences(known: Record, inputs: Record) -> list[str]:
    old, new = known.model_dump(mode="json"), inputs.model_dump(mode="json")
    found = [words for name, words in _INPUTS.items() if old.get(name) != new.get(name)]
    if keys := changed_keys(_settings(old), _settings(new)):
        found.append(f"other settings of {', '.join(keys)}")
    return found


def _settings(inputs: Mapping[str, Any]) -> dict[str, Any]:
    alone = {name: value for name, value in inputs.items() if name not in _INPUTS and name != "settings"}
    return alone | inputs.get("settings", {})
