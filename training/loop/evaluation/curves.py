"""Training runs against each other as one SVG file: shares, such as success on held-out tasks, by phase or update."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Final, NamedTuple

from markupsafe import Markup

from agent.inspection.report.svg import element, line, text
from training.loop.evaluation.drawing import check_target, write_picture
from training.loop.metrics import PhaseMetrics, PlayedRun

FORMATS: Final = (".svg",)
_STYLE: Final = Path(__file__).with_name("curves.css")
COLOURS: Final = 8
"""That `curves.css` has; further arms have them again, with dashes."""
_WIDE, _HIGH, _GAP, _LEFT, _TOP, _FOOT = 330.0, 250.0, 34.0, 44.0, 46.0, 50.0
"""Pixels: the frame of one chart, between charts, its ticks at the left, above it, below it."""
_ENTRY, _LEGEND = 220.0, 20.0
"""An entry of the legend, and a line of it."""
_APART: Final = (0.02, 0.05, 0.1, 0.2, 0.25)
"""Shares between two lines of the grid: the first with which there are at most `_LINES`."""
_LINES: Final = 6


Points = Mapping[int, float]
"""Share, in [0, 1], by phase or by update."""


class Curve(NamedTuple):
    """One training run."""

    arm: str
    seed: int
    lines: Mapping[str, Points]
    """By the title of the chart that they are drawn in."""


def _held_out(phase: PhaseMetrics) -> float | None:
    return _success(phase.evaluation)


def _rollouts(phase: PhaseMetrics) -> float | None:
    return _success(phase.rollouts)


def _stuck(phase: PhaseMetrics) -> float | None:
    run = phase.rollouts
    return run.failures.get("stuck_midway", 0) / run.judged if run is not None and run.judged else None


def _success(run: PlayedRun | None) -> float | None:
    return run.rate if run is not None and run.judged else None


CHARTS: Final[Mapping[str, Callable[[PhaseMetrics], float | None]]] = {
    "success, held out": _held_out,
    "success, rollouts": _rollouts,
    "stuck midway, rollouts": _stuck,
}
"""What is drawn of a phase; None where it says nothing of it."""


def phase_curve(arm: str, seed: int, phases: Sequence[PhaseMetrics]) -> Curve:
    """A run of the loop, phase by phase."""
    lines: dict[str, Points] = {}
    for title, share in CHARTS.items():
        shares = {phase.phase: share(phase) for phase in phases}
        lines[title] = {number: value for number, value in sorted(shares.items()) if value is not None}
    return Curve(arm, seed, lines)


def write_curves(curves: Sequence[Curve], target: Path, along: str = "phase") -> None:
    """Replaces *target* as a whole. Raises BadInput where it cannot be written."""
    check_target(target, FORMATS)
    write_picture(str(drawn(curves, along)), target)


def drawn(curves: Sequence[Curve], along: str = "phase") -> Markup:
    """A chart for each title, side by side, and a legend below. An arm's line is the mean of its seeds, over what all
    of them have; where there are several, each has a thin line. *along*: what is counted from left to right."""
    arms = list(dict.fromkeys(curve.arm for curve in curves))
    titles = list(dict.fromkeys(title for curve in curves for title in curve.lines))
    last = max((max(points, default=0) for curve in curves for points in curve.lines.values()), default=0)
    wide = len(titles) * (_LEFT + _WIDE + _GAP) + _GAP
    across = int((wide - 2 * _GAP) // _ENTRY)
    deep = _TOP + _HIGH + _FOOT + _LEGEND * -(-len(arms) // across) + 8
    charts = [
        element(
            "g",
            *_chart(title, curves, arms, last, along=along),
            transform=f"translate({_GAP + place * (_LEFT + _WIDE + _GAP):g} 0)",
        )
        for place, title in enumerate(titles)
    ]
    seeds = {arm: sum(curve.arm == arm for curve in curves) for arm in arms}
    legend = [
        _entry(f"{arm} ({seeds[arm]} {'seed' if seeds[arm] == 1 else 'seeds'})", _class(place))
        for place, arm in enumerate(arms)
    ]
    placed = [
        element(
            "g", *entry, transform=f"translate({_GAP + _LEFT + x * _ENTRY:g} {_TOP + _HIGH + _FOOT + y * _LEGEND:g})"
        )
        for entry, (y, x) in zip(legend, (divmod(place, across) for place in range(len(legend))), strict=True)
    ]
    return element(
        "svg",
        element("title", f"Training runs by {along}: {', '.join(arms)}"),
        element("style", Markup(_STYLE.read_text("utf-8"))),
        element("rect", width=wide, height=deep, class_="paper"),
        *charts,
        *placed,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {wide:g} {deep:g}",
        width=wide,
        height=deep,
        role="img",
        class_="curves",
    )


def by_seed(curves: Sequence[Curve], title: str) -> Mapping[str, Sequence[Points]]:
    """By arm what the chart *title* shows of each of its seeds."""
    found: dict[str, list[Points]] = {}
    for curve in curves:
        found.setdefault(curve.arm, []).append(curve.lines.get(title, {}))
    return found


def mean_of(seeds: Sequence[Points]) -> Points:
    """Over what all *seeds* have: a mean of other runs at each end of a line would bend it."""
    common = set.intersection(*(set(one) for one in seeds))
    return {phase: fmean(one[phase] for one in seeds) for phase in sorted(common)}


def _chart(title: str, curves: Sequence[Curve], arms: Sequence[str], last: int, *, along: str) -> Iterator[Markup]:
    found = by_seed(curves, title)
    shares = [share for seeds in found.values() for one in seeds for share in one.values()]
    yield text(_LEFT, 22, title, class_="name")
    if not shares:
        yield text(_LEFT, 40, f"no {along} tells of it", class_="tick")
        return
    low, high, apart = _range(shares)

    def at(phase: int, share: float) -> tuple[float, float]:
        return _LEFT + _WIDE * phase / max(last, 1), _TOP + _HIGH * (high - share) / (high - low)

    for number in range(round((high - low) / apart) + 1):
        x, y = at(0, low + number * apart)
        yield line(x, y, x + _WIDE, y, class_="grid")
        yield text(x - 8, y + 4, f"{low + number * apart:.0%}", class_="tick", anchor="end")
    for phase in range(last + 1) if last <= 12 else (0, last):
        yield text(at(phase, low)[0], _TOP + _HIGH + 16, str(phase), class_="tick", anchor="middle")
    yield text(_LEFT + _WIDE / 2, _TOP + _HIGH + 31, along, class_="tick", anchor="middle")
    for place, arm in enumerate(arms):
        if len(found[arm]) > 1:
            for one in found[arm]:
                yield _line([at(*point) for point in one.items()], f"seed {_class(place)}")
        points = mean_of(found[arm])
        yield _line([at(*point) for point in points.items()], f"arm {_class(place)}")
        for point in points.items():
            x, y = at(*point)
            told = element("title", f"{arm}, {along} {point[0]}: {point[1]:.1%}")
            yield element("circle", told, cx=x, cy=y, r=3, class_=_class(place))


def _range(shares: Sequence[float]) -> tuple[float, float, float]:
    """(least, most, between two lines of the grid) of an axis that holds all *shares*."""
    axes = [(*_ends(shares, apart), apart) for apart in _APART]
    low, high, apart = next((axis for axis in axes if axis[1] - axis[0] <= _LINES), axes[-1])
    return low * apart, high * apart, apart


def _ends(shares: Sequence[float], apart: float) -> tuple[int, int]:
    """In lines of the grid; rounding errors ask for no further line."""
    low = math.floor(min(shares) / apart + 1e-9)
    return low, max(math.ceil(max(shares) / apart - 1e-9), low + 1)


def _line(points: Sequence[tuple[float, float]], class_: str) -> Markup:
    return element("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points), class_=class_)


def _entry(name: str, class_: str) -> tuple[Markup, ...]:
    return line(0, 0, 26, 0, class_=f"arm {class_}"), text(34, 4, name)


def _class(place: int) -> str:
    return f"c{place % COLOURS}" + (" again" if place >= COLOURS else "")
