"""A prefix that prompts share is computed once, and answers do not depend on it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import MistralConfig, MistralForCausalLM

from models.local.batch_generation import Generator
from models.local.continuation import Job, Row
from models.local.loading import load_generator
from models.local.prefix_cache import SHORTEST, PrefixCache, common_prefix
from tests.models.local.test_local import save_checkpoint

SYSTEM = tuple(range(10, 90))
"""Tokens that every prompt begins with."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_checkpoint(tmp_path_factory.mktemp("checkpoint"))


class Counted:
    """A generator that counts the prompt tokens that its model computes."""

    def __init__(self, folder: Path) -> None:
        self.generator: Generator = load_generator(folder, None, "local:tiny")[0]
        self.computed = 0
        model: Any = self.generator.model
        model.register_forward_pre_hook(self._count, with_kwargs=True)

    def _count(self, _: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        ids = kwargs["input_ids"]
        if ids.shape[1] > 1:
            self.computed += ids.numel()

    def run(self, *prompts: Sequence[int]) -> list[Row]:
        self.computed = 0
        return self.generator.run([job(prompt) for prompt in prompts])


def job(prompt: Sequence[int]) -> Job:
    return Job(tuple(prompt), 6, 0.0, None, (), time.monotonic() + 60)


def same(first: Sequence[Row], other: Sequence[Row]) -> bool:
    close = (
        torch.allclose(torch.tensor(a.logprobs), torch.tensor(b.logprobs), atol=1e-4)
        for a, b in zip(first, other, strict=True)
    )
    return [row.tokens for row in first] == [row.tokens for row in other] and all(close)


def test_the_next_step_computes_only_what_differs(folder: Path) -> None:
    counted = Counted(folder)
    step_1, step_2 = (*SYSTEM, 91, 92, 93), (*SYSTEM, 94, 95, 96, 97)
    counted.run(step_1)
    assert counted.computed == len(step_1)
    again = counted.run(step_2)
    assert counted.computed == 4
    assert same(again, Counted(folder).run(step_2))


def test_the_same_prompt_computes_its_last_token_only(folder: Path) -> None:
    counted = Counted(folder)
    first = counted.run((*SYSTEM, 91, 92))
    again = counted.run((*SYSTEM, 91, 92))
    assert counted.computed == 0, "one token is no prefill"
    assert same(first, again)


def test_concurrent_workers_share_their_prefix(folder: Path) -> None:
    counted = Counted(folder)
    prompts = [(*SYSTEM, 91), (*SYSTEM, 92, 93, 94, 95), (*SYSTEM, 96, 97)]
    together = counted.run(*prompts)
    assert counted.computed == len(SYSTEM) + 3 * 4, "rows are padded to the longest rest"
    counted.run(*prompts)
    assert counted.computed == 3 * 4
    fresh = Counted(folder)
    assert same(together, [fresh.run(prompt)[0] for prompt in prompts])


def test_a_changed_prefix_is_computed_again(folder: Path) -> None:
    counted = Counted(folder)
    counted.run((*SYSTEM, 91))
    other = (*SYSTEM[:40], 5, *SYSTEM[41:], 91)
    row = counted.run(other)
    assert counted.computed == len(other) - 40
    assert same(row, Counted(folder).run(other))


def test_old_prefixes_are_dropped(folder: Path) -> None:
    counted = Counted(folder)
    model: Any = counted.generator.model
    cache = PrefixCache(model, most_tokens=100)
    prompts = [(start, *SYSTEM[:45]) for start in (1, 2, 3)]
    for prompt in prompts:
        out = model(input_ids=torch.tensor([prompt]), use_cache=True)
        cache.keep(prompt, out["cache"] if "cache" in out else out["past_key_values"])
    kept = [cache.start([(*prompt, 9)])[0] for prompt in prompts]
    assert kept == [0, len(prompts[1]), len(prompts[2])]


def test_layers_with_a_sliding_window_are_computed_again(tmp_path: Path) -> None:
    config = MistralConfig(
        vocab_size=261,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=4,
        sliding_window=16,
    )
    cache = PrefixCache(MistralForCausalLM(config))
    assert cache.start([SYSTEM, SYSTEM]) == (0, None)


def test_common_prefix() -> None:
    assert common_prefix([(1, 2, 3), (1, 2, 4), (1, 2)]) == (1, 2)
    assert common_prefix([(1, 2)]) == (1, 2)
    assert common_prefix([(1,), (2,)]) == ()
    assert len(SYSTEM) > SHORTEST
