"""A clock that stops during approval, so that a person's time does not count against the step deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

from playwright.async_api import TimeoutError as PlaywrightTimeout

T = TypeVar("T")
_TICK_S = 0.05
"""Interval at which a stopped clock is checked."""


def _now() -> float:
    return asyncio.get_running_loop().time()


class StepClock:
    """Measures seconds of the running event loop's clock, without the time in which it was stopped."""

    def __init__(self, *, may_stop: bool = False) -> None:
        self.may_stop = may_stop
        """False: it never stops."""
        self.stops = 0
        """Number of stops so far."""
        self._stopped_at: float | None = None
        self._left_out = 0.0

    def now(self) -> float:
        return (_now() if self._stopped_at is None else self._stopped_at) - self._left_out

    @contextmanager
    def stopped(self) -> Generator[None]:
        """Stops the clock during the block; must not be nested."""
        self._stopped_at = _now()
        self.stops += 1
        try:
            yield
        finally:
            self._left_out += _now() - self._stopped_at
            self._stopped_at = None

    async def wait(self, futures: set[asyncio.Future[Any]], seconds: float) -> None:
        """Waits until one of *futures* is done, at most *seconds* of this clock."""
        end = self.now() + seconds
        while not any(future.done() for future in futures) and (left := end - self.now()) > 0:
            timeout = max(left, _TICK_S) if self.may_stop else left
            await asyncio.wait(futures, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)

    async def call(self, call: Callable[[float], Coroutine[Any, Any, T]], seconds: float) -> T:
        """Runs a Playwright call, whose argument is the timeout in milliseconds. If the clock may stop, the call gets
        no timeout (0), and Playwright's timeout error is raised after *seconds* of this clock."""
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
