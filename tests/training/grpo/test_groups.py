"""Groups without a learning signal: equal rewards, and rewards that are not finite."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.toy_models.puzzles import fresh_model
from tests.training.engine.deepspeed_on_cpu import PARTITIONED, ZERO_2, needs_deepspeed
from tests.training.engine.fsdp_on_cpu import TWO
from training.engine.checkpoints import load_policy
from training.grpo import groups as groups_module
from training.grpo import run as running
from training.grpo.groups import GroupStats, group_stats
from training.grpo.puzzles import make_puzzles
from training.grpo.report import read_reports
from training.grpo.rewards import Score
from training.grpo.run import train_grpo
from training.grpo.settings import GrpoSettings, parse_settings
from training.grpo.trainer import build_trainer

MAZES = make_puzzles("maze", 12, seed=0, size=5)
VALUES = (1.2, 0.2, 0.35, 1.05, 1.4, 1 / 3, 1e-8, 1e6)
NAN, INF = math.nan, math.inf


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fresh_model(tmp_path_factory.mktemp("start") / "model", width=32, layers=1)


def settings(**changes: Any) -> GrpoSettings:
    options: dict[str, Any] = {
        "kl": 0.0,
        "scale_advantages": True,
        "group": 4,
        "answer_tokens": 6,
        "micro_rows": 4,
        "steps": 1,
        "optimization": of(8),
        "compute": {"max_tokens": 128, "threads": 1, "cpu": True},
    }
    return parse_settings({**options, **changes}, "here")


class ScriptedRewarder:
    """A rewarder that returns the numbers of a list in a cycle."""

    max_reward = 2.0
    needs_picture = False

    def __init__(self, rewards: Sequence[float]) -> None:
        self._rewards = tuple(rewards)
        self._at = 0

    def of_group(self, target: Any, completions: Sequence[str], *unused: Any) -> list[Score]:
        scores: list[Score] = []
        for _ in completions:
            scores.append(Score(self._rewards[self._at % len(self._rewards)], {"correct": 1.0}))
            self._at += 1
        return scores


def trainer_with(start: Path, out: Path, config: GrpoSettings, rewards: Sequence[float]) -> tuple[Any, Any]:
    model, tokenizer = load_policy(start, padded=True)
    trainer = build_trainer(model, tokenizer, MAZES, config, out)
    trainer._rewarding._rewarder = ScriptedRewarder(rewards)
    return model, trainer


def largest_step(start: Path, out: Path, config: GrpoSettings, rewards: Sequence[float]) -> float:
    """How far the update moved any weight."""
    model, trainer = trainer_with(start, out, config, rewards)
    before = [weight.detach().clone() for weight in model.parameters()]
    trainer.train()
    return max((a - b).abs().max().item() for a, b in zip(before, model.parameters(), strict=True))


def spread(rewards: torch.Tensor, group: int) -> torch.Tensor:
    """TRL's advantages of *rewards* (N,)."""
    grouped = rewards.view(-1, group)
    return ((grouped - grouped.mean(1, keepdim=True)) / (grouped.std(1, keepdim=True) + 1e-4)).view(-1)


@pytest.mark.parametrize("value", VALUES)
def test_equal_rewards_are_equal_in_groups_of_any_size(value: float) -> None:
    for group in range(2, 17):
        result = group_stats(torch.full((2 * group, 1), value), torch.ones(1), group)
        assert result.equal.all() and result.equal_groups == 2 and result.idle


def test_the_formula_alone_leaves_a_residue() -> None:
    """The control: why equal rewards are detected."""
    left = [(v, g) for v in VALUES for g in range(2, 17) if spread(torch.full((g,), v), g).abs().max() > 0]
    assert {value for value, _ in left} >= {1.2, 0.2, 0.35, 1.05, 1.4}


EQUAL = [
    pytest.param([0.1 + 0.2, 0.3, 0.3, 0.3], True, id="a sum in another order"),
    pytest.param([1.2, 1.2 + 1e-7, 1.2, 1.2], True, id="one step of float32"),
    pytest.param([0.3 - 0.1 - 0.2, 0.0, 0.0, 0.0], True, id="terms that cancel"),
    pytest.param([1.2, 1.2001, 1.2, 1.2], False, id="a small difference"),
    pytest.param([1e-8, 2e-8, 1e-8, 1e-8], False, id="small rewards that differ"),
    pytest.param([0.0, 0.0, 0.0, 0.0], True, id="zeros"),
    pytest.param([-1.2, -1.2, -1.2, -1.2], True, id="negative"),
    pytest.param([1.2, NAN, 1.2, INF], True, id="those that are finite"),
    pytest.param([1.2, NAN, 0.0, 1.2], False, id="finite ones that differ"),
    pytest.param([NAN, 1.2, -INF, INF], True, id="one that is finite"),
    pytest.param([NAN, NAN, -INF, INF], False, id="none that is finite"),
    pytest.param([1e39, 1.2, 1.2, 1.2], True, id="one beyond float32"),
]


