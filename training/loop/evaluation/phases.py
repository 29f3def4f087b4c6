"""Named groups of runs: the phases of a training run, or the arms of an experiment."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from agent.run.discover_traces import EpisodeFile, discover_traces
from agent.run.run_store import RunFolder
from envs.core.errors import BadInput
from training.loop.parts import run_location

PHASE_PARTS: Final = ("evaluation", "rollouts", ".")
"""Folders of a phase that hold runs: held-out tasks, those that it learned from, or the phase is a run itself. One of
them for all phases, the first that any has: maps of different tasks do not belong beside each other."""


_PHASE: Final = re.compile(r"phase-(\d+)")


class Group(NamedTuple):
    """Runs that are looked at together."""

    name: str
    files: tuple[EpisodeFile, ...]
    phase: int | None = None
    """The phase of `mira train` after which they were played, 0 the start; None where no folder says it."""
    seed: int | None = None
    """Of training, as its `config.json` has it; None where there is none."""


def arms_of(words: Sequence[str]) -> tuple[Group, ...]:
    """The groups that `--arm` names. Raises BadInput where a word is not what :func:`arm_of` reads, and where arms that
    are to be compared were not trained as long as each other: what is at the start, or behind, is no result of its arm.

    A phase that is named, `NAME=FOLDER/phase-2`, may be compared with any other; one arm is of one phase, and has a
    seed once. Those that have none get numbers in their order, beyond all that are known: arms that are paired by seed
    must not be so by chance.
    """
    groups = [arm_of(word) for word in words]
    latest = [
        (group.phase, word.rstrip("/"))
        for word, group in zip(words, groups, strict=True)
        if group.phase is not None and not _names_phase(word)
    ]
    for phase, word in latest:
        if not phase:
            raise BadInput(
                f"--arm {word!r}: nothing but its start was measured, phase 0: go on with `mira train mira`, or write "
                f"{word}/phase-0 to compare with the start"
            )
    if latest:
        (low, behind), (high, ahead) = min(latest), max(latest)
        if low != high:
            raise BadInput(
                f"--arm: {behind!r} was measured after phase {low} and {ahead!r} after phase {high}: go on with `mira "
                f"train mira`, or name the phase of each, such as {ahead}/phase-{low}"
            )
    for name in dict.fromkeys(group.name for group in groups):
        phases = {group.phase for group in groups if group.name == name}
        if len(phases) > 1:
            told = " and ".join(sorted("an unknown phase" if one is None else f"phase {one}" for one in phases))
            raise BadInput(f"--arm: {name!r} is of {told}: give each phase a name of its own")
    return tuple(_with_seeds(groups))


def _with_seeds(groups: Sequence[Group]) -> Iterator[Group]:
    free = max((group.seed for group in groups if group.seed is not None), default=-1) + 1
    taken: set[tuple[str, int]] = set()
    numbered: Counter[str] = Counter()
    for group in groups:
        seed = free + numbered[group.name] if group.seed is None else group.seed
        numbered[group.name] += group.seed is None
        if (group.name, seed) in taken:
            raise BadInput(f"--arm: two runs of {group.name!r} have the seed {seed}: give one of them another name")
        taken.add((group.name, seed))
        yield group._replace(seed=seed)


def arm_of(word: str) -> Group:
    """`NAME=RUN`, or of `mira train` `NAME=FOLDER/phase-2`, its evaluation, or `NAME=FOLDER`, the last phase's that is
    whole. Raises BadInput where it is neither, or no evaluation is whole."""
    name, place = _split(word, "--arm")
    if not (phases := _training_phases(place)):
        return Group(name, discover_traces([place]))
    for number, folder in sorted(phases.items(), reverse=True):
        files = _files(folder / PHASE_PARTS[0])
        if files and is_whole(files[0].folder):
            return Group(name, files, number, _seed(folder.absolute().parent / "config.json"))
    raise BadInput(f"--arm {word!r}: no evaluation of it was played to its end: go on with `mira train mira`")


def _seed(config: Path) -> int | None:
    try:
        told: Any = json.loads(config.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise BadInput(f"{str(config)!r} cannot be read: {' '.join(str(error).split())[:200]}") from error
    seed = told.get("seed") if isinstance(told, dict) else None
    return seed if isinstance(seed, int) else None


def _names_phase(word: str) -> bool:
    return _number(_split(word, "--arm")[1]) is not None


def _training_phases(place: Path) -> dict[int, Path]:
    """By number the phases of `mira train` in *place*, or the one that it is; none where it is something else."""
    folders = (place,) if _number(place) is not None or not place.is_dir() else tuple(place.iterdir())
    return {number: folder for folder in folders if (number := _number(folder)) is not None}


def _number(folder: Path) -> int | None:
    """Of a phase of `mira train`: it has rollouts, an evaluation, or marks that say where they are."""
    found = _PHASE.fullmatch(folder.absolute().name)
    parts = (folder / part for part in PHASE_PARTS[:2])
    begun = any(part.is_dir() or part.with_suffix(".json").is_file() for part in parts)
    return int(found[1]) if found is not None and begun else None


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
            found = [Group(name, discover_traces([place]))]
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
        groups = [Group(one.name, files, _number(one)) for one in folders if (files := _files(one / part))]
        if groups:
            return groups
    return []


def _files(place: Path) -> tuple[EpisodeFile, ...]:
    """The runs at *place*, or where its mark says that arms share them."""
    mark = place.with_suffix(".json")
    try:
        return discover_traces([place if place.is_dir() or not mark.is_file() else run_location(mark)])
    except BadInput:  # a phase that was not evaluated yet, or a folder beside the phases
        return ()


def _by_number(folder: Path) -> list[tuple[int, str]]:
    """`phase-10` comes after `phase-9`."""
    return [(int(digits or 0), other) for digits, other in re.findall(r"(\d+)|(\D+)", folder.name)]
