"""Recipes are the papers' rows: each loads, and differs from its neighbour in what the paper changes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from envs.core.actions import ClickAt
from envs.core.errors import BadInput
from models.vision.coordinates import Size, smart_resize
from models.vision.grounding import AnswerShape, GroundingPrompt
from tests.mira_command import mira
from tests.training.grpo.rewards.examples import CLICK, GRID, POINT, TYPE, png, words
from training.cli.recipes import flat
from training.grpo.examples import Example, share_of
from training.grpo.imitation_settings import ImitationSettings
from training.grpo.prompts import PromptSettings, ask_as
from training.grpo.recipes import PAPERS, Stage, recipe_named, recipes
from training.grpo.rewards import PointTarget, Rewarder, StepTarget, Target
from training.grpo.settings import GrpoSettings, load_settings, parse_settings

TRAINED = [name for name, recipe in recipes().items() if recipe.stage is Stage.GRPO]

ROWS = {
    "ssl": "zero-shot sft tiered binary continuous continuous-cells gui-g2 zones-2 zones-8 alpha-01 alpha-03 alpha-05 "
    "counts share-20 share-40 share-60 share-80 binary-share-20 binary-share-40 binary-share-60 binary-share-80",
    "guirlvg": "zero-shot sft trivial soft-format iou distance in-box kl-0 kl-1e-4 adversarial adversarial-1e-6 full "
    "batch-1 group-8 resolution resolution-at-test final",
    "adagui": "sft full decide no-revision all-thoughts no-thought-reward no-exploration no-rewards levels-2 levels-10 "
    "delta accuracy box success-only screen-scale",
    "lpo": "base full ui-r1 gui-r1 infigui-r1 ui-tars no-distance no-window group-8 clip-narrow clip-wide kl-5e-5 "
    "kl-5e-4",
}

CHANGES: dict[str, dict[str, Any]] = {
    "ssl/binary": {"reward.proximity": "none"},
    "ssl/continuous": {"reward.proximity": "continuous"},
    "ssl/continuous-cells": {"reward.blocks": "whole"},
    "ssl/gui-g2": {"reward.proximity": "gui_g2", "reward.verifier": False, "reward.alpha": 1.0},
    "ssl/zones-2": {"reward.zones": 2},
    "ssl/zones-8": {"reward.zones": 8},
    "ssl/alpha-01": {"reward.alpha": 0.1},
    "ssl/alpha-03": {"reward.alpha": 0.3},
    "ssl/alpha-05": {"reward.alpha": 0.5},
    "ssl/counts": {"reward.blocks": "counts"},
    **{
        f"ssl/{kind}share-{percent}": {"share": percent / 100}
        for kind in ("", "binary-")
        for percent in (20, 40, 60, 80)
    },
    "guirlvg/soft-format": {"reward.format": "soft", "prompt.answer": "box"},
    "guirlvg/iou": {"reward.accuracy": "iou"},
    "guirlvg/distance": {"reward.accuracy": "distance", "prompt.answer": "point"},
    "guirlvg/in-box": {"reward.accuracy": "in_box", "prompt.answer": "point"},
    "guirlvg/kl-0": {"kl": 0.0},
    "guirlvg/kl-1e-4": {"kl": 1e-4},
    "guirlvg/adversarial": {"kl_by_reward": True},
    "guirlvg/adversarial-1e-6": {"kl": 1e-6},
    "guirlvg/full": {"compute.lora": None, "optimization.learning_rate": 1e-6},
    "guirlvg/batch-1": {"optimization.batch_rows": 6},
    "guirlvg/group-8": {"group": 8, "optimization.batch_rows": 32},
    "guirlvg/resolution": {"prompt.resolution": True, "prompt.resolution_held_out": True},
    "guirlvg/resolution-at-test": {"prompt.resolution_held_out": True},
    "guirlvg/final": {"steps": 1_300},
    "adagui/decide": {},  # its data
    "adagui/no-revision": {},
    "adagui/all-thoughts": {},
    "adagui/no-thought-reward": {"reward.thought": "none"},
    "adagui/no-exploration": {"reward.click": "threshold"},
    "adagui/no-rewards": {"reward.thought": "none"},
    "adagui/levels-2": {"reward.levels": 2},
    "adagui/levels-10": {"reward.levels": 10},
    "adagui/delta": {"reward.thought": "delta"},
    "adagui/accuracy": {"reward.thought": "accuracy"},
    "adagui/box": {"reward.click": "box"},
    "adagui/success-only": {"reward.thought_for": "correct"},
    "adagui/screen-scale": {"reward.scale": "screen"},
    "lpo/ui-r1": {"answer_tokens": 256, "reward.reward": "box", "reward.type_weight": 1.0, "reward.format_weight": 1.0},
    "lpo/gui-r1": {
        "answer_tokens": 256,
        "reward.reward": "radius",
        "reward.type_weight": 1.0,
        "reward.format_weight": 1.0,
    },
    "lpo/infigui-r1": {
        "answer_tokens": 256,
        "reward.reward": "overlap",
        "reward.type_weight": 1.0,
        "reward.format_weight": 1.0,
    },
    "lpo/ui-tars": {"reward.reward": "text", "reward.type_weight": 1.0},
    "lpo/no-distance": {"reward.distances": False},
    "lpo/no-window": {"reward.windows": False},
    "lpo/group-8": {"group": 8},
    "lpo/clip-narrow": {"clip_low": 0.1, "clip_high": 0.2},
    "lpo/clip-wide": {"clip_low": 0.3, "clip_high": 0.4},
    "lpo/kl-5e-5": {"kl": 5e-5},
    "lpo/kl-5e-4": {"kl": 5e-4},
}
"""What each row changes in its neighbour, from the papers' tables."""


