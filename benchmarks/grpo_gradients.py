"""How noisy a gradient is under each reward (SSL paper, Table 11): the same completions, rewarded in turn; resumable.

    python -m benchmarks.grpo_gradients --kind sudoku --out runs/grpo --batches 120
    python -m benchmarks.grpo_gradients --kind maze --out runs/grpo --batches 120
    python -m benchmarks.grpo_gradients --kind points --out runs/grounding --batches 120

Batches are of the start that `benchmarks.grpo_puzzles` or, for points, `benchmarks.grpo_grounding` made: 16 prompts x 8
completions of puzzles, 8 x 8 of points. `u` is the direction of the mean gradient under binary rewards over the first
half of the batches; over the other half, the result is the variance of each gradient's part along u, and the mean of
that part by its deviation (§3.4). Intervals, also of the differences to the binary reward, are bootstrap over batches,
the same batches for all rewards. A killed run continues with the same command.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import torch

from agent.cli.output import print_json
from benchmarks import grpo_grounding, grpo_puzzles
from envs.core.errors import BadInput
from envs.core.plain_values import merged
from judges.statistics import RESAMPLES
from training.grpo.evaluation import tokenizer_of
from training.grpo.examples import Example, examples_digest, read_examples
from training.grpo.rewards import Rewarder
from training.grpo.rewards.ssl import SslReward
from training.grpo.run import load_start
from training.grpo.settings import parse_settings
from training.grpo.trainer import build_trainer

POINTS: Final = "points"
_SHARED: Final = {
    "binary": SslReward(proximity="none"),
    "continuous": SslReward(proximity="continuous"),
    "tiered, K = 2": SslReward(zones=2),
    "tiered, K = 4": SslReward(),
    "tiered, K = 8": SslReward(zones=8),
}
_ALONE: Final = {"matched cells alone": SslReward(proximity="continuous", verifier=False, alpha=1.0)}
"""For puzzles: the reward of App. E.3's estimate, a share in [0, 1] without correctness and α."""
_GUI_G2: Final = {"GUI-G²": SslReward(proximity="gui_g2", verifier=False, alpha=1.0)}
"""For points: the reward that §4.1 names."""
_SAVED_EVERY: Final = 10
"""Batches."""


class Source(NamedTuple):
    """What batches are sampled from."""

    start: Path
    examples: Sequence[Example]
    base: Mapping[str, Any]
    rewards: Mapping[str, SslReward]
    kept: Path
    """Where the gradients so far are kept."""


def rewards_of(kind: str) -> dict[str, SslReward]:
    """The rewards that a kind of example is given in turn, by name."""
    return {**_SHARED, **(_GUI_G2 if kind == POINTS else _ALONE)}


def source_of(kind: str, out: Path) -> Source:
    """Raises BadInput if *kind* is unknown, or its start or examples are missing."""
    if kind == POINTS:
        folder, maker, base = out, "benchmarks.grpo_grounding", grpo_grounding.BASE
        path = folder / "learned.jsonl"
        examples = read_examples(path) if path.exists() else ()
    else:
        puzzle = grpo_puzzles.parse_kind(kind)
        folder, maker, base = out / puzzle, "benchmarks.grpo_puzzles", grpo_puzzles.BASE
        examples = grpo_puzzles.sets_of(puzzle)[1]
    start = folder / "start" / "model"
    if not start.exists() or not examples:
        raise BadInput(f"{str(folder)!r} has no start or no examples: `python -m {maker} play` makes them")
    return Source(start, examples, base, rewards_of(kind), folder / "gradients.pt")


class Progress(NamedTuple):
    """The gradients of the batches so far."""

    examples: str
    """Digest of the examples."""
    batches: int
    done: int
    direction: torch.Tensor | None
    """(weights,): sum of the binary gradients of the first half."""
    along: dict[str, list[float]]
    """By reward: the part along u of each batch of the other half."""


def projections(source: Source, batches: int) -> dict[str, list[float]]:
    """By reward: the part along u of the gradient of each batch of the second half of *batches*. Raises BadInput if
    there are fewer than four, or another run is kept in the folder."""
    if batches < 4:
        raise BadInput(f"--batches {batches}: the variance of a half needs at least 4")
    progress = _read_progress(source, batches)
    model, processor = load_start(source.start, vision=source.examples[0].image is not None)
    settings = parse_settings(merged(source.base, {"kl": 0.0, "steps": batches, "packing": False}), "here")
    with tempfile.TemporaryDirectory() as folder:
        trainer = build_trainer(model, processor, source.examples, settings, Path(folder))
        passes = chain.from_iterable(trainer.get_train_dataloader() for _ in count())
        for number, inputs in islice(enumerate(passes), progress.done, batches):
            torch.manual_seed(number)  # a resumed run samples what an uninterrupted one does
            sampled = trainer._generate_and_score_completions(inputs)
            asked = [source.examples[row["index"]] for row in inputs]
            first = number < batches // 2
            rewards = {"binary": source.rewards["binary"]} if first else source.rewards
            found = dict(_of_batch(model, tokenizer_of(processor), sampled, _Rewarded(asked, rewards, settings.group)))
            progress = _added(progress, found, first=first)
            if progress.done % _SAVED_EVERY == 0 or progress.done == batches:
                torch.save(progress._asdict(), source.kept)
    return progress.along


