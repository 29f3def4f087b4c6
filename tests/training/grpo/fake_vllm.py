"""A sampler at the place of vLLM's `LLM`, for environments without vLLM: transformers behind the part of vLLM's
interface that TRL calls. As vLLM does, it reads model and processor from the folder that it is given, expands the
placeholder of each image by itself, and computes with the weights that it was sent."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest
import torch

from models.local.safe_loading import WEIGHTS
from models.local.vision_loading import load_processor
from training.grpo import vllm_sampling


class FakeVllm:
    """The last instance is `FakeVllm.last`."""

    last: Self

    def __init__(self, *, model: str, dtype: str, **_: Any) -> None:
        from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

        sees = any((Path(model) / name).exists() for name in ("preprocessor_config.json", "processor_config.json"))
        kind: Any = AutoModelForImageTextToText if sees else AutoModelForCausalLM
        self.model = kind.from_pretrained(model, dtype=getattr(torch, dtype), **WEIGHTS).eval()
        self.processor = load_processor(Path(model)) if sees else None
        special = [] if self.processor is None else self.processor.tokenizer.all_special_ids
        self._never = sorted({*special} - {self.model.generation_config.eos_token_id}) or None
        """An answer of random weights with an image token could not be learned from."""
        self.received: list[list[int]] = []
        """Token ids of all prompts, as they were given to :meth:`generate`."""
        weights: Any = SimpleNamespace(load_weights=self._load)
        runner = SimpleNamespace(model_runner=SimpleNamespace(model=weights))
        self.llm_engine = SimpleNamespace(model_executor=SimpleNamespace(driver_worker=runner))
        type(self).last = self

    @torch.no_grad()
    def _load(self, named: list[tuple[str, torch.Tensor]]) -> None:
        own = dict(self.model.named_parameters())
        for name, weight in named:
            own[name].copy_(weight)

    def reset_prefix_cache(self) -> None:
        pass

    @torch.no_grad()
    def generate(self, prompts: list[dict[str, Any]], sampling_params: Any, use_tqdm: bool) -> list[Any]:
        assert not use_tqdm
        with torch.autocast("cpu", enabled=False):
            return [self._answer(prompt, sampling_params) for prompt in prompts]

    def _answer(self, prompt: dict[str, Any], how: Any) -> Any:
        self.received.append(prompt["prompt_token_ids"])
        inputs: Any = {"input_ids": torch.tensor([prompt["prompt_token_ids"]])}
        if "multi_modal_data" in prompt:
            assert self.processor is not None
            text = self.processor.tokenizer.decode(prompt["prompt_token_ids"])
            images = [prompt["multi_modal_data"]["image"]]
            inputs = self.processor(text=[text], images=images, add_special_tokens=False, return_tensors="pt")
        seen = inputs["input_ids"].shape[1]
        options = {"do_sample": True, "temperature": how.temperature, "top_k": 0, "max_new_tokens": how.max_tokens}
        options["suppress_tokens"] = self._never
        out = self.model.generate(**inputs, **options, return_dict_in_generate=True, output_logits=True)
        tokens: list[int] = out.sequences[0, seen:].tolist()
        scores = [(step[0].float() / how.temperature).log_softmax(-1) for step in out.logits]
        logprobs = [
            {token: SimpleNamespace(rank=1, logprob=float(row[token]))}
            for token, row in zip(tokens, scores, strict=True)
        ]
        answer = SimpleNamespace(token_ids=tokens, logprobs=logprobs)
        return SimpleNamespace(prompt_token_ids=inputs["input_ids"][0].tolist(), outputs=[answer])


def install_fake_vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets TRL find :class:`FakeVllm` in place of vLLM."""
    from trl.generation import vllm_generation

    def found(*_: object) -> bool:
        return True

    monkeypatch.setattr(vllm_sampling, "find_spec", found)
    monkeypatch.setattr(vllm_generation, "is_vllm_available", found)
    monkeypatch.setattr(vllm_generation, "LLM", FakeVllm, raising=False)
    monkeypatch.setattr(vllm_generation, "SamplingParams", SimpleNamespace, raising=False)
    layers = SimpleNamespace(dispatch_cpu_unquantized_gemm=None)
    monkeypatch.setitem(sys.modules, "vllm.model_executor.layers.utils", layers)  # pyright: ignore[reportArgumentType]
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "")  # TRL sets them: they are removed again after the test
        monkeypatch.delenv(name)
