"""Vision models of common architectures: small, with random weights, in their publishers' layout."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image, ImageDraw
from transformers import AutoModelForImageTextToText
from trl.data_utils import prepare_multimodal_messages

from envs.core.errors import BadInput
from tests.tiny_models.vision_language import ARCHITECTURES
from tests.training.grpo.test_groups import ScriptedRewarder
from training.grpo import trainer as trainer_module
from training.grpo.batch_check import check_fields, padded_marks
from training.grpo.evaluation import measure
from training.grpo.examples import Example
from training.grpo.rewards import PointTarget
from training.grpo.run import load_start, train_grpo
from training.grpo.settings import GrpoSettings, parse_settings
from training.grpo.trainer import build_trainer

WITHOUT_TORCHVISION = pytest.mark.skipif(find_spec("torchvision") is not None, reason="torchvision is installed")


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    built: dict[str, Path] = {}

    def start(name: str) -> Path:
        if name not in built:
            built[name] = ARCHITECTURES[name](tmp_path_factory.mktemp("start") / "model")
        return built[name]

    return start


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Red squares on white, of three sizes of image."""
    folder = tmp_path_factory.mktemp("images")
    for number in range(8):
        image = Image.new("RGB", image_size(number), "white")
        ImageDraw.Draw(image).rectangle((number, 10, number + 12, 22), fill="red")
        image.save(folder / f"{number}.png")
    return folder


def image_size(number: int) -> tuple[int, int]:
    return 56 + 28 * (number % 3), 84


def extract_examples(images: Path, *, system: bool = False) -> tuple[Example, ...]:
    """Prompts of different lengths, with a system prompt before the image or without."""
    built: list[Example] = []
    for number in range(8):
        question = ("user", "Where is it?" + "!" * 7 * number)
        messages = (("system", "Point at it."), question) if system else (question,)
        target = PointTarget(box=(number, 10, number + 12, 22), size=image_size(number))
        built.append(
            Example.model_validate(
                {"name": str(number), "messages": messages, "target": target, "image": images / f"{number}.png"}
            )
        )
    return tuple(built)


def settings(**changes: Any) -> GrpoSettings:
    options: dict[str, Any] = {
        "recipe": "ssl",
        "group": 4,
        "answer_tokens": 6,
        "micro_rows": 8,
        "steps": 2,
        "optimization": {"batch_rows": 16, "learning_rate": 1e-3, "warmup": 0},
        "compute": {"max_tokens": 256, "threads": 1, "cpu": True},
    }
    return parse_settings({**options, **changes}, "here")


def scored_batch(trainer: Any) -> dict[str, Any]:
    """All rows of the first step, before they are shuffled, and which example each is of."""
    rows = next(iter(trainer.get_train_dataloader()))
    return {**trainer._generate_and_score_completions(rows), "questions": [row["index"] for row in rows]}


def alone(model: Any, processor: Any, example: Example, completion: torch.Tensor) -> torch.Tensor:
    """Log-probabilities of *completion* after one prompt that nothing is padded of."""
    turns = [{"role": role, "content": text} for role, text in example.messages]
    turns = prepare_multimodal_messages(turns, images=[Image.open(str(example.image))])
    inputs = processor.apply_chat_template(
        [turns], add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt"
    )
    length = inputs["input_ids"].shape[1]
    inputs["input_ids"] = torch.cat([inputs["input_ids"], completion[None]], 1)
    inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    for name in ("mm_token_type_ids", "token_type_ids"):
        if name in inputs:
            inputs[name] = torch.cat([inputs[name], torch.zeros_like(completion)[None]], 1)
    with torch.no_grad():
        scores = model(**inputs).logits[0, length - 1 : -1].log_softmax(-1)
    return scores.gather(-1, completion[:, None]).squeeze(-1)


