"""Parts that share one base, against separate models: equal losses, gradients and checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast, get_args

import pytest
import torch
from peft import PeftModel
from torch import Tensor, nn
from transformers import TrainerCallback

from envs.core.errors import BadInput
from models.embedded import embedded_dir
from models.local.loading import read_checkpoint
from tests.models.local.adapters import save_adapter
from tests.training.engine.token_rows import rows_of
from training.data.columns import Column
from training.data.packing import pack, sum_by_row
from training.engine.actor import ActorTrainer
from training.engine.annotate import completion_token_logprobs, score_completions, score_states
from training.engine.checkpoints import base_of, load_policy, policy_spec, weights_digest, with_adapter
from training.engine.critic_model import Critic
from training.engine.packed_model import accept_packed
from training.engine.settings import Compute, Lora, Optimization
from training.engine.shared_base_lora import Part, SharedBaseModels
from training.engine.stage_jobs import StageJob, launch, write_job
from training.engine.step_plan import Plan
from training.mira.losses import potential_loss, regression_loss, value_loss

torch.set_num_threads(1)
BASE = embedded_dir()
LORA = Lora(rank=4)
COMPUTE = Compute(cpu=True, threads=1, lora=LORA, shared_base=True)
PARTS: tuple[Part, ...] = get_args(Part)

ROWS = rows_of(8)


@pytest.fixture(scope="module")
def models() -> SharedBaseModels:
    return SharedBaseModels(BASE, LORA)


@pytest.fixture(scope="module")
def adapter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "lora"
    return save_adapter(BASE, folder, r=LORA.rank, lora_alpha=LORA.alpha)


def scores_of(models: SharedBaseModels, part: Part, start: Path) -> tuple[float, ...]:
    model: Any = models.use(part, start)
    return score_completions(model, ROWS, 200) if part == "actor" else score_states(model, ROWS, 200)


def job_of(part: Part, start: Path, **changes: Any) -> StageJob:
    how = Optimization(learning_rate=3e-3, batch_rows=4, epochs=3)
    return StageJob(kind=part, start=start, optimization=how, compute=COMPUTE).model_copy(update=changes)


def trained(part: Part, start: Path, out: Path, models: SharedBaseModels | None = None, **changes: Any) -> Path:
    write_job(out, job_of(part, start, **changes), ROWS, columns())
    return launch(out, models=models)


def columns() -> dict[Column, list[float]]:
    steps = torch.linspace(0, 1, len(ROWS)).tolist()
    references = score_completions(load_policy(BASE)[0].eval(), ROWS, 200)
    return {Column.TARGET: steps, Column.ADVANTAGE: steps, Column.REFERENCE: list(references)}


def gradients(model: nn.Module) -> dict[str, Tensor]:
    return {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}


def test_only_the_active_part_has_gradients(models: SharedBaseModels) -> None:
    packed = pack(ROWS, range(8))
    for part in PARTS:
        model: Any = models.use(part, BASE)
        output = completion_token_logprobs(model, packed) if part == "actor" else model(packed)
        output.sum().backward()
        names = set(gradients(model))
        assert names and all(f".{part}." in name or name.startswith("head.") for name in names)
        assert any("lora" in name for name in names) and (part == "actor") == (not any("head" in n for n in names))
        for other in set(PARTS) - {part}:
            assert not any(f".{other}." in name for name in names)


def test_using_an_inactive_part_raises(models: SharedBaseModels) -> None:
    critic = models.use("value", BASE)
    models.use("actor", BASE)
    with pytest.raises(RuntimeError, match="the active part is actor, not value"):
        critic(pack(ROWS, [0]))


@pytest.mark.parametrize("part", PARTS)
def test_a_part_trains_like_a_separate_model(part: Part, adapter: Path, tmp_path: Path) -> None:
    """The same start, rows and order in a plain loop over a separate base; the other parts do not change."""
    models = SharedBaseModels(BASE, LORA)
    others: list[Part] = [other for other in PARTS if other != part]
    before = [scores_of(models, other, adapter) for other in others]
    scores = scores_of(models, part, trained(part, adapter, tmp_path / "shared_base", models))
    own: Any = PeftModel.from_pretrained(load_policy(BASE)[0], adapter, is_trainable=True)
    if part != "actor":
        own = alone(own, tmp_path / "shared_base")
    bare(part, own, job_of(part, adapter))
    expected = score_completions(own.eval(), ROWS, 200) if part == "actor" else score_states(own.eval(), ROWS, 200)
    assert scores == pytest.approx(expected, abs=2e-2 if part == "actor" else 1e-3)
    assert max(abs(a - b) for a, b in zip(scores, unshared(part, adapter), strict=True)) > 0.05
    assert [scores_of(models, other, adapter) for other in others] == before


def alone(adapted: Any, seeded_as: Path) -> Critic:
    """A critic on *adapted* with the initial head of the stage in *seeded_as*."""
    causal = adapted.get_base_model()
    critic = Critic(causal.base_model, causal.config.hidden_size)
    torch.manual_seed(StageJob.model_validate_json((seeded_as / "job.json").read_text()).seed)
    critic.renew_head()
    return critic


def bare(part: Part, model: Any, job: StageJob) -> None:
    how, tensors = job.optimization, {name: torch.tensor(values) for name, values in columns().items()}
    plan = Plan(ROWS, batch_rows=how.batch_rows, pack_tokens=4_096, epochs=how.epochs, seed=job.seed)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], how.learning_rate, weight_decay=0)
    for share in (plan[step] for step in range(len(plan))):
        (indices,) = share.packs
        packed, chosen = pack(ROWS, indices), {name: column[list(indices)] for name, column in tensors.items()}
        if part == "actor":
            logprob = sum_by_row(completion_token_logprobs(model, packed), packed)
            loss = regression_loss(logprob, chosen[Column.REFERENCE], chosen[Column.ADVANTAGE], job.objective.beta)
        elif part == "value":
            loss = value_loss(model(packed), chosen[Column.TARGET])
        else:
            loss = potential_loss(torch.sigmoid(model(packed)), chosen[Column.TARGET])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), how.clip)
        optimizer.step()


def unshared(part: Part, folder: Path) -> tuple[float, ...]:
    if part == "actor":
        return score_completions(load_policy(folder)[0].eval(), ROWS, 200)
    critic = Critic.load(folder) if Critic.is_at(folder) else Critic.from_policy(folder)
    return score_states(critic.eval(), ROWS, 200)


def test_losses_are_those_of_separate_models(models: SharedBaseModels, adapter: Path) -> None:
    assert scores_of(models, "actor", adapter) == pytest.approx(unshared("actor", adapter), abs=1e-3)
    separate = with_adapter(load_policy(BASE)[0], LORA)
    assert scores_of(models, "actor", BASE) == pytest.approx(score_completions(separate.eval(), ROWS, 200), abs=1e-4)


def test_the_reference_is_the_base_or_the_adapter_of_the_start(models: SharedBaseModels, adapter: Path) -> None:
    for start in (BASE, adapter, BASE):
        reference = cast("Any", models.reference(start))
        assert not any(weight.requires_grad for weight in reference.parameters())
        assert score_completions(reference, ROWS, 200) == pytest.approx(unshared("actor", start), abs=1e-3)
    models.use("actor", BASE)
    assert any(weight.requires_grad for weight in reference.parameters())


def test_a_saved_part_can_be_loaded_and_played(models: SharedBaseModels, tmp_path: Path) -> None:
    folder = trained("actor", BASE, tmp_path / "actor", models)
    assert base_of(folder) == BASE.resolve() and policy_spec(folder) == f"local:{BASE.resolve()}+{folder}"
    assert weights_digest(folder) != weights_digest(BASE)
    assert scores_of(models, "actor", folder) == pytest.approx(unshared("actor", folder), abs=1e-3)
    played = read_checkpoint(BASE, folder, on_cpu=True).model
    accept_packed(played)
    assert score_completions(played, ROWS, 200) == pytest.approx(scores_of(models, "actor", folder), abs=1e-3)
    critic = trained("value", folder, tmp_path / "value", models)
    again = trained("value", critic, tmp_path / "again", optimization=Optimization(learning_rate=1e-9, batch_rows=8))
    assert scores_of(models, "value", again) == pytest.approx(unshared("value", critic), abs=1e-3)


def test_a_killed_stage_resumes_to_the_same_result_and_its_checkpoint_is_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Kill(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: object) -> None:
            control.should_save = state.global_step == 3

        def on_save(self, args: Any, state: Any, control: Any, **_: object) -> None:
            raise KeyboardInterrupt

    unbroken = trained("actor", BASE, tmp_path / "a")
    begun = ActorTrainer.__init__

    def killing(self: ActorTrainer, *args: Any, **options: Any) -> None:
        begun(self, *args, **options)
        self.add_callback(Kill())

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(ActorTrainer, "__init__", killing)
        trained("actor", BASE, tmp_path / "b")
    (weights,) = (tmp_path / "b").rglob("checkpoint-3/*.safetensors")
    assert weights.stat().st_size < (unbroken / "adapter_model.safetensors").stat().st_size * 1.2
    resumed = launch(tmp_path / "b")
    assert weights_digest(resumed) == weights_digest(unbroken)


def test_an_adapter_of_another_base_or_rank_is_refused(models: SharedBaseModels, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has the base"):
        models.use("actor", tmp_path)
    other = save_adapter(BASE, tmp_path / "a", r=2)
    with pytest.raises(BadInput, match=r"has rank 2: set compute.lora.rank"):
        models.use("actor", other)


def test_an_adapter_with_another_scale_is_another_policy(models: SharedBaseModels, tmp_path: Path) -> None:
    """Its tensors have the expected shapes, so only the configuration shows the difference."""
    adapter = tmp_path / "a"
    models.save("actor", adapter)
    config = json.loads((adapter / "adapter_config.json").read_text(encoding="utf-8"))
    config["lora_alpha"] *= 4
    (adapter / "adapter_config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(BadInput, match=r"has alpha .*: set compute.lora.alpha to it"):
        models.use("actor", adapter)
