"""A prefix that prompts share is computed once, and answers do not depend on it."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import Gemma2Config, Gemma2ForCausalLM, MistralConfig, MistralForCausalLM

from models.local.batch_generation import PAD_PROMPTS_TO, Generator
from models.local.continuation import Job, Row
from models.local.loading import load_generator, read_checkpoint
from models.local.prefix_cache import PrefixCache
from tests.models.local.adapters import save_adapter
from tests.models.local.test_local import save_checkpoint

SYSTEM = tuple(range(10, 90))
"""Tokens that every prompt begins with."""
SIZE: dict[str, Any] = {"vocab_size": 261, "hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4}
"""Of the models whose caches cannot be cut."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_checkpoint(tmp_path_factory.mktemp("checkpoint"))


class Counted:
    """A generator that counts the prompt tokens that its model computes."""

    def __init__(self, folder: Path, generator: Generator | None = None) -> None:
        self.generator = generator or load_generator(folder, None, "local:tiny")[0]
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


def test_prompts_in_bfloat16_on_a_cpu_have_few_lengths(folder: Path) -> None:
    """Symptom: a long run of `local:` kept kernels of every length that a prompt had."""
    model: Any = load_generator(folder, None, "local:tiny")[0].model
    halves: list[Counted] = []
    for _ in range(2):
        generator = load_generator(folder, None, "local:tiny")[0]
        generator.model = copy.deepcopy(model).to(torch.bfloat16)
        generator.prefixes = PrefixCache(generator.model)
        halves.append(Counted(folder, generator))
    filled, plain = halves
    plain.generator._padding = lambda tokens: 0
    for end in ((91, 92, 93), (94, 95, 96, 97), (94,)):
        first, other = filled.run((*SYSTEM, *end)), plain.run((*SYSTEM, *end))
        assert filled.computed % PAD_PROMPTS_TO == 0 and filled.computed >= plain.computed
        assert [row.cached for row in first] == [row.cached for row in other]
        assert first[0].tokens == other[0].tokens
        assert torch.allclose(torch.tensor(first[0].logprobs), torch.tensor(other[0].logprobs), atol=0.05)
    assert [len(entry.ids) for entry in filled.generator.prefixes._entries] == [
        entry.layers[0][0].shape[2] for entry in filled.generator.prefixes._entries
    ], "padding is not kept"


def test_the_same_prompt_computes_its_last_token_only(folder: Path) -> None:
    counted = Counted(folder)
    first = counted.run((*SYSTEM, 91, 92))
    again = counted.run((*SYSTEM, 91, 92))
    assert counted.computed == 0, "one token is no prefill"
    assert same(first, again)


def test_two_workers_over_two_steps_compute_every_shared_prefix_once(folder: Path) -> None:
    """Two episodes at the same time: the system text is common, the goal is that of one episode."""
    counted = Counted(folder)
    goals = (tuple(range(100, 140)), tuple(range(150, 200)))
    step_1 = [(*SYSTEM, *goal, 91, 92) for goal in goals]
    step_2 = [(*SYSTEM, *goal, 93, 94, 95) for goal in goals]
    first = counted.run(*step_1)
    assert counted.computed == len(step_1[0]) + len(goals[1]) + 2
    assert [row.cached for row in first] == [0, len(SYSTEM)]
    second = counted.run(*step_2)
    assert counted.computed == 2 * 3, "of each episode only what its page changed"
    assert [row.cached for row in second] == [len(prompt) - 3 for prompt in step_2]
    fresh = [Counted(folder).run(prompt)[0] for prompt in (*step_1, *step_2)]
    assert same([*first, *second], fresh)


def test_answers_stay_the_same_in_little_memory(folder: Path) -> None:
    """Prompts of three episodes in turns, with room for one prompt and a half."""
    counted = Counted(folder)
    steps = [(*SYSTEM, episode, *SYSTEM[:30], step, step) for step in (91, 92, 93) for episode in (5, 6, 7)]
    counted.run(steps[0])
    cache = counted.generator.prefixes
    limit = cache.size * 3 // 2
    counted.generator.prefixes = small = PrefixCache(counted.generator.model, limit)
    rows = [row for place in range(0, 9, 3) for row in counted.run(*steps[place : place + 3])]
    assert 0 < small.size <= limit
    assert [row.cached for row in rows] == [0, *[len(SYSTEM)] * 8], (
        "an older episode was dropped, the system text stays"
    )
    assert same(rows, [Counted(folder).run(prompt)[0] for prompt in steps])


