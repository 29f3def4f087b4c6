"""Draws curves of training runs as one SVG file: rates, such as success on held-out tasks, by phase or update."""

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
"""Number of colours in `curves.css`; further arms reuse them with dashed lines."""
_WIDE, _HIGH, _GAP, _LEFT, _TOP, _FOOT = 330.0, 250.0, 34.0, 44.0, 46.0, 50.0
"""Pixels: width and height of a chart, gap between charts, margins at the left, above and below."""
_ENTRY, _LEGEND = 220.0, 20.0
"""Width of a legend entry and height of a legend line."""
_APART: Final = (0.02, 0.05, 0.1, 0.2, 0.25)
"""Distances of grid lines; the first one with at most `_LINES` lines is used."""
_LINES: Final = 6


Points = Mapping[int, float]
"""Rate, in [0, 1], by phase or by update."""


class Curve(NamedTuple):
    """One training run."""

    arm: str
    seed: int
    lines: Mapping[str, Points]
    """Points by the title of their chart."""


def _held_out(phase: PhaseMetrics) -> float | None:
    return _success(phase.evaluation)


def _rollouts(phase: PhaseMetrics) -> float | None:
    return _success(phase.rollouts)


def _stuck(phase: PhaseMetrics) -> float | None:
    run = phase.rollouts
    return run.failures.get("stuck_midway", 0) / run.judged if run is not None and run.judged else None


def _success(run: PlayedRun | None) -> float | None:
    return run.rate if run is not None and run.judged else None


def _informative(phase: PhaseMetrics) -> float | None:
    return phase.groups.counts.share if phase.groups is not None else None


CHARTS: Final[Mapping[str, Callable[[PhaseMetrics], float | None]]] = {
    "success, held out": _held_out,
    "success, rollouts": _rollouts,
    "stuck midway, rollouts": _stuck,
}
"""The charts: the value of a phase by title; None without one."""
GROUP_CHARTS: Final[Mapping[str, Callable[[PhaseMetrics], float | None]]] = {
    "groups with different rewards": _informative,
}
"""Further charts, drawn only where a run has values."""


def phase_curve(arm: str, seed: int, phases: Sequence[PhaseMetrics]) -> Curve:
    """The curve of one training run, phase by phase."""
    lines: dict[str, Points] = {}
    for title, share in CHARTS.items():
        shares = {phase.phase: share(phase) for phase in phases}
        lines[title] = {number: value for number, value in sorted(shares.items()) if value is not None}
    for title, share in GROUP_CHARTS.items():
        points = {phase.phase: value for phase in phases if (value := share(phase)) is not None}
        lines |= {title: points} if points else {}
    return Curve(arm, seed, lines)


def write_curves(curves: Sequence[Curve], target: Path, along: str = "phase") -> None:
    """Writes the curves to *target* atomically. Raises BadInput where it cannot be written."""
    check_target(target, FORMATS)
    write_picture(str(drawn(curves, along)), target)


def drawn(curves: Sequence[Curve], along: str = "phase") -> Markup:
    """Draws a chart for each title, side by side, with a legend below. An arm's line is the mean of its seeds at their
    common points; each of several seeds has a thin line. *along*: the label of the x axis."""
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
    """The points of each seed in the chart *title*, by arm."""
    by_arm: dict[str, list[Points]] = {}
    for curve in curves:
        by_arm.setdefault(curve.arm, []).append(curve.lines.get(title, {}))
    return by_arm


def mean_of(seeds: Sequence[Points]) -> Points:
    """The mean of *seeds* at their common points, so that every point covers the same runs."""
    common = set.intersection(*(set(points) for points in seeds))
    return {phase: fmean(points[phase] for points in seeds) for phase in sorted(common)}


def _chart(title: str, curves: Sequence[Curve], arms: Sequence[str], last: int, *, along: str) -> Iterator[Markup]:
    by_arm = by_seed(curves, title)
    shares = [share for seeds in by_arm.values() for points in seeds for share in points.values()]
    yield text(_LEFT, 22, title, class_="name")
    if not shares:
        yield text(_LEFT, 40, f"no data in any {along}", class_="tick")
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
        if len(by_arm[arm]) > 1:
            for seed_points in by_arm[arm]:
                yield _line([at(*point) for point in seed_points.items()], f"seed {_class(place)}")
        points = mean_of(by_arm[arm])
        yield _line([at(*point) for point in points.items()], f"arm {_class(place)}")
        for point in points.items():
            x, y = at(*point)
            label = element("title", f"{arm}, {along} {point[0]}: {point[1]:.1%}")
            yield element("circle", label, cx=x, cy=y, r=3, class_=_class(place))


def _range(shares: Sequence[float]) -> tuple[float, float, float]:
    """(minimum, maximum, distance of grid lines) of an axis that covers all *shares*."""
    axes = [(*_ends(shares, apart), apart) for apart in _APART]
    low, high, apart = next((axis for axis in axes if axis[1] - axis[0] <= _LINES), axes[-1])
    return low * apart, high * apart, apart


def _ends(shares: Sequence[float], apart: float) -> tuple[int, int]:
    """The first and last grid line of an axis; rounding errors do not add a line."""
    low = math.floor(min(shares) / apart + 1e-9)
    return low, max(math.ceil(max(shares) / apart - 1e-9), low + 1)


def _line(points: Sequence[tuple[float, float]], class_: str) -> Markup:
    return element("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points), class_=class_)


def _entry(name: str, class_: str) -> tuple[Markup, ...]:
    return line(0, 0, 26, 0, class_=f"arm {class_}"), text(34, 4, name)


def _class(place: int) -> str:
    return f"c{place % COLOURS}" + (" again" if place >= COLOURS else "")
