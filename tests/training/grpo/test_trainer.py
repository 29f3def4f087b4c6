"""Contract tests of the overridden methods of TRL and of its behaviour, against plain PyTorch on a real model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.toy_models.puzzles import fresh_model, puzzle_tokenizer, reference_answer
from envs.core.errors import BadInput
from models.base import Message
from models.prompting.prompt_tokens import PromptTokens
from training.engine.checkpoints import load_policy, with_adapter
from training.engine.settings import Lora
from training.grpo import vllm_sampling
from training.grpo.evaluation import template_opening
from training.grpo.examples import Example
from training.grpo.packed_logprobs import plain_attention
from training.grpo.puzzles import make_puzzles
from training.grpo.rewards import Rewarder, Score
from training.grpo.rewards.ssl import SslReward
from training.grpo.settings import GrpoSettings, parse_settings
from training.grpo.trainer import GroupReward, build_rewarder, build_trainer, check_fit, count_updates, mean_parts

MAZES = make_puzzles("maze", 12, seed=0, size=5)
"""Of different lengths, so that prompts and answers are padded."""


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fresh_model(tmp_path_factory.mktemp("start") / "model", width=32, layers=1)


def settings(**changes: Any) -> GrpoSettings:
    options: dict[str, Any] = {
        "group": 4,
        "answer_tokens": 6,
        "micro_rows": 4,
        "steps": 1,
        "optimization": {"batch_rows": 8, "learning_rate": 1e-3, "warmup": 0, "epochs": 1},
        "compute": {"max_tokens": 128, "threads": 1, "cpu": True},
    }
    return parse_settings({**options, **changes}, "here")


class Spied:
    """Trains and records the inputs of each loss."""

    def __init__(self, start: Path, out: Path, config: GrpoSettings, examples: tuple[Example, ...] = MAZES) -> None:
        self.model, self.tokenizer = load_policy(start, padded=True)
        self.trainer = build_trainer(self.model, self.tokenizer, examples, config, out)
        self.inputs: list[dict[str, Any]] = []
        options = self.trainer._compute_loss

        def record(model: Any, inputs: dict[str, Any]) -> torch.Tensor:
            self.inputs.append(inputs)
            return options(model, inputs)

        self.trainer._compute_loss = record
        self.trainer.train()


def test_a_prompt_is_encoded_as_the_policy_plays_it(start: Path, tmp_path: Path) -> None:
    """Page text that looks like a special token is encoded as text."""
    hostile = MAZES[0].model_copy(update={"messages": (("user", "S.G<end>\n<pad>#"),)})
    spied = Spied(start, tmp_path, settings(), (hostile,) * 8)
    expected = PromptTokens(spied.tokenizer).encode([Message("user", "S.G<end>\n<pad>#")], 122)
    for inputs in spied.inputs:
        for ids, mask in zip(inputs["prompt_ids"], inputs["prompt_mask"], strict=True):
            assert ids[mask.bool()].tolist() == list(expected)
    assert spied.tokenizer.eos_token_id not in expected


def test_a_prompt_that_is_too_long_loses_its_middle(start: Path, tmp_path: Path) -> None:
    long = MAZES[0].model_copy(update={"messages": (("user", "S" * 200 + "G"),)})
    config = settings(compute={"max_tokens": 80, "threads": 1, "cpu": True})
    spied = Spied(start, tmp_path, config, (long,) * 8)
    expected = PromptTokens(spied.tokenizer).encode([Message("user", "S" * 200 + "G")], config.room)
    assert len(expected) == 74
    assert all(inputs["prompt_ids"].tolist() == [list(expected)] * 4 for inputs in spied.inputs)


@pytest.mark.parametrize("scaled", [False, True], ids=["centred alone (SSL, App. B.5)", "by the group's deviation"])
def test_advantages_are_of_the_group(start: Path, tmp_path: Path, scaled: bool) -> None:
    spied = Spied(start, tmp_path, settings(scale_advantages=scaled))
    rewarder = build_rewarder(settings(), spied.tokenizer)
    by_prompt: dict[str, list[tuple[float, float]]] = {}
    by_question = {example.messages[0][1]: example for example in MAZES}
    for inputs in spied.inputs:
        for prompt, mask, completions, kept, advantage in zip(
            *(inputs[name] for name in ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask")),
            inputs["advantages"],
            strict=True,
        ):
            question = spied.tokenizer.decode(prompt[mask.bool()], skip_special_tokens=True).strip()
            text = spied.tokenizer.decode(completions[kept.bool()], skip_special_tokens=True)
            (score,) = rewarder.of_group(by_question[question].target, [text])
            by_prompt.setdefault(question, []).append((score.total, advantage.item()))
    assert sorted(map(len, by_prompt.values())) == [4, 4]
    for rows in by_prompt.values():
        rewards = torch.tensor([reward for reward, _ in rows])
        expected = rewards - rewards.mean()
        if scaled:
            expected = expected / (rewards.std() + 1e-4)
        assert [advantage for _, advantage in rows] == pytest.approx(expected.tolist(), abs=1e-5)


@pytest.mark.parametrize("by_reward", [False, True], ids=["β alone", "β by reward (GuirlVG, Eq. 3.1)"])
def test_the_loss_is_the_papers(start: Path, tmp_path: Path, by_reward: bool) -> None:
    """Mean over completions of the mean over tokens of `−A + β·αᵢ·KL`; on the first pass the ratio is 1. The start is
    its own reference, so a noise on the reference makes a divergence."""
    config = settings(kl=0.5, kl_by_reward=by_reward, reward={"kind": "guirlvg"})
    model, tokenizer = load_policy(start, padded=True)
    trainer = build_trainer(model, tokenizer, MAZES, config, tmp_path)
    torch.manual_seed(1)
    for weight in trainer.ref_model.parameters():
        weight.data += 0.05 * torch.randn_like(weight)
    batch = trainer._prepare_inputs(next(iter(trainer.get_train_dataloader())))
    trainer.current_gradient_accumulation_steps = 1
    loss = trainer._compute_loss(model, batch)

    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], 1)
    attention = torch.cat([batch["prompt_mask"], batch["completion_mask"]], 1)

    def logprobs(of: Any) -> torch.Tensor:
        logits = of(input_ids=ids, attention_mask=attention).logits[:, :-1].log_softmax(-1)
        return logits.gather(-1, ids[:, 1:, None]).squeeze(-1)[:, -batch["completion_ids"].shape[1] :]

    with plain_attention(model, "sdpa"), plain_attention(trainer.ref_model, "sdpa"):
        own, reference = logprobs(model), logprobs(trainer.ref_model).detach()
    divergence = (reference - own).exp() - (reference - own) - 1
    mask = batch["completion_mask"]
    texts = tokenizer.batch_decode(batch["completion_ids"], skip_special_tokens=True)
    shares = torch.ones(len(texts))
    if by_reward:
        targets = [MAZES[index].target for index in trainer_indices(batch, tokenizer)]
        rewarder = build_rewarder(config, tokenizer)
        totals = [rewarder.of_group(t, [text])[0].total for t, text in zip(targets, texts, strict=True)]
        shares = torch.tensor(totals) / 2
    per_token = -(own - own.detach()).exp() * batch["advantages"][:, None] + 0.5 * shares[:, None] * divergence
    expected = ((per_token * mask).sum(1) / mask.sum(1)).mean()
    assert divergence[mask.bool()].mean() > 1e-3
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5, abs=1e-7)
    got = torch.autograd.grad(loss, list(model.parameters()))
    for one, other in zip(got, torch.autograd.grad(expected, list(model.parameters())), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)
    assert type(trainer.beta) is float, "what scaled it is gone"


def trainer_indices(batch: dict[str, Any], tokenizer: Any) -> list[int]:
    """The example index of each row of *batch*."""
    by_question = {example.messages[0][1]: index for index, example in enumerate(MAZES)}
    prompts = [ids[mask.bool()] for ids, mask in zip(batch["prompt_ids"], batch["prompt_mask"], strict=True)]
    return [by_question[tokenizer.decode(ids, skip_special_tokens=True).strip()] for ids in prompts]


def test_rewards_are_computed_by_group() -> None:
    tokenizer = puzzle_tokenizer()
    rewarding = GroupReward(MAZES, Rewarder(SslReward(), len), 2, tokenizer)
    metrics: dict[str, float] = {}
    completions = [
        [*tokenizer.encode(text), tokenizer.eos_token_id] for text in (reference_answer(MAZES[3]), "", "R", "R")
    ]
    result = rewarding(completions, [3, 3, 5, 5], metrics.__setitem__)
    assert result[0] == pytest.approx(1.2) and result[1] == 0 and result[2] == result[3]
    assert rewarding.shares[:2] == pytest.approx([1.0, 0.0])
    assert metrics["part/correct"] == 0.25
    with pytest.raises(ValueError, match=r"examples \[3, 5\] are in one group"):
        rewarding(completions, [3, 5, 5, 5], metrics.__setitem__)


def test_an_adapters_reference_is_the_adapter_and_not_its_base(start: Path, tmp_path: Path) -> None:
    base, tokenizer = load_policy(start, padded=True)
    adapted = with_adapter(base, Lora(rank=2, alpha=4, targets=("q_proj",)))
    for name, weight in adapted.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight)
    adapted.save_pretrained(tmp_path / "adapter")
    merged, _ = load_policy(tmp_path / "adapter", padded=True)
    trainer = build_trainer(merged, tokenizer, MAZES, settings(kl=0.1), tmp_path / "out")
    name = "model.layers.0.self_attn.q_proj.weight"
    plain = load_policy(start, padded=True)[0].state_dict()[name]
    assert not torch.equal(merged.state_dict()[name], plain)
    torch.testing.assert_close(trainer.ref_model.state_dict()[name], merged.state_dict()[name], rtol=0, atol=0)


def test_near_misses_are_failures_that_are_near() -> None:
    """S > 0.7 and C = 0 (SSL paper, App. H.1): one of four."""
    scores = [Score(0, {"correct": c, "proximity": s}) for c, s in ((0, 0.71), (0, 0.7), (1, 1.0), (0, 0.1))]
    assert mean_parts(scores) == {"part/correct": 0.25, "part/proximity": pytest.approx(0.6275), "near_misses": 0.25}


def test_adapters_learn_and_the_start_is_their_reference(start: Path, tmp_path: Path) -> None:
    options = {"rank": 4, "alpha": 8, "targets": ["q_proj", "v_proj"]}
    config = settings(kl=0.1, compute={"max_tokens": 128, "threads": 1, "cpu": True, "lora": options})
    model, tokenizer = load_policy(start, padded=True)
    trainer = build_trainer(model, tokenizer, MAZES, config, tmp_path)
    assert trainer.ref_model is None, "it is the model without its adapter"
    learning = [name for name, weight in trainer.model.named_parameters() if weight.requires_grad]
    assert learning and all("lora_" in name for name in learning)
    trainer.train()
    assert any(row.get("kl") is not None for row in trainer.state.log_history)


def test_all_library_defaults_are_set(start: Path, tmp_path: Path) -> None:
    model, tokenizer = load_policy(start, padded=True)
    arguments = build_trainer(model, tokenizer, MAZES, settings(recipe="lpo", reward={"kind": "ssl"}), tmp_path).args
    assert (arguments.bf16, arguments.fp16, arguments.gradient_checkpointing, arguments.report_to) == (
        False,
        False,
        False,
        [],
    )
    assert (arguments.top_p, arguments.top_k, arguments.temperature) == (1.0, 0, 1.0), "the policy itself is sampled"
    assert (arguments.epsilon, arguments.epsilon_high, arguments.loss_type) == (0.2, 0.28, "grpo")
    assert arguments.per_device_train_batch_size * arguments.gradient_accumulation_steps == 8


@pytest.mark.parametrize(
    ("changes", "updates"),
    [
        ({"steps": 7}, 7),
        ({"steps": None}, 6),  # 12 prompts by 2
        ({"steps": None, "reuse": 2}, 12),
        ({"steps": None, "optimization": {"epochs": 3, "batch_rows": 8, "learning_rate": 1e-3}}, 18),
    ],
    ids=str,
)
def test_how_many_updates_there_are(changes: dict[str, Any], updates: int) -> None:
    assert count_updates(settings(**changes), 12) == updates


def test_sampling_with_vllm_needs_the_package(start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm_sampling, "find_spec", {}.get)
    model, tokenizer = load_policy(start, padded=True)
    with pytest.raises(BadInput, match=r"needs the package vllm in this environment: pip install '\.\[vllm\]'"):
        build_trainer(model, tokenizer, MAZES, settings(vllm={}), tmp_path)


def test_too_few_examples() -> None:
    with pytest.raises(BadInput, match=r"a step takes 2 prompts .* and there are 1 examples; add examples or lower"):
        count_updates(settings(), 1)


def test_a_reward_that_does_not_fit_is_refused_at_once() -> None:
    with pytest.raises(BadInput, match="one target is a maze"):
        check_fit(MAZES, Rewarder(parse_settings({"recipe": "lpo"}, "here").reward, len))


THINKING = "{% for m in messages %}{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}<think>\n{% endif %}"
"""Begins an answer inside a thought, as templates of reasoning models do."""


@pytest.mark.parametrize(
    ("template", "opening"),
    [(None, ""), (THINKING, "<think>"), (THINKING.replace("<think>", "<think>\n\n</think>\n"), "")],
    ids=["no template", "opens a thought", "opens and closes one"],
)
def test_text_that_the_chat_template_opens(start: Path, template: str | None, opening: str) -> None:
    _, tokenizer = load_policy(start, padded=True)
    tokenizer.chat_template = template
    assert template_opening(tokenizer) == opening


def test_a_thought_that_the_template_opened_and_nothing_closed_is_no_answer() -> None:
    """The completion was truncated: its text is not the answer, even if correct."""
    tokenizer = puzzle_tokenizer()
    completions = [tokenizer.encode(reference_answer(MAZES[3]))] * 2
    for opening, right in (("", 1.0), ("<think>", 0.0)):
        metrics: dict[str, float] = {}
        GroupReward(MAZES, Rewarder(SslReward(), len), 2, tokenizer, opening)(completions, [3, 3], metrics.__setitem__)
        assert metrics["part/correct"] == right


def test_a_model_whose_positions_count_padding_is_refused(tmp_path: Path) -> None:
    """TRL passes no positions: GPT-2 would read a padded prompt at later positions. Packed rows have positions."""
    from transformers import GPT2Config, GPT2LMHeadModel

    tokenizer = puzzle_tokenizer()
    torch.manual_seed(0)
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=len(tokenizer),
            n_embd=32,
            n_layer=2,
            n_head=2,
            n_positions=256,
            initializer_range=0.2,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )
    mixed = (*make_puzzles("maze", 2, seed=0, size=3), *make_puzzles("maze", 2, seed=0, size=7))
    config = settings(kl=0, optimization={"batch_rows": 16, "learning_rate": 1e-3}, packing=False)
    trainer = build_trainer(model, tokenizer, mixed, config, tmp_path)
    with pytest.raises(BadInput, match=r"differ by .* a token.*positions count padding"):
        trainer.train()
