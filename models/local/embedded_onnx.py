"""Runs the embedded model on ONNX Runtime, without torch and transformers and in a fraction of their time per token.

`models/embedded/model.onnx` has no weights of its own: it refers to the tensors of `model.safetensors` beside it by
offset, so both runtimes use the same numbers. `training/embedded/onnx_graph.py` writes it.

Inputs (B: rows, Q: new tokens, P: tokens in the cache, K = P + Q)::

    input_ids, position_ids   int64 [B, Q]
    mask                      bool [B, 1, Q, K], true where a token attends
    past_key_I, past_value_I  float32 [B, heads, P, head size], for each layer I

Outputs: `logits` float32 [B, 1, vocabulary] after the last token, and `key_I`, `value_I` [B, heads, K, head size].

Each prompt is processed alone, so its numbers do not depend on other rows. Then it joins the rows that decode together,
with caches padded on the left and masked. Greedy answers equal torch's up to float32 rounding. Sampling uses Python's
generator, so a sampled answer differs from torch's for the same seed.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from models.base import ModelUnavailable
from models.local.continuation import Arrivals, Job, Row, TextGenerator
from models.local.embedded_tokenizer import LightTokenizer

GRAPH: Final = "model.onnx"

_Floats = NDArray[np.float32]
_Cache = tuple[_Floats, ...]
"""key_0, value_0, key_1, …: each [B, heads, tokens, head size]."""


@dataclass(frozen=True, slots=True)
class _Shape:
    """Values of the checkpoint's configuration files."""

    layers: int
    heads: int
    head_size: int
    context: int
    ends: frozenset[int]
    longest_answer: int | None


@dataclass(frozen=True, slots=True)
class LoadedEmbedded:
    """A generator, its context in tokens, and the completion length that the checkpoint declares."""

    generator: OnnxGenerator
    context: int
    longest_answer: int | None


def load_embedded(folder: Path) -> LoadedEmbedded:
    """Reads graph, weights and tokenizer. Raises :class:`ModelUnavailable`, in one line, if it cannot."""
    try:
        tokenizer = LightTokenizer(folder)
        shape = _shape_of(folder, tokenizer)
        session = ort.InferenceSession(str(folder / GRAPH), _options(), providers=["CPUExecutionProvider"])
    except Exception as error:  # the only common base of the errors of ONNX Runtime and tokenizers
        reason = " ".join(str(error).split())[:300]
        raise ModelUnavailable(f"embedded: cannot be loaded: {type(error).__name__}: {reason}") from error
    return LoadedEmbedded(OnnxGenerator(session, tokenizer, shape), shape.context, shape.longest_answer)


@dataclass(slots=True)
class _Answer:
    """A row in progress, with its own keys and values, all layers [1, heads, tokens, head size]."""

    row: Row
    draw: random.Random | None
    cache: _Cache


