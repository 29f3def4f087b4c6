"""A whole phase of `mira train mira` with tiny models of real architectures, with every weight and with adapters."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch

from models.specs import make_model
from tests.agent.episodes import Play, write_run
from tests.training.engine.families import save_family
from tests.training.trajectories import embedded_tokenizer
from training.data.rows import Row
from training.engine.checkpoints import policy_spec, weights_digest
from training.engine.scoring import score
from training.engine.settings import Compute, Lora, Optimization
from training.engine.sft import SupervisedJob, supervised
from training.loop.loop import Loop
from training.loop.settings import parse_settings

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(600)]
CLICK = 'do(action="Click", element="1")'
COMPUTE = Compute(cpu=True, threads=1, max_tokens=1_024, pack_tokens=2_048)


def taught(family: str, out: Path) -> Path:
    """A model that answers every prompt with `CLICK`, which solves some of the instances."""
    tokenizer = embedded_tokenizer()
    answer = (*tokenizer.encode(CLICK, add_special_tokens=False), tokenizer.eos_token_id)
    draw = random.Random(0)
    prompts = [tuple(draw.randrange(10, 900) for _ in range(draw.randrange(20, 160))) for _ in range(48)]
    rows = [Row(prompt, answer, number, 0) for number, prompt in enumerate(prompts)]
    how = Optimization(learning_rate=1e-2, batch_rows=8, epochs=8)
    start = save_family(family, out / "random")
    model = supervised(SupervisedJob(start=start, optimization=how, compute=COMPUTE), rows, out / "sft")
    assert min(score("actions", model, rows, COMPUTE)) > -2, "it has learned the answer"
    return model


@pytest.mark.parametrize(
    "family", ["gemma3", *(pytest.param(name, marks=pytest.mark.heavy) for name in ("qwen3", "llama"))]
)
async def test_a_phase_with_every_weight_and_with_adapters(family: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    start = taught(family, tmp_path / "start")
    others = write_run(tmp_path / "others", [Play(seed=1_000_000)]).path  # click-button has no milestones
    lora = {"lora": Lora(rank=4).model_dump()}
    ways = {
        "full": {"bf16": True},
        "merged": {**lora, "bf16": True},
        "shared_base": {**lora, "shared_base": True, "bf16": True},
    }
    for name, compute in ways.items():
        values = {
            "start": str(start),
            "phases": 1,
            "pool": {"names": ["click-button"], "size": 20},
            "rollouts": {"tasks": 4, "workers": 1, "limits": {"max_steps": 2, "max_parse_errors": 2}},
            "evaluation": {"names": ["click-button"], "seeds": [0]},
            "compute": COMPUTE.model_dump() | compute,
            "shared": str(tmp_path / "shared"),
            "pretraining": [str(others)],
        }
        out = tmp_path / name
        progress = await Loop.open(out, parse_settings(values, "test"), log=lambda line: None).run()
        _, phase = progress.phases
        assert phase.actor_rows > 0 and phase.evaluation is not None
        assert phase.logprob_difference is not None and phase.logprob_difference < 0.1
        actor = out / "phase-1" / "actor" / "model"
        assert weights_digest(actor) != weights_digest(start)
        assert (actor / "adapter_config.json").is_file() == (name == "shared_base")
        assert (out / "phase-1" / "value" / "model").is_dir()
        model = make_model(policy_spec(actor))
        await model.aclose()
