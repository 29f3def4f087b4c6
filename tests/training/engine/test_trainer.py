"""The stages against plain PyTorch, on the embedded model: equal weights for any packing."""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from accelerate.utils import DistributedType
from safetensors.torch import load_file
from torch import Tensor
from transformers import TrainerCallback

from envs.core.errors import BadInput
from models.embedded import embedded_dir
from tests.training.engine.token_rows import rows_of
from training.data.columns import Column
from training.data.packing import pack, sum_by_row
from training.data.rows import Row
from training.engine.actor import ActorTrainer
from training.engine.annotate import completion_token_logprobs, score_completions
from training.engine.checkpoints import load_policy, save_policy
from training.engine.critic_model import Critic
from training.engine.critics import CriticTrainer
from training.engine.settings import Compute, Objective, ObjectiveKind, Optimization
from training.engine.sharding import settle_sharding
from training.engine.stage_jobs import StageJob, launch, write_job
from training.engine.step_plan import Plan
from training.engine.trainer import (
    TrainingDiverged,
    complete_checkpoint,
    one_device,
    train,
    training_arguments,
    warmup_steps,
)
from training.mira.losses import regression_loss, webrl_code_loss

torch.set_num_threads(1)
RATE = 1e-4
COMPUTE = Compute(cpu=True, threads=1)
HALF = Objective(beta=0.5)
ANCHORED = Objective(beta=0.5, negative_weight=0.3, anchor=1.0)


def columns_of(rows: list[Row], model: Any) -> tuple[Tensor, Tensor]:
    references = torch.tensor(score_completions(model.eval(), rows, 400))
    return torch.linspace(-1, 1, len(rows)), references


def trainer_of(
    rows: list[Row],
    out: Path,
    *,
    pack_tokens: int = 400,
    batch_rows: int = 4,
    epochs: int = 1,
    objective: Objective = HALF,
    successes: Tensor | None = None,
) -> ActorTrainer:
    model, _ = load_policy(embedded_dir())
    advantages, references = columns_of(rows, model)
    plan = Plan(rows, batch_rows=batch_rows, pack_tokens=pack_tokens, epochs=epochs, seed=3)
    how = Optimization(learning_rate=RATE, batch_rows=batch_rows, epochs=epochs)
    arguments = training_arguments(out, how, COMPUTE, seed=3, steps=len(plan))
    return ActorTrainer(
        objective,
        model,
        plan,
        advantages=advantages,
        references=references,
        successes=successes,
        arguments=arguments,
    )


def weights(model: Any) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def assert_same(alone: Any, together: Any) -> None:
    """Equal up to float32 rounding, which AdamW amplifies where a gradient is nearly zero."""
    apart = (weights(alone) - weights(together)).abs()
    assert apart.mean() < RATE / 100
    assert (apart > RATE / 10).float().mean() < 1e-3


def test_the_actor_equals_plain_pytorch(tmp_path: Path) -> None:
    rows = rows_of(10, longest=30)
    trainer = trainer_of(rows, tmp_path)
    train(trainer, COMPUTE)
    plain, _ = load_policy(embedded_dir())
    advantages, references = columns_of(rows, plain)
    optimizer = torch.optim.AdamW(plain.parameters(), lr=RATE, weight_decay=0.0)
    plain.train()
    for share in (trainer.plan[step] for step in range(len(trainer.plan))):
        indices = [index for members in share.packs for index in members]
        packed = pack(rows, indices)
        logprob = sum_by_row(completion_token_logprobs(plain, packed), packed)
        optimizer.zero_grad()
        regression_loss(logprob, references[indices], advantages[indices], 0.5).backward()
        torch.nn.utils.clip_grad_norm_(plain.parameters(), 1.0)
        optimizer.step()
    moved = (weights(plain) - weights(load_policy(embedded_dir())[0])).abs().max()
    assert moved > 1e-4
    assert_same(trainer.model, plain)


