"""Shows what the process waits for: a spinner on a terminal, one line each elsewhere."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.status import Status
from rich.text import Text

from agent.cli.terminal import printable
from envs.core.wait_notices import WAITING


class Notices(logging.Handler):
    """Shows the messages of :mod:`envs.core.wait_notices` during its `with` block."""

    def __init__(self, console: Console | None, *, drawn_elsewhere: bool = False) -> None:
        """*console* is usually stderr; None shows nothing. With *drawn_elsewhere*, the owner draws `text` itself."""
        super().__init__(logging.INFO)
        self.text = ""
        """The current notice; empty if nothing is waited for."""
        self._console = console
        self._drawn_elsewhere = drawn_elsewhere
        self._spinner: Status | None = None
        self._level_before = logging.NOTSET

    def __enter__(self) -> Self:
        if self._console is not None:
            logger = logging.getLogger(WAITING)
            self._level_before = logger.level
            logger.setLevel(logging.INFO)
            logger.addHandler(self)
            if (
                self._drawn_elsewhere or self._console.is_terminal
            ):  # not in a file, where wrong input must stay one line
                self.show("starting")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        del kind, error, trace
        if self._console is not None:
            logger = logging.getLogger(WAITING)
            logger.removeHandler(self)
            logger.setLevel(self._level_before)
        self.clear()

    def emit(self, record: logging.LogRecord) -> None:
        self.show(record.getMessage())

    def show(self, text: str) -> None:
        """Shows *text* as the current notice."""
        if self._console is None:
            return
        self.text = printable(text)
        if self._drawn_elsewhere:
            return
        if not self._console.is_terminal:
            self._console.print(Text(self.text), soft_wrap=True)
        elif self._spinner is None:
            self._spinner = self._console.status(Text(self.text))
            self._spinner.start()
        else:
            self._spinner.update(Text(self.text))

    def clear(self) -> None:
        """Removes the current notice."""
        self.text = ""
        spinner, self._spinner = self._spinner, None
        if spinner is not None:
            spinner.stop()