def resolved(name: str) -> GrpoSettings:
    return parse_settings({"recipe": name}, "here")


def keys(name: str) -> Mapping[str, Any]:
    settings = resolved(name).model_dump(mode="json", exclude={"recipe"})
    return flat(settings | {"prompt": settings["prompt"] or {}})


def test_every_row_of_the_papers_is_there() -> None:
    named = {
        paper: " ".join(name.partition("/")[2] for name in recipes() if name.startswith(paper)) for paper in PAPERS
    }
    assert named == ROWS
    for recipe in recipes().values():
        assert recipe.place and (not recipe.of or recipe_named(recipe.of))


@pytest.mark.parametrize("name", TRAINED)
def test_a_recipe_loads_and_is_complete(name: str) -> None:
    settings = resolved(name)
    assert settings.recipe == name and settings.reward.kind == name.partition("/")[0]
    assert parse_settings(settings.model_dump(mode="json"), "here") == settings


@pytest.mark.parametrize("name", CHANGES)
def test_a_row_differs_from_its_neighbour_in_what_the_paper_changes(name: str) -> None:
    neighbour = recipe_named(name).of
    own, other = keys(name), keys(neighbour)
    changed = {key: own.get(key) for key in {*own, *other} if own.get(key, "") != other.get(key, "")}
    if name == "guirlvg/full":  # the adapters' own keys go with them
        changed = {key: value for key, value in changed.items() if not key.startswith("compute.lora.")}
    if name in ("lpo/ui-r1", "lpo/gui-r1", "lpo/infigui-r1"):  # whose format reward needs its tags
        assert changed.pop("prompt.think") is True
        changed = {key: value for key, value in changed.items() if not key.startswith("prompt.")}
    assert changed == CHANGES[name]


def test_the_trivial_row_and_the_final_one_have_the_constants_of_the_paper() -> None:
    trivial, final = resolved("guirlvg/trivial"), resolved("guirlvg/final")
    assert (trivial.kl, trivial.kl_by_reward, trivial.steps) == (0.04, False, 500)  # §2.2
    assert trivial.compute.needed_lora.model_dump(include={"rank", "alpha"}) == {"rank": 64, "alpha": 128}
    assert (trivial.group, trivial.optimization.batch_rows, trivial.freeze_vision) == (6, 24, True)
    assert trivial.optimization.learning_rate == final.optimization.learning_rate == 1e-5


@pytest.mark.parametrize("name", ["ssl/tiered", "guirlvg/final", "adagui/full", "lpo/full"])
def test_a_bare_entry_is_the_final_version_of_its_paper(name: str) -> None:
    bare = resolved(name.partition("/")[0])
    assert bare.model_dump(exclude={"recipe"}) == resolved(name).model_dump(exclude={"recipe"})


def test_the_first_stage_of_adagui_has_the_constants_of_the_paper() -> None:
    """§4.1: LoRA of rank 32 and α 64, a learning rate of 5e-5."""
    first = ImitationSettings.load(None, (), "adagui/sft")
    assert first.compute.needed_lora.model_dump(include={"rank", "alpha"}) == {"rank": 32, "alpha": 64}
    assert first.optimization.learning_rate == 5e-5


