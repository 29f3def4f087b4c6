"""How well a potential critic predicts progress on successes that it was not trained on, with a drawing of the curves.

    python -m benchmarks.potential runs/mira/phase-6/potential/model runs/mira/phase-6/evaluation/run --out curves.svg

Truth is the label that the critic is trained towards (MiRA paper: Eq. 2, Alg. 3): progress between milestones, on
successes that pass its filter. Wanted are a mean absolute error of at most 0.10 and a Spearman correlation of at least
0.9. Intervals resample whole episodes.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from agent.inspection.report.svg import element, text
from agent.run.discover_traces import discover_traces
from judges.statistics import Estimate, resampled
from training.data.rows import RowEncoder
from training.data.trajectories import Trajectory, select
from training.engine.annotate import score_states
from training.engine.checkpoints import load_policy
from training.engine.critic_model import Critic
from training.mira.targets import row_progress

ACROSS, WIDE, HIGH, GAP = 6, 150, 96, 26
DRAWN = 30
STYLE = (
    "text{font:11px sans-serif;fill:#444}.true{fill:none;stroke:#999;stroke-dasharray:3 3;stroke-width:1.5}"
    ".predicted{fill:none;stroke:#1664c0;stroke-width:2}.frame{fill:#f6f7f9}"
)


class Curve(NamedTuple):
    """One success: the values that the critic predicts for its states, and the true ones."""

    name: str
    predicted: tuple[float, ...]
    true: tuple[float, ...]


def curves(critic: Path, policy: Path, runs: Sequence[Path], max_tokens: int) -> list[Curve]:
    import torch

    torch.set_num_threads(1)
    selection = select((one.read(), one.blobs) for one in discover_traces(runs))
    encoder = RowEncoder(load_policy(policy)[1], max_tokens)
    rows = encoder.encode(selection.kept).rows
    labels = row_progress(selection.kept, rows)
    places = sorted(labels)
    predicted = score_states(Critic.load(critic).eval(), [rows[place] for place in places], max_tokens)
    episodes: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for place, value in zip(places, predicted, strict=True):
        episodes[rows[place].trajectory].append((value, labels[place]))
    return [_curve(selection.kept[index], pairs) for index, pairs in episodes.items()]


def _curve(trajectory: Trajectory, pairs: Sequence[tuple[float, float]]) -> Curve:
    task = trajectory.task
    return Curve(
        f"{task.name} {task.seed}", tuple(predicted for predicted, _ in pairs), tuple(true for _, true in pairs)
    )


def absolute_error(episodes: Sequence[Curve]) -> float:
    return fmean(abs(s - t) for curve in episodes for s, t in zip(curve.predicted, curve.true, strict=True))


def rank_correlation(episodes: Sequence[Curve]) -> float:
    from scipy.stats import spearmanr

    result: Any = spearmanr([s for c in episodes for s in c.predicted], [t for c in episodes for t in c.true])
    return float(result.statistic)


def over_episodes(episodes: Sequence[Curve], measure: Callable[[Sequence[Curve]], float], resamples: int) -> Estimate:
    """*measure* with the percentile bootstrap's interval over whole episodes."""
    draw = np.random.default_rng(0)
    samples = [
        measure([episodes[i] for i in draw.integers(len(episodes), size=len(episodes))]) for _ in range(resamples)
    ]
    return resampled(measure(episodes), np.array(samples), len(episodes))


def drawn(episodes: Sequence[Curve]) -> str:
    """The longest episodes as small charts: progress over steps, dashed what is true."""
    longest = sorted(episodes, key=lambda curve: -len(curve.true))[:DRAWN]
    parts = [element("style", Markup(STYLE))]
    for place, curve in enumerate(longest):
        x, y = (place % ACROSS) * (WIDE + GAP), (place // ACROSS) * (HIGH + GAP) + GAP
        parts.append(element("rect", x=x, y=y, width=WIDE, height=HIGH, class_="frame"))
        parts.append(text(x, y - 6, curve.name[:24]))
        for class_, values in (("true", curve.true), ("predicted", curve.predicted)):
            parts.append(element("polyline", points=_points(values, x, y), class_=class_))
    rows = -(-len(longest) // ACROSS)
    size = {"width": ACROSS * (WIDE + GAP), "height": rows * (HIGH + GAP) + GAP}
    return str(element("svg", *parts, xmlns="http://www.w3.org/2000/svg", **size))


def _points(values: Sequence[float], x: float, y: float) -> str:
    step = WIDE / max(1, len(values) - 1)
    return " ".join(f"{x + step * i:.1f},{y + HIGH * (1 - value):.1f}" for i, value in enumerate(values))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("critic", type=Path, help="a potential critic's model folder")
    parser.add_argument("runs", type=Path, nargs="+", help="runs whose successes it has not learned from")
    parser.add_argument("--policy", type=Path, help="whose tokenizer it has; default: the actor beside it")
    parser.add_argument("--max-tokens", type=int, default=1_024)
    parser.add_argument("--resamples", type=int, default=1_000)
    parser.add_argument("--out", type=Path, help="draw the longest episodes into this SVG file")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    episodes = curves(
        args.critic, args.policy or args.critic.parent.parent / "actor" / "model", args.runs, args.max_tokens
    )
    if not episodes:
        raise SystemExit("no success with milestones in these runs")
    record = {
        "episodes": len(episodes),
        "states": sum(len(curve.true) for curve in episodes),
        "absolute_error": over_episodes(episodes, absolute_error, args.resamples).model_dump(),
        "spearman": over_episodes(episodes, rank_correlation, args.resamples).model_dump(),
    }
    print(json.dumps(record, indent=None if args.json else 2))
    if args.out is not None:
        args.out.write_text(drawn(episodes), encoding="utf-8")


if __name__ == "__main__":
    main()
