"""Recipes: the rows of the papers' tables as named configurations, `PAPER/ROW`.

Each paper has a TOML file. A row names the row that it differs from (`of`; without it the reward's own constants) and
its `settings`, the keys that the paper changes, so that two neighbours differ in exactly these. `place` and `result`
are the paper's table and its numbers; `notes` say where the paper contradicts itself (`conflict`) or leaves something
open (`choice`).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Final

from pydantic import Field

from envs.core.errors import BadInput
from envs.core.plain_values import checked, merged, read_toml
from envs.core.record import Record

HERE: Final = Path(__file__).parent
PAPERS: Final = ("ssl", "guirlvg", "adagui", "lpo")


class Stage(StrEnum):
    """The command that a row is for."""

    GRPO = "grpo"
    """`mira train grpo`"""
    SFT = "sft"
    """`mira train sft` on examples: a supervised baseline or first stage."""
    NONE = "none"
    """Nothing is trained: the start itself."""


class _Row(Record):
    """A row in a file."""

    place: str
    """Table, figure or section, and the row's name there."""
    result: Mapping[str, float] = Field(default_factory=dict[str, float])
    """The paper's numbers in percent, by benchmark; tokens where the name says so. Empty if it prints none."""
    stage: Stage = Stage.GRPO
    of: str = ""
    """The row that it differs from; empty: the reward's constants."""
    settings: Mapping[str, Any] = Field(default_factory=dict[str, Any])
    """What it changes: settings of the stage's command, by key."""
    data: Mapping[str, Any] = Field(default_factory=dict[str, Any])
    """Settings of `mira train adagui-data` for its first stage, by key."""
    notes: tuple[str, ...] = ()


class Recipe(_Row):
    """One row of a paper's table."""

    name: str
    """`PAPER/ROW`."""
    paper: str
    """Title in short."""

    @property
    def reward(self) -> str:
        """The name of its reward's entry."""
        return self.name.partition("/")[0]


class _File(Record):
    paper: str
    rows: Mapping[str, _Row]


@cache
def recipes() -> Mapping[str, Recipe]:
    """All recipes by name, paper by paper in the order of their tables."""
    return {recipe.name: recipe for paper in PAPERS for recipe in _read(paper)}


def _read(paper: str) -> tuple[Recipe, ...]:
    path = HERE / f"{paper}.toml"
    file = checked(_File, read_toml(path), str(path))
    return tuple(
        Recipe(name=f"{paper}/{name}", paper=file.paper, **dict(row.model_copy(update={"of": _full(paper, row.of)})))
        for name, row in file.rows.items()
    )


def _full(paper: str, row: str) -> str:
    return f"{paper}/{row}" if row else ""


def recipe_named(name: str) -> Recipe:
    """Returns the recipe called *name*. Raises BadInput, which lists its paper's rows."""
    known = recipes()
    if name in known:
        return known[name]
    paper = name.partition("/")[0]
    rows = [row for row in known if row.startswith(f"{paper}/")] or list(PAPERS)
    raise BadInput(f"unknown recipe {name!r}; there are {', '.join(rows)} (`mira train recipes`)")


def layered(recipe: Recipe) -> dict[str, Any]:
    """The settings of *recipe* and of the rows that it builds on, over the constants of its reward."""
    below = layered(recipe_named(recipe.of)) if recipe.of else {}
    return merged(below, recipe.settings)


def data_settings(recipe: Recipe) -> dict[str, Any]:
    """The settings of `mira train adagui-data` of *recipe* and of the rows that it builds on."""
    below = data_settings(recipe_named(recipe.of)) if recipe.of else {}
    return merged(below, recipe.data)
