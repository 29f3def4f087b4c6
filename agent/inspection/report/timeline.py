"""Draws an episode's time line as SVG: steps from left to right, milestones and critics' curves below, key step and
loop above."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from agent.inspection.critic_values import StateValues
from agent.inspection.report.critic_curves import HEIGHT, critic_curves
from agent.inspection.report.svg import drawing, element, line, text
from agent.inspection.report.views import MilestoneView, StepView
from envs.core.trace import Failure, Loop

_LABEL: Final = 290.0
_ROW: Final = 26.0
_LABEL_CHARS: Final = 40


def timeline(
    anchor: str,
    steps: Sequence[StepView],
    milestones: Sequence[MilestoneView],
    failure: Failure | None,
    values: Sequence[StateValues] = (),
) -> Markup:
    """Draws the time line. Steps link to `#ANCHOR.STEP`; a milestone's cells are lit from the step that reached it.
    *values*: of critics, drawn as curves."""
    loop, key_step = (failure.loop, failure.key_step) if failure else (None, None)
    cell = _cell(len(steps))
    arcs = 40.0 if loop is not None else 0.0
    flag = 20.0 if key_step is not None else 0.0
    top = arcs + flag + 6
    first_row = top + 30
    parts: list[Markup] = []
    where = {step.number: _LABEL + cell * (place + 0.5) for place, step in enumerate(steps)}
    if loop is not None:
        parts += _loop(loop, where, arcs, top, key_step)
    every = next(n for n in (1, 5, 10, 25, 50, 100, 1000) if cell * n >= 22)
    for place, step in enumerate(steps):
        named = step.number % every == 0 or place == 0 or step.number == key_step
        parts.append(_step(anchor, step, where[step.number], top, cell, named=named, is_key=step.number == key_step))
    for row, milestone in enumerate(milestones):
        parts += _milestone(milestone, steps, first_row + row * _ROW, cell)
    height = first_row + len(milestones) * _ROW + 4
    if values:
        parts += critic_curves(values, where, height, _LABEL, _LABEL + cell * len(steps))
        height += HEIGHT
    width = _LABEL + cell * max(len(steps), 1) + 40
    return drawing(width, height, parts, label=f"time line of {len(steps)} steps", class_="timeline")


def _cell(steps: int) -> float:
    """Width of a step in pixels; steps of long episodes are narrower, and the time line scrolls."""
    return 44.0 if steps <= 12 else 30.0 if steps <= 30 else 14.0 if steps <= 120 else 7.0


def _step(anchor: str, step: StepView, x: float, y: float, cell: float, *, named: bool, is_key: bool) -> Markup:
    radius = min(11.0, cell / 2 - 1)
    parts = [
        element("title", f"step {step.number}: {step.action} ({step.status})"),
        element("circle", cx=x, cy=y + 11, r=radius, class_="disc"),
    ]
    if named and cell >= 14:
        parts.append(text(x, y + 15, str(step.number), class_="number", anchor="middle"))
    elif named:
        parts.append(text(x, y + 27, str(step.number), class_="tick", anchor="middle"))
    if is_key:
        parts.append(text(x, y - 6, "key step", class_="flag", anchor="middle"))
        parts.append(element("circle", cx=x, cy=y + 11, r=radius + 3.5, class_="ring"))
    return element("a", *parts, href=f"#{anchor}.{step.number}", class_=f"step {step.status}{' key' if is_key else ''}")


def _milestone(milestone: MilestoneView, steps: Sequence[StepView], y: float, cell: float) -> list[Markup]:
    label = milestone.text if len(milestone.text) <= _LABEL_CHARS else milestone.text[: _LABEL_CHARS - 1] + "…"
    lit = " on" if milestone.achieved else ""
    parts = [
        element(
            "g", element("title", milestone.text), text(_LABEL - 14, y + 15, label, class_="goal" + lit, anchor="end")
        )
    ]
    for place in range(len(steps)):
        done = milestone.reached is not None and place + 1 >= milestone.reached
        new = done and max(milestone.reached or 1, 1) == place + 1
        class_ = "cell new" if new else "cell on" if done else "cell"
        x = _LABEL + place * cell
        parts.append(
            element("rect", x=x + 1, y=y + 3, width=cell - 2, height=_ROW - 8, rx=min(4, cell / 4), class_=class_)
        )
    if milestone.reached is not None and not milestone.achieved:
        parts.append(text(_LABEL + len(steps) * cell + 6, y + 16, "lost", class_="lost"))
    return parts


def _loop(loop: Loop, where: dict[int, float], foot: float, top: float, key_step: int | None) -> list[Markup]:
    """Draws an arc on *foot* over each round of the loop, with posts down to the steps and a label.

    If other steps lie between the rounds, one arc covers them all."""
    parts: list[Markup] = []
    posts: set[int] = set()
    rounds = [(loop.entry, loop.last)] if loop.last is not None else _rounds(loop)
    for start, until in rounds:
        end = min(until, max(where, default=0))
        if start in where and end in where and start != end:
            x1, x2 = where[start], where[end]
            lift = min(26.0, 8 + (x2 - x1) / 4)
            arc = f"M {x1:.1f} {foot} Q {(x1 + x2) / 2:.1f} {foot - 2 * lift:.1f} {x2:.1f} {foot}"
            parts.append(element("path", d=arc, class_="loop"))
            posts |= {start, end}
    # The label "key step" takes the place of its post.
    parts += [line(where[step], foot, where[step], top - 3, class_="loop") for step in sorted(posts - {key_step})]
    label = f"loop: {loop.period} step{'s' if loop.period > 1 else ''} × {loop.repetitions}"
    parts.append(text(_LABEL - 14, foot - 2, label, class_="loop-label", anchor="end"))
    return parts


def _rounds(loop: Loop) -> list[tuple[int, int]]:
    """The first step of each round, with the first step of the next."""
    starts = [loop.entry + round_ * loop.period for round_ in range(loop.repetitions)]
    return [(start, start + loop.period) for start in starts]
