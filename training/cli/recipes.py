"""`mira train recipes`, and the option `--recipe` of the commands that take one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from agent.cli.options import Wide
from agent.cli.output import EXIT_OK, print_json, print_table, stdout
from agent.cli.tables import Column, FittedTable
from training.cli.messages import AsJson
from training.engine.settings import NONE
from training.grpo.recipes import PAPERS, Recipe, Stage, data_settings, recipe_named, recipes

RecipeName = Annotated[
    str | None,
    typer.Option(
        "--recipe",
        help="A reward, or a row of a paper's table, e.g. guirlvg/in-box; `mira train recipes` lists them; default: "
        "ssl, for `mira train sft` none.",
    ),
]


def with_recipe(recipe: str | None, changes: Sequence[str] | None) -> tuple[str, ...]:
    """The changes of `--set`, preceded by that of `--recipe`."""
    return (*(() if recipe is None else (f"recipe={recipe}",)), *(changes or ()))


def show_recipes(
    name: Annotated[
        str | None, typer.Argument(help="A paper (ssl, guirlvg, adagui, lpo) or a recipe.", metavar="NAME")
    ] = None,
    wide: Wide = False,
    as_json: AsJson = False,
) -> int:
    """List the recipes: the rows of the papers' tables, with the papers' numbers; or show one in full."""
    if name is None or name in PAPERS:
        _list([row for row in recipes().values() if name in (None, row.reward)], as_json=as_json)
    else:
        _show(recipe_named(name), as_json=as_json)
    return EXIT_OK


def _list(rows: Sequence[Recipe], *, as_json: bool) -> None:
    if as_json:
        print_json([row.model_dump(mode="json") for row in rows])
        return
    columns = (
        Column("recipe"),
        Column("in the paper", wrap=16),
        Column("differs\nfrom", drop=1),
        Column("in", wrap=24),
        Column("paper's result", wrap=12),
    )
    table = FittedTable(*columns, title="recipes")
    for row in rows:
        table.row(row.name, row.place, row.of.partition("/")[2], _changes(row), _result(row))
    print_table(table)


def _show(row: Recipe, *, as_json: bool) -> None:
    settings = _all_settings(row)
    if as_json:
        print_json({**row.model_dump(mode="json"), "all": {"settings": settings, "data": data_settings(row)}})
        return
    lines = (
        f"{row.name}: {row.paper}, {row.place}",
        f"paper's result: {_result(row)}" if row.result else "",
        f"differs from {row.of}: {_changes(row)}" if row.of else "",
        *(f"{key} = {_written(value)}" for key, value in flat(settings).items()),
        *(f"data: {key} = {_written(value)}" for key, value in flat(data_settings(row)).items()),
        *row.notes,
    )
    for line in filter(None, lines):
        stdout.print(line, highlight=False, markup=False, soft_wrap=True)


def _all_settings(row: Recipe) -> dict[str, Any]:
    """The settings that a run with `--recipe` and this *row* has: those of its reward, the row, and the defaults."""
    from training.grpo.imitation_settings import ImitationSettings
    from training.grpo.settings import parse_settings

    match row.stage:
        case Stage.GRPO:
            return parse_settings({"recipe": row.name}, row.name).model_dump(mode="json", exclude={"recipe"})
        case Stage.SFT:
            return ImitationSettings.load(None, (), row.name).model_dump(mode="json")
        case Stage.NONE:
            return {}


def _written(value: Any) -> str:
    """*value* as `--set` takes it."""
    return NONE if value is None else json.dumps(value, ensure_ascii=False)


def _result(recipe: Recipe) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in recipe.result.items())


def _changes(recipe: Recipe) -> str:
    if recipe.stage is Stage.NONE:
        return "trains nothing"
    if recipe.stage is Stage.SFT:
        return "supervised"
    return " ".join(f"{key}={value}" for key, value in flat({**recipe.settings, **recipe.data}).items())


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested *values* by dotted key."""
    result: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            result |= flat(value, f"{prefix}{key}.")
        else:
            result[f"{prefix}{key}"] = value
    return result
