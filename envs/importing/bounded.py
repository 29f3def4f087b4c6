"""Imports a folder of foreign logs in a separate process, with limits on memory and on the time for each episode.

Reading a foreign file can take unlimited time or memory (backtracking patterns, expanding pickles). The limits of a
process hold for every cause.
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
    """Address space of the import process."""


def import_folder(kind: Format, source: Path, out: Path, bounds: ImportBounds | None = None) -> Iterator[Path]:
    """Writes traces of the logs below *source* to *out* and yields the path of each.

    Raises BadInput with one line if a log cannot be read or a limit is reached, NotWritten if the disk is full. Traces
    written before are kept.
    """
    bounds = bounds or ImportBounds()
    command = [sys.executable, "-m", "envs.importing", kind, str(source), str(out), str(bounds.memory_bytes)]
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
        raise BadInput(f"{source}: the import ended unexpectedly (exit {process.returncode})")


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
    """Runs the import process. It prints one JSON object per line: `path` of a written trace, or `error`."""
    kind, source, out = cast("Format", arguments[0]), Path(arguments[1]), Path(arguments[2])
    limit = int(arguments[3])
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        for path in _written(write_episodes(READERS[kind](source), out), out):
            _send(path=str(path))
    except BadInput as error:
        _send(error=str(error))
    except NotWritten as error:
        _send(not_written=str(error.path), why=error.why)
    except MemoryError:
        _send(error=f"{source}: reading it takes more than {limit // 2**20} MiB of memory: a log is damaged")
    except Exception as error:  # noqa: BLE001
        # A damaged log can raise any exception: report it in one line.
        _send(error=f"{source}: a log cannot be read: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
    return 0


def _written(paths: Iterator[Path], out: Path) -> Iterator[Path]:
    """Yields *paths*; each trace is written when its path is requested."""
    with writing(out):
        yield from paths


def _send(**message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()