@pytest.mark.parametrize(("rewards", "equal"), EQUAL)
def test_which_rewards_are_equal(rewards: list[float], equal: bool) -> None:
    result = group_stats(torch.tensor(rewards)[:, None], torch.ones(1), 4)
    assert bool(result.equal.all()) is equal and result.equal_groups == int(equal)


def test_several_reward_functions_count_by_their_weights() -> None:
    rewards = torch.tensor([[0.1, 0.2], [0.2, 0.1], [0.15, 0.15], [0.3, 0.0]])
    assert group_stats(rewards, torch.tensor([1.0, 1.0]), 4).equal.all()
    assert group_stats(rewards, torch.tensor([3.0, 3.0]), 4).equal.all()
    assert not group_stats(rewards, torch.tensor([1.0, 0.5]), 4).equal.any()
    one_missing = torch.tensor([[0.1, NAN], [0.3, 0.0], [0.3, 0.0], [0.3, 0.0]])
    assert group_stats(one_missing, torch.ones(2), 4).kept.tolist() == [False, True, True, True]


@pytest.mark.parametrize(
    "value",
    [pytest.param(value, marks=pytest.mark.heavy if value in VALUES[1:7] else ()) for value in VALUES],
)
def test_equal_rewards_leave_the_weights_as_they_are(start: Path, tmp_path: Path, value: float) -> None:
    variants: dict[str, dict[str, Any]] = {
        "scaled": {},
        "centred": {"scale_advantages": False},
        "pairs": {"group": 2},
        "divergence": {"kl": 0.1},
    }
    for name, changes in variants.items():
        assert largest_step(start, tmp_path / name, settings(**changes), [value]) == 0.0, name


