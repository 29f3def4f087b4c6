"""The table of setting scopes has an entry for every setting and no others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from agent.config import RunConfig
from agent.run.run_store import Branch, Manifest, OpenTask
from agent.run.setting_scopes import FIELDS, PARENT, RUN_FIELDS, SUITE, URL, Scope
from envs.core.record import Record
from envs.core.trace import Header

INSIDE: dict[str, type[Record]] = {"open_task": OpenTask, "branch": Branch}
"""Optional record fields of a manifest. Their own fields are classified."""

MANIFEST_FIELDS: Final[Mapping[str, str]] = {
    "config": "RUN_FIELDS",
    "suite": SUITE,
    "open_task.url": URL,
    "branch.trace": PARENT,
    **dict.fromkeys(["manifest_version", "run_id", "created_at", "names", "seeds", "picked", "versions", "mark"], ""),
    **dict.fromkeys(["open_task.instruction", "branch.parent", "branch.heals", "branch.texts"], ""),
}
"""Fields of :class:`agent.run.run_store.Manifest` with the name under which each is classified; empty if plain."""

HEADER_FIELDS: Final[Mapping[str, str]] = {
    "config": "RUN_FIELDS",
    "task": SUITE,
    "start_url": URL,
    **dict.fromkeys(["kind", "schema_version", "run_id", "episode_id", "attempt", "instruction", "category"], ""),
    **dict.fromkeys(["reference_milestones", "versions", "started_at", "parent"], ""),
}
"""Fields of :class:`envs.core.trace.Header`, classified in the same way."""


def leaves(record: type[Record], prefix: str = "") -> Iterator[str]:
    """Dotted names of all fields, including those of nested records."""
    for name, field in record.model_fields.items():
        inner: Any = field.annotation
        if isinstance(inner, type) and issubclass(inner, Record) and name != "task":
            yield from leaves(inner, f"{prefix}{name}.")
        else:
            yield prefix + name


def without_config(record: type[Record]) -> set[str]:
    """Names of the fields of *record*, with its configuration as a single one."""
    fields = {"config" if name.startswith("config.") else name for name in leaves(record)}
    for name in fields & INSIDE.keys():
        fields = (fields - {name}) | {f"{name}.{inner}" for inner in INSIDE[name].model_fields}
    return fields


@pytest.mark.parametrize(
    ("known", "there"),
    [
        pytest.param(set(RUN_FIELDS), set(leaves(RunConfig)), id="configuration"),
        pytest.param(set(MANIFEST_FIELDS), without_config(Manifest), id="run.json"),
        pytest.param(set(HEADER_FIELDS), without_config(Header), id="header"),
    ],
)
def test_every_stored_setting_is_classified(known: set[str], there: set[str]) -> None:
    assert sorted(there - known) == [], "classify these in agent/run/setting_scopes.py, or in this file"
    assert sorted(known - there) == [], "these do not exist any more"


def test_a_new_field_would_be_missed_by_the_table() -> None:
    """Control of the test above."""

    class Wider(RunConfig):
        proxy: str = ""

    assert set(leaves(Wider)) - set(RUN_FIELDS) == {"proxy"}


def test_what_is_not_plain_has_an_option_that_gives_it_again() -> None:
    assert [name for name, field in FIELDS.items() if (field.scope is Scope.PLAIN) != (field.option == "")] == []
