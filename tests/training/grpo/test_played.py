"""What GRPO wrote for a model that sees plays through `local:`, on the prompts that it was trained on."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from agent.run.discover_traces import discover_traces
from envs.core.action_languages import IDS
from envs.core.actions import ClickAt
from models.base import ChatRequest, Image, Message
from models.providers.local_chat import LocalModel
from models.vision.checkpoints import vision_profile
from tests.agent.episodes import Play, png, write_run
from tests.tiny_models.pictures import FAMILIES, red_square
from training.grpo.evaluation import encode_prompts
from training.grpo.examples import Example
from training.grpo.from_traces import ExampleOptions, extract_examples
from training.grpo.rewards import PointTarget, StepTarget
from training.grpo.run import load_start, train_grpo
from training.grpo.settings import parse_settings

SETTINGS = {
    "recipe": "ssl",
    "group": 2,
    "answer_tokens": 8,
    "steps": 1,
    "optimization": {"batch_rows": 4, "learning_rate": 1e-3, "warmup": 0},
    "compute": {"max_tokens": 512, "threads": 1, "cpu": True},
}


def examples(folder: Path) -> tuple[Example, ...]:
    built: list[Example] = []
    for number, width in enumerate((60, 90)):
        (folder / f"{number}.png").write_bytes(red_square(width, 60))
        messages = (("system", "Point at it."), ("user", f"Where is it? {number}"))
        target = PointTarget(box=(10, 10, 40, 40), size=(width, 60))
        values = {"name": str(number), "messages": messages, "target": target, "image": folder / f"{number}.png"}
        built.append(Example.model_validate(values))
    return tuple(built)


@pytest.mark.parametrize("name", ["qwen2.5-vl", "smolvlm"])
async def test_a_trained_model_plays(tmp_path: Path, name: str) -> None:
    """It answers in pixels of the image, which its rewards measure, whatever its family does."""
    start = FAMILIES[name](tmp_path)
    learned = examples(tmp_path)
    result = train_grpo(learned, str(start), tmp_path / "run", parse_settings(SETTINGS, "here"), log=lambda _: None)
    profile = vision_profile(f"local:{result.model}")
    assert profile is not None and profile.name == "general"
    model = LocalModel.load(result.model)
    messages = (Message("system", "Point at it."), Message("user", "Where is it? 1", (Image(red_square(90, 60)),)))
    reply = await model.complete(ChatRequest(messages, grammar='root ::= "(25, 25)" | "no"', deadline_s=600))
    assert reply.text in ("(25, 25)", "no")
    _, processor = load_start(result.model, vision=True)
    trained = encode_prompts(processor, learned[1:], 512)
    assert reply.prompt_token_ids == tuple(trained["input_ids"][0].tolist())
    played = model._vision.encode_pictures(messages, 512) if model._vision else None
    assert played is not None
    torch.testing.assert_close(played.inputs["pixel_values"], trained["pixel_values"])


def test_a_step_of_a_model_with_coordinates_of_its_own(tmp_path: Path) -> None:
    """The completion names a point from 0 to 1000, the action one in pixels: the language is still known."""
    play = Play(text=IDS.show(ClickAt(x=500, y=250)), actions=[ClickAt(x=40, y=15)], picture=png(80, 60))
    run = write_run(tmp_path / "traces", [play])
    traces = [(one.read(), one.blobs) for one in discover_traces([run.path])]
    (example,) = extract_examples(traces, ExampleOptions("step"), tmp_path / "images").examples
    assert isinstance(example.target, StepTarget)
    in_picture = ClickAt(x=8, y=3)  # which is a fifth of the view
    assert (example.target.language, example.target.action) == ("id", in_picture)
