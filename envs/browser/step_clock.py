"""A clock that stands still while a person is asked, so that their time does not count against a step's deadline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

from playwright.async_api import TimeoutError as PlaywrightTimeout

T = TypeVar("T")
_TICK_S = 0.05
"""How soon it is seen that the clock goes again."""


class StepClock:
    """Seconds since an arbitrary moment, those left out in which it stood still."""

    def __init__(self, *, may_stop: bool = False) -> None:
        self.may_stop = may_stop
        """False: it never stands still."""
        self.stops = 0
        """How often it has been stopped so far."""
        self._stopped_at: float | None = None
        self._left_out = 0.0

    def now(self) -> float:
        return (time.monotonic() if self._stopped_at is None else self._stopped_at) - self._left_out

    @contextmanager
    def stopped(self) -> Generator[None]:
        """It stands still inside; not to be nested."""
        self._stopped_at = time.monotonic()
        self.stops += 1
        try:
            yield
        finally:
            self._left_out += time.monotonic() - self._stopped_at
            self._stopped_at = None

    async def wait(self, waited_for: set[asyncio.Future[Any]], seconds: float) -> None:
        """Returns when one of them is done, or after *seconds* of this clock."""
        end = self.now() + seconds
        while not any(one.done() for one in waited_for) and (left := end - self.now()) > 0:
            bound = max(left, _TICK_S) if self.may_stop else left
            await asyncio.wait(waited_for, timeout=bound, return_when=asyncio.FIRST_COMPLETED)

    async def call(self, call: Callable[[float], Coroutine[Any, Any, T]], seconds: float) -> T:
        """A call of Playwright's, given its timeout in milliseconds. Where the clock may stand still, the call has none
        of its own (0), and Playwright's error is raised after *seconds* of this clock."""
        if not self.may_stop:
            return await call(seconds * 1000)
        task = asyncio.ensure_future(call(0))
        try:
            await self.wait({task}, seconds)
            if not task.done():
                raise PlaywrightTimeout(f"Timeout {seconds * 1000:.0f}ms exceeded.")
            return await task
        finally:
            if not task.done():
                task.cancel()
                task.add_done_callback(lambda done: done.cancelled() or done.exception())
