"""Collects named groups of runs: the phases of a training run, or the arms of an experiment."""

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
"""Folders of a phase that hold runs: held-out tasks, rollouts, or the phase folder itself. All phases use the same one,
the first that any phase has, because heat maps of different tasks cannot be compared."""


_PHASE: Final = re.compile(r"phase-(\d+)")


class Group(NamedTuple):
    """Runs that are evaluated together."""

    name: str
    files: tuple[EpisodeFile, ...]
    phase: int | None = None
    """The phase of `mira train` after which they were played, 0 is the start; None without a phase folder."""
    seed: int | None = None
    """The training seed of `config.json`; None without one."""


def parse_arms(words: Sequence[str]) -> tuple[Group, ...]:
    """The groups that `--arm` names. Raises BadInput where :func:`parse_arm` does, and where the arms were evaluated
    after different phases or only at the start, so that they cannot be compared.

    A phase that is named explicitly, `NAME=FOLDER/phase-2`, may be compared with any other. All runs of one arm must
    have the same phase and different seeds. Runs without a seed get numbers above all known seeds, so that they are not
    paired by chance.
    """
    groups = [parse_arm(word) for word in words]
    latest = [
        (group.phase, word.rstrip("/"))
        for word, group in zip(words, groups, strict=True)
        if group.phase is not None and not _names_phase(word)
    ]
    for phase, word in latest:
        if not phase:
            raise BadInput(
                f"--arm {word!r}: only its start, phase 0, was evaluated: continue with `mira train mira`, or write "
                f"{word}/phase-0 to compare with the start"
            )
    if latest:
        (low, behind), (high, ahead) = min(latest), max(latest)
        if low != high:
            raise BadInput(
                f"--arm: {behind!r} was evaluated after phase {low} and {ahead!r} after phase {high}: continue with "
                f"`mira train mira`, or name the phase of each, such as {ahead}/phase-{low}"
            )
    for name in dict.fromkeys(group.name for group in groups):
        phases = {group.phase for group in groups if group.name == name}
        if len(phases) > 1:
            listed = sorted("an unknown phase" if phase is None else f"phase {phase}" for phase in phases)
            raise BadInput(f"--arm: {name!r} is of {' and '.join(listed)}: give each phase its own name")
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


def parse_arm(word: str) -> Group:
    """Parses `NAME=RUN`; of `mira train` also `NAME=FOLDER/phase-2`, its evaluation, or `NAME=FOLDER`, the last
    finished evaluation. Raises BadInput for anything else, and where no evaluation is finished."""
    name, place = _split(word, "--arm")
    if not (phases := _training_phases(place)):
        return Group(name, discover_traces([place]))
    for number, folder in sorted(phases.items(), reverse=True):
        files = _files(folder / PHASE_PARTS[0])
        if files and is_finished(files[0].folder):
            return Group(name, files, number, _seed(folder.absolute().parent / "config.json"))
    raise BadInput(f"--arm {word!r}: it has no finished evaluation: continue with `mira train mira`")


def _seed(config: Path) -> int | None:
    try:
        values: Any = json.loads(config.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise BadInput(f"{str(config)!r} cannot be read: {' '.join(str(error).split())[:200]}") from error
    seed = values.get("seed") if isinstance(values, dict) else None
    return seed if isinstance(seed, int) else None


def _names_phase(word: str) -> bool:
    return _number(_split(word, "--arm")[1]) is not None


def _training_phases(place: Path) -> dict[int, Path]:
    """The phase folders of `mira train` in *place* by number, or *place* itself if it is one; else empty."""
    folders = (place,) if _number(place) is not None or not place.is_dir() else tuple(place.iterdir())
    return {number: folder for folder in folders if (number := _number(folder)) is not None}


def _number(folder: Path) -> int | None:
    """The number of a phase folder of `mira train`, which has rollouts, an evaluation, or files with their locations;
    None for another folder."""
    match = _PHASE.fullmatch(folder.absolute().name)
    parts = (folder / part for part in PHASE_PARTS[:2])
    begun = any(part.is_dir() or part.with_suffix(".json").is_file() for part in parts)
    return int(match[1]) if match is not None and begun else None


def is_finished(run: Path) -> bool:
    """Whether all episodes of *run* are finished."""
    folder = RunFolder(run)
    if not folder.manifest.exists():
        return False
    jobs = folder.read_manifest().jobs()
    return len(folder.finished(jobs)) == len(jobs)


def parse_phases(words: Sequence[str]) -> tuple[Group, ...]:
    """The groups that `--phases` names: `NAME=RUN`, or a folder of `mira train` with a folder for each phase.

    Takes the evaluations of the phases; without any the rollouts, else the runs that they hold. Raises BadInput where a
    folder has no runs, or two groups have the same name.
    """
    groups: list[Group] = []
    for word in words:
        if Path(word).is_dir():
            named = _phases_below(Path(word), PHASE_PARTS)
        else:
            name, place = _split(word, "--phases")
            named = [Group(name, discover_traces([place]))]
        if not named:
            raise BadInput(f"--phases {word!r} holds no phase with runs: give a folder of `mira train`, or NAME=RUN")
        groups += named
    names = [group.name for group in groups]
    for name in names:
        if names.count(name) > 1:
            raise BadInput(f"--phases: two groups have the name {name!r}")
    return tuple(groups)


def _split(word: str, option: str) -> tuple[str, Path]:
    name, equals, place = word.partition("=")
    if not (name and equals and place):
        raise BadInput(f"{option} {word!r}: write NAME=RUN, for example base=runs/20260101-120000-ab12")
    return name, Path(place)


def _phases_below(place: Path, parts: Sequence[str]) -> list[Group]:
    if not place.is_dir():
        return []
    folders = sorted((path for path in place.iterdir() if path.is_dir()), key=_by_number)
    for part in parts:
        groups = [Group(path.name, files, _number(path)) for path in folders if (files := _files(path / part))]
        if groups:
            return groups
    return []


def _files(place: Path) -> tuple[EpisodeFile, ...]:
    """The episodes of the run at *place*, or of the shared run that its location file names."""
    mark = place.with_suffix(".json")
    try:
        return discover_traces([place if place.is_dir() or not mark.is_file() else run_location(mark)])
    except BadInput:  # a phase that was not evaluated yet, or a folder beside the phases
        return ()


def _by_number(folder: Path) -> list[tuple[int, str]]:
    """Natural sort key: `phase-10` comes after `phase-9`."""
    return [(int(digits or 0), other) for digits, other in re.findall(r"(\d+)|(\D+)", folder.name)]