def _read_progress(source: Source, batches: int) -> Progress:
    digest = examples_digest(source.examples)
    if not source.kept.exists():
        return Progress(digest, batches, 0, None, {name: [] for name in source.rewards})
    kept = Progress(**torch.load(source.kept, weights_only=True))
    if (kept.examples, kept.batches, set(kept.along)) != (digest, batches, set(source.rewards)):
        raise BadInput(f"{str(source.kept)!r} is of other examples, batches or rewards: remove it to begin again")
    return kept


def _added(progress: Progress, found: Mapping[str, torch.Tensor], *, first: bool) -> Progress:
    if first:
        total = found["binary"] if progress.direction is None else progress.direction + found["binary"]
        return progress._replace(done=progress.done + 1, direction=total)
    assert progress.direction is not None
    length = progress.direction.norm()
    if not length:
        raise BadInput("every group of the first half has equal binary rewards: more --batches, or another start")
    along = {name: float(each @ (progress.direction / length)) for name, each in found.items()}
    rows = {name: [*before, along[name]] for name, before in progress.along.items()}
    return progress._replace(done=progress.done + 1, along=rows)


class _Rewarded(NamedTuple):
    asked: Sequence[Example]
    """The example of each completion."""
    rewards: Mapping[str, SslReward]
    group: int


def _of_batch(
    model: Any, tokenizer: Any, batch: Mapping[str, Any], rewarded: _Rewarded
) -> Iterator[tuple[str, torch.Tensor]]:
    """By reward, (weights,): the gradient of `mean A·(mean log π of a completion's tokens)`, advantages centred on
    their group (App. B.5)."""
    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], 1)
    attention = torch.cat([batch["prompt_mask"], batch["completion_mask"]], 1)
    seen = {name: batch[name] for name in ("pixel_values",) if name in batch}
    logits = model(input_ids=ids, attention_mask=attention, **seen).logits[:, :-1].log_softmax(-1)
    mask = batch["completion_mask"]
    own = logits.gather(-1, ids[:, 1:, None]).squeeze(-1)[:, -mask.shape[1] :]
    each = (own * mask).sum(1) / mask.sum(1)
    texts = tokenizer.batch_decode(batch["completion_ids"], skip_special_tokens=True)
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    for name, reward in rewarded.rewards.items():
        rewarder = Rewarder(reward, len)
        pairs = zip(rewarded.asked, texts, strict=True)
        totals = [rewarder.of_group(example.target, [text])[0].total for example, text in pairs]
        rewards = torch.tensor(totals).view(-1, rewarded.group)
        advantages = (rewards - rewards.mean(1, keepdim=True)).view(-1)
        parts = torch.autograd.grad((advantages * each).mean(), weights, retain_graph=True, materialize_grads=True)
        yield name, torch.cat([part.reshape(-1) for part in parts])


def statistics_by_reward(along: Mapping[str, Sequence[float]]) -> list[dict[str, Any]]:
    """A row a reward, of the parts along u. The signal to noise is a mean by a deviation."""
    arrays = {name: np.asarray(each) for name, each in along.items()}
    size = len(arrays["binary"])
    draws = np.random.default_rng(0).integers(0, size, (RESAMPLES, size))
    tiers, binary = arrays["tiered, K = 4"], _signal(arrays["binary"][draws])
    rows: list[dict[str, Any]] = []
    for name, each in arrays.items():
        ratio = each[draws].var(1, ddof=1) / tiers[draws].var(1, ddof=1)
        signal = _signal(each[draws])
        rows.append(
            {
                "reward": name,
                "variance": each.var(ddof=1),
                "variance to K = 4": each.var(ddof=1) / tiers.var(ddof=1),
                "interval": np.quantile(ratio, [0.025, 0.975]).tolist(),
                "signal to noise": float(_signal(each)),
                "its interval": np.quantile(signal, [0.025, 0.975]).tolist(),
                "less binary's": float(_signal(each) - _signal(arrays["binary"])),
                "interval of the difference": np.quantile(signal - binary, [0.025, 0.975]).tolist(),
            }
        )
    return rows


def _signal(parts: np.ndarray) -> np.ndarray:
    return parts.mean(-1) / parts.std(-1, ddof=1)


def main() -> None:
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", default="sudoku", choices=[*grpo_puzzles.KINDS, POINTS])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--batches", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    try:
        rows = statistics_by_reward(projections(source_of(given.kind, given.out), given.batches))
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
