"""`mira quality` and `mira compare` over traces on disk."""

from __future__ import annotations

from itertools import product
from math import comb
from pathlib import Path

import pytest

from agent.inspection.compare import compare, mcnemar_p, pass_at
from agent.inspection.quality import runs_quality
from agent.run.discover_traces import discover_traces
from tests.agent.episodes import Play, write_run

DONE, HALF = ((False, False), (True, False), (True, True)), ((False, False), (True, False), (True, False))


def test_both_sources_are_measured_and_unusable_traces_are_counted(tmp_path: Path) -> None:
    write_run(
        tmp_path / "r",
        [
            Play(seed=0, z=DONE, checks=(True, True)),
            Play(seed=1, z=HALF, checks=(True, False), outcome="failure"),
            Play(seed=2, z=DONE, checks=(False, True), outcome="failure"),
            Play(seed=3, outcome="broken"),
            Play(seed=4, outcome="unjudged"),
            Play(seed=5, outcome=None),
            Play(seed=6, z=((), (), ())),
        ],
    )
    result = runs_quality(discover_traces([tmp_path / "r"]))
    checks, rater = result.sources
    assert (checks.source, checks.traces, checks.precision.value) == ("checks", 3, 1.0)
    assert (rater.source, rater.traces, rater.precision.value) == ("rater", 3, 0.5)
    assert result.left_out == {"broken": 1, "unjudged": 1, "unfinished": 1, "no milestones": 1}
    assert result.agreement is not None and result.agreement.only_rater == 1


def test_without_the_last_milestone(tmp_path: Path) -> None:
    write_run(
        tmp_path / "r", [Play(seed=0), Play(seed=1, z=HALF, outcome="failure"), Play(seed=2, z=((True,),), actions=())]
    )
    (rater,) = runs_quality(discover_traces([tmp_path / "r"]), without_last=True).sources
    assert (rater.traces, rater.all_done, rater.precision.value) == (2, 2, 0.5)


def test_a_damaged_trace_is_named_and_the_rest_measured(tmp_path: Path) -> None:
    run = write_run(tmp_path / "r", [Play(seed=0), Play(seed=1)])
    run.trace("login-user-1-a1").write_text("{}\n")
    result = runs_quality(discover_traces([tmp_path / "r"]))
    assert len(result.damaged) == 1 and "login-user-1-a1" in result.damaged[0]
    assert result.sources[0].traces == 1


def outcomes(folder: Path, won: dict[int, list[bool]], **settings: object) -> Path:
    plays = [
        Play(seed=seed, attempt=attempt, outcome="success" if success else "failure", config=dict(settings))
        for seed, attempts in won.items()
        for attempt, success in enumerate(attempts, 1)
    ]
    write_run(folder, plays)
    return folder


def compared(tmp_path: Path, a: dict[int, list[bool]], b: dict[int, list[bool]]):
    return compare(discover_traces([outcomes(tmp_path / "a", a)]), discover_traces([outcomes(tmp_path / "b", b)]))


def test_one_attempt_each_is_mcnemars_exact_test(tmp_path: Path) -> None:
    # B alone solves 6 tasks, A alone 1: p = 2·(C(7,0) + C(7,1))/2⁷ = 16/128.
    a = {seed: [seed == 0 or seed > 6] for seed in range(9)}
    b = {seed: [seed > 0] for seed in range(9)}
    result = compared(tmp_path, a, b)
    assert (result.paired.method, result.paired.only_a, result.paired.only_b) == ("McNemar, exact", 1, 6)
    assert result.paired.p == pytest.approx(0.125)
    assert result.success is not None and result.success.change.value == pytest.approx(5 / 9)
    assert result.a.success.value == pytest.approx(3 / 9) and result.b.success.value == pytest.approx(8 / 9)


def test_several_attempts_are_tested_over_tasks(tmp_path: Path) -> None:
    # Gains of B by task: +1, +1/2, +1/2. Of the 8 sign patterns only +++ and --- sum to |2|, so p = 2/8.
    a = {0: [False, False], 1: [False, False], 2: [False, True]}
    b = {0: [True, True], 1: [True, False], 2: [True, True]}
    result = compared(tmp_path, a, b)
    assert result.paired.method == "sign flips over tasks, exact"
    assert result.paired.p == pytest.approx(0.25)


def test_many_tasks_are_flipped_at_random_and_agree_with_the_exact_value(tmp_path: Path) -> None:
    a = {seed: [False, seed < 6] for seed in range(18)}
    b = {seed: [True, False] for seed in range(18)}
    # 12 tasks gain 1/2, 6 stay: the exact test applies. With 18 movers the sampled one does.
    assert compared(tmp_path, a, b).paired.p == pytest.approx(2 / 2**12)
    more = compared(
        tmp_path / "more", {s: [False, False] for s in range(18)}, {s: [True, s % 2 == 0] for s in range(18)}
    )
    assert more.paired.method == "sign flips over tasks, sampled" and more.paired.p is not None
    assert 0 < more.paired.p < 0.01


def test_pass_at_k_is_the_share_of_subsets_with_a_success() -> None:
    for n, c, k in product(range(1, 7), range(7), range(1, 7)):
        if c <= n and k <= n:
            with_none = comb(n - c, k)
            assert pass_at(k, n, c) == pytest.approx(1 - with_none / comb(n, k))
    assert pass_at(2, 4, 1) == pytest.approx(0.5)
    with pytest.raises(ValueError, match="pass@5"):
        pass_at(5, 4, 1)


def test_pass_at_k_needs_k_attempts(tmp_path: Path) -> None:
    result = compared(tmp_path, {0: [True, False], 1: [False]}, {0: [True, True, True, False], 1: [False] * 4})
    assert [(estimate.k, estimate.tasks) for estimate in result.a.pass_at] == [(1, 2), (2, 1)]
    assert [(estimate.k, estimate.value) for estimate in result.b.pass_at] == [(1, 0.375), (2, 0.5), (4, 0.5)]


def test_incomparable_episodes_are_counted_and_named(tmp_path: Path) -> None:
    write_run(tmp_path / "a", [Play(seed=0), Play(seed=1, outcome="broken"), Play(seed=2, outcome=None)])
    write_run(tmp_path / "b", [Play(seed=0, policy="other", config={"limits": {"max_steps": 9}}), Play(seed=3)])
    result = compare(discover_traces([tmp_path / "a"]), discover_traces([tmp_path / "b"]))
    assert result.a.outcomes == {"success": 1, "broken": 1, "unfinished": 1}
    assert result.a.success.value == 1.0
    assert (result.only_in_a, result.only_in_b) == ((), ("miniwob/login-user/3",))
    assert result.unlike == {"limits.max_steps": (None, 9)}
    assert result.success is not None and result.success.change.why_not == "one task alone"


def test_nothing_in_common_is_no_test(tmp_path: Path) -> None:
    result = compared(tmp_path, {0: [True]}, {1: [True]})
    assert result.paired.p is None and result.success is None and result.spent == {}


@pytest.mark.parametrize(("a", "b", "p"), [(0, 0, 1.0), (5, 5, 1.0), (0, 5, 0.0625), (10, 0, 2 / 1024)])
def test_mcnemar(a: int, b: int, p: float) -> None:
    assert mcnemar_p(a, b) == pytest.approx(p)
