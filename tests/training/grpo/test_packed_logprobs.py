"""Packed passes of GRPO against padded ones: equal values and gradients, and a group's prompt is computed once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, MambaConfig, MambaForCausalLM
from trl.trainer.utils import add_fused_lm_head

from benchmarks.toy_models.puzzles import fresh_model, puzzle_tokenizer
from envs.core.errors import BadInput
from models.prompting.prompt_tokens import PromptTokens
from tests.training.engine.test_rotary_lengths import ORIGINAL, longrope
from tests.training.engine.test_tree_attention import gemma, llama, nemotron
from tests.training.grpo.test_trainer import settings
from tests.training.grpo.vllm_run import reward_of_length
from training.engine import tree_attention
from training.engine.checkpoints import load_policy, save_policy, with_adapter
from training.engine.rotary_lengths import length_class
from training.engine.settings import Lora
from training.grpo.examples import messages_of
from training.grpo.packed_logprobs import PackedPasses, packed_logprobs, plain_attention, prepare_packed
from training.grpo.puzzles import make_puzzles
from training.grpo.rewards import Rewarder
from training.grpo.trainer import build_trainer

TEMPERATURE = 0.7
MIXED = (*make_puzzles("maze", 4, seed=0, size=3), *make_puzzles("maze", 4, seed=0, size=7))
"""Prompts of two lengths."""


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fresh_model(tmp_path_factory.mktemp("start") / "model", width=32, layers=2)


def gpt2() -> Any:
    """A model with learned positions."""
    return GPT2LMHeadModel(GPT2Config(vocab_size=64, n_embd=32, n_layer=2, n_head=2, n_positions=64))


def padded_batch() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(ids, mask, completion mask) of six rows: two prompts of unequal length with three completions each, of which two
    are equal and one is excluded."""
    drawn = torch.Generator().manual_seed(1)
    prompts = [torch.randint(3, 60, (length,), generator=drawn) for length in (9, 30)]
    completions = [torch.randint(3, 60, (length,), generator=drawn) for length in (5, 1, 7, 4)]
    rows = [(0, 0), (0, 1), (0, 1), (1, 2), (1, 3), (1, 0)]
    ids, mask = torch.zeros(6, 37, dtype=torch.long), torch.zeros(6, 37, dtype=torch.long)
    for row, (prompt, completion) in enumerate(rows):
        before, after = prompts[prompt], completions[completion]
        ids[row, 30 - len(before) : 30], ids[row, 30 : 30 + len(after)] = before, after
        mask[row, 30 - len(before) : 30 + len(after)] = 1
    mask[4, 30:] = 0
    return ids, mask, mask[:, 30:]


