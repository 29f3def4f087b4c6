"""The suites that a run can name: built-in ones, those of installed packages, and `browsergym:ENV`."""

from __future__ import annotations

from typing import Final

from envs.core.errors import BadInput
from envs.suites.browsergym import names as browsergym
from envs.suites.entry import SuiteEntry
from models.registry import Registry

SUITES: Final = Registry(
    "mira.suites",
    SuiteEntry,
    {
        "miniwob": "envs.suites.miniwob.entry:ENTRY",
        "sites": "envs.suites.sites.entry:ENTRY",
        "webarena-lite": "envs.suites.webarena.entry:LITE",
        "webarena": "envs.suites.webarena.entry:ORIGINAL",
        "webarena-verified": "envs.suites.webarena.entry:VERIFIED",
        "webarena-verified-hard": "envs.suites.webarena.entry:VERIFIED_HARD",
    },
    error=BadInput,
    reserved=frozenset({"open", browsergym.PREFIX.rstrip(":")}),
)


def known_suite(name: str) -> SuiteEntry:
    """The suite called *name*. Raises BadInput, which lists the known names, for an unknown one."""
    if name.startswith(browsergym.PREFIX):
        from envs.suites.browsergym.entry import browsergym_entry

        return browsergym_entry(name)
    if name not in SUITES:
        raise BadInput(f"unknown suite {name!r}: known are {', '.join(SUITES.names)}, {browsergym.PREFIX}ENV")
    return SUITES.load(name)