@pytest.mark.parametrize("name", ["guirlvg/sft", "ssl/sft", "adagui/sft", "guirlvg", "adagui", "lpo", "lpo/ui-r1"])
def test_a_recipe_has_room_for_a_screenshot(name: str) -> None:
    """Of 1920 x 1080 pixels, as Qwen2.5-VL sees it, beside 512 tokens of question and answer. `ssl` has the 2,048 of
    Table 6. Symptom: vLLM refused such a screenshot with every recipe."""
    shown = smart_resize(Size(1920, 1080), factor=28, min_pixels=56 * 56, max_pixels=12_845_056)
    tokens = shown.width * shown.height // 28**2
    assert tokens == 2_691
    settings = ImitationSettings.load(None, (), name) if name.endswith("/sft") else resolved(name)
    assert settings.compute.max_tokens >= tokens + 512


def test_every_row_that_is_trained_is_compared_with_a_neighbour() -> None:
    """But the rows without one: the papers' final versions and the first row of GuirlVG's ladder."""
    alone = {name for name in TRAINED if not recipe_named(name).of}
    assert set(TRAINED) - set(CHANGES) == alone


CORNER, NEAR, OFF = "101, 201", "150, 215", "165, 215"
"""In the corner of POINT's box; inside, 20 pixels from the centre; 5 pixels outside."""
BOXED = "[100, 200, 160, 230]"


def tagged(answer: str, thought: str = "t") -> str:
    return f"<think>{thought}</think><answer>{answer}</answer>"


@pytest.mark.parametrize(
    ("name", "target", "text", "reward"),
    [
        ("ssl/tiered", POINT, NEAR, 1 + 0.2 * 0.75),  # two standard deviations of 10 pixels
        ("ssl/binary", POINT, NEAR, 1),
        ("ssl/continuous", POINT, NEAR, 1 + 0.2 * np.exp(-2)),
        ("ssl/gui-g2", POINT, NEAR, np.exp(-((20 / 30) ** 2) / 2)),  # σ: half of 60 pixels
        ("ssl/gui-g2", POINT, OFF, np.exp(-((35 / 30) ** 2) / 2)),  # also outside
        ("ssl/gui-g2", POINT, BOXED, 1),
        ("ssl/gui-g2", POINT, "[130, 200, 190, 230]", (np.exp(-0.5) + np.exp(-1 / 8)) / 2),  # one σ to the right
        ("ssl/zones-2", POINT, NEAR, 1 + 0.2 * 1),
        ("ssl/zones-8", POINT, NEAR, 1 + 0.2 * 0.5),  # 2 of 3 deviations: zone 5 of 8
        ("ssl/alpha-05", POINT, CORNER, 1 + 0.5 * 0.25),
        ("ssl/continuous", GRID, "111/050/000/777", 0.2 * 7.5 / 9),  # three of nine blocks match by half
        ("ssl/continuous-cells", GRID, "111/050/000/777", 0.2 * 9 / 12),
        ("guirlvg/trivial", POINT, tagged(BOXED), 2),
        ("guirlvg/trivial", POINT, tagged("130, 215"), 1),
        ("guirlvg/soft-format", POINT, tagged("100 200 160 230"), 2),
        ("guirlvg/iou", POINT, tagged("[100, 200, 130, 230]"), 1.5),
        ("guirlvg/distance", POINT, tagged("200, 215"), 2),  # 70 pixels
        ("guirlvg/in-box", POINT, tagged("200, 215"), 1),
        ("guirlvg/in-box", POINT, tagged(NEAR), 2),
        ("adagui/full", CLICK, 'do(action="Click At", x=130, y=215)', 1 + 0.5),  # level 1: easy, no thought
        ("adagui/no-thought-reward", CLICK, 'do(action="Click At", x=130, y=215)', 1),
        ("adagui/full", CLICK, 'do(action="Click At", x=145, y=215)', np.exp(-(0.25**2) / (2 * 0.32**2)) + 0.5),
        ("adagui/no-exploration", CLICK, 'do(action="Click At", x=145, y=215)', 1.5),
        ("adagui/no-exploration", CLICK, 'do(action="Click At", x=175, y=215)', 0.01 * 0.5),  # 0.045 of the screen
        ("adagui/box", CLICK, 'do(action="Click At", x=155, y=229)', 1.5),
        ("adagui/no-rewards", CLICK, 'do(action="Click At", x=145, y=215)', 1),
        ("adagui/levels-2", CLICK, 'do(action="Click At", x=145, y=215)', np.exp(-(0.25**2) / (2 * 0.5**2)) + 0.5),
        ("adagui/levels-10", CLICK, 'do(action="Click At", x=145, y=215)', np.exp(-(0.25**2) / (2 * 0.26**2)) + 0.5),
        ("adagui/delta", TYPE, "nothing", 0),
        ("adagui/success-only", TYPE, 'do(action="Type", argument="Bob", element="7")', 0),
        ("lpo/no-window", CLICK, 'do(action="Click At", x=230, y=215)', 0.9),  # 100 of 1,000 pixels
        ("lpo/ui-r1", CLICK, tagged('do(action="Click At", x=150, y=215)'), 3),
        ("lpo/ui-r1", CLICK, 'do(action="Click At", x=230, y=215)', 1),
        ("lpo/gui-r1", CLICK, tagged('do(action="Click At", x=230, y=215)'), 3),
        ("lpo/gui-r1", CLICK, tagged('do(action="Click At", x=280, y=215)'), 2),  # 150 pixels
        ("lpo/infigui-r1", POINT, tagged("[100, 200, 135, 230]"), 3),
        ("lpo/ui-tars", CLICK, 'do(action="Click At", x=131, y=215)', 1),
        ("lpo/ui-tars", CLICK, 'do(action="Click At", x=130, y=215)', 2),
    ],
)
def test_rewards_of_a_row(name: str, target: Target, text: str, reward: float) -> None:
    rewarder = Rewarder(resolved(name).reward, words)
    (score,) = rewarder.of_group(target, [text], png([[0] * 1000] * 500))
    assert score.total == pytest.approx(reward, abs=1e-9)
    assert score.total <= rewarder.max_reward


