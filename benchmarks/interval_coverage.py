"""How often the 95 % intervals of a difference between two arms contain the true one, on simulated experiments.

    python -m benchmarks.interval_coverage

Two arms on the same 40 tasks, one attempt each; arm b gains 0.2 on average, more on some tasks than on others, and
training seeds differ by `spread` (standard deviation of success), independently in each arm.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.percentages import share
from training.loop.evaluation.arms import Change, Trial, compare_arms

GAIN, TASKS = 0.2, 40


def experiment(random: np.random.Generator, seeds: int, spread: float) -> Change:
    ease, gains = random.uniform(0.1, 0.7, size=TASKS), random.normal(GAIN, 0.1, size=TASKS)
    trials = [
        Trial(arm, seed, f"suite/t{task}/0", 1, bool(random.random() < ease[task] + skill + gains[task] * (arm == "b")))
        for arm in "ab"
        for seed, skill in enumerate(random.normal(0, spread, size=seeds))
        for task in range(TASKS)
    ]
    change = compare_arms(trials, resamples=400).arms[1].change
    assert change is not None
    return change


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--experiments", type=int, default=400)
    wanted = parser.parse_args().experiments
    print("| seeds | spread | tasks and seeds | tasks alone | seeds alone |\n|---|---|---|---|---|")
    for seeds in (3, 5):
        for spread in (0.02, 0.05, 0.1):
            random = np.random.default_rng(1)
            changes = [experiment(random, seeds, spread) for _ in range(wanted)]
            held = [
                sum(e.low is not None and e.high is not None and e.low <= GAIN <= e.high for e in one) / wanted
                for one in zip(*((c.both, c.tasks, c.seeds) for c in changes), strict=True)
            ]
            print(f"| {seeds} | {spread} | " + " | ".join(map(share, held)) + " |")


if __name__ == "__main__":
    main()
