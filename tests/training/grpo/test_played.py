"""What GRPO wrote for a model that sees plays through `local:`, on the prompts that it was trained on."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from agent.config import RunConfig
from agent.episode.policy import ActionProposal, ModelPolicy
from agent.run.components import open_components
from agent.run.discover_traces import discover_traces
from envs.core.action_languages import IDS
from envs.core.actions import Click, ClickAt
from models.base import ChatRequest, Image, Message
from models.local.declarations import declare_style
from models.prompting.thought_request import THOUGHT_REQUEST
from models.providers.local_chat import LocalModel
from models.vision.checkpoints import vision_profile
from tests.agent.episode.test_constrained import TURN
from tests.agent.episodes import Play, png, write_run
from tests.models.local.test_local import save_checkpoint
from tests.tiny_models.pictures import FAMILIES, red_square
from tests.training.grpo.test_imitation import byte_model
from training.grpo.evaluation import encode_prompts
from training.grpo.examples import Example
from training.grpo.from_traces import ExampleOptions, extract_examples
from training.grpo.imitation import imitate
from training.grpo.imitation_settings import ImitationSettings
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


async def played(policy: Path) -> tuple[ModelPolicy, ActionProposal]:
    """The policy of a run in constrained decoding, and its answer on a page."""
    setting = {"policy": f"local:{policy}", "planner": "none", "judge": "none", "constrained": "on", "rationale": 0}
    async with open_components(RunConfig.model_validate(setting), "miniwob") as components:
        assert isinstance(components.policy, ModelPolicy)
        return components.policy, await components.policy.propose(TURN)


async def step_example(folder: Path, policy: Path, *, think: bool) -> Example:
    """The prompt of *policy* at play, recorded in a trace and extracted."""
    _, proposal = await played(policy)
    (sent,) = proposal.calls[0].messages
    run = write_run(folder / "traces", [Play(text=sent.text, actions=[Click(ref=2)])])
    traces = [(one.read(), one.blobs) for one in discover_traces([run.path])]
    (example,) = extract_examples(traces, ExampleOptions("step", think=think), folder / "images").examples
    return example


@pytest.mark.parametrize("think", [False, True])
async def test_a_policy_is_asked_for_a_thought_as_in_training(tmp_path: Path, *, think: bool) -> None:
    start = save_checkpoint(tmp_path / "start", context=4_096)
    declare_style(start, "compact")
    example = await step_example(tmp_path, start, think=think)
    assert example.messages[-1][1].endswith(f"\n{THOUGHT_REQUEST}") == think
    compute = {"max_tokens": 4_096, "cpu": True, "lora": "none"}
    options = {
        **SETTINGS,
        "recipe": "adagui",
        "kl": 0.0,
        "answer_tokens": 64,
        "optimization": {"batch_rows": 2},
        "compute": compute,
    }
    how = parse_settings(options, "here")
    result = train_grpo([example], str(start), tmp_path / "run", how, log=lambda _: None)
    policy, proposal = await played(result.model)
    assert tuple((message.role, message.text) for message in proposal.calls[0].messages) == example.messages
    assert policy.thoughts == think


@pytest.mark.slow
async def test_a_constrained_policy_thinks_as_it_was_trained(tmp_path: Path) -> None:
    """It has learned one answer by heart, whose thought the grammar must allow."""
    start = byte_model(tmp_path / "start", context=4_096)
    declare_style(start, "compact")
    example = (await step_example(tmp_path, start, think=True)).model_copy(update={"thought": "Saves."})
    how = ImitationSettings.model_validate(
        {
            "optimization": {"learning_rate": 5e-3, "batch_rows": 1, "schedule": "linear"},
            "compute": {"max_tokens": 4_096, "threads": 1, "cpu": True},
            "steps": 80,
        }
    )
    learned = imitate([example], str(start), tmp_path / "run", how, log=lambda _: None)
    _, proposal = await played(learned.model)
    assert proposal.raw == '<think>Saves.</think>\ndo(action="Click", element="2")'
    assert proposal.action == Click(ref=2) and len(proposal.calls) == 1


def test_a_step_of_a_model_with_coordinates_of_its_own(tmp_path: Path) -> None:
    """The completion names a point from 0 to 1000, the action one in pixels: the language is still known."""
    play = Play(text=IDS.show(ClickAt(x=500, y=250)), actions=[ClickAt(x=40, y=15)], picture=png(80, 60))
    run = write_run(tmp_path / "traces", [play])
    traces = [(one.read(), one.blobs) for one in discover_traces([run.path])]
    (example,) = extract_examples(traces, ExampleOptions("step"), tmp_path / "images").examples
    assert isinstance(example.target, StepTarget)
    in_picture = ClickAt(x=8, y=3)  # which is a fifth of the view
    assert (example.target.language, example.target.action) == ("id", in_picture)
