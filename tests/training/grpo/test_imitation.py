"""`mira train sft` on examples: rows, a text model, vision models, and what a recipe changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from benchmarks.toy_models.puzzles import fresh_model
from envs.core.actions import Click, ClickAt
from envs.core.errors import BadInput
from envs.core.run_lock import LOCK_NAME, RunLock, RunLocked
from models.vision.coordinates import Size
from models.vision.grounding import AnswerShape, GroundingPrompt, declared_form
from tests.mira_command import mira
from tests.training.grpo.rewards.examples import CLICK, POINT
from tests.training.grpo.vision_cases import row_alone, vision_examples
from training.engine.checkpoints import is_adapter
from training.engine.half_weights import hold_frozen_in_bfloat16
from training.engine.settings import Compute
from training.grpo import imitation
from training.grpo.completion_length import asked_shape
from training.grpo.evaluation import encode_prompts
from training.grpo.examples import Example, holds_examples, write_examples
from training.grpo.imitation import answer_to_imitate, imitate
from training.grpo.imitation_settings import ImitationSettings
from training.grpo.prompts import PromptSettings
from training.grpo.rewards import MazeTarget, StepTarget
from training.grpo.run import load_start
from training.serving.export import export


def example(target: Any, thought: str | None = None) -> Example:
    return Example(name="e", messages=(("user", "Where?"),), target=target, thought=thought)


@pytest.mark.parametrize(
    ("target", "thought", "shape", "scale", "answer"),
    [
        (POINT, None, AnswerShape.POINT, (1.0, 1.0), "130, 215"),
        (POINT, None, AnswerShape.POINT, (2.0, 2.0), "65, 108"),  # resized to a half
        (POINT, None, AnswerShape.POINT, (1000.0, 500.0), "0.1300, 0.430"),  # 0 to 1
        (POINT, None, AnswerShape.BOX, (1.0, 1.0), "[100, 200, 160, 230]"),
        (POINT, None, AnswerShape.JSON_BOX, (2.0, 2.0), '[{"bbox_2d": [50, 100, 80, 115]}]'),
        (POINT, "here", AnswerShape.POINT, (1.0, 1.0), "<think>here</think>\n130, 215"),
        (POINT, "", AnswerShape.POINT, (1.0, 1.0), "<think></think>\n130, 215"),
        (CLICK, "", AnswerShape.POINT, (1.0, 1.0), '<think></think>\ndo(action="Click At", x=130, y=215)'),
        (CLICK, None, AnswerShape.POINT, (2.0, 0.5), 'do(action="Click At", x=65, y=430)'),
        (StepTarget(action=Click(ref=7)), None, AnswerShape.BOX, (2.0, 2.0), 'do(action="Click", element="7")'),
    ],
)
def test_the_answer_of_an_example(
    target: Any, thought: str | None, shape: AnswerShape, scale: tuple[float, float], answer: str
) -> None:
    assert answer_to_imitate(example(target, thought), shape, scale) == answer


def test_a_question_is_answered_in_the_shape_that_it_asks_for(tmp_path: Path) -> None:
    """Also without `prompt`, as of `mira train examples --answer box`; other questions in the shape of `prompt`."""
    start = fresh_model(tmp_path / "start", width=32, layers=1)
    boxed = example(POINT).model_copy(
        update={"messages": (("user", GroundingPrompt(shape=AnswerShape.BOX).where_is("it", Size(1000, 500)).text),)}
    )
    assert asked_shape(boxed, None) == AnswerShape.BOX
    assert asked_shape(example(POINT), None) == AnswerShape.POINT
    assert asked_shape(example(POINT), PromptSettings(answer=AnswerShape.JSON_BOX)) == AnswerShape.JSON_BOX
    result = imitate([boxed], str(start), tmp_path / "run", settings(steps=1), log=lambda _: None)
    tokens = load_start(start, vision=False)[1].encode("[100, 200, 160, 230]", add_special_tokens=False)
    assert result.tokens == len(tokens) + 1, "and the end"


def test_of_two_concurrent_fine_tunings_one_is_refused(tmp_path: Path) -> None:
    start = fresh_model(tmp_path / "start", width=32, layers=1)
    out = tmp_path / "run"
    out.mkdir()
    with RunLock(out), pytest.raises(RunLocked, match="is in use by"):
        imitate([example(POINT)], str(start), out, settings(steps=1), log=lambda _: None)
    assert [path.name for path in out.iterdir()] == [LOCK_NAME]


def settings(**changes: Any) -> ImitationSettings:
    values = {
        "optimization": {"learning_rate": 5e-3, "batch_rows": 4, "epochs": 1},
        "compute": {"max_tokens": 400, "threads": 1, "cpu": True},
        "steps": 8,
    }
    return ImitationSettings.model_validate({**values, **changes})


def test_a_text_model_learns_thoughts_and_answers(tmp_path: Path) -> None:
    fresh_model(tmp_path / "start", width=32, layers=1)
    steps = [
        Example(
            name=str(number),
            messages=(("user", f"Press {number}"),),
            target=StepTarget(action=Click(ref=number)),
            thought="" if number % 2 else "It is even.",
        )
        for number in range(4)
    ]
    result = imitate(steps, str(tmp_path / "start"), tmp_path / "run", settings(steps=40), log=lambda _: None)
    assert (result.examples, result.thoughts) == (4, 2)
    assert result.first_loss is not None and result.last_loss is not None and result.last_loss < result.first_loss / 2
    again = imitate(steps, str(tmp_path / "start"), tmp_path / "run", settings(steps=40), log=lambda _: None)
    assert again == result  # done: nothing is trained again
    with pytest.raises(BadInput, match="holds a fine-tuning with other settings of steps: restore"):
        imitate(steps, str(tmp_path / "start"), tmp_path / "run", settings(steps=41), log=lambda _: None)
    other = [step.model_copy(update={"thought": "Other."}) for step in steps]
    with pytest.raises(BadInput, match="holds a fine-tuning with other examples: restore"):
        imitate(other, str(tmp_path / "start"), tmp_path / "run", settings(steps=40), log=lambda _: None)


def test_a_tracker_gets_the_loss_and_an_unknown_one_is_refused(tmp_path: Path) -> None:
    start = str(fresh_model(tmp_path / "start", width=32, layers=1))
    examples = [example(StepTarget(action=Click(ref=7)))]
    with pytest.raises(BadInput, match="unknown tracker 'foo'"):
        imitate(examples, start, tmp_path / "run", settings(steps=2, report_to=["foo"]), log=lambda _: None)
    assert not (tmp_path / "run").exists()
    imitate(examples, start, tmp_path / "run", settings(steps=2, report_to=["tensorboard"]), log=lambda _: None)
    assert list((tmp_path / "run" / "tensorboard").rglob("events.*"))


def test_a_rate_that_teaches_nothing_is_a_warning_and_a_shared_base_is_refused(tmp_path: Path) -> None:
    """A warning, because the recipes have the papers' rates, as in GRPO."""
    start = fresh_model(tmp_path / "start", width=32, layers=1)
    examples = [example(StepTarget(action=Click(ref=7)))]
    lines: list[str] = []
    low = settings(steps=1, optimization={"learning_rate": 1e-6})
    imitate(examples, str(start), tmp_path / "low", low, log=lines.append)
    assert len(lines) == 1
    assert lines[0].startswith("warning: optimization.learning_rate 1e-06 would teach nothing: ")
    imitate(examples, str(start), tmp_path / "enough", settings(steps=1), log=lines.append)
    assert len(lines) == 1
    with pytest.raises(BadInput, match=r"compute.shared_base is for the critics and the actor of a phase"):
        ImitationSettings.load(None, ["compute.shared_base=true"])


