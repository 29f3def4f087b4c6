"""The clipped surrogate on packed rows against plain PyTorch and against TRL's GRPO loss on the same rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from torch import Tensor, nn
from transformers import TrainerCallback
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from models.embedded import embedded_dir
from tests.training.engine.token_rows import rows_of
from training.data.columns import Column
from training.data.packing import pack, row_tokens
from training.data.rows import Row
from training.engine.annotate import score_completions, score_tokens
from training.engine.checkpoints import load_policy
from training.engine.clipped_actor import ClippedActorTrainer
from training.engine.settings import Compute, Objective, Optimization
from training.engine.stage_jobs import StageJob, launch, write_job
from training.engine.step_plan import Plan
from training.engine.trainer import train, training_arguments
from training.mira.group_advantages import GroupSettings, Normalization, row_weights

torch.set_num_threads(1)
COMPUTE = Compute(cpu=True, threads=1)
LOW, HIGH, MOST, KL = 0.2, 0.28, 1.5, 0.1
OBJECTIVE = Objective(kind="clipped", clip_low=LOW, clip_high=HIGH, max_ratio=MOST, kl=KL)


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """Seven rows, the last with the text of the first, as sampled by another policy than the one that is trained, so
    that some ratios are clipped."""
    model, _ = load_policy(embedded_dir())
    bare = rows_of(6)
    bare.append(replace(bare[0], trajectory=6))
    draw = torch.Generator().manual_seed(1)

    def moved(values: tuple[float, ...], by: float) -> tuple[float, ...]:
        return tuple((torch.tensor(values) + by * torch.randn(len(values), generator=draw)).tolist())

    scored = score_tokens(model.eval(), bare, 400)
    return [replace(row, sampled=moved(own, 0.4), start=moved(own, 0.2)) for row, own in zip(bare, scored, strict=True)]


ADVANTAGES = torch.linspace(-1, 1, 7)


def trainer_of(
    rows: list[Row],
    out: Path,
    weights: Tensor,
    *,
    objective: Objective = OBJECTIVE,
    pack_tokens: int = 400,
    batch_rows: int = 7,
    epochs: int = 1,
) -> ClippedActorTrainer:
    model, _ = load_policy(embedded_dir())
    plan = Plan(rows, batch_rows=batch_rows, pack_tokens=pack_tokens, epochs=epochs, seed=3)
    how = Optimization(learning_rate=1e-4, batch_rows=batch_rows, epochs=epochs)
    arguments = training_arguments(out, how, COMPUTE, seed=3, steps=len(plan))
    return ClippedActorTrainer(
        objective, model, plan, rows=rows, advantages=ADVANTAGES, weights=weights, arguments=arguments
    )


def weights_of(rows: list[Row], normalization: Normalization, constant: int = 20) -> Tensor:
    settings = GroupSettings(normalization=normalization, constant_tokens=constant)
    return torch.tensor(row_weights(rows, settings), dtype=torch.float32)


def gradient(model: Any) -> Tensor:
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None])


def model_of(trainer: ClippedActorTrainer) -> nn.Module:
    model = trainer.model
    assert isinstance(model, nn.Module)
    return model.eval()


def packed_loss(rows: list[Row], out: Path, weights: Tensor, pack_tokens: int = 400) -> tuple[float, Tensor]:
    trainer = trainer_of(rows, out, weights, pack_tokens=pack_tokens)
    model = model_of(trainer)
    total = 0.0
    for share in (trainer.plan[number] for number in range(len(trainer.plan))):
        for indices in share.packs:
            columns = {name: column[list(indices)] for name, column in trainer.columns.items()}
            loss, _ = trainer.pack_loss(model, trainer.plan.packed(indices), columns)
            (loss * len(indices) / share.batch_rows).backward()
            total += loss.item() * len(indices) / share.batch_rows
    return total, gradient(model)


def plain_loss(rows: list[Row], weights: Tensor) -> tuple[float, Tensor]:
    """Each row alone, by the formulas of the paper; prompt tokens have no loss."""
    model, _ = load_policy(embedded_dir(), padded=True)
    model.eval()
    total = torch.zeros(())
    for row, advantage, weight in zip(rows, ADVANTAGES, weights, strict=True):
        logits = model(torch.tensor([[*row.prompt, *row.completion]])).logits[0, len(row.prompt) - 1 : -1].float()
        own = logits.log_softmax(-1)[range(len(row.completion)), list(row.completion)]
        ratio = (own - torch.tensor(row.sampled)).exp()
        surrogate = torch.minimum(ratio.clamp(max=MOST) * advantage, ratio.clamp(1 - LOW, 1 + HIGH) * advantage)
        apart = torch.tensor(row.start) - own
        total = total + weight * (KL * (apart.exp() - apart - 1) - surrogate).sum() / len(rows)
    total.backward()
    return total.item(), gradient(model)


def no_reward(completions: list[str], **_: object) -> list[float | None]:
    return [0.0] * len(completions)


def trl_loss(rows: list[Row], kind: str, constant: int, out: Path) -> tuple[float, Tensor]:
    """TRL's own loss on the rows as a padded batch."""
    model, tokenizer = load_policy(embedded_dir(), padded=True)
    arguments = GRPOConfig(
        output_dir=str(out),
        use_cpu=True,
        bf16=False,
        activation_checkpointing=False,
        loss_type=kind,
        epsilon=LOW,
        epsilon_high=HIGH,
        delta=MOST,
        num_generations=7,
        per_device_train_batch_size=7,
        max_completion_length=constant,
        report_to=[],
        use_bias_correction_kl=False,  # the divergence times the ratio, which the papers do not have
    )
    trainer = GRPOTrainer(
        model=model,
        reward_funcs=no_reward,
        args=arguments,
        train_dataset=Dataset.from_dict({"prompt": ["x"] * 7}),
        processing_class=tokenizer,
    )
    trainer.beta = KL
    model.eval()

    def padded(values: list[list[Any]], left: bool, kind: torch.dtype) -> tuple[Tensor, Tensor]:
        longest = max(map(len, values))
        made, mask = torch.zeros(len(values), longest, dtype=kind), torch.zeros(len(values), longest, dtype=torch.long)
        for number, own in enumerate(values):
            at = slice(longest - len(own), longest) if left else slice(0, len(own))
            made[number, at], mask[number, at] = torch.tensor(own, dtype=kind), 1
        return made, mask

    prompts, prompt_mask = padded([list(row.prompt) for row in rows], True, torch.long)
    completions, mask = padded([list(row.completion) for row in rows], False, torch.long)
    inputs = {
        "prompt_ids": prompts,
        "prompt_mask": prompt_mask,
        "completion_ids": completions,
        "completion_mask": mask,
        "advantages": ADVANTAGES,
        "old_per_token_logps": padded([list(row.sampled or ()) for row in rows], False, torch.float32)[0],
        "ref_per_token_logps": padded([list(row.start or ()) for row in rows], False, torch.float32)[0],
        "num_items_in_batch": mask.sum(),
    }
    loss = trainer._compute_loss(model, inputs)
    loss.backward()
    return loss.item(), gradient(model)


