"""Calls into a page with a timeout, which a dialog, a crash or a flood of dialogs interrupts."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Literal, TypeVar

from envs.browser.step_clock import StepClock
from envs.browser.tabs import OpenTab

T = TypeVar("T")
Interruption = Literal["dialog", "crash", "flood"]


class Interrupted(Exception):
    """A call into the page was interrupted."""

    def __init__(self, kind: Interruption, tab: OpenTab) -> None:
        super().__init__(kind)
        self.kind: Interruption = kind
        self.tab = tab


class Races:
    """Runs one call at a time; an interruption between two calls interrupts the next one."""

    def __init__(self, clock: StepClock) -> None:
        self._clock = clock
        self._running: asyncio.Future[Interrupted] | None = None
        self._pending: Interrupted | None = None

    def interrupt(self, kind: Interruption, tab: OpenTab) -> None:
        if self._running is not None and not self._running.done():
            self._running.set_result(Interrupted(kind, tab))
        elif kind != "dialog":  # an open dialog stays open, so it need not be stored
            self._pending = Interrupted(kind, tab)

    def forget(self, tab: OpenTab) -> None:
        """Discards a pending interruption of a closed tab."""
        if self._pending is not None and self._pending.tab is tab:
            self._pending = None

    async def call(self, call: Coroutine[Any, Any, T], seconds: float) -> T:
        """Returns the call's result; the call is cancelled if :meth:`race` raises."""
        task = asyncio.ensure_future(call)
        try:
            return await self.race(task, seconds)
        finally:
            cancel(task)

    async def race(self, task: asyncio.Task[T], seconds: float) -> T:
        """Returns the task's result. Raises TimeoutError after *seconds* of the step clock, or Interrupted; the task
        then keeps running."""
        if self._pending is not None:
            pending, self._pending = self._pending, None
            raise pending
        running = self._running = asyncio.get_running_loop().create_future()
        try:
            await self._clock.wait({task, running}, seconds)
            if running.done():
                raise running.result()
            if not task.done():
                raise TimeoutError
            return task.result()
        finally:
            running.cancel()
            self._running = None


def cancel(task: asyncio.Task[Any]) -> None:
    """Cancels a task and ignores its result and its exception."""
    task.cancel()
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
