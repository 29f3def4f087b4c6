"""A phase's learning, from its rows to the new actor, against the naive way of computing the same numbers.

Both train the potential and the value critic, compute advantages, filter by perplexity and train the actor, so that
every number can be compared: in one optimizer step each, or ours in several (`--batch-rows`), at a rate of nearly 0.

*Ours* goes through the stages: packed rows, one scoring pass for perplexity and reference, every state scored once,
logits at action tokens alone. *Naive*: one trajectory at a time, or four, padded to the longest row; V and P scored on
s and on s'; the reference scored again in the update; logits everywhere. *As published*: the same, one trajectory at a
time, with V trained on s' as well, as in WebRL's code; its V, and so its advantages, are others.

    OMP_NUM_THREADS=1 python -m benchmarks.phase_step --rounds 3 --json
    OMP_NUM_THREADS=1 python -m benchmarks.phase_step --rounds 3 --json --phase runs/mira/phase-1 --batch-rows 16

Without `--phase` rows are drawn, and no two begin alike. Those of a phase that was played do: attempts at one task
begin on one page, steps of an episode with one goal. Ours reads what rows of one pack begin with once
(`training/data/packing.py`), so that smaller steps share less.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from benchmarks.pack_share import read_share
from benchmarks.training_rows import cpu_seconds, interleaved, llama, medians, parser, report, rows_of
from training.data.cache import read_rows
from training.data.columns import Column
from training.data.rows import Row
from training.engine.actor import ActorTrainer, Objective
from training.engine.annotate import score_completions, score_states
from training.engine.critic_model import Critic, states_of
from training.engine.critics import CriticKind, CriticTrainer
from training.engine.packed_model import accept_packed
from training.engine.settings import Compute, Optimization
from training.engine.step_plan import Plan
from training.engine.trainer import RowsTrainer, train, training_arguments
from training.mira.advantages import advantages, outcome_rewards, shaped_rewards
from training.mira.losses import potential_loss, regression_loss, value_loss

RATE, BETA, ALPHA, GAMMA, MIX = 1e-4, 0.5, 0.3, 0.9, 0.5
STILL = 1e-12
"""A rate at which several steps leave the numbers of the first."""
COMPUTE = Compute(cpu=True, threads=1)
WIDTH = 256
AS_PUBLISHED = "naive, as published"


@dataclass(frozen=True, slots=True)
class Learned:
    """What both ways must agree on."""

    losses: dict[str, float]
    advantages: tuple[float, ...]
    references: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Phase:
    """Rows, trajectory by trajectory, and which of those ended in success."""

    rows: Sequence[Row]
    won: Sequence[bool]

    @classmethod
    def drawn(cls, trajectories: int, steps: int) -> Phase:
        """Every second one a success."""
        return cls(rows_of(trajectories, steps), [bool(number % 2) for number in range(trajectories)])

    @classmethod
    def played(cls, folder: Path, trajectories: int) -> Phase:
        """The first of a recorded phase."""
        rows, columns = read_rows(folder / "actor" / "rows.parquet")
        kept = [place for place, row in enumerate(rows) if row.trajectory < trajectories]
        won = {rows[place].trajectory: bool(columns[Column.SUCCESS][place]) for place in kept}
        numbers = {index: number for number, index in enumerate(won)}
        return cls([replace(rows[n], trajectory=numbers[rows[n].trajectory]) for n in kept], list(won.values()))

    def first(self) -> Phase:
        """Its first trajectory alone."""
        return Phase([self.rows[n] for n in self.trajectories[0]], self.won[:1])

    @property
    def trajectories(self) -> list[list[int]]:
        """The places of each one's rows."""
        return [list(places) for _, places in groupby(range(len(self.rows)), lambda n: self.rows[n].trajectory)]

    def after(self, one: Sequence[int]) -> list[Row]:
        """The state after each action of a trajectory; the last one's own."""
        return [self.rows[n] for n in (*one[1:], one[-1])]

    def targets(self) -> dict[CriticKind, Tensor]:
        progress = [row.time / len(one) for one in self.trajectories for row in (self.rows[n] for n in one)]
        outcome = [float(self.won[row.trajectory]) for row in self.rows]
        return {"potential": torch.tensor(progress), "value": torch.tensor(outcome)}

    def advantages(self, one: Sequence[int], potentials: list[float], values: list[float]) -> tuple[float, ...]:
        """Of one trajectory, from P and V of its states."""
        success = self.won[self.rows[one[0]].trajectory]
        end = 1.0 if success else potentials[-1]
        rewards = outcome_rewards(len(one), success=success)
        shaped = shaped_rewards(rewards, [*potentials, end], ALPHA)
        return advantages(shaped, values, gamma=GAMMA, mix=MIX)


