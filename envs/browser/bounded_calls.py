"""Calls into a page that end in time, or earlier when a dialog, a crash or a flood of dialogs overtakes them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Literal, TypeVar

from envs.browser.step_clock import StepClock
from envs.browser.tabs import OpenTab

T = TypeVar("T")
Interruption = Literal["dialog", "crash", "flood"]


class Interrupted(Exception):
    """A call into the page was overtaken."""

    def __init__(self, kind: Interruption, tab: OpenTab) -> None:
        super().__init__(kind)
        self.kind: Interruption = kind
        self.tab = tab


class Races:
    """Runs one call at a time; what happens between two calls is met by the next one."""

    def __init__(self, clock: StepClock) -> None:
        self._clock = clock
        self._running: asyncio.Future[Interrupted] | None = None
        self._unmet: Interrupted | None = None

    def interrupt(self, kind: Interruption, tab: OpenTab) -> None:
        if self._running is not None and not self._running.done():
            self._running.set_result(Interrupted(kind, tab))
        elif kind != "dialog":  # an open dialog needs no memory: it stays open
            self._unmet = Interrupted(kind, tab)

    def forget(self, tab: OpenTab) -> None:
        """The tab is gone; what happened to it is of no interest any more."""
        if self._unmet is not None and self._unmet.tab is tab:
            self._unmet = None

    async def call(self, call: Coroutine[Any, Any, T], seconds: float) -> T:
        """The call's result; it is cancelled where :meth:`race` raises."""
        task = asyncio.ensure_future(call)
        try:
            return await self.race(task, seconds)
        finally:
            let_go(task)

    async def race(self, task: asyncio.Task[T], seconds: float) -> T:
        """The task's result. Raises TimeoutError after *seconds* of the clock, and Interrupted; it then runs on."""
        if self._unmet is not None:
            unmet, self._unmet = self._unmet, None
            raise unmet
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


def let_go(task: asyncio.Task[Any]) -> None:
    """Cancels a call that nobody waits for any more; how it ends is of no interest."""
    task.cancel()
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
