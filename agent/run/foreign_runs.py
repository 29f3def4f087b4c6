"""Checks which settings of a foreign run or trace may be used on this machine.

A foreign run is one that this machine did not write: its mark does not match (:mod:`envs.core.local_key`). Its
configuration can name secrets of this machine, a folder to upload from, and servers to send to. So the user must give
again, or leave out, every setting that :mod:`agent.run.setting_scopes` does not classify as plain. Plain settings are
taken from the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any, Final, Literal

from agent.config import RunConfig, parse_config
from agent.run.setting_scopes import FIELDS, HARMLESS_SPECS, PARENT, PLACE_FIELDS, RUN_FIELDS, SUITE, URL, Scope
from agent.run.suites import SUITES
from envs.core.errors import BadInput
from envs.suites.browsergym.names import PREFIX
from envs.suites.webarena.files import SUITE_NAMES

_SHOWN: Final = 120
"""Characters of a value in a message; longer values are cut."""
_DEFAULTS: Final = RunConfig().resolved()

OwnRule = Literal["refuse", "keep", "replace"]
"""Rule for a value that was given again for a run of this machine and differs from the run's: raise an error, keep the
run's value, or replace it."""


@dataclass(frozen=True, slots=True)
class ForeignField:
    """One setting that is not taken from a foreign run."""

    name: str
    """Dotted name, as in :data:`agent.run.setting_scopes.FIELDS`."""
    values: tuple[str, ...]
    """Values in the run, each cut to a maximum length."""
    option: str
    """Command-line option that sets it again."""

    def __str__(self) -> str:
        if self.option.endswith("FILE"):
            return f"{self.option} with {self.name} = {', '.join(self.values)}"
        if self.values == ("True",):
            return self.option
        space = "" if self.option.endswith("=") else " "
        return " ".join(f"{self.option}{space}{quote(value)}" for value in self.values)


class ForeignRun(BadInput):
    """Raised for a foreign run or trace with settings that were not given again."""

    def __init__(self, place: str, fields: Sequence[ForeignField]) -> None:
        self.place = place
        self.fields = tuple(fields)
        optional = ",".join(field.name for field in fields if field.name in RUN_FIELDS)
        without = f", and leave the rest out (--without {optional} leaves out all that can be)" if optional else ""
        super().__init__(
            f"{place} was not written on this machine, or was changed since: settings that read from this machine or "
            f"name a server are not taken from it. It requests {'; '.join(map(str, fields))}: give again those you want"
            f"{without}"
        )


@dataclass(frozen=True, slots=True)
class Recorded:
    """The settings that a run or a trace requests."""

    place: str
    """Folder or file of the run, for messages."""
    own: bool
    """Whether this machine wrote it."""
    config: RunConfig
    suite: str
    url: str | None = None
    """Start address of its open task; None for other suites."""
    parent: Path | None = None
    """Trace that it branches from."""

    @property
    def requested(self) -> dict[str, Any]:
        """Values that are neither plain nor defaults, by name."""
        values = self.config.resolved()
        settings = {name: _value(values, name) for name in RUN_FIELDS}
        sensitive = {name: value for name, value in settings.items() if _is_sensitive(name, value)}
        suite = self.suite if needs_machine(self.suite) else None
        places = {URL: self.url, SUITE: suite, PARENT: None if self.parent is None else str(self.parent)}
        return {name: value for name, value in places.items() if value is not None} | sensitive


def needs_machine(suite: str) -> bool:
    """Whether a suite uses servers that this machine's environment names, or runs code of its user or a package."""
    return suite in SUITE_NAMES or suite.startswith(PREFIX) or SUITES.is_added(suite)


@dataclass(frozen=True, slots=True)
class GrantedRun:
    """The settings that a recorded run may use."""

    config: RunConfig
    url: str | None
    parent: Path | None
    given: tuple[str, ...]
    """For a foreign run: the settings that are used because they were given again, one line each."""


