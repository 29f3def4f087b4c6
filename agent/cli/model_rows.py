"""What `mira models MODEL` shows of a model spec: its prompts, its vision profile, whether answers are constrained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypedDict

from agent.cli.tables import Column, FittedTable
from agent.run.oracle_tasks import SPECS
from models.base import ModelStatus
from models.provider import ModelOptions
from models.specs import parse_spec

VENDOR_TOOLS: Final = "vendor's tools"
ORACLE: Final = "the solver that a suite ships; no model, needs no key"
ORACLE_STATUS: Final = ModelStatus(
    "oracle", usable=True, detail=f"{ORACLE}: MiniWoB++ and the sites (policy only)", examples=SPECS
)
_ANY_SERVER: Final = "http://127.0.0.1/v1"

Constrained = Literal["auto", "on", "on, with a base URL", "never"]


class ModelRow(TypedDict):
    """The settings that a run chooses for a policy by its spec. The keys are those of `mira models MODEL --json`."""

    spec: str
    profile: str | None
    """None for a model with its vendor's tools, and for an oracle."""
    style: str | None
    prompts: str
    """The prompts in words."""
    vision: str | None
    """The vision profile; None for a model that reads text only, and where coordinates are not of a vision profile."""
    constrained: Constrained
    """The value of `--constrained` that limits its answers: `auto` does so by default; `never`: none does."""


def model_row(text: str) -> ModelRow:
    """The row of one spec. Raises :class:`models.base.ModelUnavailable` for a wrong one."""
    from agent.profiles.profile import profile_of_spec
    from models.vision.checkpoints import vision_profile

    if text.strip() in SPECS:
        return ModelRow(spec=text.strip(), profile=None, style=None, prompts=ORACLE, vision=None, constrained="never")
    parsed = parse_spec(text)
    if parsed.has_vendor_tools:
        about = "the vendor's own tools in place of Mira's action language, and screenshots"
        return ModelRow(spec=str(parsed), profile=None, style=None, prompts=about, vision=None, constrained="never")
    profile, vision = profile_of_spec(str(parsed)), vision_profile(str(parsed))
    if parsed.takes_grammars(ModelOptions()):
        constrained: Constrained = "auto" if parsed.constrained and profile.style == "full" else "on"
    else:
        constrained = "on, with a base URL" if parsed.takes_grammars(ModelOptions(_ANY_SERVER)) else "never"
    return ModelRow(
        spec=str(parsed),
        profile=profile.name,
        style=profile.style,
        prompts=profile.about,
        vision=None if vision is None else vision.name,
        constrained=constrained,
    )


def models_table(rows: Sequence[ModelRow]) -> FittedTable:
    """A line for each of *rows*."""
    table = FittedTable(
        Column("spec", wrap=16),
        Column("profile"),
        Column("prompts", wrap=24, drop=1),
        Column("vision profile"),
        Column("--constrained", wrap=8),
    )
    for row in rows:
        no_vision = "text only" if row["profile"] is not None else "-"
        profile = row["profile"] or ("-" if row["spec"] in SPECS else VENDOR_TOOLS)
        table.row(row["spec"], profile, row["prompts"], row["vision"] or no_vision, row["constrained"])
    return table
