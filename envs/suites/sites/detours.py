"""Demonstrations that go astray and come back: now and then a wrong link is followed, and the mistake taken back.

A policy that learns only from clean episodes never sees what to do on a page where it should not be.
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
"""Links that do something: a detour must only look."""


class Detouring:
    """A stage that plays in another and puts a detour before a click on a link, with probability *rate*.

    Never after something was typed on the page: going back would lose it.
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
        wrong = [one for one in page.elements if _harmless(one, target)]
        if not wrong or self._rng.random() >= self._rate:
            return await self._stage.execute(action)
        return await self._stage.execute(Click(ref=await self._and_back(self._rng.choice(wrong), target, page.url)))

    async def _and_back(self, wrong: Element, target: Element, url: str) -> int:
        """Follows the wrong link, comes back, and finds the target again."""
        result = await self._stage.execute(Click(ref=wrong.ref))
        page = await self.observe()
        if result.status is Status.OK and page.url != url:
            self.detours += 1
            await self._stage.execute(Back())
            page = await self.observe()
        again = next((one for one in page.elements if one.key == target.key), None)
        if again is None:
            raise Unsolvable(f"{target.key.role} {target.key.name!r} is gone after a detour to {wrong.key.name!r}")
        if not again.shown:
            await self._stage.execute(Find(text=again.key.name))
        return again.ref


def _harmless(element: Element, target: Element) -> bool:
    key = element.key
    return (
        key.role == "link" and element.shown and bool(key.name) and key != target.key and not _LEAVES.search(key.name)
    )
