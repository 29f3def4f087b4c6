"""Which family of vision models a spec names, and the coordinates and image sizes of each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from models.base import ModelUnavailable
from models.vision.checkpoints import declare_profile, vision_profile
from models.vision.coordinates import CoordinateSpace, Size
from models.vision.profiles import PROFILES, ResizeRule, VisionProfile, profile_named


def write_checkpoint(folder: Path, config: dict[str, Any], processor: dict[str, Any] | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"vision_config": {}, **config}))
    (folder / "preprocessor_config.json").write_text(json.dumps(processor or {}))
    return folder


def profile_of(spec: str, declared: str = "auto") -> VisionProfile:
    profile = vision_profile(spec, declared)
    assert profile is not None
    return profile


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("vllm:http://127.0.0.1:8000/v1#Qwen/Qwen2.5-VL-7B-Instruct", "qwen2.5-vl"),
        ("vllm:http://127.0.0.1:8000/v1#Qwen/Qwen3-VL-8B-Instruct", "qwen3-vl"),
        ("vllm:http://127.0.0.1:8000/v1#ByteDance-Seed/UI-TARS-1.5-7B", "ui-tars-1.5"),
        ("vllm:http://127.0.0.1:8000/v1#bytedance-research/UI-TARS-7B-DPO", "ui-tars"),
        ("openai:qwen2.5vl:7b", "qwen2.5-vl"),
        ("openai:qwen2-vl-7b-instruct", "qwen2-vl"),
        ("openai:gemma3:4b", "gemma-3"),
        ("openai:gemma3:1b", "general"),  # reads text only
        ("openai:HuggingFaceTB/SmolVLM2-2.2B-Instruct", "smolvlm"),
        ("openai:gpt-4o", "general"),
        ("openai:Qwen/Qwen3-4B", "general"),
        ("gemini:gemini-2.5-pro", "gemini"),
        ("anthropic:claude-sonnet-4-5", "claude"),
        ("scripted:/somewhere/qwen3-vl/answers.json", "general"),
    ],
)
def test_a_served_model_is_recognized_by_its_name(spec: str, name: str) -> None:
    assert profile_of(spec).name == name


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("qwen2_5_vl", "qwen2.5-vl"),
        ("qwen3_vl", "qwen3-vl"),
        ("qwen3_vl_moe", "qwen3-vl"),
        ("smolvlm", "smolvlm"),
        ("idefics3", "smolvlm"),
        ("gemma3", "gemma-3"),
        ("llava", "general"),
    ],
)
def test_a_checkpoint_is_recognized_by_its_config(tmp_path: Path, kind: str, name: str) -> None:
    assert profile_of(f"local:{write_checkpoint(tmp_path / 'gemma-3', {'model_type': kind})}").name == name


@pytest.mark.parametrize(
    "processor",
    [
        {"patch_size": 14, "merge_size": 2, "min_pixels": 3136, "max_pixels": 50_176},
        {"patch_size": 14, "merge_size": 2, "size": {"shortest_edge": 3136, "longest_edge": 50_176}},
    ],
)
def test_the_limits_of_a_checkpoint_are_those_of_its_processor(tmp_path: Path, processor: dict[str, Any]) -> None:
    folder = write_checkpoint(tmp_path, {"model_type": "qwen2_5_vl"}, processor)
    assert profile_of(f"local:{folder}").resize == ResizeRule(28, 3136, 50_176)
    (folder / "preprocessor_config.json").unlink()
    (folder / "processor_config.json").write_text(json.dumps({"image_processor": processor}))
    assert profile_of(f"local:{folder}").resize == ResizeRule(28, 3136, 50_176)
    declare_profile(folder, "qwen2.5-vl")
    assert profile_of(f"local:{folder}").resize == ResizeRule(28, 3136, 50_176), "as after a training with max_pixels"
    assert profile_of(f"local:{folder}", "ui-tars-1.5").resize == ResizeRule(28, 3136, 50_176)


def test_the_limits_are_those_of_the_processor_that_an_adapter_brings(tmp_path: Path) -> None:
    """Symptom: pictures were resized by the base's limits, and then by those of the adapter's processor, which is the
    one that is loaded: coordinates were off by the ratio."""
    base = write_checkpoint(tmp_path / "base", {"model_type": "qwen2_5_vl"})
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    whole = profile_of(f"local:{base}+{adapter}").sent_size(Size(1280, 800))
    limits = {"patch_size": 14, "merge_size": 2, "size": {"shortest_edge": 3136, "longest_edge": 28 * 28 * 100}}
    (adapter / "preprocessor_config.json").write_text(json.dumps(limits))
    small = profile_of(f"local:{base}+{adapter}").sent_size(Size(1280, 800))
    assert whole == Size(1288, 812) and small == Size(336, 196)


def test_a_declaration_takes_precedence(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, {"model_type": "qwen2_5_vl"})
    (folder / "mira.json").write_text('{"prompt_style": "full"}')
    declare_profile(folder, "general")
    assert json.loads((folder / "mira.json").read_text()) == {"prompt_style": "full", "vision_profile": "general"}
    assert profile_of(f"local:{folder}").space is CoordinateSpace.PIXELS
    assert profile_of(f"local:{folder}", "qwen3-vl").name == "qwen3-vl"
    assert profile_of("openai:my-finetune", "unit").space is CoordinateSpace.UNIT


def test_a_served_model_that_is_named_after_its_folder_is_read_from_it(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "policy", {"model_type": "qwen3_vl"})
    assert profile_of(f"vllm:http://127.0.0.1:8000/v1#{folder}").name == "qwen3-vl"
    declare_profile(folder, "general")
    assert profile_of(f"openai:{folder}").name == "general"
    assert profile_of(f"openai:{folder}", "unit").name == "unit"
    (folder / "config.json").write_text('{"model_type": "llama"}')
    assert vision_profile(f"openai:{folder}") is None


def test_an_unknown_declaration_lists_the_known_ones() -> None:
    with pytest.raises(ModelUnavailable, match=r"unknown vision profile 'quen': use one of ui-tars-1.5, .*, unit"):
        vision_profile("openai:gpt-4o", "quen")


def test_models_that_read_text_only(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    assert vision_profile("embedded") is None
    assert vision_profile(f"local:{tmp_path}") is None
    assert vision_profile(f"local:{tmp_path}", "qwen3-vl") is None, "a declaration makes no image encoder"
    unprocessed = write_checkpoint(tmp_path / "trained on text", {"model_type": "qwen3_vl"})
    (unprocessed / "preprocessor_config.json").unlink()
    assert vision_profile(f"local:{unprocessed}") is None


@pytest.mark.parametrize(
    ("name", "taken", "sent"),
    [
        ("general", Size(2560, 1600), Size(2560, 1600)),
        ("qwen3-vl", Size(2560, 1600), Size(2560, 1600)),
        ("qwen2.5-vl", Size(1280, 800), Size(1288, 812)),
        ("claude", Size(1280, 800), Size(1280, 800)),
        ("claude", Size(2560, 1600), Size(1356, 847)),
    ],
)
def test_the_size_in_which_a_picture_is_sent(name: str, taken: Size, sent: Size) -> None:
    profile = profile_named(name)
    assert profile.sent_size(taken) == sent
    assert profile.sent_size(sent) == sent, "it is not resized again"


def test_names_are_unique() -> None:
    assert len({profile.name for profile in PROFILES}) == len(PROFILES)