@pytest.mark.parametrize("kind", ["regression", "webrl_code"])
def test_rows_with_a_shared_prefix_train_as_if_separate(tmp_path: Path, kind: ObjectiveKind) -> None:
    """Equal rows, equal prompts with other completions, prompts with a shared prefix: each with its own targets, in
    steps that split such groups."""
    few = rows_of(6, longest=30)
    others = [replace(row, completion=few[0].completion) for row in few]
    beginning = [replace(row, prompt=(*few[0].prompt[:2], *row.prompt)) for row in few]
    rows = [*few, *few, *others, *beginning]
    trainer = trainer_of(rows, tmp_path, objective=Objective(kind=kind, beta=0.5), batch_rows=16)
    train(trainer, COMPUTE)
    plain, _ = load_policy(embedded_dir())
    advantages, references = columns_of(rows, plain)
    optimizer = torch.optim.AdamW(plain.parameters(), lr=RATE, weight_decay=0.0)
    plain.train()
    computed = 0
    for share in (trainer.plan[step] for step in range(len(trainer.plan))):
        computed += sum(trainer.plan.packed(members).input_ids.shape[1] for members in share.packs)
        optimizer.zero_grad()
        for index in (index for members in share.packs for index in members):
            own = completion_token_logprobs(plain, pack(rows, [index])).sum(0, keepdim=True)
            inputs = own, references[[index]], advantages[[index]], 0.5
            lengths = torch.tensor([len(rows[index].completion)])
            loss = regression_loss(*inputs) if kind == "regression" else webrl_code_loss(*inputs, tokens=lengths)
            (loss / share.batch_rows).backward()
        torch.nn.utils.clip_grad_norm_(plain.parameters(), 1.0)
        optimizer.step()
    assert computed < 0.8 * sum(map(len, rows)), "shared"
    assert_same(trainer.model, plain)


def test_an_anchor_keeps_the_likelihood_of_successful_actions(tmp_path: Path) -> None:
    """With A < 0 for every action, the anchor keeps the likelihood of successful actions."""
    rows = rows_of(12, longest=30)
    won = torch.tensor([float(place % 2) for place in range(len(rows))])
    model, _ = load_policy(embedded_dir())
    before = torch.tensor(score_completions(model.eval(), rows, 400))
    change: dict[float, Tensor] = {}
    for anchor in (0.0, 1.0):
        objective = Objective(beta=0.1, anchor=anchor)
        trainer = trainer_of(rows, tmp_path / str(anchor), epochs=6, objective=objective, successes=won)
        trainer.columns[Column.ADVANTAGE].fill_(-1.0)
        train(trainer, COMPUTE)
        assert trainer.model is not None
        change[anchor] = torch.tensor(score_completions(trainer.model.eval(), rows, 400)) - before
    assert change[0.0][won == 1].mean() < 0 < change[1.0][won == 1].mean()
    assert change[1.0][won == 0].mean() < 0


def test_an_anchor_without_outcomes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="successes"):
        trainer_of(rows_of(2), tmp_path, objective=ANCHORED)


@pytest.mark.parametrize("pack_tokens", [1, 90])
def test_packing_does_not_change_the_result(tmp_path: Path, pack_tokens: int) -> None:
    rows = rows_of(9, longest=30)
    full, split = trainer_of(rows, tmp_path / "a"), trainer_of(rows, tmp_path / "b", pack_tokens=pack_tokens)
    assert len(split.plan[0].packs) > len(full.plan[0].packs)
    for trainer in (full, split):
        train(trainer, COMPUTE)
    assert_same(full.model, split.model)


def test_a_killed_stage_resumes_to_the_same_result(tmp_path: Path) -> None:
    class Kill(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: object) -> None:
            control.should_save = state.global_step == 3

        def on_save(self, args: Any, state: Any, control: Any, **_: object) -> None:
            raise KeyboardInterrupt

    rows = rows_of(20, longest=30)
    unbroken = trainer_of(rows, tmp_path / "a", epochs=2)
    train(unbroken, COMPUTE)
    killed = trainer_of(rows, tmp_path / "b", epochs=2)
    killed.add_callback(Kill())
    with pytest.raises(KeyboardInterrupt):
        train(killed, COMPUTE)
    assert killed.state.global_step == 3 < len(killed.plan)
    resumed = trainer_of(rows, tmp_path / "b", epochs=2)
    train(resumed, COMPUTE)
    torch.testing.assert_close(weights(unbroken.model), weights(resumed.model), atol=0, rtol=0)


def test_a_loss_that_is_not_finite_stops_and_names_the_rows(tmp_path: Path) -> None:
    rows = rows_of(6, longest=30)
    trainer = trainer_of(rows, tmp_path)
    trainer.columns[Column.ADVANTAGE][4] = math.nan
    with pytest.raises(
        TrainingDiverged, match=r"step \d: the loss is nan on the rows .*\b4\b.*lower the learning rate"
    ):
        train(trainer, COMPUTE)


def test_a_gradient_that_is_not_finite_stops_before_the_step(tmp_path: Path) -> None:
    """A kernel's backward pass may give NaN where the loss is finite: cuDNN's attention on an H100 did."""
    rows = rows_of(6, longest=30)
    trainer = trainer_of(rows, tmp_path)
    model: Any = trainer.model
    before = weights(model).clone()

    def spoil(gradient: Tensor) -> Tensor:
        return gradient * math.nan

    next(model.parameters()).register_hook(spoil)
    with pytest.raises(TrainingDiverged, match="step 1: the norm of the gradient is nan, although the loss is finite"):
        train(trainer, COMPUTE)
    torch.testing.assert_close(weights(model), before, atol=0, rtol=0)


