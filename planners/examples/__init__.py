"""Few-shot examples of plans, one data file per site category, all written for this repository."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import Final

from pydantic import Field

from envs.core.record import Record

FALLBACK: Final = "open"
"""Category whose examples serve every category that has none of its own."""

CATEGORIES: Final = ("cms", "code", "form", "forum", "map", "open", "shop")


class Example(Record):
    """A task as a person would put it, what the page shows at first, and a good plan for it."""

    task: str
    page: str
    milestones: tuple[str, ...] = Field(min_length=4, max_length=4)


class ExampleFile(Record):
    """One file: `CATEGORY.json`."""

    category: str
    examples: tuple[Example, ...] = Field(min_length=1)


@lru_cache(maxsize=len(CATEGORIES))
def load_examples(category: str) -> tuple[Example, ...]:
    """The examples of *category*, in the file's order; those of :data:`FALLBACK` for a category without a file."""
    name = category if category in CATEGORIES else FALLBACK
    text = files("planners.examples").joinpath(f"{name}.json").read_text(encoding="utf-8")
    return ExampleFile.model_validate_json(text).examples


__all__ = ["CATEGORIES", "FALLBACK", "Example", "load_examples"]
