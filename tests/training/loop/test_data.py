"""A phase's training data: one scoring pass gives the filter's perplexities and the reference logprobs."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from envs.core.errors import BadInput
from models.embedded import embedded_dir
from tests.training.trajectories import acted, rows_of
from training.data.cache import read_rows, read_trajectories, rows_digest, write_rows, write_trajectories
from training.data.columns import Column
from training.data.rows import Encoded, RowEncoder
from training.engine.annotate import score_completions
from training.engine.checkpoints import load_policy
from training.loop.data import PhaseData, phase_data
from training.loop.phase import check_engine, logprob_difference
from training.loop.settings import ReplaySettings
from training.mira.replay import Band

torch.set_num_threads(1)
NEW = (acted("a", ((5, 6), (7,)), success=False), acted("b", ((8,),), success=True))
PAST = tuple(acted("p", ((30 + n, 40), (50 + n,)), success=n % 3 > 0, seed=n) for n in range(9))


@pytest.fixture(scope="module")
def policy() -> tuple[Any, RowEncoder]:
    model, tokenizer = load_policy(embedded_dir())
    return model.eval(), RowEncoder(tokenizer, 100)


def build_data(policy: tuple[Any, RowEncoder], settings: ReplaySettings) -> PhaseData:
    model, encoder = policy
    encoded = Encoded(rows_of(NEW), 0, ())
    return phase_data(
        encoded,
        NEW,
        PAST,
        score=lambda rows: score_completions(model, rows, 50),
        encoder=encoder,
        settings=settings,
        seed=1,
    )


def perplexities(policy: tuple[Any, RowEncoder]) -> dict[int, float]:
    """The perplexity of each past success, by its seed, computed separately."""
    expected_perplexities: dict[int, float] = {}
    for item in PAST:
        if item.success:
            rows = rows_of((item,))
            sums = score_completions(policy[0], rows, 50)
            expected_perplexities[item.task.seed] = math.exp(-sum(sums) / sum(len(row.completion) for row in rows))
    return expected_perplexities


def test_past_successes_in_the_band_are_replayed_and_all_rows_are_scored(policy: tuple[Any, RowEncoder]) -> None:
    known = perplexities(policy)
    ordered = sorted(known.values())
    low, high = (ordered[0] + ordered[1]) / 2, (ordered[3] + ordered[4]) / 2
    data = build_data(policy, ReplaySettings(band=Band(low=low, high=high), per_new=5))
    chosen = {item.task.seed for item in data.trajectories[data.new :]}
    assert chosen == {seed for seed, value in known.items() if low <= value <= high} and len(chosen) == 3
    counts = data.replayed
    assert (counts.held, counts.chosen, counts.below_band, counts.above_band) == (6, 3, 1, 2)
    expected = score_completions(policy[0], data.rows, 1_000)
    assert data.references == pytest.approx(expected, abs=1e-3)
    assert [data.trajectories[row.trajectory].decisions[row.time].tokens.completion for row in data.rows] == [  # type: ignore[union-attr]
        row.completion for row in data.rows
    ]


def test_the_cap_is_drawn_by_seed_and_zero_replays_nothing(policy: tuple[Any, RowEncoder]) -> None:
    everything = Band(low=1.0, high=math.inf)
    data = build_data(policy, ReplaySettings(band=everything, per_new=1))
    assert data.replayed.chosen == 2 and data.replayed.over_limit == 4
    assert data == build_data(policy, ReplaySettings(band=everything, per_new=1))
    nothing = build_data(policy, ReplaySettings(band=everything, per_new=0))
    assert len(nothing.trajectories) == 2 and nothing.replayed.held == 0


def test_with_a_band_on_steps_the_actor_does_not_get_rows_outside_it(policy: tuple[Any, RowEncoder]) -> None:
    values = sorted(
        math.exp(-total / len(row.completion))
        for item in PAST
        if item.success
        for row, total in zip(rows_of((item,)), score_completions(policy[0], rows_of((item,)), 50), strict=True)
    )
    band = Band(low=values[0], high=values[5])
    data = build_data(policy, ReplaySettings(band=band, unit="step", per_new=5))
    fits = [band.holds(math.exp(-r / len(row.completion))) for r, row in zip(data.references, data.rows, strict=True)]
    own = [row.trajectory < data.new for row in data.rows]
    assert list(data.allowed) == [is_own or good for is_own, good in zip(own, fits, strict=True)]
    assert not all(data.allowed)


def test_tables_round_trip(tmp_path: Path) -> None:
    rows = rows_of(NEW)
    write_rows(tmp_path / "rows.parquet", rows, {Column.ADVANTAGE: [0.5, -1.25, 3.0]})
    read, columns = read_rows(tmp_path / "rows.parquet")
    assert read == rows and columns == {"advantage": (0.5, -1.25, 3.0)}
    assert rows_digest(read) == rows_digest(rows) != rows_digest(rows[:2])
    write_trajectories(tmp_path / "t.parquet", NEW)
    assert read_trajectories(tmp_path / "t.parquet") == NEW
    with pytest.raises(ValueError, match="2 values for 3 rows"):
        write_rows(tmp_path / "x.parquet", rows, {Column.ADVANTAGE: [0.5, 1.0]})


def test_other_libraries_read_the_tables(tmp_path: Path) -> None:
    from datasets import load_dataset

    write_rows(tmp_path / "rows.parquet", rows_of(NEW), {Column.ADVANTAGE: [0.5, -1.25, 3.0]})
    table = load_dataset("parquet", data_files=str(tmp_path / "rows.parquet"), cache_dir=str(tmp_path / "cache"))
    assert table["train"]["completion"][0] == [5, 6]


def test_samples_from_other_weights_are_detected(policy: tuple[Any, RowEncoder]) -> None:
    data = build_data(policy, ReplaySettings(per_new=0))
    assert logprob_difference(data) is None, "the sampling is unknown"

    def sampled(off: float) -> PhaseData:
        """Shifts the sampled log-probability of each completion token by *off*."""
        shifted = [
            replace(row, sampled=tuple(total / len(row.completion) - off for _ in row.completion))
            for row, total in zip(data.rows, data.references, strict=True)
        ]
        return replace(data, rows=tuple(shifted))

    assert logprob_difference(sampled(0.0)) == pytest.approx(0.0, abs=1e-6)
    assert logprob_difference(sampled(0.25)) == pytest.approx(0.25)
    check_engine(sampled(0.25), Path("policy"), 3, Path("run"))
    with pytest.raises(
        BadInput, match=r"phase 3: the rollouts were not sampled from 'policy', .* by 3\.00 per token.* Remove 'run'"
    ):
        check_engine(sampled(3.0), Path("policy"), 3, Path("run"))