@pytest.mark.parametrize("kind", ["potential", "value"])
def test_a_critic_learns_its_targets(tmp_path: Path, kind: Any) -> None:
    rows = rows_of(16, longest=30)
    torch.manual_seed(0)
    critic = Critic.from_policy(embedded_dir())
    targets = torch.linspace(0, 1, len(rows))
    plan = Plan(rows, batch_rows=8, pack_tokens=300, epochs=20, seed=0)
    how = Optimization(learning_rate=2e-3, batch_rows=8, epochs=20)
    arguments = training_arguments(tmp_path, how, COMPUTE, seed=0, steps=len(plan))
    log = train(CriticTrainer(kind, critic, plan, targets, arguments), COMPUTE)
    errors = [row["absolute_error"] for row in log if "absolute_error" in row]
    assert errors[0] > 0.2 and errors[-1] < 0.1


def test_every_row_is_used_once_per_epoch_and_all_processes_make_equally_many_passes() -> None:
    rows = rows_of(37, longest=30)
    plan = Plan(rows, batch_rows=8, pack_tokens=60, epochs=2, seed=1, world_size=3)
    shares = [plan[index] for index in range(len(plan))]
    seen = sorted(index for share in shares for members in share.packs for index in members)
    assert seen == sorted([*range(37), *range(37)])
    for step in range(0, len(shares), 3):
        assert len({len(share.packs) for share in shares[step : step + 3]}) == 1
        indices = [index for share in shares[step : step + 3] for members in share.packs for index in members]
        assert {share.batch_rows for share in shares[step : step + 3]} == {len(indices)}
    for share in shares:
        assert all(len(members) == 1 or sum(len(rows[i]) for i in members) <= 60 for members in share.packs)


def test_rows_with_one_prompt_are_packed_together_and_at_most_an_eighth_of_a_step() -> None:
    few = rows_of(20, longest=30)
    rows = [replace(few[place % 20], completion=(place,)) for place in range(80)]
    rows += [replace(few[0], completion=(place,)) for place in range(40)]
    plan = Plan(rows, batch_rows=32, pack_tokens=60, epochs=1, seed=1, world_size=2)
    steps = [
        [members for rank in (0, 1) for members in plan[step + rank].packs if members]
        for step in range(0, len(plan), 2)
    ]
    assert sorted(index for step in steps for members in step for index in members) == list(range(120))
    prompts = sum(len({rows[index].prompt for index in members}) for step in steps for members in step)
    assert 19 + 4 <= prompts <= 19 + 11 + 4, "groups of at most four, which a step may split"
    often = [Counter(rows[index].prompt for members in step for index in members)[few[0].prompt] for step in steps]
    assert max(often) <= 24, "44 of 120 rows have one prompt, but no step has only them"
    assert {plan[0].batch_rows, plan[-1].batch_rows} == {32, 24}


def test_a_step_has_few_packed_sequences_within_the_limit_that_group_shared_prefixes() -> None:
    """Four prompts of nine tokens with four completions each, two prompts per packed sequence."""
    rows = [Row((prompt, *range(20, 28)), (action,), 0, 0) for action in range(4) for prompt in range(4)]
    plan = Plan(rows, batch_rows=16, pack_tokens=26, epochs=1, seed=0)
    packs = [plan.packed(members) for members in plan[0].packs]
    assert [members.input_ids.shape[1] for members in packs] == [26, 26]


def test_a_model_without_packed_support_is_not_trained(tmp_path: Path) -> None:
    rows = rows_of(2)
    plain: Any = load_policy(embedded_dir(), padded=True)[0]
    numbers = torch.zeros(2)
    with pytest.raises(ValueError, match="accept_packed"):
        ActorTrainer(
            Objective(),
            plain,
            Plan(rows, batch_rows=2, pack_tokens=90, epochs=1, seed=0),
            advantages=numbers,
            references=numbers,
            arguments=training_arguments(tmp_path, Optimization(learning_rate=RATE), COMPUTE, seed=0, steps=1),
        )
    with pytest.raises(ValueError, match="accept_packed"):
        score_completions(plain, rows, 90)


