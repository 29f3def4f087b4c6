"""What a phase learns from: its own rollouts, and past successes of which the actor is neither too sure nor too
surprised."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

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
    """How many of them are this phase's own."""
    rows: tuple[Row, ...]
    references: tuple[float, ...]
    """`log π(a|s)` of each row under the policy of the phase's start."""
    allowed: tuple[bool, ...]
    """Rows that the actor may see: with a band on steps, replayed ones outside it are there for returns alone."""
    replayed: ReplayCounts


class ReplayCounts(Record):
    """What came of the buffer."""

    held: int = 0
    chosen: int = 0
    too_sure: int = 0
    too_surprised: int = 0
    over: int = 0
    """Within the band, and beyond `per_new`."""
    too_long: int = 0
    """A recorded row is longer than the limit."""


def read_episodes(phase: Path) -> tuple[tuple[Trajectory, ...], tuple[Trajectory, ...]]:
    """(new, replayed) of what the phase in folder *phase* learned from; its rows number them together, in this order.

    Raises BadInput where it holds no such tables.
    """
    new, replayed = (read_trajectories(phase / "data" / f"{name}.parquet") for name in ("new", "replayed"))
    return new, replayed


def read_runs(places: Sequence[Path], *, texts: bool = False) -> Selection:
    """The trajectories of runs, in the order of their episodes. *texts*: :func:`training.data.trajectories.select`."""
    return select(((one.read(), one.blobs) for one in discover_traces(places)), texts=texts)


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
    """Rows of *trajectories* (encoded: *new*) and of those of *past* that the actor replays. *score* tells its
    `log π(a|s)` of them, once: the perplexities of the filter are the references of the loss."""
    buffer = ReplayBuffer[Trajectory](settings.capacity)
    buffer.add((one.identity, one) for one in past if one.success)
    held = list(buffer) if settings.per_new > 0 else []
    kept = encoder.encode(held)
    found = score((*new.rows, *kept.rows))
    references, sums = list(found[: len(new.rows)]), found[len(new.rows) :]
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
    """The perplexity by which each is judged: its own, or with steps that of its step nearest to the band."""
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
    inside: _Inside, gone: Sequence[int], held: Sequence[Trajectory], settings: ReplaySettings, *, most: int, seed: int
) -> tuple[list[int], ReplayCounts]:
    """(places in *held*, in their order; counts). What is beyond *most* is drawn out by chance."""
    band, lost = settings.band, set(gone)
    fits = [place for place, value in enumerate(inside.trajectories) if band.holds(value) and place not in lost]
    below = sum(value < band.low for place, value in enumerate(inside.trajectories) if place not in lost)
    told = BandCounts(len(fits), below, len(held) - len(lost) - len(fits) - below)
    chosen = sorted(random.Random(f"replay {seed}").sample(fits, most)) if len(fits) > most else fits
    return chosen, ReplayCounts(
        held=len(held),
        chosen=len(chosen),
        too_sure=told.too_sure,
        too_surprised=told.too_surprised,
        over=len(fits) - len(chosen),
        too_long=len(lost),
    )
