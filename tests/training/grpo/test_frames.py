"""Answers in a model's own units, and limits of the size in which it sees images."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from agent.run.grounders import form_of_model
from envs.core.actions import ClickAt
from envs.core.errors import BadInput
from models.base import ChatReply, ChatRequest, Usage
from models.vision.checkpoints import declare_profile, vision_profile
from models.vision.coordinates import CoordinateSpace, Size
from models.vision.grounding import GroundingPrompt
from models.vision.profiles import ResizeRule, profile_named
from tests.training.grpo.rewards.examples import words
from tests.training.grpo.vision_cases import vision_examples, vision_settings
from training.grounding.answering import answer_all
from training.grpo.adaptive.steps import SeeingModel
from training.grpo.evaluation import encode_prompts
from training.grpo.examples import Example, examples_digest
from training.grpo.frames import DECLARED_PROFILE, AnswerFrames, limit_pixels, parse_coordinates, shown_size
from training.grpo.prompts import ask_as
from training.grpo.rewards import PointTarget, Rewarder, StepTarget, is_right, read_completion
from training.grpo.rewards.registry import REWARDS
from training.grpo.rewards.targets import parse_action
from training.grpo.run import load_start, train_grpo
from training.grpo.settings import parse_settings
from training.grpo.trainer import GroupReward
from training.grpo.vision_models import load_processor
from training.step_accuracy.answers import answer_all as answer_steps
from training.step_accuracy.answers import asked_steps

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


class Asked:
    """A model that keeps what it is asked, and knows no place."""

    spec = "scripted"

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.texts.append(request.messages[-1].text)
        return ChatReply("I see none.", Usage(), self.spec, 0.0)

    async def aclose(self) -> None: ...


def test_training_evaluation_and_play_state_the_size_in_which_answers_are(
    starts: Callable[[str], Path], images: Path, tmp_path: Path
) -> None:
    """An image of 56 x 84 pixels is seen in 28 x 56, and the rewarded places are in those pixels."""
    first = vision_examples(images)[0]
    limits = {"coordinates": "resized", "max_pixels": 4 * 28 * 28, "optimization": {"batch_rows": 4}, "steps": 1}
    written = GroundingPrompt(resolution=True, profile=profile_named(DECLARED_PROFILE[CoordinateSpace.RESIZED]))
    text = written.where_is("it", Size(56, 84)).text
    given = first.model_copy(update={"messages": (("user", text),)})
    stated = text.replace("56x84", "28x56")
    at_test = {"think": False, "resolution_held_out": True}
    for number, prompt in enumerate((None, {**at_test, "resolution": True}, at_test)):
        settings, out = vision_settings(**limits, prompt=prompt), tmp_path / str(number)
        result = train_grpo([given], str(starts("Qwen2.5-VL")), out, settings, log=lambda _: None)
        frames = AnswerFrames(load_start(result.model, vision=True)[1], CoordinateSpace.RESIZED)
        (trained,), _ = ask_as([given], settings.prompt, frames.size)
        (held_out,), _ = ask_as([given], settings.prompt, frames.size, held_out=True)
        assert held_out.messages[-1][1] == stated
        assert trained.messages[-1][1] == (text.partition(". ")[2] if prompt == at_test else stated)
        form, asked = form_of_model(f"local:{result.model}"), Asked()
        assert form is not None
        asyncio.run(answer_all(asked, form, [given], lambda _: None))
        assert asked.texts == [stated]
        digests = json.loads((out / "grpo.json").read_text(encoding="utf-8"))
        assert digests["examples"] == examples_digest([trained]), "that is what was trained on"


def test_a_step_states_the_size_in_which_its_answer_is(images: Path) -> None:
    """Also in an evaluation of a file that was written for another size."""
    size = (56, 84)
    step = StepTarget(action=ClickAt(x=9, y=9), places=(PointTarget(box=(1, 1, 20, 20), size=size),))
    text = "The screenshot resolution is 1x1.\nobserved\nThe screenshot resolution is 56x84. Say where, in its pixels."
    example = Example(name="s", messages=(("user", text),), target=step, image=images / "0.png")
    asked = Asked()
    profile = replace(profile_named("qwen2.5-vl"), resize=ResizeRule(28, 28 * 28, 4 * 28 * 28))
    asyncio.run(answer_steps(asked, asked_steps([example]), profile, lambda _: None, max_tokens=9))
    seen, _ = SeeingModel(asked, profile).shown(example)
    assert [*asked.texts, seen[-1].text] == [text.replace("56x84", "28x56")] * 2


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