def apply_grants(run: Recorded, given: Mapping[str, Any], own_rule: OwnRule = "refuse") -> GrantedRun:
    """Returns the configuration that *run* may use. For a foreign run, settings that are not plain come from *given*.

    *given* holds plain values under the names of a configuration (`{"secrets": […], "session": {"allow": […]}}`), and
    `url`, `suite` and `parent`. None, False or an empty list leaves a setting out. Plain settings in it are ignored.
    Raises ForeignRun naming all missing settings, and BadInput for a different suite. For a run of this machine,
    *own_rule* says what happens to a value that differs from the run's.
    """
    requested, flat = run.requested, _sensitive(given)
    if run.own:
        return _own(run, requested, flat, own_rule)
    missing = [name for name in requested if name not in flat or (name in PLACE_FIELDS and flat[name] is None)]
    if missing:
        raise ForeignRun(run.place, [_field(name, requested[name]) for name in missing])
    _check_suite(run, flat)
    config = _config(run, {name: value for name, value in flat.items() if name in RUN_FIELDS})
    used = replace(run, config=config, url=_url(run, flat), parent=_parent(run, flat))
    lines = tuple(str(_field(name, value)) for name, value in used.requested.items())
    return GrantedRun(config, used.url, used.parent, lines)


def unset_value(name: str) -> Any:
    """Returns the value that leaves out the setting *name*. Raises BadInput if it cannot be left out."""
    known = [key for key, field in RUN_FIELDS.items() if field.scope is not Scope.PLAIN]
    last_parts = {key: key.rpartition(".")[2] for key in known}
    matches = [key for key, last in last_parts.items() if name in (key, last, last.replace("_", "-"))]
    if len(matches) != 1:
        raise BadInput(f"--without {name!r}: known are {', '.join(known)}")
    return _nested(matches[0], _value(_DEFAULTS, matches[0]))


def _own(run: Recorded, requested: Mapping[str, Any], flat: Mapping[str, Any], own_rule: OwnRule) -> GrantedRun:
    values = {name: _value(run.config.resolved(), name) for name in RUN_FIELDS} | {SUITE: run.suite} | dict(requested)
    for name, value in flat.items():
        kept = own_rule == "keep" or (own_rule == "replace" and name in RUN_FIELDS)
        if not kept and _plain_value(value) != _plain_value(values.get(name)):
            raise BadInput(
                f"{run.place} was written on this machine and continues with its own settings: {_remedy(name)}"
            )
    replaced = {name: value for name, value in flat.items() if own_rule == "replace" and name in RUN_FIELDS}
    config = _config(run, replaced) if replaced else run.config
    return GrantedRun(config, run.url, run.parent, ())


def _remedy(name: str) -> str:
    """What to do about a value that an own run does not take. Models and their server are changed by their options."""
    scope, option = FIELDS[name]
    if (scope is Scope.MODEL or name.endswith("base_url")) and not option.endswith("FILE"):
        return f"only {option} changes {name}, not --config or --without"
    return f"leave out {option} ({name})"


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


def _is_sensitive(name: str, value: Any) -> bool:
    """Whether *value* lets the run use something of this machine or a server that a default run does not use."""
    if name == "answer_schema" and isinstance(value, Mapping):
        return False  # the schema itself, not a file of this machine
    match RUN_FIELDS[name].scope:
        case Scope.PLAIN:
            return False
        case Scope.MODEL:
            return value is not None and value not in HARMLESS_SPECS
        case _:
            return bool(value) and value != _value(_DEFAULTS, name)


def _field(name: str, value: Any) -> ForeignField:
    texts: list[str] = [str(item) for item in value] if isinstance(value, list | tuple) else [str(value)]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    shown = tuple(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…" for text in texts)
    return ForeignField(name, shown, FIELDS[name].option)


def _sensitive(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values of *given* that are not plain, by dotted name."""
    sensitive: dict[str, Any] = {}
    for name, field in FIELDS.items():
        outer, _, inner = name.rpartition(".")
        table: Any = given.get(outer, {}) if outer else given
        if field.scope is not Scope.PLAIN and isinstance(table, Mapping) and inner in table:
            sensitive[name] = table[inner]
    if (schema := sensitive.get("answer_schema")) is not None:  # as it is stored, so that the two can be compared
        sensitive["answer_schema"] = parse_config({"answer_schema": schema}, "granted settings").answer_schema
    return sensitive


def _value(values: Mapping[str, Any], name: str) -> Any:
    value: Any = values
    for part in name.split("."):
        value = value[part]
    return value


def _replace(values: dict[str, Any], name: str, value: Any) -> None:
    """Replaces a setting completely; no part of a table of the run stays."""
    *tables, last = name.split(".")
    for table in tables:
        values = values[table]
    values[last] = value


def _nested(name: str, value: Any) -> dict[str, Any]:
    for part in reversed(name.split(".")):
        value = {part: value}
    return value


def _plain_value(value: Any) -> Any:
    """Normalizes a value, so that a typed value can be compared with a stored one."""
    if isinstance(value, list | tuple):
        return [_plain_value(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return str(value) if isinstance(value, Path) else (value or None)