@pytest.mark.parametrize(
    ("name", "adapters"),
    [
        ("Qwen2.5-VL", False),
        ("Qwen2.5-VL", True),
        ("Qwen3-VL", False),
        ("Gemma 3", False),
        ("SmolVLM", False),
        ("LLaVA", False),
    ],
)
def test_vision_models_learn(
    starts: Callable[[str], Path], images: Path, tmp_path: Path, name: str, adapters: bool
) -> None:
    """The logged loss of the first step is that of each row alone, without this package's encoding."""
    examples = vision_examples(images, system=False)[:4]
    lora = {"rank": 4, "alpha": 8, "targets": ["q_proj", "v_proj"]} if adapters else None
    compute = {"max_tokens": 900, "threads": 1, "cpu": True, "lora": lora}
    how = settings(compute=compute, freeze_vision=True, steps=4)
    result = imitate(examples, str(starts(name)), tmp_path / "run", how, log=lambda _: None)
    model, processor = load_start(starts(name), vision=True)
    tokenizer = processor.tokenizer
    total, count = 0.0, 0
    for each in examples:
        text = answer_to_imitate(each, AnswerShape.POINT, (1.0, 1.0))
        answer = torch.tensor([*tokenizer.encode(text, add_special_tokens=False), tokenizer.eos_token_id])
        total -= float(row_alone(model, processor, each, answer).sum())
        count += len(answer)
    assert result.first_loss == pytest.approx(total / count, abs=2e-3) and result.tokens == count
    assert result.first_loss is not None and result.last_loss is not None and result.last_loss < result.first_loss
    learned = load_start(result.model, vision=True)[0].state_dict()
    frozen = [key for key in learned if "vision" in key or "visual" in key]
    assert frozen and all(torch.equal(learned[key], model.state_dict()[key]) for key in frozen)