@pytest.mark.parametrize("pack_tokens", [16, 60, 400])
def test_the_loss_is_that_of_each_row_alone(rows: list[Row], tmp_path: Path, pack_tokens: int) -> None:
    weights = weights_of(rows, "token")
    loss, slope = packed_loss(rows, tmp_path, weights, pack_tokens)
    expected, expected_slope = plain_loss(rows, weights)
    assert loss == pytest.approx(expected, abs=1e-5)
    assert torch.allclose(slope, expected_slope, atol=1e-4)


@pytest.mark.parametrize(("normalization", "kind"), [("sequence", "grpo"), ("token", "dapo"), ("constant", "dr_grpo")])
def test_the_loss_is_that_of_trl(rows: list[Row], tmp_path: Path, normalization: Normalization, kind: str) -> None:
    loss, slope = packed_loss(rows, tmp_path, weights_of(rows, normalization, 24))
    expected, expected_slope = trl_loss(rows, kind, 24, tmp_path / "trl")
    assert loss == pytest.approx(expected, abs=1e-5)
    assert expected_slope.norm() > 1e-3 and torch.allclose(slope, expected_slope, atol=1e-4)


def test_rows_with_the_same_text_keep_their_own_advantages(rows: list[Row]) -> None:
    packed = pack(rows, (0, 6, 1))
    places, owners = row_tokens(packed)
    length = len(rows[0].completion)
    assert packed.targets[places].tolist() == [*rows[0].completion, *rows[6].completion, *rows[1].completion]
    assert owners.tolist() == [0] * length + [1] * length + [2] * len(rows[1].completion)