@pytest.mark.parametrize("system", [False, True], ids=["the image first", "a system prompt first"])
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_log_probabilities_in_a_batch_are_those_of_each_row_alone(
    starts: Callable[[str], Path], images: Path, tmp_path: Path, name: str, system: bool
) -> None:
    """Log-probabilities of the trainer equal those of the plain model."""
    examples = extract_examples(images, system=system)
    model, processor = load_start(starts(name), vision=True)
    trainer = build_trainer(model, processor, examples, settings(kl=0.1), tmp_path)
    batch = scored_batch(trainer)
    questions = batch.pop("questions")
    assert (batch["prompt_mask"] == 0).any(), "prompts of different lengths are padded"
    plain = AutoModelForImageTextToText.from_pretrained(starts(name), dtype=torch.float32).eval()
    _, reader = load_start(starts(name), vision=True)
    for row, index in enumerate(questions):
        mask = batch["completion_mask"][row].bool()
        result = batch["ref_per_token_logps"][row][mask]
        expected = alone(plain, reader, examples[index], batch["completion_ids"][row][mask])
        torch.testing.assert_close(result, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_it_is_measured_trained_saved_and_read_again(
    monkeypatch: pytest.MonkeyPatch, starts: Callable[[str], Path], images: Path, tmp_path: Path, name: str
) -> None:
    """No answer of random weights is right, and groups of equal rewards teach nothing: here the rewards are given."""

    def rewarder(*_: object) -> ScriptedRewarder:
        return ScriptedRewarder([0.0, 1.0, 0.0, 2.0])

    monkeypatch.setattr(trainer_module, "build_rewarder", rewarder)
    learned, held_out = extract_examples(images)[:6], extract_examples(images)[6:]
    result = train_grpo(learned, str(starts(name)), tmp_path / "run", settings(), held_out=held_out, log=lambda _: None)
    assert result.updates == 2 and [one.update for one in result.held_out] == [0, 2]
    model, processor = load_start(result.model, vision=True)
    before, _ = load_start(starts(name), vision=True)
    assert model.state_dict().keys() == before.state_dict().keys()
    assert any(not torch.equal(model.state_dict()[key], value) for key, value in before.state_dict().items())
    assert measure(model, processor, held_out, settings()) == result.held_out[-1].measured


def test_what_is_saved_keeps_the_settings_for_videos(
    starts: Callable[[str], Path], images: Path, tmp_path: Path
) -> None:
    """So that whoever has torchvision loads it whole."""
    start = starts("Qwen2.5-VL")
    built = settings(steps=1)
    result = train_grpo(extract_examples(images), str(start), tmp_path / "run", built, log=lambda _: None)
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
    trainer = build_trainer(model, processor, extract_examples(images, system=True), settings(kl=0.1), tmp_path)
    processor.tokenizer.padding_side = "right"
    processor.tokenizer.init_kwargs["padding_side"] = "right"
    batch = scored_batch(trainer)
    image = batch["prompt_ids"] == processor.image_token_id
    assert torch.equal(batch["mm_token_type_ids"][:, : image.shape[1]].bool(), image)


def on_the_right(*options: Any) -> dict[str, torch.Tensor]:
    """The fields of a processor that pads on the right."""
    return {
        name: torch.stack([_unpadded_positions(row) for row in value]) for name, value in padded_marks(*options).items()
    }


def _unpadded_positions(row: torch.Tensor) -> torch.Tensor:
    """Image tokens where they would be without the padding of the shorter prompts, as far as this is known."""
    first = int(row.nonzero()[0])
    return row.roll(min(0, 20 - first))


def one_off(*options: Any) -> dict[str, torch.Tensor]:
    return {name: value.roll(-1, 1) for name, value in padded_marks(*options).items()}


@pytest.mark.parametrize("fault", [on_the_right, one_off])
@pytest.mark.parametrize("system", [False, True])
@pytest.mark.parametrize("name", ["Qwen2.5-VL", "Qwen3-VL"])
def test_a_misaligned_field_is_refused_before_anything_is_learned(
    *,
    starts: Callable[[str], Path],
    images: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    system: bool,
    fault: Any,
) -> None:
    monkeypatch.setattr(trainer_module, "padded_marks", fault)
    examples = extract_examples(images, system=system)
    with pytest.raises(BadInput, match=r"marks padding|inputs in a batch differ") as caught:
        train_grpo(examples, str(starts(name)), tmp_path / "run", settings(), log=lambda _: None)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run" / "model").exists()


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
    with pytest.raises(BadInput, match=r"needs torchvision.*pip install 'mira-web\[vision\]'") as caught:
        load_start(folder, vision=True)
    assert "\n" not in str(caught.value)
