"""Settings of the curriculum: how the next phase's tasks are chosen."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from envs.core.record import Record


class ValueBand(Record):
    """The range of start values of tasks that are kept, ends included. The default is that of WebRL's code."""

    low: float = Field(default=0.05, ge=0, le=1)
    """Tasks below it are too hard."""
    high: float = Field(default=0.75, ge=0, le=1)
    """Tasks above it are practically solved."""

    @model_validator(mode="after")
    def _holds_something(self) -> Self:
        if self.low > self.high:
            raise ValueError(f"the band from {self.low} to {self.high} holds no value")
        return self


class WritingSettings(Record):
    """Tasks that a model writes from failures."""

    model: str = ""
    """Spec of the model that writes and rates them. Empty: none are written. Their outcomes need a judge
    (`rollouts.judge`)."""
    each: int = Field(default=3, ge=1, le=20)
    """Number of tasks asked for from each failed one."""
    min_steps: int = Field(default=2, ge=0)
    max_steps: int = Field(default=20, ge=1)
    """Tasks that the model rates below or above are dropped."""
    parallel: int = Field(default=4, ge=1)
    """Number of concurrent requests."""
    deadline_s: float = Field(default=120.0, gt=0)

    @model_validator(mode="after")
    def _holds_something(self) -> Self:
        if self.min_steps > self.max_steps:
            raise ValueError(f"no task has from {self.min_steps} to {self.max_steps} steps")
        return self


class CurriculumSettings(Record):
    """How the next phase's tasks are chosen. Shares are of the new tasks; the rest goes to similar tasks."""

    similarity: Literal["tfidf", "embedding", "model"] = "tfidf"
    """Similarity metric of tasks; the paper uses a large model. See :func:`training.loop.curriculum.similarity_by`."""
    judge: str = ""
    """Spec of the chat model that compares tasks if `similarity` is `model`."""
    top_k: int = Field(default=5, ge=1)
    """Number of pool tasks that each failure nominates. The paper's "top-K" gives no value of K."""
    overlap: bool = True
    """Failures may nominate the same task, which is listed once, as in the paper. False: each failure nominates a task
    of its own, which is better if many pool tasks have similar texts (MiniWoB++, whose instructions are unknown before
    a task runs)."""
    max_new: int = Field(default=400, ge=1)
    """Maximum number of new tasks in one phase (App. A.5.2)."""
    rare_share: float = Field(default=0.1, ge=0, le=1)
    """Share for categories that the similar tasks hardly cover."""
    rare_below: float = Field(default=0.5, ge=0)
    """A category is rare if its share of the similar tasks is below this fraction of its share of the failures."""
    explore_share: float = Field(default=0.2, ge=0, le=1)
    """Share drawn uniformly from the pool, against forgetting. The paper has none."""
    retry_share: float = Field(default=0.0, ge=0, le=1)
    """Share of the phase that plays failed tasks again unchanged."""

    start_tasks: int = Field(default=0, ge=0)
    """Number of pool tasks that the start plays once before the first phase. Its failures are the first F of Alg. 2; 0
    draws the first phase's tasks from the whole pool."""

    value_band: ValueBand | None = None
    """WebRL's curriculum: keep only tasks whose start value lies in this band, and add variants of failed tasks to the
    pool. None: MiRA's curriculum."""
    variants: int = Field(default=2, ge=0)
    """Number of variants of each failed task (:func:`training.loop.curriculum.variants_of`)."""
    writing: WritingSettings = WritingSettings()
    """Tasks that a model writes from failures of rare categories, before the other variants."""

    @model_validator(mode="after")
    def _shares_fit(self) -> Self:
        if self.rare_share + self.explore_share > 1:
            raise ValueError("rare_share and explore_share may not exceed 1 together")
        return self
