"""A registry of named entries: built-in ones by lazy reference, and those that installed packages add.

A package adds an entry in its `pyproject.toml`, without a change here:

    [project.entry-points."mira.planners"]
    acme = "acme.planner:entry"

Entry points are looked up by name; a package is imported only when one of its entries is used. A broken or clashing
entry raises an error of one line that names the package, and only for the runs that use that name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Final, Generic, TypeVar

T = TypeVar("T")

REWARDS: Final = "mira.rewards"
"""The group of :mod:`training.grpo.rewards.registry`, named here so that lower packages can list it."""
STEP_REWARDS: Final = "mira.step_rewards"
"""The group of :mod:`training.mira.added_rewards`, named here for the same reason."""
DATA_SETS: Final = "mira.data_sets"
"""The group of :mod:`training.data_sets.registry`, named here for the same reason."""
TOOLS: Final = "mira.tools"
"""The group of :mod:`agent.episode.tools`, named here for the same reason."""
_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]*")


@dataclass(frozen=True, slots=True)
class AddedEntry:
    """An entry of an installed package, as `mira doctor` lists it."""

    group: str
    name: str
    package: str
    problem: str = ""
    """Why it cannot be used; empty if it can."""


class Registry(Generic[T]):
    """The entries of one entry-point *group*, all instances of *kind*.

    *builtin* maps names to `module:attribute`; *reserved* are other names with a meaning in the same options.
    *with_model*: names of *builtin* that are written `NAME:MODEL`.
    """

    def __init__(
        self,
        group: str,
        kind: type[T],
        builtin: Mapping[str, str],
        *,
        error: type[Exception],
        reserved: frozenset[str] = frozenset(),
        with_model: frozenset[str] = frozenset(),
    ) -> None:
        self.group = group
        self.builtin: Final = tuple(builtin)
        self._with_model = with_model
        self._kind = kind
        self._references = builtin
        self._error = error
        self._reserved = reserved | frozenset(builtin)

    @property
    def names(self) -> tuple[str, ...]:
        """All names, built-in ones first. Imports no entry."""
        added = sorted({point.name for point in added_points(self.group)} - self._reserved)
        return (*self.builtin, *added)

    @property
    def forms(self) -> tuple[str, ...]:
        """The names as they are written, for messages."""
        return tuple(f"{name}:MODEL" if name in self._with_model else name for name in self.names)

    def __contains__(self, name: str) -> bool:
        return name in self._references or self.is_added(name)

    def is_added(self, name: str) -> bool:
        """Whether an installed package adds *name*."""
        return name not in self._reserved and any(point.name == name for point in added_points(self.group))

    def load(self, name: str) -> T:
        """The entry called *name*, imported now. Raises *error*, in one line, if it is unknown, broken or clashing."""
        points = [point for point in added_points(self.group) if point.name == name]
        if problem := self._clash(name, points):
            raise self._error(problem)
        if name in self._references:
            return self.load_builtin(name)
        if not points:
            raise self._error(f"unknown {self.group} entry {name!r}: known are {', '.join(self.names)}")
        return self._loaded(points[0])

    def load_builtin(self, name: str) -> T:
        """The built-in entry called *name*, without a check for clashes."""
        module, _, attribute = self._references[name].partition(":")
        return getattr(import_module(module), attribute)

    def added(self) -> list[AddedEntry]:
        """The entries of installed packages. Imports each of them, to report what is broken."""
        return [
            AddedEntry(self.group, point.name, package_of(point), self._problem(point.name))
            for point in added_points(self.group)
        ]

    def split(self, spec: str) -> tuple[str, str]:
        """`(entry, model spec)` of a *spec* that names an entry, a model, or an entry with its model.

        `none` → `("none", "")`, `openai:m` → `("", "openai:m")`, `acme+openai:m` → `("acme", "openai:m")`, and with the
        built-in entry `orm`, which needs a model, `orm:local:dir` → `("orm", "local:dir")`.
        """
        name, _, model = spec.partition(":")
        if name in self._with_model:
            return name, model
        if spec in self:
            return spec, ""
        name, plus, model = spec.partition("+")
        return (name, model) if plus and model and self.is_added(name) else ("", spec)

    def _problem(self, name: str) -> str:
        try:
            self.load(name)
        except self._error as error:
            return str(error)
        return ""

    def _clash(self, name: str, points: list[EntryPoint]) -> str:
        if not points or (len(points) == 1 and name not in self._reserved):
            return ""
        packages = " and ".join(sorted(package_of(point) for point in points))
        other = "is also a name that Mira has" if name in self._reserved else "is added more than once"
        return f"{self.group} entry {name!r} of {packages} {other}: uninstall or rename one of them"

    def _loaded(self, point: EntryPoint) -> T:
        label = f"{self.group} entry {point.name!r} of {package_of(point)} ({point.value})"
        if not _NAME.fullmatch(point.name):
            raise self._error(f"{label} has no valid name: letters, digits, '_', '-' and '.' only")
        try:
            entry = point.load()
        except Exception as error:  # code of another package may raise anything while it is imported
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise self._error(f"{label} cannot be loaded: {reason}") from error
        if not isinstance(entry, self._kind):
            expected = f"{self._kind.__module__}.{self._kind.__qualname__}"
            raise self._error(f"{label} is of type {type(entry).__name__}, not {expected}")
        return entry


@cache
def added_points(group: str) -> tuple[EntryPoint, ...]:
    """The entry points of *group* that installed packages declare, by name. Read once a process; imports nothing."""
    return tuple(sorted(entry_points(group=group), key=lambda point: (point.name, package_of(point))))


def package_of(point: EntryPoint) -> str:
    """The distribution that declares *point*, for messages."""
    return f"package {point.dist.name}" if point.dist is not None else "an unnamed package"


def added_names(group: str) -> list[AddedEntry]:
    """The entries that installed packages add to *group*, not imported and so not checked."""
    return [AddedEntry(group, point.name, package_of(point)) for point in added_points(group)]
