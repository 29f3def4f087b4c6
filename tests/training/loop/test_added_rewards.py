"""Rewards of steps that an installed package adds to MiRA's training: `tests/data/acme`, as pip would leave it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from envs.core.errors import BadInput
from models.registry import added_points
from tests.agent.mira_process import run_mira
from tests.training.loop.test_credit_of_a_phase import LOST, WON, learned
from tests.training.trajectories import trajectory, worded
from training.data.columns import Column
from training.data.trajectories import Trajectory
from training.loop.credit_checks import check_credit
from training.loop.settings import LoopSettings, load_settings
from training.mira.added_rewards import StepReward, added_rewards
from training.mira.episode_rewards import episode_reward

ACME = Path(__file__).parents[2] / "data" / "acme"


@pytest.fixture(autouse=True)
def package() -> Iterator[None]:
    """The package is found in this process."""
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(ACME))
        added_points.cache_clear()
        yield
    added_points.cache_clear()


def refused(episode: Trajectory, *steps: int) -> Trajectory:
    """*episode* with the decisions of *steps*, counted from 0, not carried out."""
    decisions = [
        decision.model_copy(update={"ok": time not in steps}) for time, decision in enumerate(episode.decisions)
    ]
    return episode.model_copy(update={"decisions": tuple(decisions)})


def test_the_settings_name_it_and_are_stored(tmp_path: Path) -> None:
    settings = load_settings(None, ["targets.added.kind=acme", "targets.added.cost=0.25"])
    assert settings.targets.added is not None
    assert settings.model_dump(mode="json")["targets"]["added"] == {"kind": "acme", "cost": 0.25}
    assert LoopSettings.model_validate_json(settings.model_dump_json()) == settings
    assert added_rewards(settings.targets.added, refused(WON, 1)) == (0.0, -0.25)
    assert load_settings(None).targets.added is None


def test_its_numbers_are_added_to_the_rewards_of_a_phase(tmp_path: Path) -> None:
    """γ=1, λ=0, α=0: an advantage is the sum of the rewards from its step on, less V, which does not change."""
    bare = ("targets.alpha=0", "targets.gamma=1", "targets.mix=0")
    episodes = (refused(WON, 1), refused(LOST, 0, 2))
    plain = learned(tmp_path / "plain", *bare, episodes=episodes)
    added = learned(tmp_path / "added", *bare, "targets.added.kind=acme", episodes=episodes)
    assert plain["value"][1][Column.TARGET] == added["value"][1][Column.TARGET], "V estimates the outcome alone"
    differences = [
        one - other
        for one, other in zip(added["actor"][1][Column.ADVANTAGE], plain["actor"][1][Column.ADVANTAGE], strict=True)
    ]
    assert differences == pytest.approx([-0.1, -0.1, -0.2, -0.1, -0.1, 0.0], abs=1e-6)


def test_its_sum_is_added_to_the_reward_of_an_episode() -> None:
    settings = load_settings(None, ["arm=mgrpo", "groups.reward.added.kind=acme", "groups.reward.milestones=0.5"])
    episode = refused(trajectory(worded("a", "b", "c"), milestones=2, done=(0, 1, 1, 2)), 0, 2)
    assert episode_reward(episode, settings.groups.reward) == pytest.approx(1 + 0.5 - 0.2)
    check_credit(settings)


class Wrong(StepReward):
    kind: str = "wrong"
    numbers: tuple[float, ...] = ()

    def of_episode(self, episode: Trajectory) -> Sequence[float]:
        return self.numbers


@pytest.mark.parametrize("numbers", [(), (1.0,), (1.0, math.nan), (0.0, math.inf), (0.0, 0.0, 0.0)], ids=str)
def test_a_reward_that_is_not_one_finite_number_for_each_step_is_refused(numbers: tuple[float, ...]) -> None:
    with pytest.raises(BadInput, match=r"the reward 'wrong' .* for the 2 decisions of episode a-0") as error:
        added_rewards(Wrong(numbers=numbers), WON)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (["targets.added.kind=lost"], "targets.added.*unknown mira.step_rewards entry 'lost': known are acme"),
        (["targets.added.cost=1"], "targets.added.*a reward is named by its key kind"),
        (["targets.added.kind=acme", "targets.added.cost=7"], "targets.added.*cost.*less than or equal to 1"),
        (["groups.reward.added.kind=lost"], "groups.reward.added.*unknown mira.step_rewards entry 'lost'"),
    ],
)
def test_a_wrong_name_or_setting_is_named_in_one_line(changes: list[str], says: str) -> None:
    with pytest.raises(BadInput, match=says) as error:
        load_settings(None, changes)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (["arm=mgrpo", "targets.added.kind=acme"], "targets.added: no effect, .* set groups.reward.added instead"),
        (["arm=filtered_bc", "targets.added.kind=acme"], "targets.added: no effect, .* leave it out"),
        (["groups.reward.added.kind=acme"], "groups.reward.added: no effect, .* set targets.added instead"),
    ],
)
def test_a_reward_that_the_arm_does_not_use_is_refused(changes: list[str], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        check_credit(load_settings(None, changes))


@pytest.mark.browser
@pytest.mark.slow
def test_a_run_of_the_command_uses_it(tmp_path: Path) -> None:
    words = ["arm=awr", "targets.added.kind=acme", "phases=1", "pool.suite=acme", "pool.size=2", "rollouts.tasks=2"]
    words += ["evaluation.suite=acme", "evaluation.split=test", "evaluation.seeds=[0]"]
    words += ["compute.threads=1", "compute.cpu=true"]
    changes = [part for word in words for part in ("--set", word)]
    out = tmp_path / "out"
    done = run_mira("train", "mira", "-o", str(out), *changes, cwd=tmp_path, env=dict(os.environ), packages=(ACME,))
    assert done.returncode == 0, done.stderr
    assert '"kind": "acme"' in (out / "config.json").read_text() and (out / "phase-1" / "actor" / "model").is_dir()
