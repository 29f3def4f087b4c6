"""Builds a phase's training data: its own rollouts and replayed past successes within the perplexity band."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import AliasChoices, Field

from agent.run.discover_traces import discover_traces
from envs.core.record import Record
from training.data.cache import read_trajectories
from training.data.rows import Encoded, Row, RowEncoder
from training.data.trajectories import Selection, Trajectory, select
from training.loop.settings import ReplaySettings
from training.mira.replay import BandCounts, ReplayBuffer


@dataclass(frozen=True, slots=True)
class PhaseData:
    """Trajectories and their rows, the new ones first."""

    trajectories: tuple[Trajectory, ...]
    new: int
    """Number of this phase's own trajectories."""
    rows: tuple[Row, ...]
    references: tuple[float, ...]
    """`log π(a|s)` of each row under the policy at the start of the phase."""
    allowed: tuple[bool, ...]
    """Rows that the actor may learn from. With a band on steps, replayed rows outside it only serve for returns."""
    replayed: ReplayCounts


class ReplayCounts(Record):
    """Number of buffered trajectories by what was done with them."""

    held: int = 0
    chosen: int = 0
    below_band: int = Field(default=0, validation_alias=AliasChoices("below_band", "too_sure"))
    above_band: int = Field(default=0, validation_alias=AliasChoices("above_band", "too_surprised"))
    over_limit: int = Field(default=0, validation_alias=AliasChoices("over_limit", "over"))
    """Within the band, but beyond the limit `per_new`."""
    too_long: int = 0
    """With a recorded row that is longer than the limit."""


def read_episodes(phase: Path) -> tuple[tuple[Trajectory, ...], tuple[Trajectory, ...]]:
    """Reads the (new, replayed) trajectories of the phase in folder *phase*. Its rows index them in this order.

    Raises BadInput where the tables are missing.
    """
    new, replayed = (read_trajectories(phase / "data" / f"{name}.parquet") for name in ("new", "replayed"))
    return new, replayed


def read_runs(places: Sequence[Path], *, texts: bool = False, rejected: bool = False) -> Selection:
    """The trajectories of runs, in the order of their episodes. *texts*, *rejected*: see
    :func:`training.data.trajectories.select`."""
    traces = ((file.read(), file.blobs) for file in discover_traces(places))
    return select(traces, texts=texts, rejected=rejected)


def phase_data(
    new: Encoded,
    trajectories: Sequence[Trajectory],
    past: Iterable[Trajectory],
    *,
    score: Callable[[Sequence[Row]], Sequence[float]],
    encoder: RowEncoder,
    settings: ReplaySettings,
    seed: int,
) -> PhaseData:
    """Rows of *trajectories* (encoded: *new*) and of the replayed ones of *past*. *score* computes `log π(a|s)` of all
    of them once, for the perplexity filter and for the reference logprobs of the loss."""
    buffer = ReplayBuffer[Trajectory](settings.capacity)
    buffer.add((item.identity, item) for item in past if item.success)
    held = list(buffer) if settings.per_new > 0 else []
    kept = encoder.encode(held)
    logprobs = score((*new.rows, *kept.rows))
    references, sums = list(logprobs[: len(new.rows)]), logprobs[len(new.rows) :]
    inside = _inside(kept.rows, sums, len(held), settings)
    most = round(settings.per_new * len(trajectories))
    places, counts = _chosen(inside, kept.too_long, held, settings, most=most, seed=seed)

    rows = list(new.rows)
    allowed = [True] * len(rows)
    number = {place: len(trajectories) + at for at, place in enumerate(places)}
    for row, total, fits in zip(kept.rows, sums, inside.rows, strict=True):
        if row.trajectory in number:
            rows.append(Row(row.prompt, row.completion, number[row.trajectory], row.time, row.sampled))
            references.append(total)
            allowed.append(fits)
    return PhaseData(
        trajectories=(*trajectories, *(held[place] for place in places)),
        new=len(trajectories),
        rows=tuple(rows),
        references=tuple(references),
        allowed=tuple(allowed),
        replayed=counts,
    )


@dataclass(frozen=True, slots=True)
class _Inside:
    trajectories: tuple[float, ...]
    """The perplexity that each is filtered by: its own, or for the unit `step` that of its step nearest to the band."""
    rows: tuple[bool, ...]


def _inside(rows: Sequence[Row], sums: Sequence[float], count: int, settings: ReplaySettings) -> _Inside:
    tokens, logprobs = [0] * count, [0.0] * count
    steps: list[list[float]] = [[] for _ in range(count)]
    for row, total in zip(rows, sums, strict=True):
        tokens[row.trajectory] += len(row.completion)
        logprobs[row.trajectory] += total
        steps[row.trajectory].append(math.exp(-total / len(row.completion)))
    if settings.unit == "trajectory":
        values = [math.exp(-total / max(1, n)) for total, n in zip(logprobs, tokens, strict=True)]
        return _Inside(tuple(values), (True,) * len(rows))
    band = settings.band
    best = [min(own, key=lambda value: _apart(value, band.low, band.high)) if own else 1.0 for own in steps]
    fits = [band.holds(math.exp(-total / len(row.completion))) for row, total in zip(rows, sums, strict=True)]
    return _Inside(tuple(best), tuple(fits))


def _apart(value: float, low: float, high: float) -> float:
    return max(low - value, value - high, 0.0)


def _chosen(
    inside: _Inside,
    too_long: Sequence[int],
    held: Sequence[Trajectory],
    settings: ReplaySettings,
    *,
    most: int,
    seed: int,
) -> tuple[list[int], ReplayCounts]:
    """(indices in *held*, in their order; counts). Of more than *most*, a random sample is taken."""
    band, excluded = settings.band, set(too_long)
    fits = [place for place, value in enumerate(inside.trajectories) if band.holds(value) and place not in excluded]
    below = sum(value < band.low for place, value in enumerate(inside.trajectories) if place not in excluded)
    counts = BandCounts(len(fits), below, len(held) - len(excluded) - len(fits) - below)
    chosen = sorted(random.Random(f"replay {seed}").sample(fits, most)) if len(fits) > most else fits
    return chosen, ReplayCounts(
        held=len(held),
        chosen=len(chosen),
        below_band=counts.below_band,
        above_band=counts.above_band,
        over_limit=len(fits) - len(chosen),
        too_long=len(excluded),
    )
