"""Examples with images of mixed lengths and sizes, and log-probabilities of single rows, for tests of vision models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from PIL import Image, ImageDraw

from training.grpo.examples import Example
from training.grpo.rewards import PointTarget
from training.grpo.settings import GrpoSettings, parse_settings

PER_TOKEN = ("mm_token_type_ids", "token_type_ids")

COLOURS = ("white", "black", "red")


def image_size(number: int) -> tuple[int, int]:
    return 56 + 28 * (number % 3), 84


def draw_images(folder: Path) -> Path:
    """Red squares on white, of three sizes of image; and three images of one size, a colour each."""
    for colour in COLOURS:
        Image.new("RGB", image_size(0), colour).save(folder / f"{colour}.png")
    for number in range(8):
        image = Image.new("RGB", image_size(number), "white")
        ImageDraw.Draw(image).rectangle((number, 10, number + 12, 22), fill="red")
        image.save(folder / f"{number}.png")
    return folder


def vision_examples(images: Path, *, system: bool = False) -> tuple[Example, ...]:
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


def vision_settings(**changes: Any) -> GrpoSettings:
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
    """All rows of the first step, before they are shuffled."""
    return trainer._generate_and_score_completions(next(iter(trainer.get_train_dataloader())))


def row_alone(model: Any, processor: Any, example: Example, completion: torch.Tensor) -> torch.Tensor:
    """(t,) log-probabilities of *completion* after a single prompt, which has no padding. Uses nothing of the package
    under test."""
    from trl.data_utils import prepare_multimodal_messages

    turns = [{"role": role, "content": text} for role, text in example.messages]
    turns = prepare_multimodal_messages(turns, images=[Image.open(str(example.image))])
    inputs = processor.apply_chat_template(
        [turns], add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt"
    )
    length = inputs["input_ids"].shape[1]
    inputs["input_ids"] = torch.cat([inputs["input_ids"], completion[None]], 1)
    inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    for name in PER_TOKEN:
        if name in inputs:
            inputs[name] = torch.cat([inputs[name], torch.zeros_like(completion)[None]], 1)
    with torch.no_grad():
        scores = model(**inputs).logits[0, length - 1 : -1].log_softmax(-1)
    return scores.gather(-1, completion[:, None]).squeeze(-1)
