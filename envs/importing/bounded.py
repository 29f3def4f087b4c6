"""Imports a folder of foreign logs in a process of its own, with bounds on memory and on time for each episode.

Foreign files can be made so that reading them takes for ever or more memory than there is (patterns that backtrack,
pickles that unfold). The bounds of a process hold whatever the cause is.
"""

from __future__ import annotations

import json
import resource
import selectors
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, Literal, cast

from envs.core.disk_errors import writing
from envs.core.errors import BadInput, NotWritten
from envs.importing.agentlab import read_agentlab
from envs.importing.episodes import ForeignEpisode, write_episodes
from envs.importing.webarena import read_webarena

Format = Literal["webarena", "agentlab"]
READERS: Final[Mapping[Format, Callable[[Path], Iterator[ForeignEpisode]]]] = {
    "webarena": read_webarena,
    "agentlab": read_agentlab,
}


@dataclass(frozen=True, slots=True)
class ImportBounds:
    episode_s: float = 120.0
    """Seconds from one written trace to the next."""
    memory_bytes: int = 4 * 1024**3
    """Address space of the importing process."""


def import_folder(kind: Format, where: Path, out: Path, bounds: ImportBounds | None = None) -> Iterator[Path]:
    """Writes traces of the logs below *where* to *out* and yields each path as it is done.

    Raises BadInput, in one line, for what cannot be read, and where a bound is met, NotWritten where the disk is full;
    traces that were written before stay.
    """
    bounds = bounds or ImportBounds()
    command = [sys.executable, "-m", "envs.importing", kind, str(where), str(out), str(bounds.memory_bytes)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            for message in _messages(process, bounds):
                if "error" in message:
                    raise BadInput(message["error"])
                if "not_written" in message:
                    raise NotWritten(Path(message["not_written"]), message["why"])
                yield Path(message["path"])
        finally:
            process.kill()
    if process.returncode not in (0, -9):
        raise BadInput(f"{where}: the import ended unexpectedly (exit {process.returncode})")


def _messages(process: subprocess.Popen[str], bounds: ImportBounds) -> Iterator[dict[str, str]]:
    output = cast("IO[str]", process.stdout)
    with selectors.DefaultSelector() as selector:
        selector.register(output, selectors.EVENT_READ)
        while True:
            if not selector.select(bounds.episode_s):
                raise BadInput(f"an episode took more than {bounds.episode_s:g} s to read: its log is damaged")
            line = output.readline()
            if not line:
                process.wait()
                return
            yield json.loads(line)


def serve(arguments: list[str]) -> int:
    """The body of the importing process: one JSON object a line, `path` of a written trace or `error`."""
    kind, where, out = cast("Format", arguments[0]), Path(arguments[1]), Path(arguments[2])
    limit = int(arguments[3])
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        for path in _written(write_episodes(READERS[kind](where), out), out):
            _send(path=str(path))
    except BadInput as error:
        _send(error=str(error))
    except NotWritten as error:
        _send(not_written=str(error.path), why=error.why)
    except MemoryError:
        _send(error=f"{where}: reading it takes more than {limit // 2**20} MiB of memory: a log is damaged")
    except Exception as error:  # noqa: BLE001
        # The boundary of foreign data: whatever a damaged log can raise becomes the one line that names it.
        _send(error=f"{where}: a log cannot be read: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
    return 0


def _written(paths: Iterator[Path], out: Path) -> Iterator[Path]:
    """*paths*, of which each is written when it is asked for."""
    with writing(out):
        yield from paths


def _send(**message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()
