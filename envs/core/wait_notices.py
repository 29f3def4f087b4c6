"""Notices of what a program waits for, sent to listeners when the wait begins.

The listener is a handler of the logger `mira.waiting`, at level INFO; without one nothing is printed. The package
`models` does not know this one and logs to the same name.
"""

from __future__ import annotations

import logging
from typing import Final

WAITING: Final = "mira.waiting"
"""The logger's name."""


def waiting_for(what: str) -> None:
    """Says that *what* has begun and takes its time, e.g. `starting Chromium`. From any thread."""
    logging.getLogger(WAITING).info("%s", what)
