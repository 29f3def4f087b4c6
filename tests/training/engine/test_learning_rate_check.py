"""Too low learning rates are refused, and those of the shipped configurations change a small model."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from envs.core.errors import BadInput
from models.embedded import embedded_dir
from tests.training.engine.token_rows import rows_of
from training.data.columns import Column
from training.engine.learning_rate_check import UpdateBound, check_rate
from training.engine.scoring import score
from training.engine.settings import Compute, Lora, Optimization
from training.engine.stage_jobs import StageJob, launch, write_job
from training.engine.trainer import rate_share, training_arguments
from training.loop.loop import Loop
from training.loop.rates import check_rates, rate_bounds, warn_of_rates
from training.loop.settings import LoopSettings, load_settings

torch.set_num_threads(1)
CONFIGS = Path("training/configs")
WIDTHS = {"gemma3-12b": 3_840, "gemma3-12b-full": 3_840, "gemma3-270m": 640, "smollm2": 576}
"""Hidden sizes of the models of configurations; for all others 128, the embedded model's."""
TABLE_6 = [f"{stage}.optimization.learning_rate={rate}" for stage, rate in (("actor", "1e-6"), ("value", "1e-6"))]
OLD = [*TABLE_6, "potential.optimization.learning_rate=2e-5", "value.head_rate=1e-6", "potential.head_rate=2e-5"]
"""An earlier version of `gemma3-12b`: LoRA with the rates for full fine-tuning."""
TOO_FEW_ROWS = ["actor.optimization.learning_rate=4e-6"]
"""Changes a model only if every episode has 30 steps and twice as many are replayed: 282 optimizer steps, not 22."""


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.toml")), ids=lambda path: path.stem)
def test_every_shipped_configuration_has_a_sufficient_learning_rate(path: Path) -> None:
    check_rates(load_settings(path), WIDTHS.get(path.stem, 128))


REFUSED = {
    "Table 6 on LoRA": ("gemma3-12b", OLD, "actor.optimization.learning_rate 1e-06 would teach nothing"),
    "twice the tasks": ("gemma3-12b", [*OLD, "rollouts.tasks=800"], "LoRA's B begins at 0 (alpha 32)"),
    "its critic alone": ("gemma3-12b", TABLE_6[1:], "value.optimization.learning_rate 1e-06 would teach nothing"),
    "its potential alone": ("gemma3-12b", ["potential.optimization.learning_rate=1e-7"], "potential.optimization"),
    "a head that stays at 0": ("gemma3-12b", ["value.head_rate=1e-9"], "value.head_rate 1e-09 would teach nothing"),
    "shared_base": ("smollm2", ["compute.shared_base=true", *TABLE_6[:1]], "take about 1e-4"),
    "a million parameters": ("tiny", TABLE_6[:1], "take a higher rate"),
    "a schedule that ends at 0": (
        "smollm2",
        [*TABLE_6[:1], 'actor.optimization.schedule="cosine"', "rollouts.tasks=1600"],
        "in 175 steps",
    ),
    "enough for every possible row": ("gemma3-12b", TOO_FEW_ROWS, "actor.optimization.learning_rate 4e-06"),
}


@pytest.mark.parametrize(("name", "changes", "says"), REFUSED.values(), ids=REFUSED)
def test_a_too_low_learning_rate_is_refused(name: str, changes: list[str], says: str) -> None:
    settings = load_settings(CONFIGS / f"{name}.toml", changes)
    with pytest.raises(BadInput, match=re.escape(says)) as error:
        check_rates(settings, WIDTHS.get(name, 128))
    assert "Adam moves a weight by at most about the rate a step" in str(error.value)
    assert "\n" not in str(error.value)


TAKEN = {
    "Table 6 on every weight": ("gemma3-12b-full", []),
    "no step is asked for": ("gemma3-12b", ["actor.optimization.learning_rate=1e-9", "actor.optimization.epochs=0"]),
    "a trial of one step": ("smollm2", ["rollouts.tasks=1"]),
    "an arm without critics": ("gemma3-12b", ['arm="filtered_bc"', *TABLE_6[1:]]),
}


@pytest.mark.parametrize(("name", "changes"), TAKEN.values(), ids=TAKEN)
def test_a_sufficient_learning_rate_is_accepted(name: str, changes: list[str]) -> None:
    check_rates(load_settings(CONFIGS / f"{name}.toml", changes), WIDTHS[name])


