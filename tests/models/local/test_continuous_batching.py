"""Jobs join the rows in progress at their next token, rows leave when they end, and no answer depends on it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from models.embedded import embedded_dir
from models.local.batch_generation import Generator
from models.local.continuation import Job, Row, TextGenerator
from models.local.embedded_onnx import load_embedded
from models.local.loading import load_generator
from tests.models.local.test_local import GRAMMAR, save_checkpoint
from tests.models.local.test_prefix_cache import sliding_window

PROMPTS = tuple(tuple(range(10, 10 + length)) for length in (50, 20, 33, 60))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_checkpoint(tmp_path_factory.mktemp("checkpoint"))


def on_torch(folder: Path) -> Generator:
    """No token ends an answer, so that its length is known."""
    generator = load_generator(folder, None, "local:tiny")[0]
    generator.ends = frozenset()
    return generator


def job(prompt: Sequence[int], tokens: int, grammar: str | None = None, temperature: float = 0.0) -> Job:
    return Job(tuple(prompt), tokens, temperature, 7, (), time.monotonic() + 600, grammar)


def serve(generator: TextGenerator, arriving: Mapping[int, Sequence[Job]]) -> tuple[list[Row], list[int]]:
    """(rows in the order in which they ended, rows in progress at each call). *arriving*: the jobs by the number of the
    call at which they arrive."""
    active: list[int] = []

    def arrivals(rows: int) -> Sequence[Job]:
        active.append(rows)
        return arriving.get(len(active) - 1, ())

    return list(generator.serve(arrivals)), active


def same(row: Row, alone: Row) -> bool:
    close = torch.allclose(torch.tensor(row.logprobs), torch.tensor(alone.logprobs), atol=1e-4)
    return (row.tokens, row.finish, row.text) == (alone.tokens, alone.finish, alone.text) and close


def test_rows_join_and_leave_at_any_token(folder: Path) -> None:
    jobs = [job(prompt, tokens) for prompt, tokens in zip(PROMPTS, (9, 3, 12, 2), strict=True)]
    rows, active = serve(on_torch(folder), {0: jobs[:1], 2: jobs[1:3], 4: jobs[3:]})
    assert active == [0, 1, 1, 3, 3, 3, 2, 2, 2, 1, 1, 1, 1, 1, 0]
    assert [jobs.index(row.job) for row in rows] == [1, 3, 0, 2]
    for row in rows:
        assert same(row, *on_torch(folder).run([row.job]))


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_forced_tokens_and_free_rows_join(folder: Path, temperature: float) -> None:
    """Forced tokens are padding in the other rows of their pass, which a row that joins or stays must not attend to."""
    grammars = (GRAMMAR, None, 'root ::= "the only answer of all"', GRAMMAR)
    jobs = [job(p, 24, grammar, temperature) for p, grammar in zip(PROMPTS, grammars, strict=True)]
    rows, _ = serve(on_torch(folder), {0: jobs[:1], 1: jobs[1:2], 3: jobs[2:]})
    assert len(rows) == 4
    for row in rows:
        assert same(row, *on_torch(folder).run([row.job]))


def test_a_row_that_leaves_frees_its_keys(folder: Path) -> None:
    """The batch is as long as the longest row that is left."""
    generator: Any = on_torch(folder)
    lengths: list[int] = []
    forward = generator._forward

    def watched(ids: torch.Tensor, mask: torch.Tensor, cache: Any, keep: int = 1) -> Any:
        lengths.append(mask.shape[1])
        return forward(ids, mask, cache, keep=keep)

    generator._forward = watched
    generator.run([job(PROMPTS[3], 2), job(PROMPTS[1], 4)])
    assert lengths == [60, 20, 61, 22, 23]


def test_the_embedded_model_joins_rows() -> None:
    jobs = [job(prompt, tokens) for prompt, tokens in zip(PROMPTS, (9, 3, 12, 2), strict=True)]
    rows, active = serve(load_embedded(embedded_dir()).generator, {0: jobs[:1], 2: jobs[1:3], 4: jobs[3:]})
    assert len(rows) == 4 and max(active) == 3
    for row in rows:
        assert same(row, *load_embedded(embedded_dir()).generator.run([row.job]))


def test_jobs_wait_where_a_cache_cannot_be_cut(tmp_path: Path) -> None:
    generator = sliding_window(tmp_path)
    jobs = [job(PROMPTS[0], 5), job(PROMPTS[1], 3), job(PROMPTS[2], 2)]
    rows, active = serve(generator, {0: jobs[:2], 1: jobs[2:]})
    assert active == [0, 0, 0] and [jobs.index(row.job) for row in rows] == [0, 1, 2]
    for row in rows:
        assert same(row, *generator.run([row.job]))
