"""Handles alert, confirm, prompt and beforeunload dialogs: limited in number and always reported.

Alerts are accepted at once. With policy `ask` other dialogs stay open until the agent answers. An open dialog blocks
the page, which must not be called until then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal, cast

from playwright.async_api import Dialog, Page
from playwright.async_api import Error as PlaywrightError

from envs.core.actions import DialogReport
from envs.core.record import storable

MAX_ALERTS = 10
"""Maximum number of dialogs that are answered automatically in one step; a page that opens more is closed."""
MAX_MESSAGE = 2000
ANSWER_S = 3.0


class Dialogs:
    """The dialogs of one browser context."""

    def __init__(
        self,
        policy: Literal["ask", "dismiss", "accept"],
        interrupt: Callable[[Literal["dialog", "flood"], Page], None],
        front: Callable[[], Page | None],
    ) -> None:
        """*front*: the page of the front tab."""
        self._policy = policy
        self._interrupt = interrupt
        self._front = front
        self._open: list[Dialog] = []
        """The unanswered dialogs, at most one of each page, oldest first."""
        self._reports: list[DialogReport] = []
        self._answered = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def open(self) -> DialogReport | None:
        """The open dialog that the agent must answer next: the front tab's, else the oldest."""
        dialog = self._next()
        return None if dialog is None else _report(dialog, "open")

    def _next(self) -> Dialog | None:
        front = self._front()
        return next((dialog for dialog in self._open if dialog.page is front), next(iter(self._open), None))

    def drain(self) -> tuple[DialogReport, ...]:
        """Returns the dialogs since the last call, including an open one."""
        reports, self._reports = self._reports, []
        self._answered = 0
        return tuple(reports)

    def arrived(self, dialog: Dialog) -> None:
        """Handler of the context's `dialog` event."""
        if dialog.type != "alert" and self._policy == "ask":
            if dialog.page is not None:
                self.forget(dialog.page)
            self._open.append(dialog)
            self._reports.append(_report(dialog, "open"))
            if dialog.page is not None:
                self._interrupt("dialog", dialog.page)
            return
        self._answered += 1
        if self._answered > MAX_ALERTS:
            if dialog.page is not None:
                self._interrupt("flood", dialog.page)
            return
        accept = dialog.type in ("alert", "beforeunload") or self._policy == "accept"
        self._reports.append(_report(dialog, "accepted" if accept else "dismissed"))
        task = asyncio.ensure_future(_answer(dialog, accept, ""))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def answer(self, accept: bool, text: str) -> DialogReport | None:
        """Answers the dialog of :attr:`open`; None if there is none."""
        dialog = self._next()
        if dialog is None:
            return None
        self._open.remove(dialog)
        report = _report(dialog, "accepted" if accept else "dismissed")
        self._reports.append(report)
        await _answer(dialog, accept, text)
        return report

    def forget(self, page: Page) -> None:
        """Forgets the dialog of a page that was closed or shows another one."""
        self._open = [dialog for dialog in self._open if dialog.page is not page]


def _report(dialog: Dialog, answer: Literal["open", "accepted", "dismissed"]) -> DialogReport:
    kind = cast(Literal["alert", "confirm", "prompt", "beforeunload"], dialog.type)
    return DialogReport(type=kind, message=storable(dialog.message[:MAX_MESSAGE]), answer=answer)


async def _answer(dialog: Dialog, accept: bool, text: str) -> None:
    try:
        async with asyncio.timeout(ANSWER_S):
            if accept:
                await (dialog.accept(text) if dialog.type == "prompt" else dialog.accept())
            else:
                await dialog.dismiss()
    except (PlaywrightError, TimeoutError):
        return  # the page was closed or has navigated, so the dialog is gone
