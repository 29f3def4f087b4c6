"""Answers in a model's own units, and limits of the size in which it sees images."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from envs.core.errors import BadInput
from models.vision.checkpoints import declare_profile, vision_profile
from models.vision.coordinates import CoordinateSpace, Size
from tests.training.grpo.rewards.examples import words
from tests.training.grpo.vision_cases import vision_examples, vision_settings
from training.grpo.evaluation import encode_prompts
from training.grpo.examples import Example
from training.grpo.frames import DECLARED_PROFILE, AnswerFrames, limit_pixels, parse_coordinates, shown_size
from training.grpo.rewards import PointTarget, Rewarder, StepTarget, is_right, read_completion
from training.grpo.rewards.registry import REWARDS
from training.grpo.rewards.targets import parse_action
from training.grpo.run import load_start, train_grpo
from training.grpo.settings import parse_settings
from training.grpo.trainer import GroupReward
from training.grpo.vision_models import load_processor

WIDE = (1920, 1080)
COORDINATES = (CoordinateSpace.THOUSAND, CoordinateSpace.PIXELS)
BOX = (960.0, 270.0, 1056.0, 324.0)
"""Its centre, (1008, 297), is at 0.525 and 0.275 of `WIDE`."""


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("wide") / "wide.png"
    image = Image.effect_noise(WIDE, 64).convert("RGB")
    image.save(path)
    return path


@pytest.fixture(scope="module")
def example(picture: Path) -> Example:
    return Example(name="w", messages=(("user", "?"),), target=PointTarget(box=BOX, size=WIDE), image=picture)


def centre(coordinates: CoordinateSpace, shown: tuple[int, int]) -> tuple[float, float]:
    """The centre of `BOX` as a model writes it."""
    extent = {"pixels": WIDE, "resized": shown, "thousand": (1000, 1000), "unit": (1, 1)}[coordinates]
    return 0.525 * extent[0], 0.275 * extent[1]


@pytest.mark.parametrize("recipe", REWARDS.builtin)
@pytest.mark.parametrize("coordinates", [one for one in CoordinateSpace if one is not CoordinateSpace.PIXELS])
def test_a_place_has_the_same_reward_in_every_unit(
    starts: Callable[[str], Path], example: Example, recipe: str, coordinates: CoordinateSpace
) -> None:
    processor = load_processor(starts("Qwen2.5-VL"))
    shown = shown_size(processor, WIDE)
    assert shown is not None and shown != WIDE
    rewarder = Rewarder(parse_settings({"recipe": recipe}, "here").reward, words)
    for offset in (0.0, 0.01, 0.02, 0.1):
        texts = [
            f"{x + offset * extent_x:.4f}, {y + offset * extent_y:.4f}"
            for unit in (CoordinateSpace.PIXELS, coordinates)
            for x, y in [centre(unit, shown)]
            for extent_x, extent_y in [(x / 0.525, y / 0.275)]
        ]
        scale = AnswerFrames(processor, coordinates).scale(example)
        in_pixels = rewarder.of_group(example.target, texts[:1], example.picture)[0]
        in_units = rewarder.of_group(example.target, texts[1:], example.picture, scale)[0]
        assert in_units.total == pytest.approx(in_pixels.total, abs=2e-3), texts


def test_a_resized_image_has_the_size_of_its_tokens(starts: Callable[[str], Path], example: Example) -> None:
    """A patch has 14 pixels and four patches make a token: the frame is that of the model's own grid."""
    processor = load_processor(starts("Qwen2.5-VL"))
    inputs = encode_prompts(processor, [example], 500)
    tokens = int((inputs["input_ids"] == processor.image_token_id).sum())
    wide, high = shown_size(processor, WIDE) or (0, 0)
    assert tokens == (wide // 28) * (high // 28) and wide % 28 == high % 28 == 0


@pytest.mark.parametrize(("name", "size"), [("LLaVA", (32, 32)), ("Gemma 3", (64, 64))])
def test_a_square_image_is_a_frame_too(
    starts: Callable[[str], Path], example: Example, name: str, size: tuple[int, int]
) -> None:
    processor = load_processor(starts(name))
    assert shown_size(processor, WIDE) == size
    assert AnswerFrames(processor, CoordinateSpace.RESIZED).scale(example) == (1920 / size[0], 1080 / size[1])


@pytest.mark.parametrize(
    ("name", "most", "shown"),
    [
        ("Qwen2.5-VL", 1_000_000, (1316, 728)),
        ("Qwen3-VL", 1_000_000, (1312, 736)),
        ("LLaVA", None, (32, 32)),
        ("Gemma 3", None, (64, 64)),
    ],
)
def test_a_trained_model_is_played_with_the_size_that_it_was_trained_on(
    starts: Callable[[str], Path], tmp_path: Path, name: str, most: int | None, shown: tuple[int, int]
) -> None:
    """Symptom: a checkpoint that declares `resized` was sent images of the published size, and its answers were
    converted by it."""
    processor = load_processor(starts(name))
    limit_pixels(processor, None, most)
    processor.save_pretrained(tmp_path)
    (tmp_path / "config.json").write_bytes((starts(name) / "config.json").read_bytes())
    assert shown_size(load_processor(tmp_path), WIDE) == shown
    for declared in (CoordinateSpace.RESIZED, CoordinateSpace.THOUSAND):
        declare_profile(tmp_path, DECLARED_PROFILE[declared])
        profile = vision_profile(f"local:{tmp_path}")
        assert profile is not None and profile.space is declared
        resized = declared is CoordinateSpace.RESIZED
        assert profile.sent_size(Size(*WIDE)) == (shown if resized else WIDE)


def test_unknown_units_are_refused() -> None:
    with pytest.raises(BadInput, match="--coordinates 'percent': use pixels, resized, thousand, unit"):
        parse_coordinates("percent")


def test_tiles_are_no_frame(starts: Callable[[str], Path], example: Example) -> None:
    with pytest.raises(BadInput, match="cuts it into tiles"):
        AnswerFrames(load_processor(starts("SmolVLM")), CoordinateSpace.RESIZED).scale(example)


def test_the_points_of_an_action_are_converted_its_element_is_not() -> None:
    place = PointTarget(box=BOX, size=WIDE)
    step = StepTarget.model_validate(
        {"action": {"kind": "click_at", "x": 1008, "y": 297}, "places": [place.model_dump()]}
    )
    click = read_completion('do(action="Click At", x=525, y=275)', (1.92, 1.08))
    assert is_right(step, click)
    assert not is_right(step, read_completion(click.text))
    typed = read_completion('do(action="Type", argument="7", element="7")', (1.92, 1.08))
    action: Any = parse_action(step, typed)
    assert (action.ref, action.text) == (7, "7")


def test_the_group_is_rewarded_in_the_units_of_its_example(starts: Callable[[str], Path], example: Example) -> None:
    processor = load_processor(starts("Qwen2.5-VL"))
    rewarder = Rewarder(parse_settings({"recipe": "ssl"}, "here").reward, words)
    ids = [processor.tokenizer.encode(text) for text in ("525, 275", "1008, 297")]
    totals: dict[CoordinateSpace, list[float | None]] = {}
    for coordinates in COORDINATES:
        frames = AnswerFrames(processor, coordinates)
        reward = GroupReward([example], rewarder, 2, processor.tokenizer, scale=frames.scale)
        totals[coordinates] = reward(ids, [0, 0], {}.__setitem__)
    assert totals == {"thousand": [1.2, 0], "pixels": [0, 1.2]}


def test_limits_bound_the_tokens_of_an_image_and_are_saved(
    starts: Callable[[str], Path], images: Path, tmp_path: Path
) -> None:
    def tokens(processor: Any) -> int:
        inputs = encode_prompts(processor, [vision_examples(images)[2]], 500)
        return int((inputs["input_ids"] == processor.image_token_id).sum())

    settings = vision_settings(steps=1, max_pixels=4 * 28 * 28)
    before = load_start(starts("Qwen2.5-VL"), vision=True)[1]
    lines: list[str] = []
    result = train_grpo(
        vision_examples(images), str(starts("Qwen2.5-VL")), tmp_path / "run", settings, log=lines.append
    )
    after = load_start(result.model, vision=True)[1]
    assert tokens(before) > 4 >= tokens(after)
    assert any("the processor resizes images, such as 56 x 84 to" in line for line in lines)


@pytest.mark.parametrize(
    ("name", "least", "most", "says"),
    [
        ("LLaVA", None, 100, "processors that keep the aspect ratio"),
        ("Qwen2.5-VL", 5_000, 4_000, "min_pixels 5000 is above max_pixels 4000"),
    ],
)
def test_limits_that_do_not_fit_are_refused(
    starts: Callable[[str], Path], name: str, least: int | None, most: int | None, says: str
) -> None:
    with pytest.raises(BadInput, match=says):
        limit_pixels(load_processor(starts(name)), least, most)
