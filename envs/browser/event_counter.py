"""Counts page events, such as opened tabs, and waits for the next one."""

from __future__ import annotations

import asyncio


class EventCounter:
    def __init__(self) -> None:
        self.count = 0
        """Number of events so far."""
        self._next = asyncio.Event()

    def add(self) -> None:
        self.count += 1
        self._next.set()

    async def until(self, count: int, seconds: float) -> None:
        """Waits until the total is *count*, for at most *seconds*."""
        try:
            async with asyncio.timeout(seconds):
                while self.count < count:
                    self._next.clear()
                    await self._next.wait()
        except TimeoutError:
            return
