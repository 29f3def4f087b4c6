"""Fine-tunes a policy on the successes of recorded runs, then plays it.

    python examples/fine_tune.py     # needs the extra `training`; a minute on two CPU cores

The same on the command line: `mira run --policy oracle`, `mira train sft`, `mira run --policy local:…`. Traces of a
strong model do as well as those of the oracle. Evaluation instances are left out of training; MiniWoB++ trains from
seed 1,000,000.
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from agent import RunConfig, run_suite
from envs.core.tasks import TaskSelection
from training.loop.sft import SupervisedSettings, fine_tune

TASKS = ("click-button", "enter-text")
TRAIN = TaskSelection("miniwob", TASKS, tuple(range(1_000_000, 1_000_003)))
EVALUATE = TaskSelection("miniwob", TASKS, (0, 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs"))
    options = parser.parse_args()
    teacher = RunConfig(policy="oracle", planner="reference", show_plan=False)
    demonstrations = asyncio.run(run_suite(teacher, TRAIN, options.out / "demonstrations"))
    settings = SupervisedSettings.load(None, ["optimization.epochs=2", "optimization.learning_rate=1e-4"])
    tuned = fine_tune([demonstrations.folder], "embedded", options.out / "fine-tuned", settings, print)
    print(f"loss per token: {tuned.first_loss:.3f} -> {tuned.last_loss:.3f}")
    played = asyncio.run(run_suite(RunConfig(policy=f"local:{tuned.model}"), EVALUATE, options.out / "played"))
    solved = sum(episode.outcome == "success" for episode in played.episodes)
    print(f"solved {solved} of {len(played.episodes)}")


if __name__ == "__main__":
    main()