def padded_logprobs(model: Any, ids: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Plain PyTorch: log-probabilities and entropies of the last seven tokens."""
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    logits = model(input_ids=ids, attention_mask=mask, position_ids=positions).logits[:, 29:-1] / TEMPERATURE
    scores = logits.log_softmax(-1)
    return scores.gather(-1, ids[:, 30:, None]).squeeze(-1), -(scores.exp() * scores).sum(-1)


def gradient(model: Any, values: torch.Tensor) -> torch.Tensor:
    model.zero_grad()
    (values * torch.arange(1.0, values.numel() + 1)).sum().backward()
    return torch.cat([weight.grad.flatten() for weight in model.parameters() if weight.grad is not None])


ADAPTERS = Lora(rank=4, alpha=8, targets=("q_proj", "down_proj"))


@pytest.mark.parametrize(
    ("family", "lora"),
    [(llama, None), (llama, ADAPTERS), (gemma, None), (gemma, ADAPTERS), (gpt2, None)],
    ids=["Llama", "Llama, LoRA", "Gemma", "Gemma, LoRA", "GPT-2"],
)
def test_values_and_gradients_are_those_of_padded_rows(family: Any, lora: Lora | None) -> None:
    torch.manual_seed(0)
    base = family()
    attention = base.config._attn_implementation
    add_fused_lm_head(base, temperature=TEMPERATURE, outputs=("log_probs", "entropy"))
    assert prepare_packed(base)
    model = with_adapter(base, lora).eval()
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight)
    ids, mask, kept = padded_batch()
    with plain_attention(model, attention):
        expected = padded_logprobs(model, ids, mask)
        expected_gradient = gradient(model, expected[0][kept.bool()])
    values, entropies = packed_logprobs(model, ids, mask, 7)
    assert entropies is not None and values.shape == entropies.shape == (6, 7)
    for one, other in zip((values, entropies), expected, strict=True):
        torch.testing.assert_close(one[kept.bool()], other[kept.bool()], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(gradient(model, values[kept.bool()]), expected_gradient, rtol=1e-3, atol=2e-4)
    assert not values[0, 5:].any() and not entropies[0, 5:].any(), "padding has no value"


def test_the_prompt_of_a_group_is_computed_once_in_a_pass(start: Path, tmp_path: Path) -> None:
    """Every pass has whole groups, and the network sees each prompt and each token of a completion once."""
    model, tokenizer = load_policy(start, padded=True)
    config = settings(optimization={"batch_rows": 16, "learning_rate": 1e-3, "warmup": 0}, micro_rows=8)
    trainer = build_trainer(model, tokenizer, MIXED, config, tmp_path)
    seen: list[int] = []

    def count(_: object, inputs: tuple[torch.Tensor, ...]) -> None:
        seen.append(inputs[0].numel())

    model.model.embed_tokens.register_forward_pre_hook(count)
    passes: list[tuple[dict[str, Any], int]] = []
    compute = trainer._compute_loss

    def record(model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        loss = compute(model, inputs)
        passes.append((inputs, seen[-1]))
        return loss

    trainer._compute_loss = record
    trainer.train()
    assert len(passes) == 2
    for inputs, tokens in passes:
        padded = zip(inputs["prompt_ids"], inputs["prompt_mask"], strict=True)
        prompts = [tuple(ids[mask.bool()].tolist()) for ids, mask in padded]
        assert [prompts.count(prompt) for prompt in dict.fromkeys(prompts)] == [4, 4]
        least = sum(map(len, set(prompts)))
        assert least < tokens <= least + int(inputs["completion_mask"].sum())


@pytest.mark.parametrize("reuse", [1, 2])
def test_a_run_learns_as_a_padded_run(start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reuse: int) -> None:
    """The same completions, rewards and first gradient, and nearly the same weights after the updates."""
    monkeypatch.setattr(Rewarder, "of_group", reward_of_length)
    logs: list[dict[str, float]] = []
    weights: list[torch.Tensor] = []
    for packing in (True, False):
        model, tokenizer = load_policy(start, padded=True)
        config = settings(packing=packing, kl=0.1, reuse=reuse, steps=2)
        trainer = build_trainer(model, tokenizer, MIXED, config, tmp_path / str(packing))
        trainer.train()
        logs.append(next(row for row in trainer.state.log_history if "grad_norm" in row))
        weights.append(torch.cat([weight.detach().flatten() for weight in trainer.model.parameters()]))
    for name in ("reward", "grad_norm", "loss", "entropy", "completions/mean_length"):
        assert logs[0][name] == pytest.approx(logs[1][name], rel=1e-3, abs=1e-5), name
    assert logs[0]["grad_norm"] > 0
    if reuse == 2:  # both updates are on the completions of the start
        torch.testing.assert_close(weights[0], weights[1], rtol=0, atol=1e-3)


def test_a_long_row_does_not_change_the_values_of_short_ones() -> None:
    """The frequencies of longrope are those of the longest text of a pass."""
    torch.manual_seed(0)
    model: Any = longrope().eval()
    attention = model.config._attn_implementation
    add_fused_lm_head(model, temperature=TEMPERATURE, outputs=("log_probs", "entropy"))
    assert prepare_packed(model)
    ids, mask, kept = padded_batch()
    lengths = mask.sum(1)
    assert lengths.min() <= ORIGINAL < lengths.max()
    with plain_attention(model, attention):
        alone = [padded_logprobs(model, ids[row : row + 1], mask[row : row + 1]) for row in range(6)]
    expected = torch.cat([values for values, _ in alone])
    expected_gradient = gradient(model, expected[kept.bool()])
    values, entropies = packed_logprobs(model, ids, mask, 7, length_class(model))
    assert entropies is not None
    torch.testing.assert_close(values[kept.bool()], expected[kept.bool()], rtol=1e-4, atol=1e-4)
    others = torch.cat([entropy for _, entropy in alone])
    torch.testing.assert_close(entropies[kept.bool()], others[kept.bool()], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(gradient(model, values[kept.bool()]), expected_gradient, rtol=1e-3, atol=1e-3)


def test_a_model_with_longrope_learns_from_prompts_of_all_lengths(tmp_path: Path) -> None:
    """The comparison with single rows refused its batches."""
    tokenizer = puzzle_tokenizer()
    torch.manual_seed(0)
    own = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id, "bos_token_id": None}
    prompts = {len(PromptTokens(tokenizer).encode(messages_of(example), 122)) for example in MIXED}
    original = min(prompts) + 6  # with its completion, of at most 6 tokens
    assert original < max(prompts)
    save_policy(longrope(len(tokenizer), original, **own), tokenizer, tmp_path / "start")
    model, tokenizer = load_policy(tmp_path / "start", padded=True)
    config = settings(optimization={"batch_rows": 16, "learning_rate": 1e-3, "warmup": 0}, micro_rows=8)
    trainer = build_trainer(model, tokenizer, MIXED, config, tmp_path / "run")
    trainer.train()
    assert trainer.packs and trainer.state.global_step == 1


def test_processes_with_different_numbers_of_passes_take_padded_rows() -> None:
    """With sharded weights each would wait for the others' passes."""

    def packs(longest: int, processes: int) -> bool:
        passes = PackedPasses()
        passes.begin_packing(longrope(), wanted=True, longest=longest, processes=processes)
        return passes.packs

    assert packs(ORIGINAL, 2) and packs(ORIGINAL + 1, 1) and not packs(ORIGINAL + 1, 2)


def test_layers_that_cannot_separate_texts_take_padded_rows(tmp_path: Path) -> None:
    """A state space carries what it read into the next text of a packed sequence."""
    tokenizer = puzzle_tokenizer()
    torch.manual_seed(0)
    described = MambaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        state_size=4,
        num_hidden_layers=1,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = MambaForCausalLM(described)
    assert not prepare_packed(model)
    trainer = build_trainer(model, tokenizer, MIXED[:4], settings(kl=0), tmp_path)
    trainer.train()
    assert trainer.state.global_step == 1


def test_a_model_with_an_attention_of_its_own_takes_padded_rows() -> None:
    model = nemotron()
    before = model.config._attn_implementation
    assert not prepare_packed(model) and model.config._attn_implementation == before


def test_rows_that_attend_to_each_other_are_refused(
    start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted fault: each branch also attends to the branch before it."""
    along = tree_attention._along

    def leaking(branches: Any, path: tuple[int, ...]) -> torch.Tensor:
        more = {max(0, path[-1] - 1)} - set(path)
        return along(branches, (*more, *path))

    monkeypatch.setattr(tree_attention, "_along", leaking)
    model, tokenizer = load_policy(start, padded=True)
    trainer = build_trainer(model, tokenizer, MIXED, settings(), tmp_path)
    with pytest.raises(BadInput, match="inputs in a batch differ from those of a single row"):
        trainer.train()
