"""Ctrl-C during work that never awaits."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time

import pytest

from agent.run.stopping import interruptible


async def _learns(seconds: float) -> None:
    with interruptible():
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(0.01)  # noqa: ASYNC251 - what is tested is work that does not give way


def _interrupted_after(seconds: float) -> float:
    """Duration of five seconds of work that is interrupted after *seconds*."""
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(_learns(5.0))
    return time.monotonic() - begun


def test_an_interrupt_stops_it_at_once_and_the_handler_of_before_is_back() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background ignores it
    try:
        assert _interrupted_after(0.2) < 3.0
        assert signal.getsignal(signal.SIGINT) == signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_process_that_ignores_the_signal_still_ignores_it_afterwards() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        asyncio.run(_learns(0.3))
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_is_left_alone() -> None:
    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=lambda: asyncio.run(_learns(0.01)))
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGINT) == before