def test_the_first_pass_begins_at_a_ratio_of_1(rows: list[Row], tmp_path: Path) -> None:
    model, _ = load_policy(embedded_dir())
    played = [replace(row, sampled=own) for row, own in zip(rows, score_tokens(model.eval(), rows, 64), strict=True)]
    sums = score_completions(model, rows, 64)
    assert [sum(row.sampled or ()) for row in played] == pytest.approx(list(sums), abs=1e-5)
    trainer = trainer_of(played, tmp_path, weights_of(rows, "episode"), objective=Objective(kind="clipped"))
    columns = {Column.ADVANTAGE: ADVANTAGES, Column.WEIGHT: torch.ones(7)}
    _, numbers = trainer.pack_loss(model_of(trainer), pack(played, range(7)), columns)
    assert numbers["log_ratio"] == pytest.approx(0, abs=1e-4)
    assert numbers["clipped"] == 0 and "kl" not in numbers


def test_a_stage_moves_completions_by_their_advantages(rows: list[Row], tmp_path: Path) -> None:
    model, _ = load_policy(embedded_dir())
    own = score_tokens(model.eval(), rows[:6], 400)
    played = [replace(row, sampled=logprobs, start=None) for row, logprobs in zip(rows[:6], own, strict=True)]
    how = Optimization(learning_rate=3e-4, batch_rows=6, epochs=4)
    objective = Objective(kind="clipped", max_ratio=10)
    job = StageJob(kind="actor", start=embedded_dir(), optimization=how, objective=objective, compute=COMPUTE)
    advantages = [1.0, -1.0, 1.0, -1.0, 1.0, -1.0]
    write_job(tmp_path / "actor", job, played, {Column.ADVANTAGE: advantages, Column.WEIGHT: [0.1] * 6})
    learned, _ = load_policy(launch(tmp_path / "actor"))
    gains = [
        after - sum(before) for after, before in zip(score_completions(learned.eval(), played, 400), own, strict=True)
    ]
    assert all(gain * advantage > 0 for gain, advantage in zip(gains, advantages, strict=True)), gains


def test_a_killed_stage_resumes_to_the_same_weights(rows: list[Row], tmp_path: Path) -> None:
    """Killed after its first checkpoint, in the middle of the second epoch."""

    class Kill(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: object) -> None:
            control.should_save = state.global_step == 3

        def on_save(self, args: Any, state: Any, control: Any, **_: object) -> None:
            raise KeyboardInterrupt

    weights = weights_of(rows, "episode")
    learned: dict[str, Tensor] = {}
    for name in ("whole", "killed"):
        trainer = trainer_of(rows, tmp_path / name, weights, batch_rows=3, epochs=2)
        if name == "killed":
            trainer.add_callback(Kill())
            with pytest.raises(KeyboardInterrupt):
                train(trainer, COMPUTE)
            trainer = trainer_of(rows, tmp_path / name, weights, batch_rows=3, epochs=2)
        train(trainer, COMPUTE)
        learned[name] = torch.cat([parameter.detach().flatten() for parameter in model_of(trainer).parameters()])
    assert torch.equal(learned["whole"], learned["killed"])


def test_rows_without_log_probabilities_are_refused(rows: list[Row], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at play"):
        trainer_of([replace(row, sampled=None) for row in rows], tmp_path, torch.ones(7))
    with pytest.raises(ValueError, match="under the start"):
        trainer_of([replace(row, start=None) for row in rows], tmp_path, torch.ones(7))
