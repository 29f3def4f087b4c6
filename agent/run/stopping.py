"""Stops a run on Ctrl-C, on SIGTERM and by an event: it ends at the next step boundary and can be resumed."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Final
from weakref import WeakKeyDictionary

from agent.run.run_executor import RunExecutor
from envs.core.errors import EnvError

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_CALLBACKS: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, list[Callable[[], None]]]] = WeakKeyDictionary()
GRACE_S = 10.0
"""Seconds that running steps get to commit after the first signal. A second signal cancels them."""


async def run_until_stopped(executor: RunExecutor) -> None:
    """Executes the run until it ends, a signal arrives or `executor.stopping` is set. Unfinished episodes have no
    footer then.

    Raises the first error of the run as a whole (BadInput, BrowserMissing, a full disk), unwrapped.
    """
    running = asyncio.create_task(executor.run())

    def stop() -> None:
        if executor.stopping.is_set():
            running.cancel()
        executor.stopping.set()

    with on_signals(stop):
        stopped = asyncio.create_task(executor.stopping.wait())
        try:
            await asyncio.wait({running, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                await asyncio.wait({running}, timeout=GRACE_S)
                running.cancel()
            await running
        except asyncio.CancelledError:
            if not executor.stopping.is_set():
                raise
        except BaseExceptionGroup as group:
            raise _first(group) from None
        finally:
            stopped.cancel()
            if not running.done():
                running.cancel()
                await asyncio.wait({running}, timeout=GRACE_S)


@contextmanager
def on_signals(stop: Callable[[], None]) -> Generator[None]:
    """Calls *stop* in the event loop for each SIGINT and SIGTERM in this context. Contexts may overlap, as those of
    concurrent runs do: a signal calls all of them. Where signals cannot be handled (another thread), nothing is
    called."""
    loop = asyncio.get_running_loop()
    callbacks = _CALLBACKS.setdefault(loop, [])
    callbacks.append(stop)
    if len(callbacks) == 1:
        with suppress(ValueError, RuntimeError, NotImplementedError):
            for number in _SIGNALS:
                loop.add_signal_handler(number, lambda: [callback() for callback in tuple(callbacks)])
    try:
        yield
    finally:
        callbacks.remove(stop)
        if not callbacks:
            del _CALLBACKS[loop]
            with suppress(ValueError, RuntimeError, NotImplementedError):
                for number in _SIGNALS:
                    loop.remove_signal_handler(number)


@contextmanager
def interruptible() -> Generator[None]:
    """Lets Ctrl-C interrupt a coroutine's work that never awaits. asyncio's own handler would wait for the next await.
    Does nothing in other threads and in processes that ignore the signal."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before == signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Returns the first error in the group that is no group. This project's own errors take precedence."""
    plain = list(_leaves(group))
    return next((error for error in plain if isinstance(error, EnvError)), plain[0])


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
