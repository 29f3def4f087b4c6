"""Simulates outages without waiting: a clock for retries that advances at once.

clock = OutageClock(seconds=30)
monkeypatch.setattr(transport, "CLOCK", clock)
async with misbehaving_server(script) as server:   # the script closes the port with GoAway()
    clock.watch(server)                            # ... and 30 s later by this clock it is opened again
"""

from __future__ import annotations

import math
import time

from tests.models.providers.servers import MisbehavingServer


class OutageClock:
    """A :class:`models.transport.Clock`: real time plus the time slept."""

    def __init__(self, seconds: float = math.inf) -> None:
        """*seconds*: how long the server that is watched stays away."""
        self.slept = 0.0
        self.waits: list[float] = []
        self.away_s = 0.0
        """How long the server was away by this clock; 0 until it came back."""
        self._seconds = seconds
        self._server: MisbehavingServer | None = None
        self._left_at: float | None = None

    def watch(self, server: MisbehavingServer) -> None:
        self._server = server

    def now(self) -> float:
        return time.monotonic() + self.slept

    async def sleep(self, seconds: float) -> None:
        """Returns at once. A port that was to be closed is closed by then, and open again where its time is over."""
        if self._server is not None and self._left_at is None:
            await self._server.gone.wait()
            self._left_at = self.now()
        self.waits.append(seconds)
        self.slept += seconds
        if self._server is not None and self._left_at is not None and self.now() - self._left_at >= self._seconds:
            self.away_s = self.now() - self._left_at
            await self._server.come_back()
            self._seconds = math.inf
