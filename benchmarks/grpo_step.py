"""A step of GRPO here beside plain TRL: the same model, prompts, rewards and arguments, in one process by turns.

    python -m benchmarks.grpo_step [--width 512] [--layers 8] [--maze 5] [--padded] [--steps 6] [--rounds 4] [--json]

Each round trains here, with TRL, with TRL, here; a step is sampling, rewarding and one update. The first step of each
run, which also checks the batch here, is left out. The ratio is that of the medians; the interval resamples rounds.
Each run that is done has a line on stderr.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
from transformers import PrinterCallback
from transformers.utils import logging

from benchmarks.toy_models.puzzles import fresh_model
from benchmarks.watched_training import StepTimes
from training.engine.checkpoints import load_policy
from training.grpo.examples import Example
from training.grpo.puzzles import make_puzzles
from training.grpo.settings import GrpoSettings, parse_settings
from training.grpo.trainer import build_dataset, build_rewarder, build_trainer, trl_arguments

RESAMPLES: Final = 10_000
TEMPLATE: Final = "{% for message in messages %}{{ message.content }}{% endfor %}"
"""With it both encode a prompt alike."""
SAME: Final = ("num_tokens", "completions/mean_length", "reward", "grad_norm")
"""What the log of a step has to agree in."""


def plain_trainer(model: Any, tokenizer: Any, examples: Sequence[Example], settings: GrpoSettings, out: Path) -> Any:
    """TRL's own trainer with the arguments of ours, and our reward as a function of its texts."""
    from trl.trainer.grpo_trainer import GRPOTrainer

    rewarder, group = build_rewarder(settings, tokenizer), settings.group

    def reward(completions: list[list[dict[str, str]]], index: list[int], **_: Any) -> list[float | None]:
        texts = [turns[0]["content"] for turns in completions]
        starts = range(0, len(texts), group)
        scored = [rewarder.of_group(examples[index[at]].target, texts[at : at + group], None) for at in starts]
        return [score.total for scores in scored for score in scores]

    dataset = build_dataset(examples, tokenizer)
    return GRPOTrainer(
        model=model,
        reward_funcs=reward,
        args=trl_arguments(out, settings, len(examples)),
        train_dataset=dataset,
        processing_class=tokenizer,
    )


def seconds_of_steps(
    start: Path, settings: GrpoSettings, examples: Sequence[Example], *, plain: bool
) -> tuple[list[float], Any]:
    """Seconds of each step but the first, and what was done: tokens, rewards and gradient norms of all steps."""
    model, tokenizer = load_policy(start, padded=True)
    tokenizer.chat_template = TEMPLATE
    with tempfile.TemporaryDirectory() as out:
        build = plain_trainer if plain else build_trainer
        trainer = build(model, tokenizer, examples, settings, Path(out))
        times = StepTimes()
        trainer.remove_callback(PrinterCallback)
        trainer.add_callback(times)
        trainer.train()
    log = [[row[name] for name in SAME] for row in trainer.state.log_history if "loss" in row]
    return times.seconds[1:], log


def measure(options: argparse.Namespace) -> dict[str, Any]:
    examples = make_puzzles("maze", 200, seed=0, size=options.maze)
    settings = parse_settings(
        {
            "recipe": "ssl",
            "answer_tokens": 32,
            "packing": not options.padded,
            "micro_rows": 16,
            "steps": options.steps,
            "kl": options.kl,
            "optimization": {"learning_rate": 1e-6, "batch_rows": options.rows, "warmup": 0},
            "compute": {"max_tokens": options.maze**2 + 256, "threads": options.threads, "cpu": True},
        },
        "benchmark",
    )
    rounds: list[tuple[list[float], list[float]]] = []
    with tempfile.TemporaryDirectory() as folder:
        start = fresh_model(Path(folder) / "start", width=options.width, layers=options.layers)
        for number in range(1, options.rounds + 1):
            sides: list[tuple[list[float], Any]] = []
            for plain in (False, True, True, False):
                seconds, log = seconds_of_steps(start, settings, examples, plain=plain)
                sides.append((seconds, log))
                name = "TRL" if plain else "here"
                print(
                    f"round {number} of {options.rounds}, {name}: {median(seconds):.3f} s a step",
                    file=sys.stderr,
                    flush=True,
                )
            if not all(_alike(log, sides[0][1]) for _, log in sides):
                raise SystemExit(f"the runs did not do the same: {[log for _, log in sides]}")
            rounds.append((sides[0][0] + sides[3][0], sides[1][0] + sides[2][0]))
    drawn = np.random.default_rng(0).integers(len(rounds), size=(RESAMPLES, len(rounds)))
    ratios = [_ratio([rounds[place] for place in places]) for places in drawn]
    low, high = np.percentile(ratios, (2.5, 97.5))
    ours, plain = ([second for pair in rounds for second in pair[side]] for side in (0, 1))
    return {
        "ours_s": round(median(ours), 3),
        "trl_s": round(median(plain), 3),
        "ratio": round(_ratio(rounds), 3),
        "low": round(float(low), 3),
        "high": round(float(high), 3),
        "steps": len(ours),
    }


def _alike(one: Any, other: Any) -> bool:
    """Whether the first step is the same in both and the tokens of all steps differ by less than 2 %: after an update
    that differs by rounding, samples differ."""
    return np.allclose(one[0], other[0], rtol=1e-3) and abs(one[-1][0] / other[-1][0] - 1) < 0.02


def _ratio(rounds: Sequence[tuple[list[float], list[float]]]) -> float:
    ours, plain = ([second for pair in rounds for second in pair[side]] for side in (0, 1))
    return median(ours) / median(plain)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument(
        "--maze", type=int, default=5, help="cells of a side; a prompt has a token a cell (%(default)s)"
    )
    parser.add_argument("--padded", action="store_true", help="pad rows here too (packing=false)")
    parser.add_argument("--rows", type=int, default=64, help="completions of a step (%(default)s)")
    parser.add_argument("--kl", type=float, default=0.0, help="weight of the divergence; above 0 with a reference")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable_progress_bar()
    result = measure(options)
    if options.json:
        print(json.dumps(result))
        return
    print(
        f"here {result['ours_s']:.3f} s a step, TRL {result['trl_s']:.3f} s: ratio {result['ratio']:.3f} "
        f"({result['low']:.3f} to {result['high']:.3f}), {result['steps']} steps of each"
    )


if __name__ == "__main__":
    main()