def test_of_a_prompt_larger_than_the_memory_the_beginning_is_kept(folder: Path) -> None:
    counted, prompt = Counted(folder), (*SYSTEM, 91)
    first = counted.run(prompt)
    size = counted.generator.prefixes.size
    for limit, known in ((size // 2, len(prompt) // 2), (1, 0)):
        counted.generator.prefixes = PrefixCache(counted.generator.model, limit)
        counted.run(prompt)
        again = counted.run(prompt)
        assert same(first, again) and counted.computed == len(prompt) - known == len(prompt) - again[0].cached
        assert counted.generator.prefixes.size <= limit


@pytest.mark.parametrize("merge", [True, False])
def test_an_adapter_computes_prefixes_with_its_own_weights(folder: Path, tmp_path: Path, merge: bool) -> None:
    adapter = save_adapter(folder, tmp_path / "adapter", size=0.2)
    prompts = [(*SYSTEM, 91), (*SYSTEM, 92, 93)]
    read = read_checkpoint(folder, adapter, merge=merge)
    adapted = Counted(folder, Generator(read.model, read.tokenizer, frozenset()))
    rows = [adapted.run(prompt)[0] for prompt in prompts]
    assert adapted.computed == 2 and rows[1].cached == len(SYSTEM)
    alone = [Counted(folder, Generator(read.model, read.tokenizer, frozenset())).run(prompt)[0] for prompt in prompts]
    assert same(rows, alone)
    assert not same(rows, [Counted(folder).run(prompt)[0] for prompt in prompts])


def test_a_late_prompt_is_not_computed(folder: Path) -> None:
    counted = Counted(folder)
    counted.computed = 0
    late = Job((*SYSTEM, 91), 6, 0.0, None, (), time.monotonic() - 1)
    rows = counted.generator.run([late, job((*SYSTEM, 92))])
    assert [row.finish for row in rows] == ["deadline", "length"]
    assert counted.computed == len(SYSTEM) + 1
    assert same(rows[1:], Counted(folder).run((*SYSTEM, 92)))


def test_a_changed_prefix_is_computed_again(folder: Path) -> None:
    counted = Counted(folder)
    counted.run((*SYSTEM, 91))
    other = (*SYSTEM[:40], 5, *SYSTEM[41:], 91)
    row = counted.run(other)
    assert counted.computed == len(other) - 40
    assert same(row, Counted(folder).run(other))


def sliding_window(folder: Path) -> Generator:
    """A generator whose cache cannot be cut, with a tokenizer that is written to *folder*."""
    config = MistralConfig(**SIZE, num_hidden_layers=1, num_key_value_heads=4, sliding_window=16)
    torch.manual_seed(0)
    tokenizer: Any = load_generator(save_checkpoint(folder), None, "local:tiny")[0].tokenizer
    return Generator(MistralForCausalLM(config).eval(), tokenizer, frozenset())


def test_layers_with_a_sliding_window_are_computed_again(tmp_path: Path) -> None:
    generator = sliding_window(tmp_path)
    assert not generator.prefixes.usable
    prompts = [(*SYSTEM, 91), (*SYSTEM, 92, 93, 94)]
    rows = generator.run([job(prompt) for prompt in prompts])
    alone = [generator.run([job(prompt)])[0] for prompt in prompts]
    assert [row.cached for row in rows] == [0, 0] and same(rows, alone)


def test_a_model_whose_class_has_no_sdpa_plays(tmp_path: Path) -> None:
    """Gemma 2 caps its attention scores. It was refused, because its attention was named for it."""
    save_checkpoint(tmp_path)
    torch.manual_seed(0)
    own: dict[str, Any] = {"head_dim": 8, "sliding_window": 16, "initializer_range": 0.3}
    config = Gemma2Config(**SIZE, **own, num_hidden_layers=2, num_key_value_heads=2, eos_token_id=1, pad_token_id=0)
    Gemma2ForCausalLM(config).save_pretrained(tmp_path)
    generator = load_generator(tmp_path, None, "local:tiny")[0]
    prompts = [(*SYSTEM, 91), (*SYSTEM, 92, 93, 94)]
    rows = generator.run([job(prompt) for prompt in prompts])
    alone = [generator.run([job(prompt)])[0] for prompt in prompts]
    assert same(rows, alone)
    model: Any = generator.model
    for prompt, row in zip(prompts, rows, strict=True):
        logits = model(torch.tensor([[*prompt, *row.tokens]])).logits[0, len(prompt) - 1 : -1].log_softmax(-1)
        expected = logits.gather(-1, torch.tensor(row.tokens)[:, None])[:, 0]
        assert torch.allclose(torch.tensor(row.logprobs), expected, atol=1e-4)