def test_delta_thoughts_switch_at_half_of_the_length() -> None:
    rewarder = Rewarder(resolved("adagui/delta").reward, words)
    right, wrong = 'do(action="Type", argument="Ada L.", element="7")', 'do(action="Type", argument="B", element="7")'
    long = "word " * 60
    (easy, thoughtful) = rewarder.of_group(TYPE, [right, tagged(right, long)])
    assert (easy.total, thoughtful.total) == (1.5, 1.0)
    (short, hard) = rewarder.of_group(TYPE, [wrong, tagged(wrong, long)])
    assert (short.total, hard.total) == (0.0, 0.5)
    only = Rewarder(resolved("adagui/success-only").reward, words)
    assert [each.total for each in only.of_group(TYPE, [wrong, tagged(wrong, long)])] == [0.0, 0.0]


def test_without_the_distance_only_the_window_counts() -> None:
    noise = np.zeros((500, 1000))
    noise[200:232, 100:172] = np.arange(32 * 72).reshape(32, 72) % 256
    rewarder = Rewarder(resolved("lpo/no-distance").reward, words)
    far, blank = 'do(action="Click At", x=154, y=215)', 'do(action="Click At", x=900, y=20)'
    scores = rewarder.of_group(CLICK, [far, blank, 'do(action="Type", argument="a", element="7")'], png(noise))
    assert scores[0].total > 0.9 and [each.total for each in scores[1:]] == [0.0, 0.0]


QUESTION = GroundingPrompt().where_is('the button "Save"', Size(1000, 500)).text


def example(target: PointTarget | StepTarget, text: str) -> Example:
    return Example(name="e", messages=(("user", text),), target=target)


def size_of(example: Example) -> Size:
    assert isinstance(example.target, PointTarget)
    return Size(*example.target.size)


def asked(name: str, *, held_out: bool = False, text: str = QUESTION) -> str:
    (new,), left = ask_as([example(POINT, text)], resolved(name).prompt, size_of, held_out=held_out)
    assert left == 0
    return new.messages[0][1]


def test_questions_are_asked_in_the_form_of_the_row() -> None:
    think = " Think first, between <think> and </think>; then answer between <answer> and </answer>."
    box = 'Where is the button "Save"? Answer with the bounding box [x1, y1, x2, y2] in pixels'
    assert asked("guirlvg/trivial") == f"{box}, in JSON format.{think}"
    assert asked("guirlvg/soft-format") == f"{box}.{think}"
    assert asked("guirlvg/in-box") == QUESTION + think
    assert asked("guirlvg/resolution-at-test") == QUESTION + think
    shown = "The screenshot resolution is 1000x500. "
    assert asked("guirlvg/resolution-at-test", held_out=True) == shown + QUESTION + think
    assert asked("guirlvg/resolution") == asked("guirlvg/resolution", held_out=True) == shown + QUESTION + think
    assert asked("guirlvg/in-box", text=asked("guirlvg/trivial")) == QUESTION + think  # and back
    assert asked("ssl/tiered") == QUESTION


