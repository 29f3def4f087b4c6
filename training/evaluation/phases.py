"""Named groups of runs: the phases of a training run, or the arms of an experiment."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from agent.gathering import EpisodeFile, gather
from envs.errors import BadInput

PHASE_PARTS: Final = ("evaluation", "rollouts")
"""Folders of a phase that hold runs, the one that says most first: held-out tasks, then those that it learned from."""


class Group(NamedTuple):
    """Runs that are looked at together."""

    name: str
    files: tuple[EpisodeFile, ...]


def named(word: str, option: str) -> Group:
    """`NAME=RUN`. Raises BadInput where it is not that, or the place holds no traces."""
    name, equals, place = word.partition("=")
    if not (name and equals and place):
        raise BadInput(f"{option} {word!r}: write NAME=RUN, for example base=runs/20260101-120000-ab12")
    return Group(name, gather([Path(place)]))


def phases_of(words: Sequence[str]) -> tuple[Group, ...]:
    """The groups that `--phases` names: `NAME=RUN`, or a folder of `mira train` with a folder for each phase.

    Of a phase, the runs of its evaluation, else of its rollouts, else whatever runs it holds. Raises BadInput where a
    place holds none, or two groups have one name.
    """
    groups: list[Group] = []
    for word in words:
        place = Path(word)
        found = list(_phases_below(place)) if place.is_dir() else [named(word, "--phases")]
        if not found:
            raise BadInput(f"--phases {word!r} holds no phase with runs: give a folder of `mira train`, or NAME=RUN")
        groups += found
    names = [group.name for group in groups]
    for name in names:
        if names.count(name) > 1:
            raise BadInput(f"--phases: two groups are called {name!r}")
    return tuple(groups)


def _phases_below(place: Path) -> Iterator[Group]:
    home = place / "phases" if (place / "phases").is_dir() else place
    for folder in sorted((one for one in home.iterdir() if one.is_dir()), key=_by_number):
        for part in (*(folder / name for name in PHASE_PARTS), folder):
            files = _files(part)
            if files:
                yield Group(folder.name, files)
                break


def _files(place: Path) -> tuple[EpisodeFile, ...]:
    try:
        return gather([place])
    except BadInput:  # a phase that was not evaluated yet, or a folder beside the phases
        return ()


def _by_number(folder: Path) -> list[tuple[int, str]]:
    """`phase-10` comes after `phase-9`."""
    return [(int(digits or 0), other) for digits, other in re.findall(r"(\d+)|(\D+)", folder.name)]
