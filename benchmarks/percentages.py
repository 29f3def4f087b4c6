"""The form of percentages in the tables that benchmarks print.

>>> share(0.277)
'27.7%'
>>> change(-0.277)
'-27.7%'
>>> rate(Estimate(value=0.277, low=0.201, high=0.352))
'27.7% (20.1 to 35.2)'
>>> points(Estimate(value=0.015, low=-0.004, high=0.034))
'+1.5 (-0.4 to +3.4)'
"""

from __future__ import annotations

from judges.statistics import Estimate

UNDEFINED = "-"


def share(value: float, digits: int = 1) -> str:
    """A share from 0 to 1 in percent."""
    return f"{value:.{digits}%}"


def change(value: float) -> str:
    """A relative change in percent, with its sign."""
    return f"{value:+.1%}"


def rate(estimate: Estimate) -> str:
    """A share from 0 to 1 in percent, with its interval where it has one."""
    return UNDEFINED if estimate.value is None else share(estimate.value) + _interval(estimate, "")


def points(estimate: Estimate) -> str:
    """A difference of shares in percentage points, with its interval where it has one."""
    return UNDEFINED if estimate.value is None else f"{100 * estimate.value:+.1f}" + _interval(estimate, "+")


def _interval(estimate: Estimate, sign: str) -> str:
    if estimate.low is None or estimate.high is None:
        return ""
    return f" ({100 * estimate.low:{sign}.1f} to {100 * estimate.high:{sign}.1f})"
