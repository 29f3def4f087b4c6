"""Vision models of common architectures: small, with random weights, in their publishers' layout."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from PIL import Image

from envs.core.errors import BadInput
from tests.tiny_models.vision_language import ARCHITECTURES
from tests.training.grpo.test_groups import ScriptedRewarder
from tests.training.grpo.vision_cases import scored_batch, vision_examples, vision_settings
from training.grpo import trainer as trainer_module
from training.grpo.batch_check import check_fields
from training.grpo.evaluation import _answers, measure
from training.grpo.examples import Example
from training.grpo.run import load_start, train_grpo
from training.grpo.trainer import build_trainer

WITHOUT_TORCHVISION = pytest.mark.skipif(find_spec("torchvision") is not None, reason="torchvision is installed")


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_it_is_measured_trained_saved_and_read_again(
    monkeypatch: pytest.MonkeyPatch, starts: Callable[[str], Path], images: Path, tmp_path: Path, name: str
) -> None:
    """No answer of random weights is right, and groups of equal rewards teach nothing: here the rewards are given."""

    def rewarder(*_: object) -> ScriptedRewarder:
        return ScriptedRewarder([0.0, 1.0, 0.0, 2.0])

    monkeypatch.setattr(trainer_module, "build_rewarder", rewarder)
    learned, held_out = vision_examples(images)[:6], vision_examples(images)[6:]
    result = train_grpo(
        learned, str(starts(name)), tmp_path / "run", vision_settings(), held_out=held_out, log=lambda _: None
    )
    assert result.updates == 2 and [one.update for one in result.held_out] == [0, 2]
    model, processor = load_start(result.model, vision=True)
    before, _ = load_start(starts(name), vision=True)
    assert model.state_dict().keys() == before.state_dict().keys()
    assert any(not torch.equal(model.state_dict()[key], value) for key, value in before.state_dict().items())
    assert measure(model, processor, held_out, vision_settings()) == result.held_out[-1].measured


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_answers_in_a_batch_are_those_of_each_prompt_alone(
    starts: Callable[[str], Path], images: Path, name: str
) -> None:
    """Generation pads the prompts, whose lengths differ; a padded prompt that is read otherwise is answered
    otherwise."""
    model, processor = load_start(starts(name), vision=True)
    examples = vision_examples(images, system=True)[:3]

    def answers(asked: Sequence[Example]) -> list[str]:
        return [text for texts, _ in _answers(model, processor, asked, vision_settings()) for text in texts]

    together = answers(examples)
    assert together == [text for example in examples for text in answers([example])]


def test_what_is_saved_keeps_the_settings_for_videos(
    starts: Callable[[str], Path], images: Path, tmp_path: Path
) -> None:
    """So that whoever has torchvision loads it whole."""
    start = starts("Qwen2.5-VL")
    built = vision_settings(steps=1)
    result = train_grpo(vision_examples(images), str(start), tmp_path / "run", built, log=lambda _: None)
    saved = json.loads((result.model / "processor_config.json").read_text())
    published = json.loads((start / "video_preprocessor_config.json").read_text())
    kept = ("video_processor_type", "patch_size", "merge_size", "temporal_patch_size")
    assert {key: saved["video_processor"][key] for key in kept} == {key: published[key] for key in kept}
    assert saved["processor_class"] == "Qwen2_5_VLProcessor"
    assert saved["image_processor"]["image_processor_type"] == "Qwen2VLImageProcessor"


@pytest.mark.parametrize("side", ["right", "left", None])
def test_prompts_are_padded_on_the_left_whatever_a_checkpoint_says(
    starts: Callable[[str], Path], tmp_path: Path, side: str | None
) -> None:
    folder = shutil.copytree(starts("Qwen2.5-VL"), tmp_path / "model")
    config = json.loads((folder / "tokenizer_config.json").read_text())
    config.pop("padding_side", None)
    (folder / "tokenizer_config.json").write_text(json.dumps({**config, **({"padding_side": side} if side else {})}))
    _, processor = load_start(folder, vision=True)
    texts = ["<|image_pad|>a", "<|image_pad|>abcdef"]
    batch = processor(images=[[Image.new("RGB", (56, 56))]] * 2, text=texts, padding=True, return_tensors="pt")
    assert batch["attention_mask"][0].tolist()[:5] == [0] * 5
    assert batch["mm_token_type_ids"][0].tolist() == [0] * 5 + [1] * 4 + [0]


def test_a_processor_that_pads_on_the_right_does_no_harm(
    starts: Callable[[str], Path], images: Path, tmp_path: Path
) -> None:
    """Fields come from where the prompts do, which nothing is padded of: TRL's second encoding is not used."""
    model, processor = load_start(starts("Qwen2.5-VL"), vision=True)
    trainer = build_trainer(model, processor, vision_examples(images, system=True), vision_settings(kl=0.1), tmp_path)
    processor.tokenizer.padding_side = "right"
    processor.tokenizer.init_kwargs["padding_side"] = "right"
    batch = scored_batch(trainer)
    image = batch["prompt_ids"] == processor.image_token_id
    assert torch.equal(batch["mm_token_type_ids"][:, : image.shape[1]].bool(), image)


@pytest.mark.parametrize(
    ("marks", "says"),
    [
        ([[0, 0, 1, 0], [0, 1, 1, 0]], None),
        ([[1, 0, 0, 0], [0, 1, 1, 0]], "mm_token_type_ids marks padding as part of an image"),
        ([[0, 0, 0, 1, 0], [0, 0, 1, 1, 0]], "mm_token_type_ids has 5 values a row for 4 tokens"),
    ],
)
def test_fields_fit_the_tokens(marks: list[list[int]], says: str | None) -> None:
    mask = torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1]])
    fields = {"mm_token_type_ids": torch.tensor(marks)}
    if says is None:
        check_fields(mask, mask, fields)
        return
    with pytest.raises(BadInput, match=says):
        check_fields(mask, mask, fields)


@WITHOUT_TORCHVISION
def test_a_processor_that_cannot_do_without_torchvision_says_what_to_install(
    starts: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(starts("Qwen2.5-VL"), tmp_path / "model")
    config = json.loads((folder / "preprocessor_config.json").read_text())
    (folder / "preprocessor_config.json").write_text(
        json.dumps({**config, "image_processor_type": "Sam2ImageProcessor"})  # it has no counterpart for Pillow
    )
    with pytest.raises(BadInput, match=r"needs torchvision.*pip install '\.\[vision\]'") as caught:
        load_start(folder, vision=True)
    assert "\n" not in str(caught.value)
