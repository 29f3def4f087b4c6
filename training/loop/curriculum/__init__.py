"""Curriculum: chooses the next phase's tasks by their similarity to failed tasks, among those that may be trained on.

Guarantees: no evaluation seed and no held-out template is ever listed (offering one is an error). No task is listed
twice. The list has at most the requested number of tasks and at most `max_new` new ones, each with the reason for its
choice. Equal arguments give the same list, whatever their order. The list can be shorter than requested; missing tasks
are counted.

`next_phase` is the entry point; `next_tasks` is its pure core.
"""

from __future__ import annotations

from training.loop.curriculum.failures import Failed, PlayedTasks, played_tasks
from training.loop.curriculum.held_out import held_out, refusal
from training.loop.curriculum.phase import next_phase, similarity_by
from training.loop.curriculum.pool import Candidate, build_pool, with_instructions
from training.loop.curriculum.selection import next_tasks
from training.loop.curriculum.settings import CurriculumSettings, ValueBand
from training.loop.curriculum.similarity import Similarity, TfIdf
from training.loop.curriculum.task_list import Listed, Selection
from training.loop.curriculum.trainable import check_trainable, training_seeds
from training.loop.curriculum.value_filter import filter_by_value
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
    "build_pool",
    "check_trainable",
    "filter_by_value",
    "held_out",
    "next_phase",
    "next_tasks",
    "played_tasks",
    "refusal",
    "similarity_by",
    "training_seeds",
    "variants_of",
    "with_instructions",
]
