"""Ctrl-C and SIGTERM: the run ends at the next step boundary and can be resumed."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager

from agent.run.run_executor import RunExecutor
from envs.core.errors import EnvError

GRACE_S = 10.0
"""Seconds that running steps get to commit after the first signal; a second signal cuts them short."""


async def play_until_stopped(sitting: RunExecutor) -> None:
    """Plays to the end, or until a signal: then unfinished episodes are left without a footer.

    Raises the first error that concerns the run as a whole (BadInput, BrowserMissing, a full disk), unwrapped.
    """
    playing = asyncio.create_task(sitting.play())
    with _signals(sitting.stopping, playing):
        stopped = asyncio.create_task(sitting.stopping.wait())
        try:
            await asyncio.wait({playing, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if not playing.done():
                await asyncio.wait({playing}, timeout=GRACE_S)
                playing.cancel()
            await playing
        except asyncio.CancelledError:
            if not sitting.stopping.is_set():
                raise
        except BaseExceptionGroup as group:
            raise _first(group) from None
        finally:
            stopped.cancel()
            if not playing.done():
                playing.cancel()
                await asyncio.wait({playing}, timeout=GRACE_S)


@contextmanager
def _signals(stopping: asyncio.Event, playing: asyncio.Task[None]) -> Generator[None]:
    """Handles SIGINT and SIGTERM while inside; where that is not possible (another thread), leaves them alone."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if stopping.is_set():
            playing.cancel()
        stopping.set()

    handled: list[signal.Signals] = []
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop)
            handled.append(number)
    except (ValueError, RuntimeError, NotImplementedError):
        pass
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


@contextmanager
def interruptible() -> Generator[None]:
    """Inside a coroutine, around work that never awaits: Ctrl-C stops it at once, of which asyncio's own handler would
    only take note. Another thread, and a process that ignores the signal, are left alone."""
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
    """The first plain error inside, one of this project's own before any other."""
    plain = list(_leaves(group))
    return next((error for error in plain if isinstance(error, EnvError)), plain[0])


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
