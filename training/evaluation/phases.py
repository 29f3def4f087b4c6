"""Named groups of runs: the phases of a training run, or the arms of an experiment."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from agent.gathering import EpisodeFile, gather
from agent.run_store import RunFolder
from envs.errors import BadInput
from training.loop.parts import place_of

PHASE_PARTS: Final = ("evaluation", "rollouts", ".")
"""Folders of a phase that hold runs: held-out tasks, those that it learned from, or the phase is a run itself. One of
them for all phases, the first that any has: maps of different tasks do not belong beside each other."""


class Group(NamedTuple):
    """Runs that are looked at together."""

    name: str
    files: tuple[EpisodeFile, ...]


def arm_of(word: str) -> Group:
    """`NAME=RUN`, or `NAME=FOLDER` of `mira train`: its last whole evaluation. Raises BadInput where it is neither."""
    name, place = _split(word, "--arm")
    evaluations = [one for one in _phases_below(place, PHASE_PARTS[:1]) if is_whole(one.files[0].folder)]
    return Group(name, evaluations[-1].files if evaluations else gather([place]))


def is_whole(run: Path) -> bool:
    """Whether *run* was played to its end: one under way has told of some tasks and not of others."""
    folder = RunFolder(run)
    if not folder.manifest.exists():
        return False
    jobs = folder.read_manifest().jobs()
    return len(folder.finished(jobs)) == len(jobs)


def phases_of(words: Sequence[str]) -> tuple[Group, ...]:
    """The groups that `--phases` names: `NAME=RUN`, or a folder of `mira train` with a folder for each phase.

    Of its phases the evaluations; where none was evaluated the rollouts, else whatever runs they hold. Raises BadInput
    where a place holds none, or two groups have one name.
    """
    groups: list[Group] = []
    for word in words:
        if Path(word).is_dir():
            found = _phases_below(Path(word), PHASE_PARTS)
        else:
            name, place = _split(word, "--phases")
            found = [Group(name, gather([place]))]
        if not found:
            raise BadInput(f"--phases {word!r} holds no phase with runs: give a folder of `mira train`, or NAME=RUN")
        groups += found
    names = [group.name for group in groups]
    for name in names:
        if names.count(name) > 1:
            raise BadInput(f"--phases: two groups are called {name!r}")
    return tuple(groups)


def _split(word: str, option: str) -> tuple[str, Path]:
    name, equals, place = word.partition("=")
    if not (name and equals and place):
        raise BadInput(f"{option} {word!r}: write NAME=RUN, for example base=runs/20260101-120000-ab12")
    return name, Path(place)


def _phases_below(place: Path, parts: Sequence[str]) -> list[Group]:
    if not place.is_dir():
        return []
    folders = sorted((one for one in place.iterdir() if one.is_dir()), key=_by_number)
    for part in parts:
        groups = [Group(folder.name, files) for folder in folders if (files := _files(folder / part))]
        if groups:
            return groups
    return []


def _files(place: Path) -> tuple[EpisodeFile, ...]:
    """The runs at *place*, or where its mark says that arms share them."""
    mark = place.with_suffix(".json")
    try:
        return gather([place if place.is_dir() or not mark.is_file() else place_of(mark)])
    except BadInput:  # a phase that was not evaluated yet, or a folder beside the phases
        return ()


def _by_number(folder: Path) -> list[tuple[int, str]]:
    """`phase-10` comes after `phase-9`."""
    return [(int(digits or 0), other) for digits, other in re.findall(r"(\d+)|(\D+)", folder.name)]