@pytest.mark.parametrize("name", ["Qwen2.5-VL", "SmolVLM"])
@pytest.mark.parametrize("adapters", [True, False], ids=["adapters", "frozen encoder"])
def test_frozen_weights_in_bfloat16_learn_the_same_and_are_saved_in_float32(
    starts: Callable[[str], Path],
    images: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    *,
    adapters: bool,
) -> None:
    lora = {"rank": 4, "alpha": 8, "targets": ["q_proj", "v_proj"]} if adapters else None
    compute = {"max_tokens": 900, "threads": 1, "cpu": True, "bf16": True, "lora": lora}
    how = settings(compute=compute, freeze_vision=not adapters, steps=2)
    trained: list[torch.nn.Module] = []

    def hold(model: torch.nn.Module, given: Compute) -> torch.nn.Module:
        trained.append(hold_frozen_in_bfloat16(model, given))
        return model

    def leave(model: torch.nn.Module, given: Compute) -> torch.nn.Module:
        del given
        return model

    saved: list[dict[str, torch.Tensor]] = []
    for way in (hold, leave):
        monkeypatch.setattr(imitation, "hold_frozen_in_bfloat16", way)
        out = tmp_path / way.__name__
        result = imitate(vision_examples(images)[:2], str(starts(name)), out, how, log=lambda _: None)
        saved.append(load_file(result.model / "model.safetensors"))
    frozen = {weight.dtype for weight in trained[0].parameters() if not weight.requires_grad}
    assert torch.bfloat16 in frozen
    assert {weight.dtype for weight in trained[0].parameters() if weight.requires_grad} == {torch.float32}
    assert {weight.dtype for weight in saved[0].values()} == {torch.float32}
    assert all(torch.equal(saved[0][key], saved[1][key]) for key in saved[1])
    assert is_adapter(out / "adapter") == adapters
    if adapters:
        exported = export(starts(name), out / "adapter", tmp_path / "exported")
        again = load_file(tmp_path / "exported" / "model.safetensors")
        assert exported.max_difference < 1e-4 and all(torch.allclose(again[key], saved[1][key]) for key in again)
    before = load_file(starts(name) / "model.safetensors")
    assert any(not torch.equal(saved[0][key], before[key]) for key in before), "it has learned"


def test_the_baseline_of_guirlvg_asks_for_a_box_in_json(
    starts: Callable[[str], Path], images: Path, tmp_path: Path
) -> None:
    asked = [
        one.model_copy(update={"messages": (("user", GroundingPrompt().where_is("it", Size(*one.target.size)).text),)})
        for one in vision_examples(images)[:2]
        if one.target.kind == "point"
    ]
    row = ImitationSettings.load(
        None, ("steps=1", "compute.cpu=true", "compute.lora.targets=['q_proj']"), "guirlvg/sft"
    )
    assert row.compute.needed_lora.rank == 64 and row.optimization.batch_rows == 4 and row.freeze_vision
    result = imitate(asked, str(starts("Qwen2.5-VL")), tmp_path / "run", row, log=lambda _: None)
    form = declared_form(result.model)
    assert form is not None and (form.shape, form.think) == (AnswerShape.JSON_BOX, False)


def test_too_long_rows_are_named_before_training(starts: Callable[[str], Path], images: Path, tmp_path: Path) -> None:
    """The last example is the longest: it would be reached after hours."""
    examples, start = vision_examples(images), starts("Qwen2.5-VL")
    _, processor = load_start(start, vision=True)
    lengths = [encode_prompts(processor, [one], 1)["input_ids"].shape[1] for one in examples]
    assert max(lengths[:-1]) < lengths[-1] - 1
    short = settings(compute={"max_tokens": lengths[-1], "threads": 1, "cpu": True})
    says = rf"1 of 8 .* more tokens than compute\.max_tokens {lengths[-1]}; the prompt of '7' has {lengths[-1]}: raise"
    with pytest.raises(BadInput, match=says):
        imitate(examples, str(start), tmp_path / "run", short, log=lambda _: None)
    assert not (tmp_path / "run").exists()


