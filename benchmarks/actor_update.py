"""The actor's update through `ActorTrainer` against a bare PyTorch loop: real tokens for each second of CPU time.

Both do a forward pass of the policy, the regression on cached references, a backward pass, clipping and AdamW, on the
same model and the same packs; the losses of every step are compared.

    OMP_NUM_THREADS=1 python -m benchmarks.actor_update --rounds 3 --json
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import torch
from transformers import LlamaForCausalLM, TrainerCallback

from benchmarks.training_rows import interleaved, llama, medians, parser, report, rows_of
from training.data.packing import sum_by_row
from training.data.rows import Row
from training.engine.actor import ActorTrainer, Objective
from training.engine.annotate import completion_token_logprobs, score_completions
from training.engine.packed_model import accept_packed
from training.engine.settings import Compute, Optimization
from training.engine.step_plan import Plan
from training.engine.trainer import train, training_arguments
from training.mira.losses import regression_loss

COMPUTE = Compute(cpu=True, threads=1, pack_tokens=512)
RATE = 1e-4
BETA = 0.5


class Clock(TrainerCallback):
    """CPU seconds between the first step's beginning and the last one's end."""

    def __init__(self) -> None:
        self.begun = self.seconds = 0.0

    def on_train_begin(self, *_: object, **__: object) -> None:
        self.begun = time.process_time()

    def on_train_end(self, *_: object, **__: object) -> None:
        self.seconds = time.process_time() - self.begun


class Update:
    """One update of all rows, twice."""

    def __init__(self, rows: list[Row], batch_rows: int) -> None:
        self._rows = rows
        self._how = Optimization(learning_rate=RATE, batch_rows=batch_rows)
        self._references = torch.tensor(score_completions(_policy().eval(), rows, COMPUTE.pack_tokens))
        self._advantages = torch.linspace(-1, 1, len(rows))
        self.losses: dict[str, list[float]] = {}

    def ours(self) -> float:
        with tempfile.TemporaryDirectory() as folder:
            plan = self._plan()
            trainer = ActorTrainer(
                Objective(beta=BETA),
                _policy(),
                plan,
                advantages=self._advantages,
                references=self._references,
                arguments=training_arguments(Path(folder), self._how, COMPUTE, seed=0, steps=len(plan)),
            )
            clock = Clock()
            trainer.add_callback(clock)
            self.losses["ours"] = [row["loss"] for row in train(trainer, COMPUTE) if "loss" in row]
            return clock.seconds

    def bare(self) -> float:
        plan, model = self._plan(), _policy().train()
        optimizer = torch.optim.AdamW(model.parameters(), RATE, weight_decay=0.0)
        self.losses["bare"] = []
        begun = time.process_time()
        for share in (plan[step] for step in range(len(plan))):
            total = 0.0
            for indices in share.packs:
                packed, places = plan.packed(indices), list(indices)
                logprob = sum_by_row(completion_token_logprobs(model, packed), packed)
                loss = regression_loss(logprob, self._references[places], self._advantages[places], BETA)
                loss = loss * (len(indices) / share.batch_rows)
                loss.backward()
                total += loss.item()
            torch.nn.utils.clip_grad_norm_(model.parameters(), self._how.clip)
            optimizer.step()
            optimizer.zero_grad()
            self.losses["bare"].append(total)
        return time.process_time() - begun

    def _plan(self) -> Plan:
        return Plan(
            self._rows,
            batch_rows=self._how.batch_rows,
            pack_tokens=COMPUTE.pack_tokens,
            epochs=self._how.epochs,
            seed=0,
        )


def _policy() -> LlamaForCausalLM:
    model = llama()
    accept_packed(model)
    return model


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rows", type=int, default=96)
    options.add_argument("--batch", type=int, default=16, help="rows of an optimizer step")
    given = options.parse_args()
    torch.set_num_threads(1)
    rows = rows_of(given.rows, 1)
    update = Update(rows, given.batch)
    seconds = interleaved({"bare": update.bare, "ours": update.ours}, given.rounds)
    torch.testing.assert_close(*(torch.tensor(update.losses[name]) for name in ("ours", "bare")), atol=1e-3, rtol=1e-3)
    middle, tokens = medians(seconds), sum(len(row) for row in rows)
    report(
        given,
        {
            "rows": len(rows),
            "mean_tokens": round(tokens / len(rows)),
            "longest": max(len(row) for row in rows),
            "tokens_per_cpu_second": {name: round(tokens / value) for name, value in middle.items()},
            "share_of_bare": round(middle["bare"] / middle["ours"], 3),
            "rounds": [round(b / o, 3) for b, o in zip(seconds["bare"], seconds["ours"], strict=True)],
            "target": 0.9,
        },
    )


if __name__ == "__main__":
    main()
