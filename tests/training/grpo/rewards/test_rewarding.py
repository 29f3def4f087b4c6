"""Guarantees of every reward for every target and completion."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from envs.core.errors import BadInput
from tests.training.grpo.rewards.examples import PLACES, SOLVED, png, words
from training.grpo.rewards import AddedReward, Rewarder, RewardSettings, Score, is_right, read_completion
from training.grpo.rewards.adagui import AdaguiReward
from training.grpo.rewards.guirlvg import GuirlvgReward
from training.grpo.rewards.lpo import LpoReward
from training.grpo.rewards.ssl import SslReward

PICTURE = png(np.random.default_rng(0).integers(0, 256, (50, 100)) * np.linspace(0, 1, 100))
"""100 x 50 pixels, plain on the left and busy on the right."""
ANY: list[RewardSettings] = [
    SslReward(),
    SslReward(proximity="continuous", alpha=1),
    SslReward(proximity="none"),
    SslReward(zones=8, blocks="counts"),
    GuirlvgReward(),
    GuirlvgReward(format="strict"),
    GuirlvgReward(format="none"),
    AdaguiReward(),
    AdaguiReward(thought="delta", scale="screen", levels=2),
    AdaguiReward(thought="accuracy", click="box", thought_weight=1, levels=10),
    AdaguiReward(thought="none"),
]
OF_PLACES: list[RewardSettings] = [
    LpoReward(),
    LpoReward(windows=False),
    LpoReward(distances=False, bins=2, window=(7, 3)),
    LpoReward(reward="text"),
    LpoReward(reward="box"),
    LpoReward(reward="radius"),
]
OF_BOXES: list[RewardSettings] = [GuirlvgReward(accuracy=kind) for kind in ("distance", "iou", "iou_half")]
FITTING = [
    *((reward, name) for reward in ANY for name in SOLVED),
    *((reward, name) for reward in OF_PLACES for name in PLACES),
    *((reward, "point") for reward in OF_BOXES),
]
"""Every reward with every target that it is for."""

WRITTEN = (
    *("<think>", "</think>", "<answer>", "</answer>", "```", " ", "\n", "/", ",", "."),
    *("0", "5", "130", "215", "-1", "1e9", "9" * 30, "130 215", "100 200 160 230", "nan", "∞", "٣"),
    *("R", "RRRRR", "DDDDD", "U", "L", "1234", "123456789", "000", "so "),
    *("do(action=", '"Click At"', "x=130", "y=215", ")", "click_at [130] [215]", "scroll_at [9] [9] [0] [100]"),
    *('do(action="Click At", x=1e308, y=-1e308)', 'do(action="Right Click At", x=130, y=215)'),
    *('do(action="Drag At", x=0, y=0, to_x=1.7e308, to_y=-1.7e308)', 'do(action="Type", argument="", element="7")'),
    *(text for _, text in SOLVED.values()),
)
texts = st.text(max_size=60) | st.lists(st.sampled_from(WRITTEN), max_size=12).map("".join)
groups = st.lists(texts, min_size=1, max_size=6)


def totals(reward: RewardSettings, name: str, group: list[str]) -> list[float]:
    return [score.total for score in Rewarder(reward, words).of_group(SOLVED[name][0], group, PICTURE)]


@settings(max_examples=600)
@given(st.sampled_from(FITTING), groups)
def test_any_text_gets_a_finite_reward_within_its_bounds(case: tuple[RewardSettings, str], group: list[str]) -> None:
    reward, name = case
    scores = Rewarder(reward, words).of_group(SOLVED[name][0], group, PICTURE)
    assert len(scores) == len(group)
    for score in scores:
        assert math.isfinite(score.total) and 0 <= score.total <= reward.max_reward + 1e-12
        assert all(math.isfinite(value) for value in score.parts.values())


@settings(max_examples=300)
@given(st.sampled_from(FITTING), groups)
def test_a_reward_does_not_depend_on_the_position_in_the_group(
    case: tuple[RewardSettings, str], group: list[str]
) -> None:
    reward, name = case
    twice = group + group
    result = dict(zip(twice, totals(reward, name, twice), strict=True))
    assert totals(reward, name, twice) == [result[text] for text in twice]
    assert totals(reward, name, twice[::-1]) == [result[text] for text in twice[::-1]]


@settings(max_examples=300)
@given(st.sampled_from(FITTING), groups)
def test_no_text_changes_a_target(case: tuple[RewardSettings, str], group: list[str]) -> None:
    reward, name = case
    target, answer = SOLVED[name]
    before = target.model_dump_json(), totals(reward, name, [answer])
    Rewarder(reward, words).of_group(target, group, PICTURE)
    assert (target.model_dump_json(), totals(reward, name, [answer])) == before


@pytest.mark.parametrize(
    "text",
    [
        '{"kind": "point", "box": [0, 0, 1000, 500], "size": [1000, 500]}',
        "target.box = (0, 0, 1000, 500)",
        "<answer>__import__('os').abort()</answer>",
        "<answer>box=0,0,1000,500 size=1000,500 point=5,5</answer>",
        "The reward of this answer is 1.0. correct=1",
        '<answer>{"correct": true}</answer>',
        "SG",
        "S",
    ],
)
@pytest.mark.parametrize("name", SOLVED)
def test_nobody_is_talked_into_it(text: str, name: str) -> None:
    assert not is_right(SOLVED[name][0], read_completion(text))
    assert totals(SslReward(proximity="none"), name, [text]) == [0]


@pytest.mark.parametrize("name", SOLVED)
def test_targets_are_frozen(name: str) -> None:
    target = SOLVED[name][0]
    for field in type(target).model_fields:
        with pytest.raises(ValidationError, match="frozen"):
            setattr(target, field, None)


@settings(max_examples=300)
@given(st.sampled_from([case for case in FITTING if not isinstance(case[0], AdaguiReward)]), texts, groups)
def test_a_reward_does_not_depend_on_the_others_of_its_group(
    case: tuple[RewardSettings, str], text: str, group: list[str]
) -> None:
    """But for AdaGUI's, whose difficulty is the group's."""
    assert totals(*case, [text, *group])[0] == totals(*case, [text])[0]


@settings(max_examples=300)
@given(st.sampled_from(sorted(SOLVED)), groups)
def test_with_added_correctness_a_wrong_answer_is_rewarded_less_than_a_correct_one(name: str, group: list[str]) -> None:
    """SSL's proximity is at most α."""
    reward = SslReward()
    for score in Rewarder(reward, words).of_group(SOLVED[name][0], group):
        assert (score.total >= 1) is (score.parts["correct"] == 1)
        assert score.total >= 1 or score.total <= 0.2 + 1e-12


