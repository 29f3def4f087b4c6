"""A model that sees: made, measured, trained with each reward of places, and read again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image, ImageDraw

from agent.run.discover_traces import discover_traces
from envs.core.actions import Click, Type
from envs.core.errors import BadInput
from tests.agent.episodes import Play, png, write_run
from training.grpo.evaluation import encoded
from training.grpo.examples import Example, Role
from training.grpo.from_traces import Asking, examples_of
from training.grpo.rewards import PointTarget, is_placed
from training.grpo.run import improve, load_start
from training.grpo.settings import Recipe, parse_settings
from training.grpo.trainer import trainer_of
from training.toy_models.puzzles import fresh_model
from training.toy_models.vision import seeing_model


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return seeing_model(tmp_path_factory.mktemp("start") / "model", side=32, patch=16, width=32, layers=1)


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> tuple[Example, ...]:
    """Red squares on white, of several sizes of image."""
    folder = tmp_path_factory.mktemp("images")
    made: list[Example] = []
    for number in range(8):
        size = (40 + 8 * number, 64)
        image = Image.new("RGB", size, "white")
        ImageDraw.Draw(image).rectangle((number, 10, number + 12, 22), fill="red")
        image.save(folder / f"{number}.png")
        target = PointTarget(box=(number, 10, number + 12, 22), size=size)
        question: tuple[tuple[Role, str], ...] = (("user", "Where is it?" + "!" * number),)
        made.append(Example(name=str(number), messages=question, target=target, image=folder / f"{number}.png"))
    return tuple(made)


def settings(recipe: Recipe, **changes: Any) -> Any:
    given: dict[str, Any] = {
        "recipe": recipe,
        "group": 4,
        "answer_tokens": 6,
        "micro_rows": 4,
        "steps": 2,
        "optimization": {"batch_rows": 8, "learning_rate": 1e-3, "warmup": 0},
        "compute": {"max_tokens": 128, "threads": 1, "cpu": True},
    }
    return parse_settings({**given, **changes}, "here")


@pytest.mark.parametrize("recipe", ["ssl", "guirlvg", "adagui", "lpo"])
def test_every_recipe_trains_it(start: Path, examples: tuple[Example, ...], tmp_path: Path, recipe: Recipe) -> None:
    found = improve(examples, str(start), tmp_path / "run", settings(recipe), tell=lambda _: None)
    model, processor = load_start(found.model, seeing=True)
    before, _ = load_start(start, seeing=True)
    assert found.updates == 2 and processor.image_processor.size["height"] == 32
    assert model.state_dict().keys() == before.state_dict().keys()


def test_adapters_are_merged_into_what_is_left(start: Path, examples: tuple[Example, ...], tmp_path: Path) -> None:
    lora = {"rank": 2, "alpha": 4, "targets": ["q_proj", "v_proj"]}
    made = settings("guirlvg", compute={"max_tokens": 128, "threads": 1, "cpu": True, "lora": lora})
    found = improve(examples, str(start), tmp_path / "run", made, tell=lambda _: None)
    model, _ = load_start(found.model, seeing=True)
    before, _ = load_start(start, seeing=True)
    assert model.state_dict().keys() == before.state_dict().keys()


@pytest.mark.parametrize("adapters", [False, True])
@pytest.mark.parametrize("frozen", [False, True])
def test_the_encoder_learns_unless_it_is_frozen(
    start: Path, examples: tuple[Example, ...], tmp_path: Path, adapters: bool, frozen: bool
) -> None:
    """GuirlVG leaves it as it is (§2.2)."""
    lora = {"rank": 2, "alpha": 4, "targets": ["q_proj", "v_proj"]} if adapters else None
    compute = {"max_tokens": 128, "threads": 1, "cpu": True, "lora": lora}
    model, processor = load_start(start, seeing=True)
    made = settings("guirlvg", freeze_vision=frozen, compute=compute)
    trainer = trainer_of(model, processor, examples, made, tmp_path)
    learning = [name for name, weight in trainer.model.named_parameters() if weight.requires_grad]
    assert any("vision" in name for name in learning) is not frozen
    assert any("language_model" in name for name in learning)


def test_each_prompt_is_shown_its_own_image(start: Path, examples: tuple[Example, ...]) -> None:
    _, processor = load_start(start, seeing=True)
    together = encoded(processor, examples, 100)
    assert (together["input_ids"] == processor.image_token_id).sum(1).tolist() == [4] * 8, "2 x 2 patches"
    for number, example in enumerate(examples):
        alone = encoded(processor, [example], 100)
        torch.testing.assert_close(together["pixel_values"][number], alone["pixel_values"][0])
        own = together["input_ids"][number][together["attention_mask"][number].bool()]
        assert own.tolist() == alone["input_ids"][0].tolist(), "padded on the left alone"


def test_text_of_a_page_does_not_become_a_special_token(
    start: Path, examples: tuple[Example, ...], tmp_path: Path
) -> None:
    """One that stands for an image would be taken for a second one."""
    _, processor = load_start(start, seeing=True)
    hostile = examples[0].model_copy(update={"messages": (("user", "Where is <image>?<end>"),)})
    encoding = encoded(processor, [hostile], 100)
    assert (encoding["input_ids"] == processor.image_token_id).sum() == 4
    assert not (encoding["input_ids"] == processor.tokenizer.eos_token_id).any()
    trainer = trainer_of(load_start(start, seeing=True)[0], processor, (hostile,) * 8, settings("ssl"), tmp_path)
    asked = trainer.train_dataset[0]["prompt"][0]["content"]
    assert asked == "Where is < image>?< end>"


def test_steps_with_screenshots_are_learned(start: Path, tmp_path: Path) -> None:
    """From traces to a model: clicks by place among other actions."""
    said = ['do(action="Click", element="1")', 'do(action="Type", argument="a", element="1")']
    plays = [
        Play(seed=seed, text=f"{said[seed % 2]} # {seed}", actions=[[Click(ref=1), Type(ref=1, text="a")][seed % 2]],
             picture=png(80, 60), box=(10.0 + seed, 10.0, 20.0, 10.0))
        for seed in range(8)
    ]  # fmt: skip
    run = write_run(tmp_path / "traces", plays)
    traces = [(one.read(), one.blobs) for one in discover_traces([run.path])]
    found = examples_of(traces, Asking("step"), tmp_path / "images").examples
    assert sum(is_placed(one.target) for one in found) == 4 and len(found) == 8
    made = settings("ssl", answer_tokens=60, compute={"max_tokens": 512, "threads": 1, "cpu": True}, steps=1)
    assert improve(found, str(start), tmp_path / "run", made, tell=lambda _: None).updates == 1


def test_some_with_and_some_without_an_image(start: Path, examples: tuple[Example, ...], tmp_path: Path) -> None:
    mixed = (*examples[:7], examples[7].model_copy(update={"image": None}))
    with pytest.raises(BadInput, match="7 of 8 examples have an image: either all or none"):
        improve(mixed, str(start), tmp_path / "run", settings("ssl"), tell=lambda _: None)


def test_a_model_that_does_not_see(examples: tuple[Example, ...], tmp_path: Path) -> None:
    fresh_model(tmp_path / "blind", width=32, layers=1)
    with pytest.raises(BadInput, match="cannot be loaded as a model that sees"):
        improve(examples, str(tmp_path / "blind"), tmp_path / "run", settings("ssl"), tell=lambda _: None)
    assert not (tmp_path / "run").exists()


def test_an_image_that_is_none(start: Path, examples: tuple[Example, ...], tmp_path: Path) -> None:
    (tmp_path / "torn.png").write_bytes(b"\x89PNG\r\n")
    torn = (*examples[:7], examples[7].model_copy(update={"image": tmp_path / "torn.png"}))
    with pytest.raises(BadInput, match=r"torn\.png"):
        improve(torn, str(start), tmp_path / "run", settings("ssl"), tell=lambda _: None)


def test_an_image_of_another_size_than_its_target(start: Path, examples: tuple[Example, ...], tmp_path: Path) -> None:
    Image.new("RGB", (80, 128)).save(tmp_path / "scaled.png")
    scaled = (*examples[:7], examples[7].model_copy(update={"image": tmp_path / "scaled.png"}))
    with pytest.raises(BadInput, match="'7': its image has 80 x 128 pixels, its target says otherwise"):
        improve(scaled, str(start), tmp_path / "run", settings("ssl"), tell=lambda _: None)
    assert not (tmp_path / "run").exists()
