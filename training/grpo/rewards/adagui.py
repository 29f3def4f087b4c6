"""The reward of AdaGUI-R1 (anonymous 2025): long thoughts on hard steps, exact clicks on easy ones.

A step's difficulty depends on the policy: on ρ, the share of correct answers in its group (Eq. 3 and 4). Choices where
the paper is incomplete or contradicts itself:

* a thought is all of a completion but its answer, so text outside `<think>` also counts;
* the total is `R = R_action + w·R_thought`; the thought reward is given only if the answer can be parsed;
* a click's distance is normalised by the screen (Eq. 8) and its σ "by the element" (Eq. 6). With both on the screen the
  reward is flat: at least 0.98 within the threshold of 0.04. With `scale = "element"` the threshold is relative to the
  screen and the Gaussian to the element;
* without the exploration reward (Table 2) a click is rewarded with 1 within the threshold, `threshold`: what is left of
  Eq. 7 without its Gaussian. The box of Eq. 11 (Table 6) is another row;
* §1 grants the bonus for a thought "that ultimately leads to success", Eq. 5 to every answer: `thought_for`;
* for ten levels, the formula of §4.3 gives 5 to 10; Eq. 4 with ten in place of five is used instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from pydantic import Field, PositiveFloat

from envs.core.record import Record
from models.vision.answers import ParsedCompletion, TokenCount
from training.grpo.rewards.geometry import Box, Point
from training.grpo.rewards.grids import parse_path, parse_rows
from training.grpo.rewards.registry import RewardEntry
from training.grpo.rewards.score import Score
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
    aimed_points,
    is_right,
    parse_action,
    parse_choice,
    parse_point,
)
from training.grpo.rewards.thoughts import extract_thought

LEAST, GREATEST = 0.01, 1.0
"""Bounds of the thought reward (Eq. 5)."""
SIGMAS = (0.2, 0.8)
"""Least and greatest σ (Eq. 6)."""


class AdaguiReward(Record):
    """The reward of GAPO, AdaGUI-R1's training method."""

    kind: Literal["adagui"] = "adagui"
    levels: int = Field(default=5, ge=2, le=20)
    hard_above: float = Field(default=0.6, gt=0, lt=1)
    """A level is hard if it is above this share of all levels. The paper's threshold is level 3 of 5."""
    thought: Literal["cosine", "delta", "accuracy", "none"] = "cosine"
    """Thought reward: Eq. 5, Eq. 9, Eq. 10, or none."""
    thought_weight: float = Field(default=0.5, ge=0, le=1)
    thought_for: Literal["readable", "correct"] = "readable"
    """Answers whose thought is rewarded: all that can be parsed (Eq. 5), or correct ones only (§1)."""
    thought_tokens: int = Field(default=100, ge=1)
    """T in tokens. Longer thoughts are rewarded like one of T tokens."""
    click: Literal["gaussian", "box", "threshold"] = "gaussian"
    """Click reward: Eq. 7, Eq. 11, or 1 within the threshold."""
    scale: Literal["element", "screen"] = "element"
    """What the Gaussian's distance is relative to."""
    threshold: float = Field(default=0.04, gt=0)
    """N_thr: the reward is 0 at a larger distance from the centre, as a fraction of the screen."""
    sigmas: tuple[PositiveFloat, PositiveFloat] = SIGMAS
    """Least and greatest σ (Eq. 6), the shape of the Gaussian (Fig. 5)."""

    @property
    def max_reward(self) -> float:
        return 1.0 + (0.0 if self.thought == "none" else self.thought_weight)

    def of_group(self, target: Target, group: Sequence[ParsedCompletion], count: TokenCount) -> list[Score]:
        """Scores answers to one prompt. Its difficulty is the group's. *count* counts a thought's tokens."""
        correct = [is_right(target, completion) for completion in group]
        solved = sum(correct) / max(1, len(correct))
        level = difficulty(solved, self.levels)
        scores: list[Score] = []
        for completion, is_correct in zip(group, correct, strict=True):
            thought_text = extract_thought(target, completion)
            tokens = count(thought_text) if thought_text else 0
            action = self._action(target, completion, level, is_correct=is_correct)
            counted = is_correct if self.thought_for == "correct" else _can_be_read(target, completion)
            thought = self._thought(tokens, level, solved) if counted else 0.0
            parts = {
                "correct": float(is_correct),
                "action": action,
                "thought": thought,
                "thought_tokens": float(tokens),
            }
            total = action + (0.0 if self.thought == "none" else self.thought_weight * thought)
            scores.append(Score(total, {**parts, "level": float(level)}))
        return scores

    def is_hard(self, level: int) -> bool:
        return level > self.hard_above * self.levels + 1e-9

    def _thought(self, tokens: int, level: int, solved: float) -> float:
        tokens = min(tokens, self.thought_tokens)
        match self.thought:
            case "cosine":
                return thought_reward(tokens, self.thought_tokens, hard=self.is_hard(level))
            case "delta":
                half = self.thought_tokens / 2
                return float(tokens > half if self.is_hard(level) else tokens < half)
            case "accuracy":
                fading = math.exp(-tokens / self.thought_tokens)
                return (1 - solved) * (1 - fading) + solved * fading
            case "none":
                return 0.0

    def _action(self, target: Target, completion: ParsedCompletion, level: int, *, is_correct: bool) -> float:
        """Rewards a click by its position, any other action by correctness."""
        points = aimed_points(target, completion)
        if self.click == "box" or len(points) != 1 or (isinstance(target, StepTarget) and not _clicks(target)):
            return float(is_correct)
        point, _, place = points[0]
        width = math.inf if self.click == "threshold" else sigma(level, self.levels, self.sigmas)
        return exploration_reward(point, place.region, place.size, width, threshold=self.threshold, scale=self.scale)


