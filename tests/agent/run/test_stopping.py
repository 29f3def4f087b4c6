"""Ctrl-C during work that never awaits."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time

import pytest

from agent.run.stopping import interruptible, on_signals
from tests.timing import HANG_S


class Work:
    """Work that does not give way, and a signal that is sent while it runs."""

    def __init__(self) -> None:
        self.begun, self.signalled = threading.Event(), threading.Event()

    async def learns(self) -> None:
        """Ends once the signal was sent."""
        with interruptible():
            self.begun.set()
            end = time.monotonic() + HANG_S
            while not self.signalled.is_set() and time.monotonic() < end:
                pass

    async def learns_on(self) -> None:
        """Ends by the signal only."""
        with interruptible():
            self.begun.set()
            end = time.monotonic() + HANG_S
            while time.monotonic() < end:
                pass

    def send(self) -> None:
        self.begun.wait(HANG_S)
        os.kill(os.getpid(), signal.SIGINT)
        self.signalled.set()


def test_an_interrupt_stops_it_at_once_and_the_handler_of_before_is_back() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background ignores it
    work = Work()
    sender = threading.Thread(target=work.send)
    sender.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(work.learns_on())
        assert signal.getsignal(signal.SIGINT) == signal.default_int_handler
    finally:
        sender.join()
        signal.signal(signal.SIGINT, before)


def test_a_process_that_ignores_the_signal_still_ignores_it_afterwards() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    work = Work()
    sender = threading.Thread(target=work.send)
    sender.start()
    try:
        asyncio.run(work.learns())
        assert work.signalled.is_set() and signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        sender.join()
        signal.signal(signal.SIGINT, before)


def test_another_thread_is_left_alone() -> None:
    before, work = signal.getsignal(signal.SIGINT), Work()
    work.signalled.set()
    thread = threading.Thread(target=lambda: asyncio.run(work.learns()))
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGINT) == before


async def test_a_signal_reaches_every_run_that_is_left_and_no_longer_those_that_ended() -> None:
    calls: list[str] = []
    came = asyncio.Event()

    def stop(name: str) -> None:
        calls.append(name)
        came.set()

    with on_signals(lambda: stop("outer")):
        with on_signals(lambda: stop("inner")):
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.wait_for(came.wait(), HANG_S)
        came.clear()
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(came.wait(), HANG_S)
    assert calls == ["outer", "inner", "outer"]