def test_a_low_rate_is_accepted_with_a_warning() -> None:
    lines: list[str] = []
    check_rates(
        load_settings(CONFIGS / "gemma3-12b.toml", ["actor.optimization.learning_rate=5e-5"]), 3_840, log=lines.append
    )
    assert len(lines) == 1 and lines[0].startswith("warning: actor.optimization.learning_rate 5e-05 is low"), lines
    lines.clear()
    check_rates(load_settings(CONFIGS / "gemma3-12b.toml"), 3_840, log=lines.append)
    assert not lines, "the shipped rates are enough"


def test_the_rows_of_the_first_phase_are_checked_once_they_are_known() -> None:
    """400 tasks are expected to give 2,800 rows, and 88 steps of 32. Rollouts are never lost to the second check."""
    changes = ["actor.optimization.batch_rows=32", "actor.optimization.learning_rate=1.5e-5"]
    settings = load_settings(CONFIGS / "gemma3-12b.toml", changes)
    check_rates(settings, 3_840)
    lines: list[str] = []
    warn_of_rates(settings, 3_840, 1_200, lines.append)
    low = [line for line in lines if line.startswith("warning: actor.optimization.learning_rate 1.5e-05 would teach")]
    assert len(low) == 1 and "in 50 steps" in low[0]


def test_a_too_low_rate_is_refused_before_anything_is_played(tmp_path: Path) -> None:
    settings = LoopSettings.model_validate(
        {**LoopSettings().model_dump(), "compute": {"lora": {}}, "actor": {"optimization": {"learning_rate": 1e-6}}}
    )
    with pytest.raises(BadInput, match=r"actor\.optimization\.learning_rate 1e-06"):
        Loop.open(tmp_path / "run", settings)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("schedule", ["constant", "cosine", "linear"])
@pytest.mark.parametrize("warmup", [0.0, 0.2])
def test_rate_shares_equal_the_librarys_schedules(tmp_path: Path, schedule: str, warmup: float) -> None:
    how = Optimization.model_validate({"learning_rate": 1.0, "schedule": schedule, "warmup": warmup})
    steps = 20
    arguments = training_arguments(tmp_path, how, Compute(cpu=True), seed=0, steps=steps)
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], 1.0)
    from transformers import get_scheduler

    scheduler: Any = get_scheduler(
        arguments.lr_scheduler_type, optimizer, num_warmup_steps=int(arguments.warmup_steps), num_training_steps=steps
    )
    theirs: list[float] = []
    for _ in range(steps):
        theirs.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    assert [rate_share(how, step, steps) for step in range(steps)] == pytest.approx(theirs)


def test_no_weight_moves_further_than_the_bound(tmp_path: Path) -> None:
    """Adam moves fastest with a gradient of constant sign."""
    how = Optimization(learning_rate=1e-2, schedule="cosine", warmup=0.1)
    weight = torch.nn.Parameter(torch.zeros(8))
    optimizer = torch.optim.AdamW([weight], how.learning_rate, weight_decay=0.0)
    for step in range(60):
        optimizer.param_groups[0]["lr"] = how.learning_rate * rate_share(how, step, 60)
        weight.grad = torch.full((8,), 3.0)
        optimizer.step()
    bound = UpdateBound("stage", how, 60, 128, None).moved
    assert 0.9 * bound < weight.abs().max().item() <= bound * 1.001


def test_the_redraws_of_groups_are_rows_of_a_phase() -> None:
    """A phase of M-GRPO plays up to `groups.redraws` further rounds."""

    def steps(*changes: str) -> int:
        return next(bound.steps for _, bound in rate_bounds(load_settings(None, changes), 128))

    once = steps("arm=mgrpo", "groups.redraws=0", "actor.optimization.batch_rows=1")
    assert steps("arm=mgrpo", "groups.redraws=2", "actor.optimization.batch_rows=1") == 3 * once
    assert steps("groups.redraws=2") == steps("groups.redraws=0"), "an arm without groups redraws nothing"