def _clicks(target: StepTarget) -> bool:
    return target.action.kind == "click_at"


def difficulty(solved: float, levels: int = 5) -> int:
    """Eq. 4: `L − max(0, ⌈L·ρ⌉ − 1)`, 1 (easy) to *levels*. *solved* is ρ, 0 to 1."""
    return levels - max(0, math.ceil(levels * solved - 1e-9) - 1)


def thought_reward(tokens: int, longest: int = 100, *, hard: bool) -> float:
    """Eq. 5: half a cosine between the two bounds over thought lengths from 0 to *longest* tokens. It rises if the step
    is *hard* and falls if it is easy."""
    grown = (1 - math.cos(math.pi * min(tokens, longest) / longest)) / 2
    span = (GREATEST - LEAST) * grown
    return LEAST + span if hard else GREATEST - span


def sigma(level: int, levels: int = 5, sigmas: tuple[float, float] = SIGMAS) -> float:
    """Eq. 6: `0.2 + 0.6·ℓ/L`."""
    least, greatest = sigmas
    return least + (greatest - least) * level / levels


def exploration_reward(
    point: Point,
    box: Box,
    screen: tuple[int, int],
    sigma: float,
    *,
    threshold: float = 0.04,
    scale: Literal["element", "screen"] = "element",
) -> float:
    """Eq. 7 and 8, 0 to 1: a Gaussian around the centre of *box*; 0 beyond *threshold*, a fraction of the screen."""
    across, down = point.x - box.centre.x, point.y - box.centre.y
    away = math.hypot(across / screen[0], down / screen[1])
    if away > threshold:
        return 0.0
    spread = away if scale == "screen" else math.hypot(across / box.width, down / box.height)
    return math.exp(-(spread**2) / (2 * sigma**2))


def _can_be_read(target: Target, completion: ParsedCompletion) -> bool:
    match target:
        case PointTarget():
            return parse_point(completion) is not None
        case ChoiceTarget():
            return parse_choice(completion, len(target.boxes)) is not None
        case OptionTarget():
            return parse_choice(completion, len(target.options)) is not None
        case TextTarget():
            return bool(completion.answer)
        case StepTarget():
            return parse_action(target, completion) is not None
        case MazeTarget():
            return bool(parse_path(completion))
        case SudokuTarget() | GridTarget():
            return bool(parse_rows(completion))


ENTRY = RewardEntry(
    AdaguiReward,
    {
        "group": 10,
        "answer_tokens": 192,  # thoughts of 100 (T), tags and an action
        "kl": 0.04,
        "optimization": {"learning_rate": 1e-6, "batch_rows": 80},
        "compute": {"max_tokens": 4_096, "lora": {"rank": 8, "alpha": 32}},
    },
)
"""The constants of §4.1. The paper states neither β, nor the batch, nor the number of steps, nor the length of a row: a
screenshot of 1920 x 1080 pixels has 2,691 tokens."""
