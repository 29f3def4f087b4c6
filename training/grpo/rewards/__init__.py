"""Rewards of single answers, for GRPO: SSL, GuirlVG, AdaGUI-R1 and LPO, as pure functions of text and target.

Promised: any completion gets a finite reward between 0 and its `most`, and what it is made of; nothing that it says
changes its target. Not promised: that a target is right, which whoever makes examples sees to.
"""

from training.grpo.rewards.answers import ParsedCompletion, TokenCount, read_completion
from training.grpo.rewards.registry import AddedReward, RewardEntry
from training.grpo.rewards.rewarding import Rewarder, RewardSettings
from training.grpo.rewards.score import Score
from training.grpo.rewards.ssl import nearness
from training.grpo.rewards.targets import (
    GridTarget,
    MazeTarget,
    PointTarget,
    StepTarget,
    SudokuTarget,
    Target,
    is_placed,
    is_right,
    places_of,
)
from training.grpo.rewards.thoughts import thought_of

__all__ = [
    "AddedReward",
    "GridTarget",
    "MazeTarget",
    "ParsedCompletion",
    "PointTarget",
    "RewardEntry",
    "RewardSettings",
    "Rewarder",
    "Score",
    "StepTarget",
    "SudokuTarget",
    "Target",
    "TokenCount",
    "is_placed",
    "is_right",
    "nearness",
    "places_of",
    "read_completion",
    "thought_of",
]