def test_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    fresh_model(Path("start"), width=32, layers=1)
    write_examples(Path("steps.jsonl"), [example(StepTarget(action=ClickAt(x=1, y=2)), "")])
    assert holds_examples(Path("steps.jsonl")) and not holds_examples(Path("start"))
    words = ("train", "sft", "steps.jsonl", "--start", "start", "--set", "steps=1", "--set", "compute.cpu=true")
    assert mira(monkeypatch, *words, "-o", "run", "--recipe", "ssl/sft", "--json") == 0
    assert json.loads(capsys.readouterr().out)["examples"] == 1
    assert json.loads(Path("run/imitation.json").read_text())["settings"]["optimization"]["weight_decay"] == 0.01
    assert mira(monkeypatch, *words, "-o", "other", "--recipe", "ssl/tiered") == 2
    assert "is not supervised: mira train grpo" in capsys.readouterr().err
    assert mira(monkeypatch, "train", "sft", "steps.jsonl", "start", "-o", "other") == 2
    assert "give runs or examples, not both" in capsys.readouterr().err
    assert mira(monkeypatch, "train", "sft", "start", "-o", "other", "--recipe", "ssl/sft") == 2
    assert "--recipe is for files of examples" in capsys.readouterr().err


def byte_model(out: Path, context: int = 512) -> Path:
    """A tiny Llama that reads and writes bytes."""
    from transformers import LlamaConfig, LlamaForCausalLM

    from tests.tiny_models.vision_language import byte_tokenizer
    from training.engine.checkpoints import save_policy

    tokenizer = byte_tokenizer(("<end>",), eos_token="<end>", pad_token="<end>")
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=context,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    save_policy(LlamaForCausalLM(config), tokenizer, out)
    return out


@pytest.mark.slow
async def test_play_reads_thoughts_of_what_was_trained_and_counts_their_tokens(tmp_path: Path) -> None:
    """A local model that has learned one answer by heart, with a thought and with an empty one."""
    from models.base import ChatRequest, Message
    from models.local.declarations import thoughts_of_spec
    from models.specs import make_model

    byte_model(tmp_path / "start")
    hard = Example(
        name="hard",
        messages=(("user", "hard"),),
        target=StepTarget(action=Click(ref=7)),
        thought="It is seven.",
    )
    easy = hard.model_copy(update={"name": "easy", "messages": (("user", "easy"),), "thought": ""})
    how = settings(optimization={"learning_rate": 5e-3, "batch_rows": 2, "schedule": "linear"}, steps=120)
    result = imitate([hard, easy], str(tmp_path / "start"), tmp_path / "run", how, log=lambda _: None)
    assert thoughts_of_spec(f"local:{result.model}") and not thoughts_of_spec(f"local:{tmp_path / 'start'}")
    model = make_model(f"local:{result.model}")
    try:
        thoughtful, quick = [
            await model.complete(ChatRequest((Message("user", word),), max_tokens=100)) for word in ("hard", "easy")
        ]
    finally:
        await model.aclose()
    assert thoughtful.text == '<think>It is seven.</think>\ndo(action="Click", element="7")'
    assert quick.text == '<think></think>\ndo(action="Click", element="7")'
    assert thoughtful.usage.tokens_thinking > 0 and quick.usage.tokens_thinking == 0
    for reply in (thoughtful, quick):
        assert reply.completion_token_ids is not None
        assert reply.usage.tokens_thinking + reply.usage.tokens_out == len(reply.completion_token_ids)


def test_grpo_keeps_the_declaration_of_its_start(tmp_path: Path) -> None:
    from models.local.declarations import declare_thoughts, declared_thoughts
    from models.prompting.thought_request import THOUGHT_REQUEST
    from training.grpo.run import train_grpo
    from training.grpo.settings import parse_settings

    start = fresh_model(tmp_path / "start", width=32, layers=1)
    declare_thoughts(start, "asked")
    options = {
        "recipe": "adagui/full",
        "group": 2,
        "answer_tokens": 32,
        "steps": 1,
        "optimization": {"batch_rows": 2},
        "compute": {"max_tokens": 256, "cpu": True, "lora": "none"},
        "kl": 0.0,
    }
    maze = MazeTarget(rows=("S.G",), path="RR")
    step = StepTarget(action=Click(ref=7))
    asking = Example(name="a", messages=(("user", f"Press it.\n{THOUGHT_REQUEST}"),), target=step)
    declared: dict[str, str | None] = {}
    for name, examples in {
        "puzzle": [example(maze)],
        "plain": [example(step)],
        "mixed": [asking, example(step)],
    }.items():
        how = parse_settings(options, "here")
        declared[name] = declared_thoughts(
            train_grpo(examples, str(start), tmp_path / name, how, log=lambda _: None).model
        )
    assert declared == {"puzzle": "asked", "plain": "tags", "mixed": "tags"}
