"""Runs and traces that this machine did not write: what they would use here, and what is taken of it.

A run folder of another person is configuration: it can name secrets of this machine, a folder to upload from, servers
to send to. So where its mark does not fit (:mod:`envs.core.local_key`), every setting that
:mod:`agent.run.setting_scopes` does not call plain must be given again, or left out, by whoever starts it. Plain
settings stay the run's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any, Final, Literal

from agent.config import RunConfig, parse_config
from agent.run.setting_scopes import FIELDS, HARMLESS_SPECS, PARENT, PLACE_FIELDS, RUN_FIELDS, SUITE, URL, Reach
from agent.run.suites import SUITES
from envs.core.errors import BadInput
from envs.suites.browsergym.names import PREFIX
from envs.suites.webarena.files import SUITE_NAMES

_SHOWN: Final = 120
"""Characters of a value that a message shows."""
_DEFAULTS: Final = RunConfig().resolved()

OwnRule = Literal["refuse", "keep", "replace"]
"""What becomes of a value that was given again for a run of this machine, and is another one than the run's: an error,
it is passed over, or it replaces the run's."""


@dataclass(frozen=True, slots=True)
class ForeignField:
    """One setting that is not taken from a run of another machine."""

    name: str
    """Dotted, as in :data:`agent.run.setting_scopes.FIELDS`."""
    values: tuple[str, ...]
    """What the run says, each cut to some length."""
    option: str
    """Command-line option that gives it again."""

    def __str__(self) -> str:
        if self.option.endswith("FILE"):
            return f"{self.option} with {self.name} = {', '.join(self.values)}"
        return (
            self.option if self.values == ("True",) else " ".join(f"{self.option} {quote(one)}" for one in self.values)
        )


class ForeignRun(BadInput):
    """A run or trace that this machine did not write names something that was not given again."""

    def __init__(self, place: str, fields: Sequence[ForeignField]) -> None:
        self.place = place
        self.fields = tuple(fields)
        left = ",".join(field.name for field in fields if field.name in RUN_FIELDS)
        leave = f", and leave the rest out (--without {left} leaves out all that can be)" if left else ""
        super().__init__(
            f"{place} was not written on this machine, or was changed since: what reads from this machine or names a "
            f"server is not taken from it. It asks for {'; '.join(map(str, fields))}: give again what you want of this"
            f"{leave}"
        )


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a run or a trace asks for."""

    place: str
    """For messages: its folder or file."""
    own: bool
    """This machine wrote it."""
    config: RunConfig
    suite: str
    url: str | None = None
    """Where its open task starts; None for other suites."""
    parent: Path | None = None
    """The trace that its branch began in."""

    @property
    def asked(self) -> dict[str, Any]:
        """By name, the values that are not plain and are not what they would be by default."""
        values = self.config.resolved()
        found = {name: _value(values, name) for name in RUN_FIELDS}
        kept = {name: value for name, value in found.items() if _reaches(name, value)}
        suite = self.suite if acts_beyond(self.suite) else None
        places = {URL: self.url, SUITE: suite, PARENT: None if self.parent is None else str(self.parent)}
        return {name: value for name, value in places.items() if value is not None} | kept


def acts_beyond(suite: str) -> bool:
    """Whether a suite acts on servers that this machine's environment names, or runs code of its user or a package."""
    return suite in SUITE_NAMES or suite.startswith(PREFIX) or SUITES.is_added(suite)


@dataclass(frozen=True, slots=True)
class Settled:
    """What a recorded run may use."""

    config: RunConfig
    url: str | None
    parent: Path | None
    given: tuple[str, ...]
    """Where it was not written here: what is used although it is not plain, as it was given again, one line each."""


def settle(run: Recorded, given: Mapping[str, Any], own_rule: OwnRule = "refuse") -> Settled:
    """*run*'s configuration, with what was *given* again where this machine did not write it.

    *given* holds plain values under the names of a configuration (`{"secrets": […], "session": {"allow": […]}}`), and
    `url`, `suite` and `parent`; None, False or an empty list leaves a setting of the configuration out. Plain settings
    are passed over. Raises ForeignRun naming all that is missing; BadInput for a suite that is another one and, by
    *own_rule*, for a value that differs from the one of a run that was written here.
    """
    asked, flat = run.asked, _sensitive(given)
    if run.own:
        return _own(run, asked, flat, own_rule)
    missing = [name for name in asked if name not in flat or (name in PLACE_FIELDS and flat[name] is None)]
    if missing:
        raise ForeignRun(run.place, [_field(name, asked[name]) for name in missing])
    _check_suite(run, flat)
    config = _config(run, {name: value for name, value in flat.items() if name in RUN_FIELDS})
    used = replace(run, config=config, url=_url(run, flat), parent=_parent(run, flat))
    lines = tuple(str(_field(name, value)) for name, value in used.asked.items())
    return Settled(config, used.url, used.parent, lines)


