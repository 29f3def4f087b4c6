"""Adds detours to demonstrations: now and then the oracle follows a wrong link and goes back.

A policy that learns from clean episodes only never sees how to recover on a wrong page.
"""

from __future__ import annotations

import random
import re

from envs.core.actions import Action, ActionResult, Back, Click, Find, Status, Type
from envs.core.observation import Element, Observation
from envs.suites.sites.page_driver import Stage, Unsolvable

_LEAVES = re.compile(
    r"log.?(out|in)|sign.?(out|in)|delete|remove|mark|move|vote|like|follow|notif|default|download|add|export",
    re.IGNORECASE,
)
"""Names of links with side effects. A detour never follows them."""


class DetourStage:
    """Wraps a stage and takes a detour before a click on a link, with probability *rate*.

    It takes no detour after text was typed on the page, because going back would lose the text.
    """

    def __init__(self, stage: Stage, rng: random.Random, rate: float = 0.25) -> None:
        self._stage = stage
        self._rng = rng
        self._rate = rate
        self._page: Observation | None = None
        self._typed_on = ""
        self.detours = 0

    async def observe(self) -> Observation:
        self._page = await self._stage.observe()
        return self._page

    async def execute(self, action: Action) -> ActionResult:
        page = self._page
        if isinstance(action, Type) and page is not None:
            self._typed_on = page.url
        target = page.element(action.ref) if page is not None and isinstance(action, Click) else None
        if page is None or target is None or target.key.role != "link" or page.url == self._typed_on:
            return await self._stage.execute(action)
        wrong = [one for one in page.elements if is_harmless_link(one) and one.key != target.key]
        if not wrong or self._rng.random() >= self._rate:
            return await self._stage.execute(action)
        ref = await self._detour(self._rng.choice(wrong), target, page.url)
        return await self._stage.execute(Click(ref=ref))

    async def _detour(self, wrong: Element, target: Element, url: str) -> int:
        """Follows the wrong link, goes back and returns the new number of the target."""
        result = await self._stage.execute(Click(ref=wrong.ref))
        page = await self.observe()
        if result.status is Status.OK and page.url != url:
            self.detours += 1
            await self._stage.execute(Back())
            page = await self.observe()
        again = next((element for element in page.elements if element.key == target.key), None)
        if again is None:
            raise Unsolvable(f"{target.key.role} {target.key.name!r} is gone after a detour to {wrong.key.name!r}")
        if not again.shown:
            await self._stage.execute(Find(text=again.key.name))
        return again.ref


def is_harmless_link(element: Element) -> bool:
    """Whether *element* is a link that changes nothing on the server, so that going back undoes it."""
    key = element.key
    return key.role == "link" and element.shown and bool(key.name) and not _LEAVES.search(key.name)