def critic_of(kind: CriticKind) -> Critic:
    """A trunk of its own; its head is moved from zero, so that there is something to compare."""
    trunk = llama(seed=1 if kind == "potential" else 2).model
    critic = Critic(trunk, WIDTH)
    last: Any = critic.head[-1]
    torch.nn.init.normal_(last.weight, std=0.1)
    return critic


def ours(phase: Phase, batch_rows: int) -> Learned:
    """*batch_rows*: of an optimizer step; 0 takes one step, of all rows."""
    rows, losses = phase.rows, dict[str, float]()
    policy = llama()
    accept_packed(policy)
    references = score_completions(policy.eval(), rows, COMPUTE.pack_tokens)
    scores: dict[CriticKind, tuple[float, ...]] = {}
    for kind, target in phase.targets().items():
        critic = critic_of(kind)
        accept_packed(critic.trunk)
        losses[kind] = _trained(
            states_of(rows),
            batch_rows,
            lambda plan, arguments, c=critic, k=kind, t=target: CriticTrainer(k, c, plan, t, arguments),
        )
        scores[kind] = score_states(critic.eval(), rows, COMPUTE.pack_tokens)
    advantages: list[float] = []
    for one in phase.trajectories:
        advantages += phase.advantages(one, [scores["potential"][n] for n in one], [scores["value"][n] for n in one])
    columns = {"advantages": torch.tensor(advantages), "references": torch.tensor(references)}
    losses["actor"] = _trained(
        rows,
        batch_rows,
        lambda plan, arguments: ActorTrainer(Objective(beta=BETA), policy, plan, **columns, arguments=arguments),
    )
    return Learned(losses, tuple(advantages), references)


def _trained(rows: Sequence[Row], batch_rows: int, make: Callable[[Plan, Any], RowsTrainer]) -> float:
    """The mean loss over all rows."""
    optimization = Optimization(learning_rate=STILL if batch_rows else RATE, batch_rows=batch_rows or len(rows))
    plan = Plan(rows, batch_rows=optimization.batch_rows, pack_tokens=COMPUTE.pack_tokens, epochs=1, seed=0)
    with tempfile.TemporaryDirectory() as folder:
        arguments = training_arguments(Path(folder), optimization, COMPUTE, seed=0, steps=len(plan))
        arguments.logging_steps = 1
        losses = [row["loss"] for row in train(make(plan, arguments), COMPUTE) if "loss" in row]
    weighted = (loss * plan[step].batch_rows for step, loss in enumerate(losses))
    return sum(weighted) / len(rows)


def naive(phase: Phase, together: int, rate: float = RATE, *, following: bool = False) -> Learned:
    """*together*: trajectories of a padded batch. *following*: V learns from the state after each action, too."""
    singles = phase.trajectories
    batches = [singles[at : at + together] for at in range(0, len(singles), together)]
    rows, losses = phase.rows, dict[str, float]()
    policy, reference = llama(), llama().eval()
    with torch.no_grad():
        references = torch.cat([_logprobs(policy, [rows[n] for n in chain(*batch)]) for batch in batches])
    critics = {kind: critic_of(kind) for kind in phase.targets()}
    for kind, target in phase.targets().items():
        optimizer = torch.optim.AdamW(critics[kind].parameters(), rate, weight_decay=0.0)
        losses[kind] = 0.0
        for batch in batches:
            places = list(chain(*batch))
            logits = _states(critics[kind], [rows[n] for n in places])
            wanted = target[places]
            of_batch = value_loss(logits, wanted) if kind == "value" else potential_loss(logits.sigmoid(), wanted)
            losses[kind] += _backward(of_batch * len(places) / len(rows))
            if following and kind == "value":
                after = _states(critics[kind], [row for one in batch for row in phase.after(one)])
                _backward(value_loss(after, wanted) * len(places) / len(rows))
        _step(critics[kind], optimizer)
    optimizer, advantages, losses["actor"] = (
        torch.optim.AdamW(policy.parameters(), rate, weight_decay=0.0),
        list[float](),
        0.0,
    )
    for batch in batches:
        here = [rows[n] for n in chain(*batch)]
        following_states = [row for one in batch for row in phase.after(one)]
        with torch.no_grad():
            now = {kind: _states(critic, here).sigmoid().tolist() for kind, critic in critics.items()}
            after = {kind: _states(critic, following_states).sigmoid().tolist() for kind, critic in critics.items()}
            again = _logprobs(reference, here)
        mine: list[float] = []
        for one in batch:
            at = len(mine)
            own = slice(at, at + len(one) - 1)
            potentials, values = ([now[kind][at], *after[kind][own]] for kind in ("potential", "value"))
            mine += phase.advantages(one, potentials, values)
        loss = regression_loss(_logprobs(policy, here), again, torch.tensor(mine), BETA)
        losses["actor"] += _backward(loss * len(here) / len(rows))
        advantages += mine
    _step(policy, optimizer)
    return Learned(losses, tuple(advantages), tuple(references.tolist()))


