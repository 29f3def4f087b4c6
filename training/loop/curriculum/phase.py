"""One call from a phase's failures to the next phase's tasks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from envs.core.errors import BadInput
from envs.core.tasks import TaskRef
from models.base import ChatModel
from training.loop.curriculum.failures import Failed
from training.loop.curriculum.pool import Candidate, text_of
from training.loop.curriculum.selection import next_tasks, unplayed
from training.loop.curriculum.settings import CurriculumSettings
from training.loop.curriculum.similarity import Similarity, TfIdf
from training.loop.curriculum.task_list import Selection
from training.loop.curriculum.value_filter import Value, within_reach
from training.loop.curriculum.variants import Variant, variants_of

if TYPE_CHECKING:
    from envs.suites.sites.suite import Drawer


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
    value: Value | None = None,
    drawer: Drawer | None = None,
) -> Selection:
    """What *settings* ask for: similarity, variants and, with a band, the value filter, then :func:`next_tasks`.

    *checkpoint* is the policy for the similarity `embedding`, *model* the judge for `model`, *value* the critic for a
    `value_band`. Raises BadInput where the one that is needed is missing, and what the parts raise.
    """
    if settings.value_band is not None and value is None:
        raise BadInput("a curriculum with a value_band needs a value critic")
    taken = set(seen).union(one.task for one in failed)
    known = taken.union(one.ref for one in pool)
    made = await variants_of(failed, known, each=settings.variants, drawer=drawer)
    fresh: Sequence[Candidate] = unplayed(pool, taken)
    too_hard = too_easy = 0
    if settings.value_band is not None and value is not None:
        offered = [*fresh, *(variant.candidate for variant in made)]
        fresh, too_hard, too_easy = within_reach(offered, value(offered), settings.value_band)
        made = _still(made, fresh)
    similarity = await similarity_by(settings, failed, fresh, checkpoint=checkpoint, model=model)
    found = next_tasks(
        failed, taken, fresh, similarity, settings, size=size, seed=seed, variants=made, succeeded=succeeded
    )
    counts = found.counts.model_copy(update={"too_hard": too_hard, "too_easy": too_easy})
    return found.model_copy(update={"counts": counts})


async def similarity_by(
    settings: CurriculumSettings,
    failed: Sequence[Failed],
    fresh: Sequence[Candidate],
    *,
    checkpoint: Path | None = None,
    model: ChatModel | None = None,
) -> Similarity:
    """The similarity that *settings* name, ready for these tasks. A chat model is asked here, before any is chosen.

    Raises BadInput where *checkpoint* or *model* is needed and missing, SimilarityFailed where the model gave no
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
            from training.loop.curriculum.task_history import AskedSettings, judged

            asked = AskedSettings()
            if settings.top_k > asked.shortlist:
                raise BadInput(
                    f"a model rates {asked.shortlist} tasks for each failure: top_k {settings.top_k} is more"
                )
            questions = [text_of(one.task, one.instruction) for one in failed]
            return await judged(model, questions, [text_of(one.ref, one.instruction) for one in fresh], asked)


def _still(made: Sequence[Variant], kept: Sequence[Candidate]) -> tuple[Variant, ...]:
    within = frozenset(kept)
    return tuple(variant for variant in made if variant.candidate in within)