ROWS = rows_of(16, longest=8)
STEPS = 40
ASKED = [3.0, -2.0] * 8
"""Nats."""


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Llama of width 512: published rates are for wide models."""
    folder = tmp_path_factory.mktemp("wide")
    torch.manual_seed(0)
    LlamaForCausalLM(
        LlamaConfig(
            vocab_size=1_986,
            hidden_size=512,
            intermediate_size=512,
            num_hidden_layers=2,
            num_attention_heads=8,
            num_key_value_heads=8,
            max_position_embeddings=256,
        )
    ).save_pretrained(folder)
    AutoTokenizer.from_pretrained(embedded_dir()).save_pretrained(folder)
    return folder


def moved(settings: LoopSettings, start: Path, out: Path) -> tuple[float, float]:
    """Mean change of the log-probabilities with a positive target, and of those with a negative one."""
    compute = Compute(cpu=True, threads=1, pack_tokens=512, lora=settings.compute.lora)
    before = score("actions", start, ROWS, compute)
    how = settings.actor.optimization.model_copy(update={"batch_rows": len(ROWS), "epochs": STEPS})
    job = StageJob(kind="actor", start=start, optimization=how, objective=settings.actor.objective, compute=compute)
    beta = settings.actor.objective.beta
    write_job(out, job, ROWS, {Column.ADVANTAGE: [beta * sign for sign in ASKED], Column.REFERENCE: list(before)})
    after = score("actions", launch(out), ROWS, compute)
    changes = [now - then for now, then in zip(after, before, strict=True)]
    return sum(changes[::2]) / 8, sum(changes[1::2]) / 8


@pytest.mark.parametrize(
    "name",
    [
        "smoke",
        "gemma3-12b",
        "gemma3-12b-full",
        *(pytest.param(name, marks=pytest.mark.heavy) for name in ("smollm2", "tiny", "tiny-miniwob-long")),
    ],
)
def test_the_rates_of_shipped_configurations_move_log_probabilities(name: str, wide: Path, tmp_path: Path) -> None:
    start = wide if name.startswith("gemma3-12b") else embedded_dir()
    up, down = moved(load_settings(CONFIGS / f"{name}.toml"), start, tmp_path / "actor")
    assert up > 1 and down < -0.5, (up, down)


def test_four_times_the_rate_of_table_6_on_lora_moves_next_to_nothing(wide: Path, tmp_path: Path) -> None:
    """It was accepted for the 12B, and is refused: `test_a_too_low_learning_rate_is_refused`."""
    up, down = moved(load_settings(CONFIGS / "gemma3-12b.toml", TOO_FEW_ROWS), wide, tmp_path / "actor")
    assert abs(up) < 0.3 and abs(down) < 0.3, (up, down)


def test_table_6_on_lora_moves_nothing(wide: Path, tmp_path: Path) -> None:
    up, down = moved(load_settings(CONFIGS / "gemma3-12b.toml", OLD), wide, tmp_path / "actor")
    assert abs(up) < 0.2 and abs(down) < 0.2, (up, down)


@pytest.mark.parametrize(("changes", "learns"), [([], True), (["value.head_rate=1e-6"], False)], ids=["own", "1e-6"])
def test_a_head_has_its_own_learning_rate(wide: Path, tmp_path: Path, changes: list[str], learns: bool) -> None:
    """Full fine-tuning at Table 6's 1e-6, which barely changes a head that begins at 0."""
    value = load_settings(CONFIGS / "gemma3-12b-full.toml", changes).value
    how = value.optimization.model_copy(update={"batch_rows": len(ROWS), "epochs": STEPS})
    compute = Compute(cpu=True, threads=1, pack_tokens=512)
    job = StageJob(kind="value", start=wide, optimization=how, head_rate=value.rate_of_head, compute=compute)
    write_job(tmp_path / "value", job, ROWS, {Column.TARGET: [1.0, 0.0] * 8})
    logprobs = score("states", launch(tmp_path / "value"), ROWS, compute)
    apart = sum(logprobs[::2]) / 8 - sum(logprobs[1::2]) / 8
    assert apart > 0.1 if learns else abs(apart) < 0.02, apart


def test_fine_tuning_is_checked_with_its_own_rows() -> None:
    published = Optimization(learning_rate=1e-5, schedule="cosine", warmup=0.1, batch_rows=128)
    check_rate(UpdateBound("optimization", published, 24, 3_840, None))
    with pytest.raises(BadInput, match=r"optimization\.learning_rate 1e-05 would teach nothing"):
        check_rate(UpdateBound("optimization", published, 24, 3_840, Lora()))