class OnnxGenerator(TextGenerator):
    """The embedded model on ONNX Runtime."""

    def __init__(self, session: ort.InferenceSession, tokenizer: LightTokenizer, shape: _Shape) -> None:
        self.tokenizer = tokenizer
        self._session = session
        self._shape = shape
        names = [f"{name}_{layer}" for layer in range(shape.layers) for name in ("key", "value")]
        self._past_names = [f"past_{name}" for name in names]
        self._outputs = ["logits", *names]

    def serve(self, arrivals: Arrivals) -> Iterator[Row]:
        answers: list[_Answer] = []
        arrived = arrivals(0)
        while answers or arrived:
            answers += [self._started(job) for job in arrived]
            running = [answer for answer in answers if answer.row.finish is None]
            arrived = self._decode(running, arrivals) if running else ()
            yield from (answer.row for answer in answers if answer.row.finish is not None)
            answers = [answer for answer in running if answer.row.finish is None]
            if not arrived:
                arrived = arrivals(len(answers))

    def _started(self, job: Job) -> _Answer:
        """The answer with its first token."""
        logits, cache = self._read_prompt(job)
        answer = _Answer(Row(job), _draw(job), cache)
        self._advance(answer.row, logits, answer.draw)
        return answer

    def _decode(self, answers: Sequence[_Answer], arrivals: Arrivals) -> Sequence[Job]:
        """Decodes *answers* together until one ends or a job arrives; returns the arrived ones."""
        lengths = [answer.cache[0].shape[2] for answer in answers]
        past, pads = _stacked([answer.cache for answer in answers])
        arrived: Sequence[Job] = ()
        while not arrived and all(answer.row.finish is None for answer in answers):
            ids = np.array([[answer.row.tokens[-1]] for answer in answers], dtype=np.int64)
            positions = np.array([[length] for length in lengths], dtype=np.int64)
            seen = np.arange(past[0].shape[2] + 1) >= np.array(pads)[:, None]
            logits, past = self._step(ids, positions, seen[:, None, None, :], past)
            lengths = [length + 1 for length in lengths]
            for i, answer in enumerate(answers):
                self._advance(answer.row, logits[i], answer.draw)
            arrived = arrivals(len(answers))
        for i, answer in enumerate(answers):
            answer.cache = tuple(tensor[i : i + 1, :, pads[i] :] for tensor in past)
        return arrived

    def _read_prompt(self, job: Job) -> tuple[_Floats, _Cache]:
        """(logits [V] after the prompt, its cache)."""
        length = len(job.prompt)
        empty = np.zeros((1, self._shape.heads, 0, self._shape.head_size), np.float32)
        ids, positions = np.array([job.prompt], np.int64), np.arange(length)[None]
        causal = np.tril(np.ones((length, length), np.bool_))[None, None]
        logits, cache = self._step(ids, positions, causal, (empty,) * len(self._past_names))
        return logits[0], cache

    def _step(
        self, ids: NDArray[np.int64], positions: NDArray[np.int64], mask: NDArray[np.bool_], past: _Cache
    ) -> tuple[_Floats, _Cache]:
        """(logits [B, V], the cache with the new tokens)."""
        inputs = {"input_ids": ids, "position_ids": positions, "mask": mask}
        result: Any = self._session.run(self._outputs, inputs | dict(zip(self._past_names, past, strict=True)))
        return result[0][:, -1], tuple(result[1:])

    def _advance(self, row: Row, logits: _Floats, draw: random.Random | None) -> None:
        """Picks the row's next token, or ends the row at its deadline."""
        if row.job.over:
            row.finish = "deadline"
            return
        logprobs = _log_softmax(logits.astype(np.float64))
        token = _pick(logprobs, row.job.temperature, draw)
        row.add(token, float(logprobs[token]), self._shape.ends, self.tokenizer)


def _stacked(caches: Sequence[_Cache]) -> tuple[_Cache, list[int]]:
    """One cache of all rows, padded on the left to the longest, and the padding of each row."""
    longest = max(cache[0].shape[2] for cache in caches)
    pads = [longest - cache[0].shape[2] for cache in caches]
    if len(caches) == 1:
        return caches[0], pads
    widths = [((0, 0), (0, 0), (pad, 0), (0, 0)) for pad in pads]
    layers = zip(*caches, strict=True)
    return tuple(np.concatenate([np.pad(t, w) for t, w in zip(layer, widths, strict=True)]) for layer in layers), pads


def _log_softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    shifted = logits - logits.max()
    return shifted - math.log(np.exp(shifted).sum())


def _draw(job: Job) -> random.Random | None:
    """The random generator, equal on all machines and Python versions for a seed; None for a greedy answer."""
    return random.Random(job.seed) if job.temperature > 0 else None


def _pick(logprobs: NDArray[np.float64], temperature: float, draw: random.Random | None) -> int:
    if draw is None:
        return int(logprobs.argmax())
    shares = np.cumsum(np.exp(_log_softmax(logprobs / temperature)))
    return min(int(np.searchsorted(shares, draw.random() * shares[-1], side="right")), len(shares) - 1)


def _options() -> Any:
    """Options for one thread: a second one does not make a model of this size faster."""
    options: Any = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors; they are raised as well
    return options


def _shape_of(folder: Path, tokenizer: LightTokenizer) -> _Shape:
    config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    generation: dict[str, Any] = json.loads((folder / "generation_config.json").read_text(encoding="utf-8"))
    lengths = [config["max_position_embeddings"], tokenizer.model_max_length]
    ends = [generation.get("eos_token_id"), tokenizer.token_id("eos_token")]
    return _Shape(
        layers=config["num_hidden_layers"],
        heads=config["num_key_value_heads"],
        head_size=config["head_dim"],
        context=min(length for length in lengths if length),
        ends=frozenset(end for end in ends if end is not None),
        longest_answer=generation.get("max_new_tokens"),
    )
