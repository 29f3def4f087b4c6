"""Chooses the next phase's tasks from a phase's failures in one call."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from envs.core.errors import BadInput
from envs.core.tasks import TaskRef
from models.base import ChatModel
from training.loop.curriculum.failures import Failed
from training.loop.curriculum.pool import Candidate, task_text
from training.loop.curriculum.selection import next_tasks, unplayed
from training.loop.curriculum.settings import CurriculumSettings
from training.loop.curriculum.similarity import Similarity, TfIdf
from training.loop.curriculum.task_list import Selection
from training.loop.curriculum.value_filter import Value, filter_by_value
from training.loop.curriculum.variants import Variant, variants_of
from training.loop.curriculum.writing import write_tasks

if TYPE_CHECKING:
    from envs.suites.sites.suite import InstanceSampler


async def next_phase(
    failed: Sequence[Failed],
    seen: Collection[TaskRef],
    pool: Sequence[Candidate],
    settings: CurriculumSettings,
    *,
    size: int,
    seed: int,
    succeeded: Collection[TaskRef] | None = None,
    checkpoint: Path | None = None,
    model: ChatModel | None = None,
    writer: ChatModel | None = None,
    value: Value | None = None,
    sampler: InstanceSampler | None = None,
    log: Callable[[str], None] = print,
) -> Selection:
    """Applies the similarity, variants and value filter of *settings*, then :func:`next_tasks`.

    *checkpoint* is the policy for the similarity `embedding`, *model* the judge for `model`, *writer* the model that
    writes tasks for rare categories (None: none are written), *value* the critic for a `value_band`. Raises BadInput
    where a required one is missing, and the errors of the parts.
    """
    if settings.value_band is not None and value is None:
        raise BadInput("a curriculum with a value_band needs a value critic")
    taken = set(seen).union(failure.task for failure in failed)
    known = taken.union(candidate.ref for candidate in pool)
    variants = await variants_of(failed, known, each=settings.variants, sampler=sampler)
    fresh: Sequence[Candidate] = unplayed(pool, taken)
    too_hard = too_easy = 0
    if settings.value_band is not None and value is not None:
        offered = [*fresh, *(variant.candidate for variant in variants)]
        fresh, too_hard, too_easy = filter_by_value(offered, value(offered), settings.value_band)
        variants = _among(variants, fresh)
    similarity = await similarity_by(settings, failed, fresh, checkpoint=checkpoint, model=model)

    def selected(offered: Sequence[Variant]) -> Selection:
        return next_tasks(
            failed, taken, fresh, similarity, settings, size=size, seed=seed, variants=offered, succeeded=succeeded
        )

    selection = selected(variants)
    if writer is not None and selection.rare_categories:
        rare = [failure for failure in failed if failure.category in selection.rare_categories]
        selection = selected((*await write_tasks(writer, rare, pool, settings.writing, log), *variants))
    counts = selection.counts.model_copy(update={"too_hard": too_hard, "too_easy": too_easy})
    return selection.model_copy(update={"counts": counts})


async def similarity_by(
    settings: CurriculumSettings,
    failed: Sequence[Failed],
    fresh: Sequence[Candidate],
    *,
    checkpoint: Path | None = None,
    model: ChatModel | None = None,
) -> Similarity:
    """Creates the similarity that *settings* name for these tasks. A chat model is called here, before the selection.

    Raises BadInput where *checkpoint* or *model* is needed and missing, SimilarityFailed where the model returned no
    ratings.
    """
    match settings.similarity:
        case "tfidf":
            return TfIdf()
        case "embedding":
            if checkpoint is None:
                raise BadInput("the similarity 'embedding' needs a policy's checkpoint")
            from training.loop.curriculum.embedding import Embedding

            return Embedding(checkpoint)
        case "model":
            if model is None:
                raise BadInput("the similarity 'model' needs a chat model")
            from training.loop.curriculum.model_similarity import ModelSimilaritySettings, rate_similarity

            options = ModelSimilaritySettings()
            if settings.top_k > options.shortlist:
                raise BadInput(
                    f"a model rates {options.shortlist} tasks for each failure: top_k {settings.top_k} is more"
                )
            questions = [task_text(failure.task, failure.instruction) for failure in failed]
            offers = [task_text(candidate.ref, candidate.instruction) for candidate in fresh]
            return await rate_similarity(model, questions, offers, options)


def _among(variants: Sequence[Variant], kept: Sequence[Candidate]) -> tuple[Variant, ...]:
    candidates = frozenset(kept)
    return tuple(variant for variant in variants if variant.candidate in candidates)
