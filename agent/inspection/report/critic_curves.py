"""Draws the critics' curves of an episode below its time line: V and P of the state before each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from markupsafe import Markup

from agent.inspection.critic_values import StateValues
from agent.inspection.report.svg import element, line, text

HEIGHT: Final = 92.0
"""Pixels that the curves take below the milestones."""
_TOP, _PLOT = 16.0, 64.0


def critic_curves(
    values: Sequence[StateValues], where: Mapping[int, float], top: float, left: float, right: float
) -> list[Markup]:
    """The curves, from *top* down. *where*: the centre of each step by its number; *left*, *right*: of the plot."""
    low = top + _TOP + _PLOT
    parts = [line(left, low - _PLOT * share, right, low - _PLOT * share, class_="grid") for share in (0.0, 0.5, 1.0)]
    parts += [
        text(left - 6, low - _PLOT * share + 4, label, class_="tick", anchor="end")
        for share, label in ((0.0, "0"), (1.0, "1"))
    ]
    for name, label, y in (("value", "V: expected success", 26.0), ("potential", "P: progress", 46.0)):
        points = [
            (where[state.step], getattr(state, name), state.step)
            for state in values
            if state.step in where and getattr(state, name) is not None
        ]
        if not points:
            continue
        parts.append(text(left - 20, top + _TOP + y, label, class_=f"goal {name}", anchor="end"))
        path = " ".join(f"{x:.1f},{low - _PLOT * min(max(share, 0.0), 1.0):.1f}" for x, share, _ in points)
        parts.append(element("polyline", points=path, class_=f"curve {name}"))
        parts += [
            element(
                "circle",
                element("title", f"{name} before step {step}: {share:.3f}"),
                cx=x,
                cy=low - _PLOT * min(max(share, 0.0), 1.0),
                r=3,
                class_=f"point {name}",
            )
            for x, share, step in points
        ]
    return parts
