"""Evaluates a policy from its traces: all numbers of `mira eval`, as pure functions of records.

Guarantees: broken episodes are counted separately and never as failures of the policy. Every rate has a 95 % interval
or a reason for its absence. Equal traces and seeds give equal numbers. Memory use does not grow with the length of a
trace.

Elsewhere: playing episodes (`agent.run.runner`), comparing two runs with a p-value (`agent.inspection.compare`), how
well milestones predict success (`judges.subgoal_quality`).
"""

from training.loop.evaluation.arms import ArmResult, ArmsTable, Trial, compare_arms, trials_of
from training.loop.evaluation.milestones import MilestoneProgress, milestone_progress
from training.loop.evaluation.reading import PlayedEpisode, Reading, read_played
from training.loop.evaluation.summary import Evaluation, evaluate

__all__ = [
    "ArmResult",
    "ArmsTable",
    "Evaluation",
    "MilestoneProgress",
    "PlayedEpisode",
    "Reading",
    "Trial",
    "compare_arms",
    "evaluate",
    "milestone_progress",
    "read_played",
    "trials_of",
]
