"""Arms × seeds × tasks: means and the three intervals of a difference, computed by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from agent.inspection.compare import compare
from agent.run.discover_traces import discover_traces
from tests.agent.episodes import Play, write_run
from training.loop.evaluation.arms import Trial, compare_arms


def trials(arm: str, *seeds: Sequence[Sequence[bool | None]], first: int = 0) -> list[Trial]:
    """Attempts by seed and task."""
    return [
        Trial(arm, seed, f"suite/t{task}/0", attempt, success)
        for seed, tasks in enumerate(seeds, first)
        for task, attempts in enumerate(tasks)
        for attempt, success in enumerate(attempts, 1)
    ]


A = ([[True, False], [True]], [[False], [True]])
"""By seed: (1/2 + 1)/2 = 0.75 and (0 + 1)/2 = 0.5."""
B = ([[True], [True]], [[True], [True]])


def test_means_are_over_seeds_of_tasks_of_attempts() -> None:
    table = compare_arms([*trials("a", *A), *trials("b", *B)])
    a, b = table.arms
    assert [item.success for item in a.seeds] == [0.75, 0.5]
    assert (a.success.value, b.success.value, a.change) == (0.625, 1.0, None)
    assert (table.baseline, table.tasks, a.episodes, b.episodes) == ("a", 2, 5, 4)
    assert b.change is not None and b.change.value == 0.375


def test_the_three_intervals() -> None:
    """Gains by task are 3/4 and 0: the four draws of two tasks give 3/4, 3/8 twice, 0. With resampled seeds, too, the
    first task twice and the second seed twice (1 of 16) gives 1. Gains by seed are 1/4 and 1/2: mean 3/8, standard
    error 1/8, and Student's t with one degree of freedom is 12.706."""
    change = compare_arms([*trials("a", *A), *trials("b", *B)]).arms[1].change
    assert change is not None
    assert (change.tasks.low, change.tasks.high) == (0.0, 0.75)
    assert (change.both.low, change.both.high) == (0.0, 1.0)
    assert (change.seeds.low, change.seeds.high) == pytest.approx((0.375 - 12.7062 / 8, 0.375 + 12.7062 / 8), abs=1e-4)


def test_other_seeds_are_not_paired() -> None:
    """Welch: variances of the means (0.75, 0.5) and (1, 0.5, 0) are 1/32 and 1/4; error 1/64 + 1/12, freedom 2.62."""
    other = trials("b", [[True], [True]], [[True], [False]], [[False], [False]], first=5)
    change = compare_arms([*trials("a", *A), *other]).arms[1].change
    error = 1 / 64 + 1 / 12
    assert error**2 / ((1 / 64) ** 2 / 1 + (1 / 12) ** 2 / 2) == pytest.approx(2.64, abs=0.01)
    assert change is not None and change.seeds.low is not None and change.seeds.high is not None
    assert change.seeds.high - change.seeds.low == pytest.approx(2 * 3.450 * error**0.5, rel=0.01)


def test_one_seed_gives_no_interval_over_seeds() -> None:
    change = compare_arms([*trials("a", A[0]), *trials("b", B[0])]).arms[1].change
    assert change is not None and change.seeds.low is None and "two seeds" in change.seeds.why_not
    assert (change.both.low, change.both.high) == (change.tasks.low, change.tasks.high)


def test_tasks_that_are_not_common_are_listed_and_excluded() -> None:
    """The third task was broken in one seed of b: its failures in a do not count."""
    a = trials("a", [[True], [False], [False]], [[True], [False], [False]])
    b = trials("b", [[True], [True], [None]], [[True], [True], [True]])
    table = compare_arms([*a, *b])
    assert (table.tasks, table.left_out) == (2, ("suite/t2/0",))
    assert [arm.success.value for arm in table.arms] == [0.5, 1.0]
    assert [arm.unknown for arm in table.arms] == [0, 1]


def test_instances_of_a_template_are_drawn_together() -> None:
    """Two templates, 10 equal instances each: as 20 tasks the interval is narrow, as 2 templates it is wide."""
    rows = [
        Trial(arm, 0, f"suite/{name}/{seed}", 1, name == "easy" or arm == "b")
        for arm in "ab"
        for name in ("easy", "hard")
        for seed in range(10)
    ]
    by_task, by_template = (compare_arms(rows, cluster=cluster).arms[1].change for cluster in ("task", "template"))
    assert by_task is not None and by_template is not None
    assert by_task.value == by_template.value == 0.5
    assert (by_template.tasks.low, by_template.tasks.high) == (0.0, 1.0)
    assert by_task.tasks.low is not None and 0.2 < by_task.tasks.low < 0.4
    assert compare_arms(rows, cluster="template").clusters == 2


def test_the_interval_has_its_nominal_coverage() -> None:
    """Two arms of 8 seeds on 40 tasks; the true difference is 0.2, seeds and tasks vary."""
    random = np.random.default_rng(1)
    held = 0
    for _ in range(60):
        ease = random.uniform(0.2, 0.6, size=40)
        rows = [
            Trial(arm, seed, f"s/t{task}/0", 1, bool(random.random() < share + gain + skill))
            for arm, gain in (("a", 0.0), ("b", 0.2))
            for seed, skill in enumerate(random.uniform(-0.1, 0.1, size=8))
            for task, share in enumerate(ease)
        ]
        change = compare_arms(rows, resamples=300).arms[1].change
        assert change is not None and change.both.low is not None and change.both.high is not None
        held += change.both.low <= 0.2 <= change.both.high
    assert 53 <= held <= 60


def test_the_difference_equals_that_of_mira_compare(tmp_path: Path) -> None:
    won = {"a": [True, False, False, True, False], "b": [True, True, False, True, True]}
    for name, outcomes in won.items():
        plays = [Play(seed=seed, outcome="success" if item else "failure") for seed, item in enumerate(outcomes)]
        write_run(tmp_path / name, plays)
    known = compare(discover_traces([tmp_path / "a"]), discover_traces([tmp_path / "b"])).success
    rows = [Trial(arm, 0, f"t/{task}", 1, item) for arm, outcomes in won.items() for task, item in enumerate(outcomes)]
    change = compare_arms(rows).arms[1].change
    assert known is not None and change is not None
    assert change.value == known.change.value
    assert change.tasks.low == pytest.approx(known.change.low) and change.tasks.high == pytest.approx(known.change.high)


@pytest.mark.parametrize(
    ("rows", "baseline", "message"),
    [
        ([], None, "no arm None among no trials"),
        (trials("a", *A), "z", "no arm 'z' among a"),
        ([*trials("a", *A), *trials("a", A[0])], None, "attempt 1 at suite/t0/0 twice"),
        ([*trials("a", [[True]]), Trial("b", 0, "other", 1, True)], None, "no task was judged in every arm"),
        ([*trials("a", [[True]]), *trials("b", [[None]])], None, "no task was judged in every arm"),
    ],
)
def test_incomparable_trials_are_refused(rows: list[Trial], baseline: str | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compare_arms(rows, baseline=baseline)
