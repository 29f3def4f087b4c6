"""The recipes have the values that the papers' tables print (`paper_tables.toml`, typed from the papers)."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from training.cli.recipes import flat
from training.grpo.imitation_settings import ImitationSettings
from training.grpo.recipes import PAPERS, Recipe, Stage, recipe_named
from training.grpo.settings import parse_settings

TABLES = tomllib.loads(Path(__file__).with_name("paper_tables.toml").read_text(encoding="utf-8"))["tables"]
ROWS = [
    pytest.param(table, name, id=f"{table['source']}: {name}".replace(" ", "_"))
    for table in TABLES
    for name in table["rows"]
]
WORDS = {
    "✓": True,
    "✗": False,
    "Bbox": "box",
    "Point": "point",
    "IoU@0.5": "iou_half",
    "IoU": "iou",
    "Distance@80": "distance",
    "In-Bbox": "in_box",
    "cosine-like": "cosine",
    "delta-like": "delta",
    "accuracy-based": "accuracy",
}
POWER = re.compile(r"(?:(\d+) × )?10\^\{(-\d+)\}")


def value_of(cell: str) -> Any:
    """What a printed *cell* says, as a setting has it."""
    if cell in WORDS:
        return WORDS[cell]
    if power := POWER.fullmatch(cell):
        return float(f"{power[1] or 1}e{power[2]}")
    return float(re.sub(r"e\^\{(-\d+)\}", r"e\1", cell))


def stated_by(recipe: Recipe) -> dict[str, Any]:
    """The settings of *recipe* by dotted key, the prompts of a batch, and its results."""
    if recipe.stage is Stage.SFT:
        values = flat(ImitationSettings.load(None, (), recipe.name).model_dump(mode="json"))
    else:
        values = flat(parse_settings({"recipe": recipe.name}, "here").model_dump(mode="json"))
        values["prompts"] = values["optimization.batch_rows"] / values["group"]
    values |= {f"reward.sigmas.{place}": value for place, value in enumerate(values.get("reward.sigmas", ()))}
    return values | {f"result.{name}": value for name, value in recipe.result.items()}


@pytest.mark.parametrize(("table", "name"), ROWS)
def test_a_row_of_a_paper_is_the_recipe(table: dict[str, Any], name: str) -> None:
    paper = {"SSL": "ssl", "GuirlVG": "guirlvg", "AdaGUI-R1": "adagui", "LPO": "lpo"}[table["source"].partition(",")[0]]
    recipe = recipe_named(f"{paper}/{name}")
    own, differs = stated_by(recipe), table.get("differs", {}).get(name, "")
    for key, cell in zip(table["keys"], table["rows"][name], strict=True):
        if key == differs:
            assert own[key] != value_of(cell)
            assert any(note.startswith("choice: ") and f"{int(cell):,}" in note for note in recipe.notes)
        elif key.startswith("result."):
            assert own[key] == pytest.approx(value_of(cell), abs=0.051), key  # Table 4 of SSL rounds Table 1
        else:
            assert own[key] == value_of(cell), key


def test_each_paper_has_a_table_with_a_header() -> None:
    assert len({table["source"].partition(",")[0] for table in TABLES}) == len(PAPERS)
    for table in TABLES:
        assert len(table["header"]) == len(table["keys"]) == len(set(table["keys"]))
