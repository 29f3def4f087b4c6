"""Pre-training of the potential critic on other agents' successes."""

from __future__ import annotations

from pathlib import Path

import pytest

from envs.core.errors import BadInput
from models.embedded import embedded_dir
from tests.agent.episodes import Play, write_run
from tests.training.trajectories import acted, rows_of
from training.data.cache import read_rows
from training.data.columns import Column
from training.engine.checkpoints import weights_digest
from training.engine.stage_jobs import read_job
from training.loop.critics import PRETRAINING, train_critics
from training.loop.data import PhaseData, ReplayCounts
from training.loop.loop import Loop
from training.loop.phase_context import PhaseContext
from training.loop.pretraining import pretraining_episodes
from training.loop.settings import LoopSettings, RolloutSettings, load_settings

THREE = ((False, False), (True, False), (True, True))


def test_the_critic_reads_other_agents_pages_in_the_policys_prompts(tmp_path: Path) -> None:
    plays = [
        Play(policy="openai:other", text="a page", z=THREE),
        Play(seed=1, outcome="failure"),
        Play(seed=2, z=((), (), ())),
    ]
    run = write_run(tmp_path / "r", plays).path
    (episode,) = pretraining_episodes([run], RolloutSettings())
    assert episode.success and episode.done == (0, 1, 2), "failures and episodes without milestones are left out"
    (role, prompt), *more = episode.decisions[1].messages
    assert role == "user" and not more and "a page" in prompt and "Next:" not in prompt
    assert prompt != "a page", "the recorded prompt was another agent's"
    (full,) = pretraining_episodes([run], RolloutSettings(profile="large"))
    assert [role for role, _ in full.decisions[0].messages] == ["system", "user"]
    (several,) = pretraining_episodes([run], RolloutSettings(profile="large", max_actions_per_turn=3))
    assert several.decisions[0].messages[0] != full.decisions[0].messages[0], "the rule of several actions"


def test_the_first_phases_critic_continues_the_one_that_learned_from_them(tmp_path: Path) -> None:
    """No step of another agent reaches the actor or V, whose rows are the phase's own."""
    others = pretraining_episodes([write_run(tmp_path / "r", [Play(z=THREE)]).path], RolloutSettings())
    own = [acted("a", ((1,), (2,)), success=True)]
    rows = rows_of(own)
    data = PhaseData(tuple(own), 1, rows, (0.0,) * len(rows), (True,) * len(rows), ReplayCounts())
    settings = load_settings(None, ["potential.optimization.epochs=1", "potential.milestones=true"])

    def trained(folder: Path, settings: LoopSettings) -> Path:
        context = PhaseContext(settings, 1, folder, embedded_dir(), {}, embedded_dir(), (), pretraining=others)
        with context.running():
            critics = train_critics(context, data)
        assert critics.scores.keys() == {"potential"}, "it is scored on the phase's successes, which it has not seen"
        return folder

    folder = trained(tmp_path / "phase-1", settings)
    learned, columns = read_rows(folder / PRETRAINING / "rows.parquet")
    assert columns[Column.TARGET] == pytest.approx((0.0, 0.5)) and len(learned) == 2
    assert read_job(folder / "potential").start == (folder / PRETRAINING / "model").resolve()
    assert read_job(folder / PRETRAINING).start == embedded_dir().resolve()
    assert weights_digest(folder / PRETRAINING / "model") != weights_digest(embedded_dir())
    assert len(read_rows(folder / "value" / "rows.parquet")[0]) == len(rows)


@pytest.mark.parametrize("change", ["targets.alpha=0", "potential.keep=false"])
def test_pretraining_of_a_critic_that_is_not_used_is_refused(tmp_path: Path, change: str) -> None:
    run = write_run(tmp_path / "r", [Play(z=THREE)]).path
    settings = load_settings(None, [f'pretraining=["{run}"]', change])
    with pytest.raises(BadInput, match="pretraining needs a potential critic that is kept"):
        Loop.open(tmp_path / "run", settings)
