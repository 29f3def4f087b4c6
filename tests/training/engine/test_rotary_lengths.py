"""Rotary embeddings that depend on the length of a text: packed texts have the log-probabilities of the texts alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Phi3Config, Phi3ForCausalLM

from models.embedded import embedded_dir
from tests.training.engine.test_tree_attention import SIZE, branching, learned, llama
from training.data.rows import Row
from training.engine.annotate import score_completions, score_states
from training.engine.checkpoints import load_tokenizer, save_policy
from training.engine.critic_model import Critic
from training.engine.packed_model import accept_packed
from training.engine.rotary_lengths import length_class
from training.engine.settings import Compute, Optimization
from training.engine.sft import supervised
from training.engine.step_plan import Plan
from training.engine.supervised_job import SupervisedJob

ORIGINAL = 18
"""Tokens of the longest text whose rotary embedding is that of short ones."""
ROWS = branching(16)


def longrope(vocabulary: int = 900, original: int = ORIGINAL, **own: Any) -> Phi3ForCausalLM:
    """As Phi-4-mini: other angles where a pass has a text of more than *original* tokens."""
    size: dict[str, Any] = {name: SIZE[name] for name in SIZE if name != "head_dim"}
    size |= {"vocab_size": vocabulary, "pad_token_id": 0} | own
    angles: dict[str, Any] = {
        "rope_type": "longrope",
        "rope_theta": 10_000.0,
        "short_factor": [1.0] * 4,
        "long_factor": [1.5, 3.0, 6.0, 12.0],
        "original_max_position_embeddings": original,
    }
    config = Phi3Config(
        **size,
        num_hidden_layers=2,
        initializer_range=0.3,
        original_max_position_embeddings=original,
        rope_parameters=angles,
    )
    return Phi3ForCausalLM(config)


def dynamic() -> LlamaForCausalLM:
    """Other angles for each length beyond `ORIGINAL`."""
    own: dict[str, Any] = SIZE | {"max_position_embeddings": ORIGINAL}
    angles = {"rope_type": "dynamic", "rope_theta": 10_000.0, "factor": 4.0}
    return LlamaForCausalLM(LlamaConfig(**own, num_hidden_layers=2, initializer_range=0.3, rope_parameters=angles))


FAMILIES = pytest.mark.parametrize("family", [longrope, dynamic])


def alone(model: Any, rows: list[Row]) -> list[float]:
    """Log-probabilities by transformers' own attention, each row alone, by a model that has read nothing before."""
    start = {name: buffer.clone() for name, buffer in model.named_buffers()}
    rotary, sums = model.model.rotary_emb, []
    for row in rows:
        for name, buffer in start.items():
            model.get_buffer(name).copy_(buffer)
        rotary.max_seq_len_cached = rotary.original_max_seq_len
        ids = torch.tensor([[*row.prompt, *row.completion]])
        with torch.no_grad():
            scores = model(input_ids=ids, use_cache=False).logits.log_softmax(-1)[0, len(row.prompt) - 1 : -1]
        sums.append(scores.gather(-1, ids[0, len(row.prompt) :, None]).sum().item())
    return sums


def test_rows_are_shorter_and_longer_than_the_original_length() -> None:
    """Checks the setup: rows of both kinds share prefixes, and the angles matter."""
    lengths = [len(row) for row in ROWS]
    assert min(lengths) <= ORIGINAL < max(lengths)
    torch.manual_seed(0)
    model: Any = longrope().eval()
    expected = alone(model, ROWS)
    model.config.rope_parameters["original_max_position_embeddings"] = 1_000
    assert any(abs(one - other) > 0.1 for one, other in zip(alone(model, ROWS), expected, strict=True))


@FAMILIES
@pytest.mark.parametrize("max_tokens", [60, 4_000], ids=["some packs", "one pack"])
def test_scores_of_packed_rows_are_those_of_each_row_alone(family: Callable[[], Any], max_tokens: int) -> None:
    torch.manual_seed(0)
    model = family().eval()
    expected = alone(model, ROWS)
    accept_packed(model)
    assert score_completions(model, ROWS, max_tokens) == pytest.approx(expected, abs=1e-3)
    assert score_completions(model, ROWS, max_tokens) == pytest.approx(expected, abs=1e-3), "and again"


def test_a_critics_scores_do_not_depend_on_the_other_rows() -> None:
    torch.manual_seed(0)
    trunk = longrope().model.eval()
    accept_packed(trunk)
    critic: Any = Critic(trunk, 32).eval()
    torch.nn.init.normal_(critic.head[-1].weight)
    expected = [score_states(critic, [row], 4_000)[0] for row in ROWS]
    assert score_states(critic, ROWS, 4_000) == pytest.approx(expected, abs=1e-4)


@FAMILIES
def test_gradients_of_planned_packs_are_those_of_each_row_alone(family: Callable[[], Any]) -> None:
    """The packs of all stages and of a fine-tuning are planned so."""
    torch.manual_seed(0)
    model = family().eval()
    accept_packed(model)
    plan = Plan(ROWS, batch_rows=8, pack_tokens=4_000, epochs=1, seed=0, class_of=length_class(model))
    packs = [list(indices) for indices in plan[0].packs]
    assert sorted(index for indices in packs for index in indices) == list(range(8))
    _, expected = learned(model, ROWS, [[n] for n in range(8)])
    _, gradient = learned(model, ROWS, packs)
    torch.testing.assert_close(gradient, expected, atol=1e-4, rtol=1e-3)


def test_rows_of_models_with_one_rotary_embedding_are_packed_together() -> None:
    model = llama()
    plan = Plan(ROWS, batch_rows=8, pack_tokens=4_000, epochs=1, seed=0, class_of=length_class(model))
    assert [len(indices) for indices in plan[0].packs] == [8]
    assert len({length_class(longrope())(length) for length in range(1, ORIGINAL + 1)}) == 1


def test_a_fine_tuning_learns_from_each_row_as_if_it_were_alone(tmp_path: Path) -> None:
    """One step at a rate near 0 reports the loss."""
    torch.manual_seed(0)
    save_policy(longrope(), load_tokenizer(embedded_dir()), tmp_path / "start")
    expected = alone(Phi3ForCausalLM.from_pretrained(tmp_path / "start").eval(), ROWS)
    job = SupervisedJob(
        start=tmp_path / "start",
        optimization=Optimization(learning_rate=1e-12, batch_rows=8),
        compute=Compute(cpu=True, threads=1, max_tokens=128, pack_tokens=4_000),
    )
    supervised(job, ROWS, tmp_path / "sft")
    loss = json.loads((tmp_path / "sft" / "log.json").read_text())[0]["loss"]
    assert loss == pytest.approx(-sum(expected) / sum(len(row.completion) for row in ROWS), rel=1e-4)
