"""Which Chromium a test drives.

The headless shell is Chromium's engine without windows: a session costs some 40 % less CPU time. Tests that observe
pages or run episodes, and do not depend on the browser around the page, drive the shell where it is installed. Tests of
the browser, the boundary and approval, and the examples, drive the whole browser. With `MIRA_CHROMIUM` set all tests
drive the one that it names.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

VARIABLE: Final = "MIRA_CHROMIUM"
HEADLESS_SHELL: Final = None if VARIABLE in os.environ else shutil.which("chromium-headless-shell")
"""None: all tests drive the same browser."""
_TESTS: Final = Path(__file__).parent
_IN_THE_SHELL: Final = (
    *("agent/cli", "agent/episode", "agent/inspection", "agent/run"),
    *("envs/observer", "envs/suites", "judges", "models", "training"),
)
_WHOLE: Final = "approv"
"""Tests with this in the name of their file drive the whole browser."""


def choose_browser(test: Path) -> None:
    """Sets what Mira drives in the tests of the file *test*, in this process and its children."""
    if HEADLESS_SHELL is None:
        return
    if _WHOLE not in test.name and any(test.is_relative_to(_TESTS / folder) for folder in _IN_THE_SHELL):
        os.environ[VARIABLE] = HEADLESS_SHELL
    else:
        os.environ.pop(VARIABLE, None)


@contextmanager
def whole_browser() -> Generator[None]:
    """What starts inside is the whole browser, for fixtures that all folders share."""
    chosen = None if HEADLESS_SHELL is None else os.environ.pop(VARIABLE, None)
    try:
        yield
    finally:
        if chosen is not None:
            os.environ[VARIABLE] = chosen
