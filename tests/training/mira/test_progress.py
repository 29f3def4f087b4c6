"""Progress labels, against values computed by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.mira.progress import fit_for_critic, progress_labels


def test_the_worked_example() -> None:
    """K=3, t_1=2, t_2=4, the last milestone seen at 6 and anchored to T=9."""
    labels = progress_labels([0, 0, 1, 1, 2, 2, 3, 3, 3, 3], 3)
    assert labels[1] == pytest.approx(1 / 6)
    assert labels[3] == pytest.approx(1 / 2)
    assert labels[7] == pytest.approx(0.4 * 2 / 3 + 0.6 * 1)
    assert labels[9] == 1.0


CASES: dict[str, tuple[list[int], int, list[float]]] = {
    "one milestone is a straight line": ([0, 0, 1], 1, [0, 0.5, 1]),
    "two at once take the higher value": ([0, 2, 2, 3], 3, [0, 2 / 3, 5 / 6, 1]),
    "done at the start": ([1, 1, 2], 2, [0.5, 0.75, 1]),
    "never seen although it succeeded": ([0, 1, 1, 1, 1], 4, [0, 1 / 4, 1 / 4 + 1 / 12, 1 / 4 + 2 / 12, 1]),
    "a milestone that flickers counts once": ([0, 1, 0, 1, 2], 2, [0, 0.5, 0.5 + 1 / 6, 0.5 + 2 / 6, 1]),
    "one step": ([0, 1], 4, [0, 1]),
}


@pytest.mark.parametrize(("done", "total", "expected"), CASES.values(), ids=CASES.keys())
def test_labels(done: list[int], total: int, expected: list[float]) -> None:
    assert progress_labels(done, total) == pytest.approx(expected)


@given(st.integers(1, 6).flatmap(lambda k: st.tuples(st.just(k), st.lists(st.integers(0, k), min_size=2, max_size=20))))
def test_labels_never_decrease_and_end_at_one(drawn: tuple[int, list[int]]) -> None:
    total, done = drawn
    labels = progress_labels(done, total)
    assert list(labels) == sorted(labels) and labels[-1] == 1.0 and 0.0 <= labels[0] <= 1.0
    assert all(label >= min(count, total - 1) / total - 1e-12 for label, count in zip(labels, done, strict=True))


@pytest.mark.parametrize(("done", "total"), [([0], 1), ([0, 1], 0), ([0, 3], 2), ([-1, 0], 2)])
def test_invalid_counts_are_refused(done: list[int], total: int) -> None:
    with pytest.raises(ValueError, match="at least one step"):
        progress_labels(done, total)


def test_the_filter_of_the_critics_data() -> None:
    assert fit_for_critic(["a"] * 5)
    assert not fit_for_critic(["a"] * 6)
    assert fit_for_critic(["a", "b"] * 7)
    assert not fit_for_critic([str(n) for n in range(15)])
    assert fit_for_critic([])
