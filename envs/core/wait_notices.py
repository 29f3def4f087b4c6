"""Logs the start of long waits.

Handlers of the logger `mira.waiting` receive the messages at level INFO; without a handler nothing is printed. The
package `models` cannot import this module and uses the same logger name.
"""

from __future__ import annotations

import logging
from typing import Final

WAITING: Final = "mira.waiting"
"""The logger's name."""


def waiting_for(task: str) -> None:
    """Logs that *task*, which may take long, has begun, e.g. `starting Chromium`. Thread-safe."""
    logging.getLogger(WAITING).info("%s", task)
