"""How noisy a gradient is under each reward (SSL paper, Table 11): the same completions, rewarded in turn.

    python -m benchmarks.grpo_gradients --kind sudoku --out runs/grpo --batches 100

Batches of 16 prompts x 8 completions of the start that `benchmarks.grpo_puzzles` made. `u` is the direction of the mean
gradient under binary rewards over every other batch; over the rest, the result is the variance of each gradient's
part along u, and the mean of that part by its deviation (§3.4), with bootstrap intervals over batches.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from agent.cli.output import print_json
from benchmarks.grpo_puzzles import BASE, sets_of
from envs.core.errors import BadInput
from envs.core.plain_values import merged
from judges.statistics import RESAMPLES
from training.engine.checkpoints import load_policy
from training.grpo.puzzles import parse_puzzle_kind
from training.grpo.rewards import Rewarder
from training.grpo.rewards.ssl import SslReward
from training.grpo.settings import parse_settings
from training.grpo.trainer import build_trainer

REWARDS: Final = {
    "binary": SslReward(proximity="none"),
    "continuous": SslReward(proximity="continuous"),
    "tiered, K = 2": SslReward(zones=2),
    "tiered, K = 4": SslReward(),
    "tiered, K = 8": SslReward(zones=8),
}


def gradients(kind: str, out: Path, batches: int) -> dict[str, torch.Tensor]:
    """By reward, (batches, weights): the gradient of each batch under it. Raises BadInput."""
    start = out / parse_puzzle_kind(kind) / "start" / "model"
    if not start.exists():
        raise BadInput(f"{str(start)!r} is not there: benchmarks.grpo_puzzles makes it")
    model, tokenizer = load_policy(start, padded=True)
    learned = sets_of(parse_puzzle_kind(kind))[1]
    asked = {example.messages[0][1]: example for example in learned}
    settings = parse_settings(merged(BASE, {"kl": 0.0, "steps": batches}), "here")
    with tempfile.TemporaryDirectory() as folder:
        trainer = build_trainer(model, tokenizer, learned, settings, Path(folder))
        passes = chain.from_iterable(trainer.get_train_dataloader() for _ in count())
        rows: dict[str, list[torch.Tensor]] = {name: [] for name in REWARDS}
        for inputs in islice(passes, batches):
            batch = trainer._generate_and_score_completions(inputs)
            for name, gradient in _of_batch(model, tokenizer, batch, asked, settings.group).items():
                rows[name].append(gradient)
    return {name: torch.stack(vectors) for name, vectors in rows.items()}


def _of_batch(
    model: Any, tokenizer: Any, batch: dict[str, Any], asked: dict[str, Any], group: int
) -> dict[str, torch.Tensor]:
    """The gradient of `mean A·(mean log π of a completion's tokens)`, advantages centred on their group (App. B.5)."""
    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], 1)
    attention = torch.cat([batch["prompt_mask"], batch["completion_mask"]], 1)
    logits = model(input_ids=ids, attention_mask=attention).logits[:, :-1].log_softmax(-1)
    mask = batch["completion_mask"]
    own = logits.gather(-1, ids[:, 1:, None]).squeeze(-1)[:, -mask.shape[1] :]
    each = (own * mask).sum(1) / mask.sum(1)
    texts = tokenizer.batch_decode(batch["completion_ids"], skip_special_tokens=True)
    prompts = [
        tokenizer.decode(row[kept.bool()], skip_special_tokens=True).strip()
        for row, kept in zip(batch["prompt_ids"], batch["prompt_mask"], strict=True)
    ]
    by_reward: dict[str, torch.Tensor] = {}
    for name, reward in REWARDS.items():
        rewarder = Rewarder(reward, len)
        totals = [rewarder.of_group(asked[p].target, [t])[0].total for p, t in zip(prompts, texts, strict=True)]
        rewards = torch.tensor(totals).view(-1, group)
        advantages = (rewards - rewards.mean(1, keepdim=True)).view(-1)
        parts = torch.autograd.grad((advantages * each).mean(), list(model.parameters()), retain_graph=True)
        by_reward[name] = torch.cat([part.reshape(-1) for part in parts])
    return by_reward


def statistics_by_reward(by_reward: dict[str, torch.Tensor]) -> list[dict[str, Any]]:
    """A row a reward."""
    mean = by_reward["binary"][::2].mean(0)  # of other batches than those it is held against: it would fit their noise
    along = {name: (each[1::2] @ (mean / mean.norm())).double().numpy() for name, each in by_reward.items()}
    rng = np.random.default_rng(0)
    draws = rng.integers(0, len(along["binary"]), (RESAMPLES, len(along["binary"])))
    rows: list[dict[str, Any]] = []
    for name, each in along.items():
        drawn, base = each[draws], along["tiered, K = 4"][draws]
        ratio = drawn.var(1, ddof=1) / base.var(1, ddof=1)
        signal = drawn.mean(1) / drawn.std(1, ddof=1)
        rows.append(
            {
                "reward": name,
                "variance": each.var(ddof=1),
                "variance to K = 4": each.var(ddof=1) / along["tiered, K = 4"].var(ddof=1),
                "interval": np.quantile(ratio, [0.025, 0.975]).tolist(),
                "signal to noise": each.mean() / each.std(ddof=1),
                "its interval": np.quantile(signal, [0.025, 0.975]).tolist(),
            }
        )
    return rows


def main() -> None:
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", default="sudoku")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--batches", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    try:
        rows = statistics_by_reward(gradients(given.kind, given.out, given.batches))
    except BadInput as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    if given.json:
        print_json(rows)
        return
    for row in rows:
        print(
            json.dumps({key: np.round(value, 6).tolist() if key != "reward" else value for key, value in row.items()})
        )


if __name__ == "__main__":
    main()
