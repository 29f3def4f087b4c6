"""What TRL is given to sample with vLLM, in an environment without vLLM."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envs.core.errors import BadInput
from tests.training.grpo.vision_cases import vision_examples, vision_settings
from training.grpo import vllm_sampling
from training.grpo.evaluation import encode_prompts
from training.grpo.run import load_start, train_grpo
from training.grpo.trainer import trl_arguments
from training.grpo.vllm_sampling import check_image_prompts, vllm_arguments

COLOCATED = {
    "use_vllm": True,
    "vllm_mode": "colocate",
    "vllm_server_base_url": None,
    "vllm_gpu_memory_utilization": 0.3,
    "vllm_tensor_parallel_size": 1,
    "vllm_enable_sleep_mode": False,
    "vllm_max_model_length": 256,
    "vllm_importance_sampling_correction": True,
    "vllm_importance_sampling_mode": "sequence_mask",
    "vllm_importance_sampling_clip_max": 3.0,
}


def found(name: str) -> str:
    return name


def missing(name: str) -> None:
    del name


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm_sampling, "find_spec", found)


@pytest.mark.parametrize(
    ("vllm", "changed"),
    [
        ({}, {}),
        ({"memory": 0.5, "tensor_parallel": 2}, {"gpu_memory_utilization": 0.5, "tensor_parallel_size": 2}),
        ({"sleep": True}, {"enable_sleep_mode": True}),
        ({"correction": False}, {"importance_sampling_correction": False}),
        ({"max_ratio": 5.0}, {"importance_sampling_clip_max": 5.0}),
        (
            {"mode": "server", "url": "http://127.0.0.1:8000"},
            {"mode": "server", "server_base_url": "http://127.0.0.1:8000"},
        ),
    ],
    ids=str,
)
@pytest.mark.usefixtures("installed")
def test_settings_become_arguments_of_trl(tmp_path: Path, vllm: dict[str, Any], changed: dict[str, Any]) -> None:
    settings = vision_settings(vllm=vllm)
    expected = COLOCATED | {f"vllm_{name}": value for name, value in changed.items()}
    assert vllm_arguments(settings) == expected
    arguments = trl_arguments(tmp_path, settings, 16)
    assert {name: getattr(arguments, name) for name in expected} == expected


def test_without_the_package_sampling_with_vllm_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm_sampling, "find_spec", missing)
    assert vllm_arguments(vision_settings()) == {"use_vllm": False}
    with pytest.raises(BadInput, match=r"needs the package vllm .*: pip install"):
        vllm_arguments(vision_settings(vllm={}))


def test_image_prompts_that_leave_no_room_are_refused(
    starts: Callable[[str], Path], images: Path, tmp_path: Path
) -> None:
    """vLLM is started with compute.max_tokens, and no prompt with an image is cut."""
    start, examples = starts("Qwen2.5-VL"), vision_examples(images)
    _, processor = load_start(start, vision=True)
    longest = max(encode_prompts(processor, [one], 1)["input_ids"].shape[1] for one in examples)

    def settings(room: int, **vllm: Any) -> Any:
        compute = {"max_tokens": room, "threads": 1, "cpu": True}
        return vision_settings(vllm=vllm, compute=compute, answer_tokens=6, optimization={"batch_rows": 8})

    check_image_prompts(examples, settings(longest + 6), processor)
    with pytest.raises(
        BadInput, match=rf"1 of 8 prompts .* that of '7' has {longest} tokens: raise compute.max_tokens"
    ):
        check_image_prompts(examples, settings(longest + 5), processor)
    server = settings(longest + 5, mode="server", url="http://127.0.0.1:8000")
    check_image_prompts(examples, server, processor)
    limited = server.model_copy(update={"max_pixels": 28 * 28 * 2})
    with pytest.raises(BadInput, match="a server resizes images as its checkpoint says, not to min_pixels"):
        check_image_prompts(examples, limited, processor)
    with pytest.raises(BadInput, match=r"that of '7' has .* or lower max_pixels"):
        train_grpo(examples, str(start), tmp_path / "run", settings(longest + 5), log=lambda _: None)
    assert not (tmp_path / "run").exists()
