"""Rates, pass@k, failures and costs of synthetic episodes, and reading them from traces."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import pytest

from agent.run.discover_traces import EpisodeFile, discover_traces
from agent.run.run_store import Job
from envs.core.errors import BadInput
from envs.core.tasks import TaskRef
from envs.core.trace import Failure, Outcome
from judges.statistics import wilson
from tests.agent.episodes import Play, write_episode, write_run
from training.loop.evaluation.reading import PlayedEpisode, Reading, read_played
from training.loop.evaluation.summary import evaluate, pass_rate


def played(
    task: str, attempt: int, outcome: Outcome, *, category: str = "form", failure: str = "other"
) -> PlayedEpisode:
    return PlayedEpisode(
        run_id="r",
        episode_id=f"{task}-{attempt}",
        task=TaskRef(suite="s", name=task, seed=0),
        attempt=attempt,
        category=category,
        split="",
        policy="p",
        outcome=outcome,
        failure=failure if outcome == "failure" else "",
        steps=attempt,
        tokens=10,
        seconds=0.5,
        observed=None,
    )


def attempts(task: str, won: str) -> list[PlayedEpisode]:
    """`+-b`: success, failure, broken."""
    outcomes: dict[str, Outcome] = {"+": "success", "-": "failure", "b": "broken"}
    return [played(task, number, outcomes[item]) for number, item in enumerate(won, 1)]


def reading(*episodes: PlayedEpisode) -> Reading:
    return Reading(episodes, unfinished=0, no_milestones=Counter(), damaged=())


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_pass_at_k_is_the_share_of_all_choices_of_k_attempts_that_have_a_success(k: int) -> None:
    tasks = {"a": "+---", "b": "++-+-", "c": "----", "d": "+", "e": "-+b"}
    judged = [item for task, won in tasks.items() for item in attempts(task, won) if item.judged]
    shares: list[float] = []
    for won in tasks.values():
        choices = list(combinations(won.replace("b", ""), k))
        if choices:
            shares.append(sum("+" in choice for choice in choices) / len(choices))
    result = pass_rate(judged, k)
    assert result.value.value == pytest.approx(sum(shares) / len(shares))
    assert (result.tasks, result.too_few) == (len(shares), 5 - len(shares))


def test_its_interval_is_over_tasks() -> None:
    """Two tasks, one always and one never solved: resamples of two are 0, 1/2 and 1, a quarter, a half, a quarter."""
    result = pass_rate([*attempts("a", "++++"), *attempts("b", "----")], 2)
    assert (result.value.value, result.value.low, result.value.high) == (0.5, 0.0, 1.0)


def test_pass_at_k_beyond_the_attempts_is_undefined() -> None:
    result = pass_rate(attempts("a", "+-"), 8)
    assert (result.value.value, result.value.why_not, result.tasks, result.too_few) == (
        None,
        "no task has 8 attempts",
        0,
        1,
    )


def test_broken_episodes_are_counted_separately_and_are_no_failures() -> None:
    result = evaluate(reading(*attempts("a", "+-bb"), *attempts("c", "++")))
    total = result.total
    assert (total.judged, total.successes, total.broken, result.episodes) == (4, 3, 2, 6)
    assert (total.success.low, total.success.high) == wilson(3, 4)
    assert result.outcomes == {"success": 3, "failure": 1, "broken": 2}
    assert sum(item.episodes for item in result.failures) == 1
    assert [(item.name, item.judged, item.broken) for item in result.by_task] == [("s/a", 2, 2), ("s/c", 2, 0)]


def test_only_broken_episodes_have_no_rate() -> None:
    result = evaluate(reading(*attempts("a", "bb")))
    assert result.total.success.value is None and result.spent["steps"].median is None
    assert all(item.value.value is None for item in result.pass_at)


def test_by_category_and_failures() -> None:
    result = evaluate(
        reading(
            played("a", 1, "failure", failure="stuck_midway"),
            played("a", 2, "failure", failure="stuck_midway"),
            played("b", 1, "failure", failure="not analyzed", category="shop"),
            played("b", 2, "success", category="shop"),
            played("b", 3, "success", category=""),
        )
    )
    assert {item.name: (item.successes, item.judged) for item in result.by_category} == {
        "-": (1, 1),
        "form": (0, 2),
        "shop": (1, 2),
    }
    shares = {item.category: (item.share.value, item.of_judged.value) for item in result.failures}
    assert shares["stuck_midway"] == (pytest.approx(2 / 3), pytest.approx(2 / 5))
    assert shares["other"] == (0.0, 0.0) and shares["not analyzed"][0] == pytest.approx(1 / 3)
    assert (result.spent["steps"].mean.value, result.spent["steps"].median) == (pytest.approx(9 / 5), 2)


def test_traces_are_read_as_they_are(tmp_path: Path) -> None:
    stuck = Failure(category="stuck_midway", key_step=1, reason="")
    run = write_run(
        tmp_path / "r",
        [
            Play(seed=0, attempt=1),
            Play(seed=0, attempt=2, outcome="failure", failure=stuck, z=((False, False), (True, False), (True, False))),
            Play(seed=1, outcome="broken"),
            Play(seed=2, outcome=None),
            Play(seed=3, z=((), (), ())),
            Play(seed=4),
        ],
    )
    run.trace("login-user-4-a1").write_text("{}\n")
    read = read_played(discover_traces([run.path]))
    result = evaluate(read)
    assert (result.episodes, result.unfinished, len(result.damaged), result.total.broken) == (4, 1, 1, 1)
    assert [item.failure for item in read.played] == ["", "stuck_midway", "", ""]
    assert (result.milestones.traces, result.milestones.left_out) == (2, {"no milestones": 1})
    assert result.milestones.diagonal.value == 0.75
    assert (result.spent["steps"].median, result.spent["tokens"].median, result.spent["seconds"].median) == (2, 12, 1.0)
    assert result.by_split == ()


@dataclass(frozen=True)
class SitePlay(Play):
    """An episode on the sites, whose templates have splits."""

    @property
    def job(self) -> Job:
        return Job(TaskRef(suite="sites", name=self.task, seed=self.seed), self.attempt)


def test_the_split_is_that_of_the_template(tmp_path: Path) -> None:
    from agent.run.suites import known_suite

    info = known_suite("sites").infos()[0]
    run = write_run(tmp_path / "r", [])
    path = write_episode(run, SitePlay(task=info.name))
    result = evaluate(read_played([EpisodeFile(path)]))
    assert info.split and [item.name for item in result.by_split] == [info.split]


def test_no_finished_episode_is_an_error(tmp_path: Path) -> None:
    run = write_run(tmp_path / "r", [Play(outcome=None)])
    with pytest.raises(BadInput, match="no finished episode among 1"):
        read_played(discover_traces([run.path]))
