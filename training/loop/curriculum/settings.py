"""The curriculum's settings: how the next phase's tasks are chosen."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from envs.core.record import Record


class ValueBand(Record):
    """Values of a task's start that leave something to learn, ends included. The default is that of WebRL's code."""

    low: float = Field(default=0.05, ge=0, le=1)
    """Below it a task is out of reach."""
    high: float = Field(default=0.75, ge=0, le=1)
    """Above it a task is as good as solved."""

    @model_validator(mode="after")
    def _holds_something(self) -> Self:
        if self.low > self.high:
            raise ValueError(f"the band from {self.low} to {self.high} holds no value")
        return self


class CurriculumSettings(Record):
    """How the next phase's tasks are chosen. Shares are of the new tasks; what remains goes to similar ones."""

    similarity: Literal["tfidf", "embedding", "model"] = "tfidf"
    """What compares tasks; the paper has a large model do it. See :func:`training.loop.curriculum.similarity_by`."""
    judge: str = ""
    """The spec of the chat model that a loop asks, where `similarity` is `model`."""
    top_k: int = Field(default=5, ge=1)
    """Pool tasks that each failure names. The paper says "top-K" and not what K is."""
    overlap: bool = True
    """Failures may name the same task, which is listed once, as in the paper. False: each goes on until it finds one of
    its own, as is better where many pool tasks are worded alike (MiniWoB++, whose instances are not known before they
    run)."""
    max_new: int = Field(default=400, ge=1)
    """Tasks that were never played before, in one phase (App. A.5.2)."""
    rare_share: float = Field(default=0.1, ge=0, le=1)
    """Kept for categories that the similar tasks hardly cover."""
    rare_below: float = Field(default=0.5, ge=0)
    """A category is rare where its part of the similar tasks is below this share of its part of the failures."""
    explore_share: float = Field(default=0.2, ge=0, le=1)
    """Drawn evenly from the pool, so that a phase does not forget what it no longer fails. The paper draws none."""
    retry_share: float = Field(default=0.0, ge=0, le=1)
    """Share of the phase that plays failed tasks again as they were."""

    value_band: ValueBand | None = None
    """WebRL's curriculum: only tasks whose start the value critic puts into this band, and variants of failed tasks
    stand in the pool beside the others. None: MiRA's."""
    variants: int = Field(default=2, ge=0)
    """Variants made of each failed task (:func:`training.loop.curriculum.variants_of`)."""

    @model_validator(mode="after")
    def _shares_fit(self) -> Self:
        if self.rare_share + self.explore_share > 1:
            raise ValueError("rare_share and explore_share may not exceed 1 together")
        return self
