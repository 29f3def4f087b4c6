"""Which tasks the next phase plays: those most like what failed, within what may be trained on.

Promised: no evaluation seed and no held-out template is ever listed (it is an error to offer one), no task twice, at
most as many as asked for and at most `max_new` that are new, each with the reason why it is there; the same arguments
give the same list, whatever their order. Not promised: as many tasks as asked for; what is missing is counted.

`next_phase` is the whole of it; `next_tasks` is its pure core.
"""

from __future__ import annotations

from training.loop.curriculum.failures import Failed, PlayedTasks, played
from training.loop.curriculum.held_out import held_out, refusal
from training.loop.curriculum.phase import next_phase, similarity_by
from training.loop.curriculum.pool import Candidate, pool_of, worded
from training.loop.curriculum.selection import next_tasks
from training.loop.curriculum.settings import CurriculumSettings, ValueBand
from training.loop.curriculum.similarity import Similarity, TfIdf
from training.loop.curriculum.task_list import Listed, Selection
from training.loop.curriculum.trainable import check_trainable, training_seeds
from training.loop.curriculum.value_filter import within_reach
from training.loop.curriculum.variants import Variant, variants_of

__all__ = [
    "Candidate",
    "CurriculumSettings",
    "Failed",
    "Listed",
    "PlayedTasks",
    "Selection",
    "Similarity",
    "TfIdf",
    "ValueBand",
    "Variant",
    "check_trainable",
    "held_out",
    "next_phase",
    "next_tasks",
    "played",
    "pool_of",
    "refusal",
    "similarity_by",
    "training_seeds",
    "variants_of",
    "within_reach",
    "worded",
]
