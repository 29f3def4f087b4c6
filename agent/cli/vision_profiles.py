"""The table of vision profiles in `mira models`."""

from __future__ import annotations

from agent.cli.tables import Column, FittedTable
from models.vision.profiles import GENERAL, PROFILES


def vision_table() -> FittedTable:
    """A row for each family: the coordinates in which it answers, and what names it."""
    table = FittedTable(
        Column("vision profile"),
        Column("points in"),
        Column("a click, by its family", drop=1, wrap=24),
        Column("recognized by", wrap=24),
        title="Vision-language models, for --screenshots plain, marks and both",
    )
    for profile in PROFILES:
        known = "every other model" if profile is GENERAL else ", ".join(profile.recognized_by)
        table.row(profile.name, profile.space.value, profile.click, known)
    return table