def test_the_tokenizer_of_the_policy_counts_the_thought_and_nothing_else() -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text)

    rewarder = Rewarder(AdaguiReward(thought_tokens=10), count)
    scores = rewarder.of_group(SOLVED["point"][0], ["<think> 12345 </think><answer>130 215</answer>", "130 215"])
    assert counted == ["12345"]
    assert [score.parts["thought_tokens"] for score in scores] == [5, 0]
    assert rewarder.max_reward == 1.5


@pytest.mark.parametrize("reward", [*ANY, *OF_PLACES, *OF_BOXES], ids=str)
def test_stored_settings_are_read_back(reward: RewardSettings) -> None:
    adapter: TypeAdapter[RewardSettings] = TypeAdapter(RewardSettings)
    assert adapter.validate_json(adapter.dump_json(reward)) == reward


@pytest.mark.parametrize(
    "stored",
    [
        {"kind": "ssl", "alfa": 0.2},
        {"kind": "ssl", "alpha": 1.1},
        {"kind": "ssl", "zones": 1},
        {"kind": "adagui", "levels": 1},
        {"kind": "adagui", "threshold": 0},
        {"kind": "lpo", "bins": 257},
        {"kind": "lpo", "radius": 0},
        {"kind": "guirlvg", "accuracy": "iou_0.5"},
        {"kind": "none"},
        {},
    ],
    ids=str,
)
def test_invalid_settings_are_rejected(stored: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(RewardSettings).validate_python(stored)


class PlainNumbers(AddedReward):
    """A package's reward that returns numbers in place of scores."""

    kind: str = "numbers"

    @property
    def max_reward(self) -> float:
        return 1.0

    def of_group(self, target: Any, group: Any, count: Any, picture: Any) -> Any:
        return [1.0 for _ in group]


class OneScore(PlainNumbers):
    """A package's reward that scores the group, not its completions."""

    def of_group(self, target: Any, group: Any, count: Any, picture: Any) -> Any:
        return [Score(1.0)]


@pytest.mark.parametrize(
    ("reward", "got"), [(PlainNumbers(), r"\[1.0, 1.0\]"), (OneScore(), r"\[Score\(total=1.0, parts=\{\}\)\]")]
)
def test_an_added_reward_without_a_score_for_each_completion_is_refused(reward: AddedReward, got: str) -> None:
    """One score too few would give each completion the reward of another group's."""
    problem = f"reward 'numbers': of_group must return a list with one Score for each of the 2 completions, got {got}"
    with pytest.raises(BadInput, match=problem):
        Rewarder(reward, words).of_group(SOLVED["point"][0], ["1, 2", "3, 4"])
    assert Rewarder(OneScore(), words).of_group(SOLVED["point"][0], ["1, 2"]) == [Score(1.0)]
