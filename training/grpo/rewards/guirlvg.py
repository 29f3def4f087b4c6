"""The reward of GuirlVG (Kang et al. 2025): format plus pointing accuracy.

The soft format reward follows Alg. 3. It requires as many numbers as the prediction has: Alg. 3 requires two, App.
A.3.2 four. A single answer tag scores 1/3, as in Alg. 3; §3.2 and App. A.3.2 give each tag a third, which is equal for
a complete block.

The paper's trivial row is `format = "strict"` with `accuracy = "iou_half"`: the full completion must match the pattern
of Alg. 1 ("exactly matches", §3.1), and a box is read only in the notation of Alg. 2, integers in square brackets
between the answer tags. With any other format, boxes are read in all notations (§3.2).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from envs.core.errors import BadInput
from envs.core.record import Record
from models.vision.answers import CLOSE, OPEN, ParsedCompletion, tag_content
from models.vision.places import numbers_in
from training.grpo.rewards.geometry import Box, distance, overlap
from training.grpo.rewards.registry import RewardEntry
from training.grpo.rewards.score import Score
from training.grpo.rewards.targets import PointTarget, Target, is_right, parse_box, parse_point

Accuracy = Literal["in_box", "distance", "iou", "iou_half"]
"""In-Bbox, Distance@80, IoU, IoU@0.5 (App. A.3.3)."""
NEAR_PIXELS = 80.0
"""k of Distance@k, in pixels."""
_WHOLE = re.compile(r"<think>.*?</think>\s*<answer>.*?</answer>", re.DOTALL)
"""Alg. 1, line 2."""
_TAGGED = re.compile(r"<answer>(.*)</answer>", re.DOTALL)
_BOX = re.compile(r"\[([0-9]+),\s*([0-9]+),\s*([0-9]+),\s*([0-9]+)\]")
"""Alg. 2, lines 2 and 3."""


class GuirlvgReward(Record):
    """`R = R_format + R_accuracy` (Eq. 2.1)."""

    kind: Literal["guirlvg"] = "guirlvg"
    format: Literal["soft", "strict", "none"] = "soft"
    """Format reward: Alg. 3, Alg. 1, or none."""
    accuracy: Accuracy = "in_box"
    near_pixels: float = Field(default=NEAR_PIXELS, gt=0)
    """Threshold of accuracy `distance`, in pixels."""

    @property
    def max_reward(self) -> float:
        """m of the adversarial KL factor (Eq. 3.1): 2 with a format reward."""
        return 1.0 if self.format == "none" else 2.0

    def of_group(self, target: Target, group: Sequence[ParsedCompletion]) -> list[Score]:
        """Scores each completion. Raises BadInput if the accuracy is a distance or an overlap and the target is not a
        box."""
        return [self._of(target, completion) for completion in group]

    def _of(self, target: Target, completion: ParsedCompletion) -> Score:
        shape, accuracy = self._shape(target, completion), self._accuracy(target, completion)
        parts = {"format": shape, "accuracy": accuracy, "correct": float(is_right(target, completion))}
        return Score(shape + accuracy, parts)

    def _shape(self, target: Target, completion: ParsedCompletion) -> float:
        match self.format:
            case "soft":
                return soft_format(completion, numbers=self._numbers(target))
            case "strict":
                return strict_format(completion)
            case "none":
                return 0.0

    def _numbers(self, target: Target) -> int | None:
        """The required count of numbers in an answer; None if answers are not numbers."""
        if self.accuracy.startswith("iou"):
            return 4
        return 2 if isinstance(target, PointTarget) else None

    def _accuracy(self, target: Target, completion: ParsedCompletion) -> float:
        if self.accuracy == "in_box":
            return float(is_right(target, completion))
        if not isinstance(target, PointTarget):
            raise BadInput(f"reward.accuracy {self.accuracy!r} needs targets that are boxes, not {target.kind!r}")
        if self.accuracy == "distance":
            point = parse_point(completion)
            return float(point is not None and distance(point, target.region.centre) <= self.near_pixels)
        box = strict_box(completion) if self.format == "strict" else parse_box(completion)
        shared = 0.0 if box is None else overlap(box, target.region)
        return shared if self.accuracy == "iou" else float(shared > 0.5)


def strict_format(completion: ParsedCompletion) -> float:
    """1 if the completion is a thought and an answer in tags and nothing else, otherwise 0 (Alg. 1)."""
    return float(_WHOLE.fullmatch(completion.text) is not None)


def strict_box(completion: ParsedCompletion) -> Box | None:
    """The first box `[x1, y1, x2, y2]` of integers between answer tags (Alg. 2); None without one. Boxes in a thought
    are ignored, which Alg. 2 does not specify."""
    answered = completion.text.rpartition(CLOSE)[2].partition(OPEN)[0]
    tagged = _TAGGED.search(answered)
    match = _BOX.search(tagged.group(1)) if tagged is not None else None
    return None if match is None else Box(*completion.in_pixels(tuple(map(float, match.groups()))))


def soft_format(completion: ParsedCompletion, numbers: int | None = 2) -> float:
    """Alg. 3, in [0, 1]: 1/2 for each of `<think>` and `</think>`; 2/3 for a complete answer and 1/3 more if it holds
    exactly *numbers* numbers, or any text if that is None; 1/3 for a single answer tag; the sum divided by 2."""
    score = 0.5 * ("<think>" in completion.text) + 0.5 * ("</think>" in completion.text)
    answer = tag_content(completion.text, "answer")
    if answer is not None:
        fits = bool(answer.strip()) if numbers is None else len(numbers_in(answer)) == numbers
        score += 2 / 3 + (1 / 3) * fits
    elif "<answer>" in completion.text or "</answer>" in completion.text:
        score += 1 / 3
    return score / 2


ENTRY = RewardEntry(
    GuirlvgReward,
    {
        "group": 6,
        "answer_tokens": 256,  # its format contains a thought
        "kl": 1e-4,
        "kl_by_reward": True,
        "freeze_vision": True,
        "steps": 1_300,
        "optimization": {"learning_rate": 1e-5, "schedule": "linear", "batch_rows": 24, "epochs": 2},
        "compute": {"max_tokens": 4_096, "lora": {"rank": 64, "alpha": 128}},
        "prompt": {"resolution_held_out": True},  # and think: its format contains a thought
    },
)
"""Constants of §2.2 and §3.8; batches of 4 prompts, 1,300 steps of the final version, whose resolution is stated at
test only. Its ablations have 500. No length of a row is stated: a screenshot of 1920 x 1080 pixels has 2,691 tokens."""