def test_other_questions_stay_and_are_counted() -> None:
    own = example(POINT, "Point at the button Save.")
    assert ask_as([own], PromptSettings(), size_of) == ((own,), 1)
    step = example(CLICK, "Observation\n[1] button")
    (thinking,), _ = ask_as([step], PromptSettings(), size_of)
    assert thinking.messages[0][1].startswith("Observation\n[1] button\nThink first, ")
    assert ask_as([thinking], PromptSettings(), size_of)[0] == (thinking,)
    assert ask_as([thinking], PromptSettings(think=False), size_of)[0] == (step,)


def test_a_share_is_a_subset_of_a_larger_one() -> None:
    examples = [example(POINT, str(number)) for number in range(10)]
    shares = [share_of(examples, share, seed=3) for share in (0.2, 0.4, 1.0)]
    assert [len(share) for share in shares] == [2, 4, 10]
    assert set(shares[0]) <= set(shares[1]) and [*shares[1]] == [e for e in examples if e in shares[1]]
    assert share_of(examples, 0.2, seed=4) != shares[0]


def test_a_row_lies_under_a_file_and_changes() -> None:
    settings = load_settings(None, ["recipe=guirlvg/full", "steps=7", "prompt.think=false"])
    assert (settings.steps, settings.compute.lora, settings.prompt) == (
        7,
        None,
        PromptSettings(think=False, answer=AnswerShape.POINT),
    )


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("guirlvg/box", "unknown recipe 'guirlvg/box'; there are guirlvg/zero-shot, guirlvg/sft, "),
        ("ppo/full", "unknown recipe 'ppo/full'; there are ssl, guirlvg, adagui, lpo "),
        ("guirlvg/sft", "'guirlvg/sft' is supervised: mira train sft EXAMPLES --recipe guirlvg/sft"),
        ("lpo/base", "'lpo/base' trains nothing"),
    ],
)
def test_other_names_are_rejected(name: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        load_settings(None, [f"recipe={name}"])


def test_the_command_lists_recipes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert mira(monkeypatch, "train", "recipes", "guirlvg", "--json") == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert len(rows) == len(ROWS["guirlvg"].split()) and rows["guirlvg/adversarial"]["result"] == {"ScreenSpot": 87.4}
    assert mira(monkeypatch, "train", "recipes") == 0
    listed = capsys.readouterr().out
    assert [paper for paper in PAPERS if f"\n{paper}/" in listed] == list(PAPERS)
    assert mira(monkeypatch, "train", "recipes", "guirlvg/final") == 0
    assert "steps = 1300" in capsys.readouterr().out
    assert mira(monkeypatch, "train", "recipes", "gui") == 2


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("ssl/tiered", ("kl = 0.1", "group = 8", "reward.alpha = 0.2", "optimization.epochs = 10")),
        ("lpo/full", ("kl = 0.0001", "group = 16", "optimization.learning_rate = 1e-06", "compute.lora = none")),
        ("adagui/full", ("kl = 0.04", "group = 10", "compute.lora.rank = 8", "compute.lora.alpha = 32")),
        ("guirlvg/sft", ("compute.lora.rank = 64", "optimization.epochs = 2", 'prompt.answer = "json_box"')),
        ("lpo/base", ()),
    ],
)
def test_a_row_is_shown_with_all_of_its_settings(
    name: str, lines: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Symptom: the constants of the reward, such as the group, β and the adapters, were left out."""
    assert mira(monkeypatch, "train", "recipes", name) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line not in shown] == []
    assert mira(monkeypatch, "train", "recipes", name, "--json") == 0
    full = json.loads(capsys.readouterr().out)["all"]["settings"]
    assert name.endswith("/base") == (full == {})
    if recipe_named(name).stage is Stage.GRPO:
        assert parse_settings({"recipe": name, **full}, "here") == resolved(name)


def test_the_bare_entry_asks_for_what_it_rewards() -> None:
    """Symptom: up to half of the reward was for tags that the question never asked for."""
    assert asked("guirlvg") == asked("guirlvg/final")
    assert "<think>" in asked("guirlvg") and "resolution" not in asked("guirlvg")
    assert load_settings(None, ["recipe=guirlvg", "prompt=none"]).prompt is None


def test_a_click_target_fits_its_box() -> None:
    """The hand-computed rewards above assume this click."""
    assert CLICK.action == ClickAt(x=130, y=215)