def nothing(name: str) -> Any:
    """The value by which the setting *name* is left out. Raises BadInput for a name that cannot be."""
    known = {name: field for name, field in RUN_FIELDS.items() if field.reach is not Reach.PLAIN}
    found = [one for one in known if name in (one, one.rpartition(".")[2], one.rpartition(".")[2].replace("_", "-"))]
    if len(found) != 1:
        raise BadInput(f"--without {name!r}: known are {', '.join(known)}")
    return _nested(found[0], _value(_DEFAULTS, found[0]))


def _own(run: Recorded, asked: Mapping[str, Any], flat: Mapping[str, Any], own_rule: OwnRule) -> Settled:
    values = {name: _value(run.config.resolved(), name) for name in RUN_FIELDS} | {SUITE: run.suite} | dict(asked)
    for name, value in flat.items():
        kept = own_rule == "keep" or (own_rule == "replace" and name in RUN_FIELDS)
        if not kept and _plain_value(value) != _plain_value(values.get(name)):
            raise BadInput(
                f"{run.place} was written on this machine and continues with its own settings: leave out "
                f"{FIELDS[name].option} ({name})"
            )
    replaced = {name: value for name, value in flat.items() if own_rule == "replace" and name in RUN_FIELDS}
    config = _config(run, replaced) if replaced else run.config
    return Settled(config, run.url, run.parent, ())


def _config(run: Recorded, flat: Mapping[str, Any]) -> RunConfig:
    values = run.config.resolved()
    for name, value in flat.items():
        _replace(values, name, value)
    return parse_config(values, run.place)


def _check_suite(run: Recorded, flat: Mapping[str, Any]) -> None:
    if SUITE in flat and flat[SUITE] != run.suite:
        raise BadInput(f"--suite {flat[SUITE]!r}: {run.place} is of the suite {run.suite!r}")


def _url(run: Recorded, flat: Mapping[str, Any]) -> str | None:
    if run.url is None and flat.get(URL) is not None:
        raise BadInput(f"--url: {run.place} is of the suite {run.suite!r}, which has its own start")
    return str(flat[URL]) if run.url is not None else None


def _parent(run: Recorded, flat: Mapping[str, Any]) -> Path | None:
    return Path(flat[PARENT]).absolute() if run.parent is not None and flat.get(PARENT) is not None else None


def _reaches(name: str, value: Any) -> bool:
    """Whether *value* does anything beyond what a run without it does."""
    match RUN_FIELDS[name].reach:
        case Reach.PLAIN:
            return False
        case Reach.MODEL:
            return value not in HARMLESS_SPECS
        case _:
            return bool(value) and value != _value(_DEFAULTS, name)


def _field(name: str, value: Any) -> ForeignField:
    texts: list[str] = [str(one) for one in value] if isinstance(value, list | tuple) else [str(value)]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    shown = tuple(one if len(one) <= _SHOWN else f"{one[:_SHOWN]}…" for one in texts)
    return ForeignField(name, shown, FIELDS[name].option)


def _sensitive(given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of *given* that are not plain, by dotted name."""
    found: dict[str, Any] = {}
    for name, field in FIELDS.items():
        outer, _, inner = name.rpartition(".")
        table: Any = given.get(outer, {}) if outer else given
        if field.reach is not Reach.PLAIN and isinstance(table, Mapping) and inner in table:
            found[name] = table[inner]
    return found


def _value(values: Mapping[str, Any], name: str) -> Any:
    found: Any = values
    for part in name.split("."):
        found = found[part]
    return found


def _replace(values: dict[str, Any], name: str, value: Any) -> None:
    """As a whole: no part of a table of the run's stays."""
    *tables, last = name.split(".")
    for table in tables:
        values = values[table]
    values[last] = value


def _nested(name: str, value: Any) -> dict[str, Any]:
    for part in reversed(name.split(".")):
        value = {part: value}
    return value


def _plain_value(value: Any) -> Any:
    """For a comparison of what was typed with what was stored."""
    if isinstance(value, list | tuple):
        return [_plain_value(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
    return str(value) if isinstance(value, Path) else (value or None)
