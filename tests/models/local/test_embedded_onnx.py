"""The embedded model on ONNX Runtime gives the answers of the same weights on torch, in less time.

`tests/data/embedded/answers.jsonl` holds prompts of recorded MiniWoB++ episodes with the greedy answers of torch.
"""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from transformers import AutoTokenizer

from models.base import Message, ModelUnavailable
from models.embedded import embedded_dir
from models.local.batch_generation import Generator
from models.local.continuation import Job, Row
from models.local.embedded_onnx import GRAPH, OnnxGenerator, load_embedded
from models.local.embedded_tokenizer import LightTokenizer
from models.local.loading import load_generator
from models.prompting.prompt_tokens import PromptTokens, control_tokens
from training.embedded.onnx_graph import build_graph, write_graph

RECORDED: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "data" / "embedded" / "answers.jsonl").read_text("utf-8").splitlines()
]
CLOSE = 1e-4
"""Largest difference of a log-probability: both compute in float32, in another order."""


@pytest.fixture(scope="module")
def light() -> OnnxGenerator:
    return load_embedded(embedded_dir()).generator


@pytest.fixture(scope="module")
def on_torch() -> Generator:
    return load_generator(embedded_dir(), None, "embedded")[0]


def job(prompt: list[int], **changes: Any) -> Job:
    settings: dict[str, Any] = {
        "max_tokens": 160,
        "temperature": 0.0,
        "seed": None,
        "stop": (),
        "ends_at": time.monotonic() + 100,
    }
    return Job(prompt=tuple(prompt), **(settings | changes))


def completions(rows: list[Row]) -> list[tuple[list[int], str, str | None]]:
    return [(row.tokens, row.text, row.finish) for row in rows]


def test_recorded_answers_of_torch_are_reproduced(light: OnnxGenerator) -> None:
    answers = [light.run([job(one["prompt_token_ids"])])[0] for one in RECORDED]
    assert completions(answers) == [(one["token_ids"], one["text"], "end") for one in RECORDED]
    for row, one in zip(answers, RECORDED, strict=True):
        assert row.logprobs == pytest.approx(one["logprobs"], abs=CLOSE)


def test_torch_gives_the_same_answers_today(light: OnnxGenerator, on_torch: Generator) -> None:
    jobs = [job(one["prompt_token_ids"]) for one in RECORDED[::4]]
    ours, theirs = light.run(jobs), on_torch.run(jobs)
    assert completions(ours) == completions(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=CLOSE)


@pytest.mark.parametrize("size", [2, 5, 16])
def test_a_batch_gives_the_same_answers_as_single_prompts(light: OnnxGenerator, size: int) -> None:
    """Prompts and answers of many lengths: rows end at different tokens, and their caches are padded."""
    chosen = RECORDED[::3][:size]
    rows = light.run([job(one["prompt_token_ids"]) for one in chosen])
    assert completions(rows) == [(one["token_ids"], one["text"], "end") for one in chosen]
    for row, one in zip(rows, chosen, strict=True):
        assert row.logprobs == pytest.approx(one["logprobs"], abs=CLOSE)


def test_a_sampled_answer_depends_on_its_seed_alone(light: OnnxGenerator) -> None:
    prompts = [one["prompt_token_ids"] for one in RECORDED[:6]]
    alone = [light.run([job(p, temperature=3.0, seed=seed)])[0] for seed, p in enumerate(prompts)]
    together = light.run([job(p, temperature=3.0, seed=seed) for seed, p in enumerate(prompts)])
    assert completions(together) == completions(alone)
    other = light.run([job(p, temperature=3.0, seed=seed + 100) for seed, p in enumerate(prompts)])
    assert completions(other) != completions(alone)


def test_sampling_frequencies_match_probabilities(light: OnnxGenerator, on_torch: Generator) -> None:
    prompt, temperature, draws = RECORDED[0]["prompt_token_ids"], 4.0, 400
    with torch.inference_mode():
        logits = on_torch.model(input_ids=torch.tensor([prompt])).logits[0, -1].double()
    shares = torch.softmax(torch.log_softmax(logits, -1) / temperature, -1).numpy()
    rows = light.run([job(prompt, temperature=temperature, seed=seed, max_tokens=1) for seed in range(draws)])
    counts = Counter(row.tokens[0] for row in rows)
    for token in np.argsort(-shares)[:5]:
        expected, spread = draws * shares[token], (draws * shares[token] * (1 - shares[token])) ** 0.5
        assert abs(counts[int(token)] - expected) < 5 * spread
    logprobs = torch.log_softmax(logits, -1).numpy()
    for row in rows:
        assert row.logprobs == pytest.approx([logprobs[row.tokens[0]]], abs=CLOSE)  # of the model, not of the draw


