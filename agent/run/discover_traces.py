"""Finds traces on disk: in runs, in folders of imported traces, or a single file. It does not read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.run.run_store import RunFolder
from envs.core.errors import BadInput
from envs.core.trace_store import BlobStore, Trace, read_trace


@dataclass(frozen=True, slots=True)
class EpisodeFile:
    """A trace file and the folder that it belongs to: `FOLDER/episodes/ID.jsonl` with `FOLDER/blobs`."""

    path: Path

    @property
    def folder(self) -> Path:
        """Folder of the run, or the parent folder of a single file."""
        return self.path.parent.parent if self.path.parent.name == "episodes" else self.path.parent

    @property
    def blobs(self) -> BlobStore:
        return BlobStore(self.folder / "blobs")

    def read(self) -> Trace:
        """Raises TraceError."""
        return read_trace(self.path)


def discover_traces(places: Sequence[Path]) -> tuple[EpisodeFile, ...]:
    """Lists the traces in *places*, without duplicates. Each place is a run, a folder of runs, or a trace file. Traces
    of a run are in the order of the run.

    Raises BadInput naming the first place without traces.
    """
    files: dict[Path, EpisodeFile] = {}
    for place in places:
        paths = list(_paths(place))
        if not paths:
            missing = "" if place.exists() else " (it does not exist)"
            raise BadInput(
                f"{str(place)!r} holds no traces{missing}: give a run's folder, a folder of runs, or an episode's file"
            )
        files |= {path.resolve(): EpisodeFile(path) for path in paths}
    return tuple(files.values())


def _paths(place: Path) -> Iterator[Path]:
    if place.is_file():
        yield place
    elif (place / "run.json").exists():
        yield from RunFolder(place).traces()
    elif (place / "episodes").is_dir():
        yield from sorted((place / "episodes").glob("*.jsonl"))
    elif place.is_dir():
        for run in sorted(place.iterdir()):
            if (run / "episodes").is_dir():
                yield from _paths(run)
