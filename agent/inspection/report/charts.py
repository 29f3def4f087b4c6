"""Draws the charts of the overview as scalable SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from markupsafe import Markup

from agent.inspection.report.svg import drawing, element, line, text
from judges.statistics import Estimate
from judges.subgoal_quality import HeatMap
from models.prompting.prompt_text import cut

CATEGORIES: Final[Mapping[str, str]] = {
    "stop_at_wrong_page": "Stopped at the wrong page",
    "stuck_midway": "Stuck midway",
    "no_reasonable_attempt": "No reasonable attempt",
    "other": "Other",
}
_WIDTH: Final = 440.0


class Bar(NamedTuple):
    label: str
    value: float
    value_label: str
    """The text at the end of the bar."""
    class_: str


def bars(rows: Sequence[Bar], *, label: str, most: float) -> Markup:
    """A chart of horizontal bars; *most* is the value of a bar of full length."""
    step, left, right = 34.0, 176.0, 70.0
    room = _WIDTH - left - right
    parts: list[Markup] = []
    for place, row in enumerate(rows):
        y = place * step + 6
        length = room * row.value / most if most else 0.0
        parts.append(text(left - 12, y + 16, row.label, class_="label", anchor="end"))
        parts.append(element("rect", x=left, y=y, width=room, height=22, rx=4, class_="groove"))
        parts.append(element("rect", x=left, y=y, width=max(length, 1.5), height=22, rx=4, class_=f"bar {row.class_}"))
        parts.append(text(_WIDTH - right + 10, y + 16, row.value_label, class_="value"))
    return drawing(_WIDTH, len(rows) * step + 4, parts, label=label, class_="chart")


def rates(rows: Sequence[tuple[str, int, Estimate]], *, label: str) -> Markup:
    """A chart of success by group: a dot at the share, a line over its 95 % interval. Rows: (name, episodes, share)."""
    step, left, right, top = 30.0, 150.0, 84.0, 18.0
    room = _WIDTH - left - right
    foot = top + len(rows) * step
    parts = [
        part
        for share in (0, 0.25, 0.5, 0.75, 1)
        for part in (
            line(left + room * share, top - 4, left + room * share, foot, class_="grid"),
            text(left + room * share, 10, f"{share:.0%}", class_="tick", anchor="middle"),
        )
    ]
    for place, (name, episodes, share) in enumerate(rows):
        y = top + place * step + 15
        parts.append(text(left - 12, y + 4, cut(name, 20), class_="label", anchor="end"))
        if share.value is not None and share.low is not None and share.high is not None:
            parts.append(line(left + room * share.low, y, left + room * share.high, y, class_="whisker"))
            parts.append(element("circle", cx=left + room * share.value, cy=y, r=5.5, class_="dot"))
            parts.append(text(_WIDTH - right + 12, y + 4, f"{share.value:.0%} of {episodes}", class_="value"))
        else:
            parts.append(text(_WIDTH - right + 12, y + 4, "not judged", class_="value"))
    return drawing(_WIDTH, foot + 6, parts, label=label, class_="chart")


def curves(lines: Sequence[tuple[str, str, Sequence[float]]], *, label: str) -> Markup:
    """A chart of progress (0 to 1) by step. Rows: (name, class, values from step 0)."""
    height, left, right, top, foot = 236.0, 44.0, 92.0, 12.0, 34.0
    room, deep = _WIDTH - left - right, height - top - foot
    steps = max((len(values) for _, _, values in lines), default=1) - 1
    across = [left + room * t / max(steps, 1) for t in range(steps + 1)]
    parts = [
        part
        for share in (0, 0.25, 0.5, 0.75, 1)
        for part in (
            line(left, top + deep * (1 - share), left + room, top + deep * (1 - share), class_="grid"),
            text(left - 8, top + deep * (1 - share) + 4, f"{share:.0%}", class_="tick", anchor="end"),
        )
    ]
    parts += [text(across[t], height - 16, str(t), class_="tick", anchor="middle") for t in _ticks(steps)]
    parts.append(text(left + room / 2, height - 2, "steps", class_="tick", anchor="middle"))
    ends: list[float] = []
    for name, class_, values in lines:
        points = " ".join(f"{across[t]:.1f},{top + deep * (1 - value):.1f}" for t, value in enumerate(values))
        parts.append(element("polyline", points=points, class_=f"curve {class_}"))
        y = top + deep * (1 - values[-1])
        while any(abs(y - other) < 15 for other in ends):
            y += 15
        ends.append(y)
        parts.append(text(left + room + 8, y + 4, name, class_=f"end {class_}"))
    return drawing(_WIDTH, height, parts, label=label, class_="chart")


def heat(map_: HeatMap, *, label: str) -> Markup:
    """A heat map of P(milestone k done by step t): a row per milestone, a column per step, darker for higher values."""
    left, right, top = 44.0, 12.0, 6.0
    columns = len(map_.rows[0]) if map_.rows else 0
    wide = (_WIDTH - left - right) / max(columns, 1)
    high = 28.0
    parts: list[Markup] = []
    for k, row in enumerate(map_.rows):
        y = top + k * high
        parts.append(text(left - 8, y + high / 2 + 4, f"k={k + 1}", class_="tick", anchor="end"))
        for t, share in enumerate(row):
            title = f"milestone {k + 1} within {t} steps: {share:.0%} of {map_.traces[k]} traces"
            parts.append(
                element(
                    "rect",
                    element("title", title),
                    x=left + t * wide,
                    y=y,
                    width=max(wide - 1.5, 1),
                    height=high - 2,
                    rx=2,
                    class_="heat",
                    fill_opacity=round(0.05 + 0.95 * share, 3),
                )
            )
            if wide >= 26:
                shade = "on" if share > 0.66 else "off"
                middle = left + t * wide + (wide - 1.5) / 2
                parts.append(
                    text(middle, y + high / 2 + 3, f"{100 * share:.0f}", class_=f"cell {shade}", anchor="middle")
                )
    foot = top + len(map_.rows) * high
    parts += [
        text(left + t * wide + wide / 2, foot + 14, str(t), class_="tick", anchor="middle") for t in _ticks(columns - 1)
    ]
    parts.append(text((left + _WIDTH - right) / 2, foot + 28, "within t steps", class_="tick", anchor="middle"))
    return drawing(_WIDTH, foot + 34, parts, label=label, class_="chart")


def _ticks(last: int) -> range:
    """About a dozen round numbers from 0 to *last*."""
    for apart in (1, 2, 5, 10, 20, 50, 100, 200, 500):
        if last / apart <= 12:
            return range(0, last + 1, apart)
    return range(0, last + 1, 1000)