def test_an_incomplete_checkpoint_is_removed(tmp_path: Path) -> None:
    """A kill while a checkpoint is written leaves a folder with a higher number than the last complete one."""
    full, half, empty = (tmp_path / f"checkpoint-{number}" for number in (5, 9, 12))
    for folder in (full, half, empty):
        folder.mkdir()
    (full / "trainer_state.json").write_text("{}")
    (half / "trainer_state.json").write_text('{"global_st')
    (half / "model.safetensors").write_bytes(b"..")
    assert complete_checkpoint(tmp_path) == str(full)
    assert list(tmp_path.iterdir()) == [full]
    assert complete_checkpoint(tmp_path / "none") is None


def test_a_launched_stage_that_fails_is_one_line(tmp_path: Path) -> None:
    failures = (((sys.executable, "-m"), "no stage"), (("no-such-launcher",), "'no-such-launcher' cannot"))
    for launcher, problem in failures:
        with pytest.raises(BadInput) as error:
            launch(tmp_path, launcher)
        assert "\n" not in str(error.value)
        assert problem in str(error.value) or "ended with exit code 2" in str(error.value)


@pytest.mark.slow
def test_a_diverging_launched_stage_raises_as_in_this_process(tmp_path: Path) -> None:
    job = StageJob(
        kind="value", start=embedded_dir(), optimization=Optimization(learning_rate=RATE, batch_rows=4), compute=COMPUTE
    )
    write_job(tmp_path, job, rows_of(4, longest=20), {Column.TARGET: [math.nan] * 4})
    with pytest.raises(TrainingDiverged) as error:
        launch(tmp_path, (sys.executable, "-m"))
    assert "\n" not in str(error.value)


def weights_of(folder: Path) -> dict[str, Tensor]:
    return {name: tensor for path in folder.glob("*.safetensors") for name, tensor in load_file(path).items()}


def test_a_stage_of_one_step_has_no_warmup(tmp_path: Path) -> None:
    """The library's first rate with warmup is 0: a stage of one step would not train."""
    how = Optimization(learning_rate=RATE, warmup=0.1)
    assert [warmup_steps(how, steps) for steps in (1, 9, 10, 40)] == [0, 0, 1, 4]
    assert training_arguments(tmp_path, how, COMPUTE, seed=3, steps=1).warmup_steps == 0


def test_a_process_with_several_devices_trains_on_one(tmp_path: Path) -> None:
    """A contract: transformers reads `n_gpu` for the size of a batch and for `nn.DataParallel`."""
    arguments = training_arguments(tmp_path, Optimization(learning_rate=RATE), COMPUTE, seed=3, steps=1)
    arguments._n_gpu = 2
    assert arguments.n_gpu == arguments.train_batch_size == 2
    one_device(arguments)
    assert arguments.n_gpu == arguments.train_batch_size == 1


def test_the_bases_sampling_defaults_are_removed(tmp_path: Path) -> None:
    model, tokenizer = load_policy(embedded_dir())
    model.generation_config.update(do_sample=True, temperature=0.3, top_k=5, top_p=0.5)
    save_policy(model, tokenizer, tmp_path / "model")
    left = json.loads((tmp_path / "model" / "generation_config.json").read_text(encoding="utf-8"))
    assert not {"temperature", "top_k", "top_p"} & left.keys() and not left.get("do_sample")
    assert left["max_new_tokens"] == model.generation_config.max_new_tokens, "the end token is kept"


def test_an_empty_plan_trains_nothing(tmp_path: Path) -> None:
    trainer = trainer_of(rows_of(3, longest=30), tmp_path, epochs=0)
    assert train(trainer, COMPUTE) == []


def test_tensorboard_events_are_kept_when_checkpoints_are_removed(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    rows = rows_of(12, longest=20)
    job = StageJob(
        kind="value",
        start=embedded_dir(),
        optimization=Optimization(learning_rate=1e-3, batch_rows=4),
        compute=COMPUTE,
        report_to=("tensorboard",),
    )
    write_job(tmp_path, job, rows, {Column.TARGET: [0.5] * len(rows)})
    launch(tmp_path)
    assert not (tmp_path / "checkpoints").exists()
    (events,) = (tmp_path / "tensorboard").rglob("events.*")
    log = EventAccumulator(str(events))
    log.Reload()
    assert len(log.Scalars("train/loss")) == 3


def test_fsdp_1_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = trainer_of(rows_of(4), tmp_path)
    settle_sharding(trainer)
    monkeypatch.setattr(trainer.accelerator.state, "distributed_type", DistributedType.FSDP)
    monkeypatch.setattr(trainer.accelerator.state, "fsdp_plugin", SimpleNamespace(fsdp_version=1), raising=False)
    with pytest.raises(BadInput, match="launch it with --fsdp_version 2"):
        settle_sharding(trainer)
