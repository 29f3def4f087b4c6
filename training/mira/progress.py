"""Progress labels `p*_t` for the potential critic: interpolation between milestones (MiRA paper: Eq. 2, Alg. 3).

Times run from 0 to T: time 0 is the state before the first action, time t the state after action t.
"""

from __future__ import annotations

from collections.abc import Sequence

MAX_REPEATS = 5
"""Traces that repeat one action more often are left out of the critic's data (App. A.3)."""
MAX_STEPS = 15
"""Traces of this many steps or more are left out, too."""


def progress_labels(done: Sequence[int], total: int) -> tuple[float, ...]:
    """`p*` of every state of a successful trace, in [0, 1] and never decreasing.

    *done*: milestones completed at times 0 … T, length T+1. The count may drop; a milestone counts from the first time
    it was completed. *total*: K, at least 1. Between the times `t_j` and `t_(j+1)`, at which the count becomes j and
    j+1, the label rises linearly from j/K to (j+1)/K. The last milestone is anchored to the end, `t_K := T`, as are
    milestones that were never completed although the task succeeded. Where one step completes several, the label takes
    the highest value.

    Raises ValueError without a step, or for a count outside 0 … *total*.
    """
    last = len(done) - 1
    if last < 1 or total < 1 or not all(0 <= count <= total for count in done):
        raise ValueError(f"progress needs at least one step and counts of 0 to K={total}, got {tuple(done)}")
    times = [0, *(_first(done, count, last) for count in range(1, total)), last]
    labels = [_label(time, times, total) for time in range(last + 1)]
    return tuple(labels)


def _first(done: Sequence[int], count: int, last: int) -> int:
    """The first time at which *count* milestones were done; the end if they never were."""
    return next((time for time, value in enumerate(done) if value >= count), last)


def _label(time: int, times: Sequence[int], total: int) -> float:
    """The label at *time* between the completion times `t_0 … t_K`."""
    if time >= times[-1]:
        return 1.0
    j = max(index for index, at in enumerate(times) if at <= time)
    share = (time - times[j]) / (times[j + 1] - times[j])
    return (1 - share) * j / total + share * (j + 1) / total


def fit_for_critic(actions: Sequence[object]) -> bool:
    """Applies the trace filter of App. A.3: fewer than `MAX_STEPS` steps, at most `MAX_REPEATS` repeats in a row."""
    run = longest = 0
    for previous, action in zip([None, *actions], actions, strict=False):
        run = run + 1 if previous == action else 1
        longest = max(longest, run)
    return len(actions) < MAX_STEPS and longest <= MAX_REPEATS