def test_limits_end_an_answer_as_on_torch(light: OnnxGenerator, on_torch: Generator) -> None:
    prompt = RECORDED[0]["prompt_token_ids"]
    text: str = RECORDED[0]["text"]
    stop = text[len(text) // 2 :][:4]
    jobs = [
        job(prompt, max_tokens=3),
        job(prompt, stop=(stop, "no such text")),
        job(prompt, ends_at=time.monotonic() - 1),
        job(prompt),
    ]
    ours = light.run(jobs)
    assert [row.finish for row in ours] == ["length", "stop", "deadline", "end"]
    assert completions(ours) == completions(on_torch.run(jobs))
    assert ours[1].text == text[: text.find(stop)]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('Goal: Click <|end|> now.\nPage:\n[1] button "<|answer|>"', id="control tokens"),
        pytest.param("Ünïcödé 日本語 🙂 \u200b\x00\ttab", id="unicode"),
        pytest.param("", id="empty"),
        pytest.param("  two  spaces\n\n\n", id="white space"),
        pytest.param("word " * 3_000, id="longer than the context"),
    ],
)
def test_prompt_tokens_equal_those_of_transformers(text: str) -> None:
    ours = PromptTokens(LightTokenizer(embedded_dir()))
    theirs = PromptTokens(AutoTokenizer.from_pretrained(embedded_dir(), local_files_only=True))
    talk = (Message("system", "s"), Message("user", text), Message("assistant", text))
    for messages in ((Message("user", text),), talk):
        assert ours.encode(messages, 864) == theirs.encode(messages, 864)


def test_recorded_prompts_have_the_recorded_tokens() -> None:
    light, heavy = LightTokenizer(embedded_dir()), AutoTokenizer.from_pretrained(embedded_dir(), local_files_only=True)
    assert control_tokens(light) == control_tokens(heavy)
    for one in RECORDED:
        if one["messages"] is not None:  # only the policy's are kept in traces
            messages = [Message(role, text) for role, text in one["messages"]]
            assert list(PromptTokens(light).encode(messages, 864)) == one["prompt_token_ids"]
        assert light.decode(one["token_ids"], skip_special_tokens=True) == one["text"]


def test_the_committed_graph_is_what_the_export_writes(tmp_path: Path, on_torch: Generator) -> None:
    folder = tmp_path / "model"
    shutil.copytree(embedded_dir(), folder, ignore=shutil.ignore_patterns(GRAPH, "__pycache__"))
    written = write_graph(folder)
    onnx.checker.check_model(str(written), full_check=True)
    committed = onnx.load(str(embedded_dir() / GRAPH), load_external_data=False)
    assert build_graph(folder) == committed
    again, jobs = load_embedded(folder).generator, [job(one["prompt_token_ids"]) for one in RECORDED[:8]]
    assert (
        completions(again.run(jobs))
        == completions(load_embedded(embedded_dir()).generator.run(jobs))
        == completions(on_torch.run(jobs))
    )


def test_the_graph_contains_no_weights() -> None:
    """A second copy of the weights could differ from the one that training starts from."""
    graph = onnx.load(str(embedded_dir() / GRAPH), load_external_data=False).graph
    own = [tensor.name for tensor in graph.initializer if tensor.data_location != onnx.TensorProto.EXTERNAL]
    assert sorted(own) == ["axis", "frequencies", "last"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param(GRAPH, None, id="no graph"),
        pytest.param(GRAPH, b"not a graph", id="damaged graph"),
        pytest.param("model.safetensors", None, id="no weights"),
        pytest.param("model.safetensors", b"short", id="cut weights"),
        pytest.param("tokenizer.json", b"{}", id="damaged tokenizer"),
        pytest.param("config.json", b"[", id="damaged config"),
    ],
)
def test_a_damaged_installation_is_a_one_line_error(tmp_path: Path, name: str, content: bytes | None) -> None:
    folder = tmp_path / "model"
    shutil.copytree(embedded_dir(), folder)
    (folder / name).unlink() if content is None else (folder / name).write_bytes(content)
    with pytest.raises(ModelUnavailable, match=r"^embedded: cannot be loaded: [^\n]+$"):
        load_embedded(folder)


def test_a_step_takes_less_time_than_on_torch(light: OnnxGenerator, on_torch: Generator) -> None:
    """CPU time, measured in turns, so that both have the same load."""
    spent = {"light": 0.0, "torch": 0.0}
    for one in RECORDED[::5] * 2:
        for name, generator in (("light", light), ("torch", on_torch)):
            begun = time.process_time()
            generator.run([job(one["prompt_token_ids"])])
            spent[name] += time.process_time() - begun
    assert spent["light"] < spent["torch"]
