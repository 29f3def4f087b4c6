"""How good a policy is, from the traces that it left: everything `mira eval` prints, as pure functions of records.

Promised: a broken episode is never a failure of the policy, it is counted apart; every rate has a 95 % interval or says
why not; the same traces and the same seed give the same numbers. Memory does not grow with the length of a trace.

Not here: playing episodes (`agent.run.runner`), one run against another with a p-value (`agent.inspection.compare`),
how much milestones say about success (`judges.subgoal_quality`).
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
