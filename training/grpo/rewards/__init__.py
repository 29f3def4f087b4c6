"""Rewards of single answers, for GRPO: SSL, GuirlVG, AdaGUI-R1 and LPO, as pure functions of text and target.

Guarantees: every completion gets a finite reward between 0 and `max_reward`, with its parts; no completion can change
its target. Not guaranteed: that a target is correct, which the examples' author ensures.
"""

from models.vision.answers import UNSCALED, ParsedCompletion, Scale, TokenCount, read_completion
from training.grpo.rewards.registry import AddedReward, RewardEntry
from training.grpo.rewards.rewarding import Rewarder, RewardSettings
from training.grpo.rewards.score import Score
from training.grpo.rewards.ssl import proximity_score
from training.grpo.rewards.targets import (
    ChoiceTarget,
    GridTarget,
    MazeTarget,
    OptionTarget,
    PointTarget,
    StepTarget,
    SudokuTarget,
    Target,
    TextTarget,
    has_places,
    is_right,
    places_of,
    similarity,
)
from training.grpo.rewards.thoughts import extract_thought

__all__ = [
    "UNSCALED",
    "AddedReward",
    "ChoiceTarget",
    "GridTarget",
    "MazeTarget",
    "OptionTarget",
    "ParsedCompletion",
    "PointTarget",
    "RewardEntry",
    "RewardSettings",
    "Rewarder",
    "Scale",
    "Score",
    "StepTarget",
    "SudokuTarget",
    "Target",
    "TextTarget",
    "TokenCount",
    "extract_thought",
    "has_places",
    "is_right",
    "places_of",
    "proximity_score",
    "read_completion",
    "similarity",
]