def _backward(loss: Tensor) -> float:
    loss.backward()
    return loss.item()


def _step(model: Any, optimizer: torch.optim.Optimizer) -> None:
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


def _padded(sequences: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """(ids, mask), (B, L), padded on the right."""
    ids = [torch.tensor(one) for one in sequences]
    mask = [torch.ones_like(one) for one in ids]
    return pad_sequence(ids, batch_first=True), pad_sequence(mask, batch_first=True)


def _states(critic: Critic, rows: Sequence[Row]) -> Tensor:
    """Logits of padded states, (B,)."""
    ids, mask = _padded([row.prompt for row in rows])
    trunk: Any = critic.trunk
    hidden = trunk(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state
    return critic.head(hidden[torch.arange(len(rows)), mask.sum(1) - 1]).squeeze(-1)


def _logprobs(model: Any, rows: Sequence[Row]) -> Tensor:
    """`log π(a|s)` with logits at every position, (B,)."""
    ids, mask = _padded([(*row.prompt, *row.completion) for row in rows])
    logprobs = model(input_ids=ids, attention_mask=mask, use_cache=False).logits[:, :-1].log_softmax(-1)
    logprobs = logprobs.gather(-1, ids[:, 1:].unsqueeze(-1)).squeeze(-1)
    counted = mask[:, 1:].bool()
    for row, of_row in zip(rows, counted, strict=True):
        of_row[: len(row.prompt) - 1] = False
    return torch.where(counted, logprobs, torch.zeros_like(logprobs)).sum(-1)


def compare(one: Learned, other: Learned) -> dict[str, float]:
    """Largest differences. Raises AssertionError where the two ways did not compute the same."""
    apart = {
        **{f"{name} loss": abs(one.losses[name] - other.losses[name]) for name in one.losses},
        "advantages": max(abs(a - b) for a, b in zip(one.advantages, other.advantages, strict=True)),
        "references": max(abs(a - b) for a, b in zip(one.references, other.references, strict=True)),
    }
    assert all(value < 2e-3 for value in apart.values()), json.dumps(apart)
    return {name: round(value, 7) for name, value in apart.items()}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--trajectories", type=int, default=12)
    options.add_argument("--steps", type=int, default=4, help="of each trajectory that is drawn")
    options.add_argument("--batch-rows", type=int, default=0, help="of a step of ours; 0: all, in one step")
    options.add_argument("--phase", type=Path, help="a phase of `mira train`: its first trajectories are learned from")
    given = options.parse_args()
    torch.set_num_threads(1)
    if given.phase is not None:
        if not (given.phase / "actor" / "rows.parquet").is_file():
            options.error(f"{str(given.phase)!r} is no phase that an actor has learned from")
        phase = Phase.played(given.phase, given.trajectories)
    else:
        phase = Phase.drawn(given.trajectories, given.steps)
    results = dict[str, Learned]()

    def arm(name: str, way: Callable[[Phase], Learned]) -> Callable[[], float]:
        return lambda: cpu_seconds(lambda: results.update({name: way(phase)}))

    rate = STILL if given.batch_rows else RATE
    arms = {
        "naive": arm("naive", lambda one: naive(one, 1, rate)),
        "naive, four trajectories padded": arm("naive, four trajectories padded", lambda one: naive(one, 4, rate)),
        AS_PUBLISHED: arm(AS_PUBLISHED, lambda one: naive(one, 1, rate, following=True)),
        "ours": arm("ours", lambda one: ours(one, given.batch_rows)),
    }
    ours(phase.first(), given.batch_rows)  # what only a first call costs: imports
    seconds = interleaved(arms, given.rounds)
    middle, tokens = medians(seconds), sum(len(row) for row in phase.rows)
    report(
        given,
        {
            "rows": len(phase.rows),
            "share_read": {
                f"{name}, {use}": read_share(kind, COMPUTE.pack_tokens, step)
                for name, kind in (("states", states_of(phase.rows)), ("actions", phase.rows))
                for use, step in (("scored", None), ("learned", given.batch_rows or len(phase.rows)))
            },
            "mean_tokens": round(tokens / len(phase.rows)),
            "longest": max(len(row) for row in phase.rows),
            "cpu_seconds": {name: round(value, 2) for name, value in middle.items()},
            "times_faster": {name: round(value / middle["ours"], 2) for name, value in middle.items()},
            "rounds": {name: [round(value, 2) for value in values] for name, values in seconds.items()},
            "largest_differences": [
                compare(results["ours"], one) for name, one in results.items() if name not in ("ours", AS_PUBLISHED)
            ],
            "losses": {name: round(value, 4) for name, value in results["ours"].losses.items()},
            "target": 3.0,
        },
    )


if __name__ == "__main__":
    main()
