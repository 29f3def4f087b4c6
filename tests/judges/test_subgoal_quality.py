"""Subgoal quality compared with numbers computed by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score, precision_score, recall_score, roc_auc_score

from judges.statistics import average_ranks, rank_correlation, wilson
from judges.subgoal_quality import Quality, agreement, quality
from judges.trace_ratings import Observed

# (milestones done of 2, succeeded) of eight traces. All done: a, b, c, of which a, b succeeded; d succeeded without.
#   precision 2/3, recall 2/3, F1 2/3
#   scores of the 3 successes: 1, 1, .5; of the 5 failures: 1, .5, .5, 0, 0
#   AUROC: of 15 pairs, 1 beats .5 .5 0 0 and ties 1: 4.5, twice; .5 beats 0 0 and ties .5 .5: 3. 12/15 = .8
#   τ-b: C = 4 + 4 + 2 = 10, D = 1 (.5 against 1), so C - D = 9; pairs untied in y 15, in s 28 - (3 + 3 + 1) = 21;
#        9 / √(15·21) = 0.50709
EIGHT = [(2, True), (2, True), (2, False), (1, True), (1, False), (1, False), (0, False), (0, False)]


def seen(
    done: int, success: bool, *, of: int = 2, task: str = "miniwob/t", reached: tuple[int | None, ...] = ()
) -> Observed:
    z = tuple(k < done for k in range(of))
    return Observed(
        task=task,
        milestones=tuple(f"m{k}" for k in range(1, of + 1)),
        texts=("",) * of,
        z=z,
        reached=reached or tuple(k + 1 if held else None for k, held in enumerate(z)),
        steps=3,
        success=success,
    )


@pytest.fixture
def eight() -> Quality:
    return quality([seen(done, success) for done, success in EIGHT], "checks")


def test_the_numbers_of_eight_traces_are_those_worked_out_by_hand(eight: Quality) -> None:
    assert (eight.traces, eight.successes, eight.all_done) == (8, 3, 3)
    assert eight.precision.value == pytest.approx(2 / 3)
    assert eight.recall.value == pytest.approx(2 / 3)
    assert eight.f1.value == pytest.approx(2 / 3)
    assert eight.auroc.value == pytest.approx(0.8)
    assert eight.tau.value == pytest.approx(9 / (15 * 21) ** 0.5)


def test_the_formulas_agree_with_scikit_learn_and_scipy() -> None:
    from scipy.stats import kendalltau

    cases = [(i * 7 % 5, i * 11 % 3 != 0 and i * 7 % 5 > 1) for i in range(60)]
    measured = quality([seen(done, success, of=4) for done, success in cases], "checks")
    y, all_done, score = [s for _, s in cases], [d == 4 for d, _ in cases], [d / 4 for d, _ in cases]
    assert measured.precision.value == pytest.approx(precision_score(y, all_done))
    assert measured.recall.value == pytest.approx(recall_score(y, all_done))
    assert measured.f1.value == pytest.approx(f1_score(y, all_done))
    assert measured.auroc.value == pytest.approx(roc_auc_score(y, score))
    tau, p = kendalltau(score, y)
    assert (measured.tau.value, measured.tau_p) == pytest.approx((tau, p))


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=2, max_size=60))
def test_the_p_value_of_tau_is_that_of_scipy(cases: list[tuple[int, bool]]) -> None:
    from scipy.stats import kendalltau

    measured = quality([seen(done, success, of=4) for done, success in cases], "checks", resamples=100)
    if len({done for done, _ in cases}) < 2 or len({success for _, success in cases}) < 2:
        assert measured.tau_p is None
    else:
        expected: Any = kendalltau([done / 4 for done, _ in cases], [success for _, success in cases])
        assert measured.tau_p == pytest.approx(expected.pvalue, rel=1e-9)


@given(st.lists(st.tuples(st.integers(-3, 3), st.floats(-1, 1)), min_size=1, max_size=30))
def test_ranks_and_their_correlation_are_those_of_scipy(pairs: list[tuple[int, float]]) -> None:
    from scipy.stats import rankdata, spearmanr

    ones, others = [one for one, _ in pairs], [other for _, other in pairs]
    assert average_ranks(ones).tolist() == rankdata(ones).tolist()
    rho = rank_correlation(ones, others)
    if len(set(ones)) < 2 or len(set(others)) < 2:
        assert math.isnan(rho)
    else:
        expected: Any = spearmanr(ones, others)
        assert rho == pytest.approx(expected.statistic, abs=1e-12)


def test_intervals_hold_their_numbers_and_the_seed_decides_them(eight: Quality) -> None:
    for one in (eight.precision, eight.recall, eight.f1, eight.auroc, eight.tau):
        assert one.value is not None and one.low is not None and one.high is not None
        assert one.low < one.value < one.high
    observed = [seen(done, success) for done, success in EIGHT]
    assert quality(observed, "checks", seed=0) == eight
    assert quality(observed, "checks", seed=1).auroc != eight.auroc


def test_more_traces_give_narrower_intervals() -> None:
    few, many = (quality([seen(d, s) for d, s in EIGHT] * n, "checks").auroc for n in (1, 25))
    assert few.low is not None and few.high is not None and many.low is not None and many.high is not None
    assert few.value == many.value
    assert (many.high - many.low) < (few.high - few.low) / 3


@pytest.mark.parametrize(
    ("cases", "name", "why"),
    [
        pytest.param([], "auroc", "no trace with milestones", id="nothing"),
        pytest.param([(2, True), (1, True)], "auroc", "every trace succeeded", id="all succeeded"),
        pytest.param([(2, False), (1, False)], "tau", "every trace failed", id="all failed"),
        pytest.param([(1, True), (1, False)], "tau", "same progress", id="one score"),
        pytest.param([(1, True), (0, False)], "precision", "no trace had all", id="none all done"),
        pytest.param([(1, False)], "recall", "no trace succeeded", id="one trace"),
        pytest.param([(1, False)], "f1", "no trace succeeded and none", id="neither"),
    ],
)
def test_what_is_not_defined_says_why(cases: list[tuple[int, bool]], name: str, why: str) -> None:
    measured = quality([seen(done, success) for done, success in cases], "rater")
    estimate = getattr(measured, name)
    assert estimate.value is None and why in estimate.why_not


def test_one_trace_has_no_bootstrap_interval() -> None:
    measured = quality([seen(2, True)], "rater")
    assert measured.f1.value == 1.0 and measured.f1.low is None and measured.f1.why_not


def test_calibration_counts_by_milestones_done(eight: Quality) -> None:
    (curve,) = eight.calibration
    assert [(p.done, p.traces, p.success.value) for p in curve.points] == [(0, 2, 0.0), (1, 3, 1 / 3), (2, 3, 2 / 3)]
    assert curve.strictly_increasing is True
    first = curve.points[0].success
    assert (first.low, first.high) == pytest.approx((0.0, 0.6576), abs=1e-4)


def test_a_flat_stretch_is_not_strictly_increasing() -> None:
    (curve,) = quality([seen(0, False), seen(1, False), seen(2, True)], "checks").calibration
    assert curve.strictly_increasing is False


def test_traces_with_other_numbers_of_milestones_have_curves_of_their_own() -> None:
    curves = quality([seen(1, True, of=1), seen(1, False, of=3)], "checks").calibration
    assert [(c.of, [(p.done, p.traces) for p in c.points]) for c in curves] == [
        (None, [(1, 2)]),
        (1, [(1, 1)]),
        (3, [(1, 1)]),
    ]


def test_milestones_never_or_always_done_are_named() -> None:
    rows = quality([seen(1, False), seen(1, True), seen(2, True, task="miniwob/u")], "checks").milestones
    uninformative = {(row.task, row.milestone): row.tells_nothing for row in rows}
    assert uninformative["miniwob/t", "m1"] == "always" and uninformative["miniwob/t", "m2"] == "never"
    assert quality([seen(1, False), seen(2, True)], "checks").milestones[1].tells_nothing is None


def test_the_heat_map_counts_who_had_done_a_milestone_by_a_step() -> None:
    maps = quality(
        [seen(2, True, reached=(0, 2)), seen(1, False, reached=(3, None)), seen(1, False, of=1, reached=(1,))], "rater"
    ).heat
    every, success, failure = maps
    assert every.traces == (3, 2)
    assert every.rows[0] == pytest.approx((1 / 3, 2 / 3, 2 / 3, 1.0))
    assert every.rows[1] == pytest.approx((0, 0, 1 / 2, 1 / 2))
    assert success.rows[0] == (1, 1, 1, 1) and failure.rows[0] == (0, 0.5, 0.5, 1)


def test_agreement_of_rater_and_checkers() -> None:
    both = agreement(
        [(seen(1, True), seen(2, True)), (seen(2, False), seen(2, False)), (seen(1, True), seen(1, True, of=1))]
    )
    assert (both.traces, both.milestones, both.only_rater, both.only_checks) == (2, 4, 1, 0)
    assert both.same.value == 0.75


# Wilson's interval, n = 10, 3 successes: centre (.3 + 3.8415/20)/(1 + .38415) = .35552,
# half 1.96·√(.021 + .0096037)/1.38415 = .24771.
@pytest.mark.parametrize(
    ("hits", "of", "low", "high"), [(3, 10, 0.1078, 0.6032), (0, 4, 0.0, 0.4899), (4, 4, 0.5101, 1.0), (0, 0, 0.0, 1.0)]
)
def test_wilson(hits: int, of: int, low: float, high: float) -> None:
    assert wilson(hits, of) == pytest.approx((low, high), abs=1e-4)


def test_wilson_refuses_what_cannot_be() -> None:
    with pytest.raises(ValueError, match="5 successes of 4"):
        wilson(5, 4)
