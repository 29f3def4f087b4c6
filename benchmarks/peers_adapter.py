"""Adapter of the observer for the comparison with other agents' observations: `observe` is timed, `addressable` is not.

An element counts as addressable only if its ref, taken from the text or from `find`, resolves to the very element
that carries the marker, and the observer has a point for a click on it (or says that it is disabled).
"""

from __future__ import annotations

import re

from playwright.async_api import Page

from envs.core.actions import ActionResult, Status
from envs.core.settings import ObserveSettings
from envs.observer.observer import Observer

_CONTROL = re.compile(r'\[(\d+)\] \S+ "((?:[^"\\]|\\.)*)"')
_MARKER = re.compile(r"zq\d{4}")
_observers: dict[Page, Observer] = {}


async def observe(page: Page) -> str:
    """The text of one observation, with the settings a run has by default."""
    if page not in _observers:
        _observers[page] = Observer(page, ObserveSettings())
    return (await _observers[page].observe()).text


async def addressable(page: Page, text: str, markers: list[str]) -> int:
    """How many of the marked elements can be acted on through the text plus `find`."""
    observer = _observers[page]
    refs = _refs(await observe(page))
    count = 0
    for marker in markers:
        if marker not in refs:
            refs.update(_refs(await observer.find(marker)))
        if marker in refs and await _is_usable(observer, refs[marker], marker):
            count += 1
    return count


def _refs(text: str) -> dict[str, int]:
    return {marker: int(ref) for ref, name in _CONTROL.findall(text) for marker in _MARKER.findall(name)}


async def _is_usable(observer: Observer, ref: int, marker: str) -> bool:
    target = await observer.resolve(ref)
    if isinstance(target, ActionResult) or await target.call("function () { return this.dataset.m; }") != marker:
        return False
    point = await target.point()
    return not isinstance(point, ActionResult) or point.status is Status.DISABLED
