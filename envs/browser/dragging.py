"""Drags with the mouse, between two points or two elements."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from playwright.async_api import Mouse

from envs.core.actions import ActionResult
from envs.observer.target import Point, Target

DRAG_STEPS: Final = 8
LIFT_PX: Final = 12
"""Distance after which pages take a held button for a drag."""

Mark = Callable[[Point], Awaitable[None]]
"""Called right before the button is pressed at a point."""


async def drag(mouse: Mouse, start: Point, end: Point) -> None:
    """Drags from *start* to *end*, CSS pixels of the viewport."""
    await mouse.move(*start)
    await mouse.down()
    try:
        await _carry(mouse, end)
    finally:
        await mouse.up()


async def drag_onto(mouse: Mouse, source: Target, target: Target, mark: Mark) -> ActionResult | None:
    """Drags *source* onto *target*; a result if one of them cannot be hit.

    If the viewport does not hold both, the page is scrolled while the button is held."""
    start = await source.point(mouse.move)
    if isinstance(start, ActionResult):
        return start
    end = await target.point()
    if isinstance(end, ActionResult):
        return end
    together = await source.point_now()  # to show the target may have moved the source
    if together is not None:
        await mark(together)
        await drag(mouse, together, end)
        return None
    start = await source.point(mouse.move)
    if isinstance(start, ActionResult):
        return start
    await mark(start)
    return await _drag_and_scroll(mouse, start, target)


async def _drag_and_scroll(mouse: Mouse, start: Point, target: Target) -> ActionResult | None:
    await mouse.move(*start)
    await mouse.down()
    try:
        await mouse.move(start.x + LIFT_PX, start.y + LIFT_PX, steps=2)
        end = await target.point()
        if isinstance(end, ActionResult):
            return end
        await _carry(mouse, end)
    finally:
        await mouse.up()
    return None


async def _carry(mouse: Mouse, end: Point) -> None:
    await mouse.move(*end, steps=DRAG_STEPS)
    await mouse.move(*end)  # HTML5 drag and drop needs a second move to accept the drop