@pytest.mark.parametrize("value", (1.2, 0.2, 0.35, 1.05, 1.4))
def test_without_the_check_equal_rewards_take_a_full_step(
    start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: float
) -> None:
    """The negative control: TRL's advantages as they are."""

    def nothing_found(rewards: torch.Tensor, weights: torch.Tensor, group: int) -> GroupStats:
        rows = len(rewards)
        return GroupStats(torch.ones(rows, dtype=torch.bool), torch.zeros(rows, dtype=torch.bool), 0, rows // group)

    monkeypatch.setattr(groups_module, "group_stats", nothing_found)
    size = next(group for group in range(3, 17) if spread(torch.full((group,), value), group).abs().max() > 0)
    config = settings(group=size, micro_rows=2 * size, optimization=of(2 * size))
    assert largest_step(start, tmp_path, config, [value]) == pytest.approx(1e-3, rel=0.05)


def of(rows: int) -> dict[str, Any]:
    return {"batch_rows": rows, "learning_rate": 1e-3, "warmup": 0, "schedule": "constant", "weight_decay": 0}


@pytest.mark.parametrize("reuse", [1, 2])
def test_neither_moments_nor_weight_decay_move_weights_that_have_nothing_to_learn(
    start: Path, tmp_path: Path, reuse: int
) -> None:
    """After an update that fills Adam's moments there are updates with equal rewards and with none that is finite."""
    config = settings(steps=3 * reuse, reuse=reuse, optimization={**of(8), "weight_decay": 0.1})
    rewards = [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, *[1.2] * 4, *[0.35] * 4, *[NAN] * 8]
    model, trainer = trainer_with(start, tmp_path, config, rewards)
    seen: list[list[torch.Tensor]] = []
    options = trainer.training_step

    def spy(*args: Any) -> Any:
        seen.append([weight.detach().clone() for weight in model.parameters()])
        return options(*args)

    trainer.training_step = spy
    trainer.train()
    after = [weight.detach() for weight in model.parameters()]
    learned = seen[2 * reuse]
    assert any(not torch.equal(a, b) for a, b in zip(seen[0], learned, strict=True)), "the first update learns"
    assert all(torch.equal(a, b) for a, b in zip(learned, after, strict=True)), "the others do not"
    assert all(torch.isfinite(weight).all() for weight in after)


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_a_reward_that_is_not_finite_takes_no_part(start: Path, tmp_path: Path, bad: float) -> None:
    """The gradient is that of the other rows, by hand, with and without a KL divergence weighted by reward."""
    for name, changes in (
        ("plain", {}),
        ("kl", {"kl": 0.5}),
        ("by reward", {"kl": 0.5, "kl_by_reward": True, "reward": {"kind": "guirlvg"}}),
    ):
        config = settings(micro_rows=8, **changes)
        model, trainer = trainer_with(start, tmp_path / name, config, [1.0, 0.0, bad, 0.5, 1.0, 0.2, 0.2, 0.0])
        if config.kl:
            torch.manual_seed(1)
            for weight in trainer.ref_model.parameters():
                weight.data += 0.05 * torch.randn_like(weight)
        batch = trainer._prepare_inputs(next(iter(trainer.get_train_dataloader())))
        trainer.current_gradient_accumulation_steps = 1
        loss = trainer._compute_loss(model, batch)
        kept = batch["completion_mask"].any(1)
        assert int(kept.sum()) == 7
        others = {key: value[kept] if torch.is_tensor(value) and value.ndim else value for key, value in batch.items()}
        others["loss_scale"] = torch.ones(7)
        expected = trainer._compute_loss(model, others)
        assert torch.isfinite(loss) and loss.item() == pytest.approx(expected.item(), rel=1e-5, abs=1e-7)
        wanted = torch.tensor(
            sorted([*spread(torch.tensor([1.0, 0.0, 0.5]), 3), *spread(torch.tensor([1, 0.2, 0.2, 0]), 4)])
        )
        torch.testing.assert_close(torch.sort(others["advantages"]).values, wanted, rtol=1e-4, atol=1e-4)
        weights = list(model.parameters())
        got, want = torch.autograd.grad(loss, weights), torch.autograd.grad(expected, weights)
        for one, other in zip(got, want, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def test_excluded_rows_are_counted_and_logged(
    start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rewards = [1.0, NAN, 0.5, 0.0, *[1.2] * 4, *[INF] * 8]

    def options(*args: Any) -> Any:
        trainer = build_trainer(*args)
        trainer._rewarding._rewarder = ScriptedRewarder(rewards)
        return trainer

    monkeypatch.setattr(running, "build_trainer", options)
    completion: list[str] = []
    result = train_grpo(MAZES, str(start), tmp_path / "run", settings(steps=2), log=completion.append)
    assert (result.nonfinite_rows, result.equal_groups) == (9, 1)
    assert completion[-2:] == [
        "update 1: 1 rows are left out, their rewards are NaN or infinite",
        "update 2: 8 rows are left out, their rewards are NaN or infinite",
    ]
    first, second = read_reports(tmp_path / "run")
    assert (first.nonfinite_rows, first.equal_groups, first.groups) == (1, 1, 2)
    assert (second.nonfinite_rows, second.equal_groups, second.reward) == (8, 0, None)
    log = json.loads((tmp_path / "run" / "log.json").read_text())
    assert [row["frac_reward_zero_std"] for row in log if "frac_reward_zero_std" in row] == [0.5, 0.0]

    from agent.cli.app import main

    shown: list[str] = []
    for words in (["--json"], ["--wide"]):
        monkeypatch.setattr("sys.argv", ["mira", "train", "show", str(tmp_path / "run"), *words])
        with pytest.raises(SystemExit):
            main()
        shown.append(capsys.readouterr().out)
    assert [one["nonfinite_rows"] for one in json.loads(shown[0])["training"]] == [1, 8]
    assert [one["equal_groups"] for one in json.loads(shown[0])["training"]] == [1, 0]
    assert "nonfinite" in shown[1] and "1/2" in shown[1]


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("launcher", "environ"),
    [pytest.param(TWO, {}, id="DDP"), pytest.param(PARTITIONED, ZERO_2, id="ZeRO 2", marks=needs_deepspeed)],
)
def test_two_processes_count_one_batch(
    start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, launcher: tuple[str, ...], environ: dict[str, str]
) -> None:
    """Rewards and excluded rows are gathered. The start solves no maze: every reward is 0, and weight decay alone would
    move the weights."""
    for key, value in environ.items():
        monkeypatch.setenv(key, value)
    decay = {**of(8), "weight_decay": 0.1}
    config = settings(launcher=launcher, steps=2, optimization=decay, reward={"kind": "ssl", "proximity": "none"})
    result = train_grpo(MAZES, str(start), tmp_path / "run", config, log=print)
    assert result.equal_groups == 4 and result.nonfinite_rows == 0
    before, _ = load_policy(start, padded=True)
    after, _ = load_policy(result.model, padded=True)
    assert all(torch.equal(a, b) for a, b in zip(before.parameters(), after.parameters(), strict=True))
