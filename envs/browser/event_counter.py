"""Counts what a page does by itself, such as opening a tab, so that one can wait for the next of it."""

from __future__ import annotations

import asyncio


class EventCounter:
    def __init__(self) -> None:
        self.count = 0
        """So far."""
        self._next = asyncio.Event()

    def add(self) -> None:
        self.count += 1
        self._next.set()

    async def until(self, count: int, seconds: float) -> None:
        """Returns when there are *count* in all, at most *seconds* later."""
        try:
            async with asyncio.timeout(seconds):
                while self.count < count:
                    self._next.clear()
                    await self._next.wait()
        except TimeoutError:
            return
