"""Time in tests: bounds that hold on a loaded machine, and a clock of the event loop that a test advances.

No test may depend on the speed of the machine: it waits for an event (:func:`until`, :func:`until_async` where another
process has none to offer), it injects a clock (:class:`LoopClock`), or its bound scales with the machine
(:class:`Bound`).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

HANG_S: Final = 500.0
"""Bounds what must end at all. Far above any duration that a loaded machine causes, below the timeout of a test."""
POLL_S: Final = 0.02
WORK: Final = 400_000
"""Loop turns of the work that measures the machine: some 10 ms of CPU time."""


def until(holds: Callable[[], bool], seconds: float = HANG_S) -> bool:
    """Polls until *holds* is true, for what other processes do; False after *seconds*."""
    end, pause = time.monotonic() + seconds, threading.Event()
    while not holds():
        if time.monotonic() > end:
            return False
        pause.wait(POLL_S)
    return True


async def until_async(holds: Callable[[], bool], seconds: float = HANG_S) -> bool:
    """As :func:`until`, without blocking the event loop."""
    return await asyncio.to_thread(until, holds, seconds)


def slowdown() -> float:
    """How many times longer than its CPU time a fixed piece of work takes now; at least 1."""
    wall, cpu = time.perf_counter(), time.thread_time()
    for _ in range(WORK):
        pass
    return max(1.0, (time.perf_counter() - wall) / max(time.thread_time() - cpu, 1e-6))


class Bound:
    """Asserts that its block ends within *seconds*, plus *spare_s* times the slowdown of the machine.

    *seconds* is what the code under test bounds by its own clock; *spare_s* is what an idle machine needs beyond it.
    """

    def __init__(self, seconds: float, spare_s: float) -> None:
        self._seconds, self._spare_s = seconds, spare_s
        self._before, self._began = 1.0, 0.0

    def __enter__(self) -> Self:
        self._before = slowdown()
        self._began = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        took = time.monotonic() - self._began
        if kind is None:
            limit = self._seconds + self._spare_s * max(self._before, slowdown())
            assert took < limit, f"took {took:.1f} s, more than {limit:.1f} s"


class LoopClock:
    """The clock of a running event loop: real time plus what a test adds. It is a :class:`models.transport.Clock` too.

    clock = LoopClock()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", clock.now)   # timers of the loop follow it

    A deadline of minutes then passes in milliseconds where something hangs, and a loaded machine does not reach it.
    """

    STEP_S: Final = 0.5

    def __init__(self) -> None:
        self._real = asyncio.get_running_loop().time
        self._added_s = 0.0

    def now(self) -> float:
        return self._real() + self._added_s

    async def sleep(self, seconds: float) -> None:
        """Returns at once, *seconds* later by this clock."""
        self._added_s += seconds
        await asyncio.sleep(0)

    async def pass_until(self, holds: Callable[[], bool] = lambda: False) -> None:
        """Lets time pass in steps until *holds* is true; due timers of the loop run in between."""
        while not holds():
            await self.sleep(self.STEP_S)
