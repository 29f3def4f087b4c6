"""Peak memory of what a phase trains on a shared base, against plain LoRA fine-tuning of the same base.

Every measurement is a process of its own; its peak is the high-water mark of its resident memory. *shared base*:
references scored, both critics trained and asked, the actor trained, on one base
(`training.engine.shared_base_lora`). *trl*: TRL's SFTTrainer with the same adapter. *packed*: a bare PyTorch loop
over the same packs, logits at action tokens alone, which is the least that LoRA fine-tuning can do with. *apart*: a
base of its own for reference, potential, value and actor, all with adapters, in memory together. What importing the
libraries takes is measured as well and reported.

    OMP_NUM_THREADS=1 python -m benchmarks.shared_base_memory --json
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.training_rows import llama, parser, report, rows_of
from models.embedded import embedded_dir
from training.data.columns import Column
from training.data.packing import sum_by_row
from training.data.rows import Row
from training.engine.annotate import completion_token_logprobs, score_completions, score_states
from training.engine.checkpoints import load_policy, with_adapter
from training.engine.critic_model import Critic
from training.engine.settings import Compute, Lora, Optimization
from training.engine.sft import SupervisedJob, supervised
from training.engine.shared_base_lora import SharedBaseModels
from training.engine.stage_jobs import StageJob, launch, write_job
from training.engine.step_plan import Plan

VOCAB = 8_192
COMPUTE = Compute(cpu=True, threads=1, pack_tokens=512, max_tokens=512, lora=Lora(), shared_base=True)
HOW = Optimization(learning_rate=1e-4, batch_rows=8)


def nothing(_base: Path, _rows: list[Row], _folder: Path) -> None:
    """The libraries alone."""
    from peft import LoraConfig
    from trl.trainer.sft_trainer import SFTTrainer

    assert LoraConfig and SFTTrainer


def shared_base(base: Path, rows: list[Row], folder: Path) -> None:
    models = SharedBaseModels(base, COMPUTE.needed_lora)
    reference: Any = models.reference(base)
    references = score_completions(reference, rows, COMPUTE.pack_tokens)
    target = [row.time / len(rows) for row in rows]
    columns: dict[Column, Sequence[float]] = {
        Column.TARGET: target,
        Column.ADVANTAGE: target,
        Column.REFERENCE: references,
    }
    for kind in ("potential", "value", "actor"):
        write_job(
            folder / kind,
            StageJob(kind=kind, start=base, optimization=HOW, compute=COMPUTE),
            rows,
            columns,
        )
        done = launch(folder / kind, models=models)
        if kind != "actor":
            critic: Any = models.use(kind, done)
            columns[Column(kind)] = score_states(critic, rows, COMPUTE.pack_tokens)


def trl(base: Path, rows: list[Row], folder: Path) -> None:
    supervised(SupervisedJob(start=base, optimization=HOW, compute=COMPUTE), rows, folder)


def packed(base: Path, rows: list[Row], folder: Path) -> None:
    model = with_adapter(load_policy(base)[0], COMPUTE.lora).train()
    _cloned(model, rows)
    model.save_pretrained(folder / "adapter")


def apart(base: Path, rows: list[Row], _folder: Path) -> None:
    reference, critics = load_policy(base)[0].eval(), [Critic.from_policy(base) for _ in range(2)]
    for critic in critics:
        critic.adapt(COMPUTE.needed_lora)
        score_states(critic.eval(), rows, COMPUTE.pack_tokens)
    score_completions(reference, rows, COMPUTE.pack_tokens)
    _cloned(with_adapter(load_policy(base)[0], COMPUTE.lora).train(), rows)


def _cloned(model: Any, rows: list[Row]) -> None:
    plan = Plan(rows, batch_rows=HOW.batch_rows, pack_tokens=COMPUTE.pack_tokens, epochs=1, seed=0)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], HOW.learning_rate)
    for share in (plan[step] for step in range(len(plan))):
        for indices in share.packs:
            one = plan.packed(indices)
            (-sum_by_row(completion_token_logprobs(model, one), one).mean()).backward()
        optimizer.step()
        optimizer.zero_grad()


ARMS: dict[str, Callable[[Path, list[Row], Path], None]] = {
    "imports": nothing,
    "packed": packed,
    "trl": trl,
    "shared_base": shared_base,
    "apart": apart,
}


def make_base(folder: Path, width: int, layers: int) -> int:
    """A random model with the embedded one's tokenizer; returns its parameters."""
    model = llama(width=width, layers=layers, vocab=VOCAB)
    model.save_pretrained(folder)
    load_policy(embedded_dir())[1].save_pretrained(folder)
    return sum(weight.numel() for weight in model.parameters())


def peak_mb(arm: str, base: Path, rows: int) -> float:
    """Of a fresh process that does nothing else."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.shared_base_memory",
        "--arm",
        arm,
        "--base",
        str(base),
        "--rows",
        str(rows),
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return float(json.loads(done.stdout.splitlines()[-1])["peak_mb"])


def measure(arm: str, base: Path, rows: int) -> None:
    """This process's one arm."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        ARMS[arm](base, rows_of(rows, 1, vocab=VOCAB), Path(folder))
    print(json.dumps({"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


def main() -> None:
    options = parser(__doc__)
    options.set_defaults(rounds=1)
    options.add_argument("--rows", type=int, default=8)
    options.add_argument("--width", type=int, default=768)
    options.add_argument("--layers", type=int, default=8)
    options.add_argument("--arm", choices=ARMS, help="measure this arm alone, in this process")
    options.add_argument("--base", type=Path)
    given = options.parse_args()
    if given.arm is not None:
        measure(given.arm, given.base, given.rows)
        return
    with tempfile.TemporaryDirectory() as folder:
        parameters = make_base(Path(folder), given.width, given.layers)
        peaks = {arm: [peak_mb(arm, Path(folder), given.rows) for _ in range(given.rounds)] for arm in ARMS}
    peak = {arm: sorted(found)[len(found) // 2] for arm, found in peaks.items()}
    net = {arm: value - peak["imports"] for arm, value in peak.items()}
    report(
        given,
        {
            "parameters": parameters,
            "weights_mb": round(parameters * 4 / 2**20),
            "rows": given.rows,
            "pack_tokens": COMPUTE.pack_tokens,
            "peak_mb": {arm: round(value) for arm, value in peak.items()},
            "shared_base_to_trl": round(peak["shared_base"] / peak["trl"], 2),
            "shared_base_to_packed": round(peak["shared_base"] / peak["packed"], 2),
            "shared_base_to_trl_without_imports": round(net["shared_base"] / net["trl"], 2),
            "shared_base_to_packed_without_imports": round(net["shared_base"] / net["packed"], 2),
            "apart_to_shared_base_without_imports": round(net["apart"] / net["shared_base"], 2),
            "target": 1.6,
        },
    )


if __name__ == "__main__":
    main()
