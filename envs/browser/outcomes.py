"""Results of actions that the session itself decides: page and browser failures, dialogs, and refused requests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from playwright.async_api import Error as PlaywrightError

from envs.core.actions import ActionResult, Reason, Status
from envs.core.record import storable
from envs.security.held_requests import HeldRequest

HUNG: Final = ActionResult(
    status=Status.TIMEOUT, reason=Reason.PAGE_HUNG, message="the page did not answer in time and was closed"
)
CRASHED: Final = ActionResult(
    status=Status.CRASHED, reason=Reason.PAGE_CRASHED, message="the page crashed and was closed"
)
FLOOD: Final = ActionResult(
    status=Status.TIMEOUT, reason=Reason.DIALOG_FLOOD, message="the page opened dialogs without end and was closed"
)
BROWSER_DIED: Final = ActionResult(status=Status.CRASHED, reason=Reason.BROWSER_DIED, message="the browser died")
REPLACED: Final = ActionResult(
    status=Status.STALE, reason=Reason.PAGE_REPLACED, message="the page was replaced meanwhile: look at it again"
)
TAB_CLOSED: Final = ActionResult(status=Status.OK, reason=Reason.TAB_CLOSED, message="the tab closed itself")
DIALOG_OPENED: Final = ActionResult(
    status=Status.OK, reason=Reason.DIALOG_OPENED, message="a dialog opened and blocks the page: answer it"
)
DIALOG_OPEN: Final = ActionResult(
    status=Status.DIALOG_OPEN, reason=Reason.DIALOG_OPEN, message="a dialog blocks the page: answer it first"
)
NO_DIALOG: Final = ActionResult(status=Status.FAILED, reason=Reason.NO_DIALOG, message="no dialog is open")


def failed(reason: Reason, message: str) -> ActionResult:
    return ActionResult(status=Status.FAILED, reason=reason, message=message)


def status_and_reason(
    result: ActionResult, unapproved_downloads: int, held: Sequence[HeldRequest]
) -> tuple[Status, Reason | None]:
    """The status and reason of *result* after what else its step did.

    A cancelled download blocks a successful action; a held request that was not sent also blocks a failed one.
    """
    refused = next((request for request in held if not request.sent), None)
    if refused is not None and result.status in (Status.OK, Status.FAILED):
        status, reason = Status.BLOCKED, Reason.NO_APPROVER if refused.answer == "nobody" else Reason.DECLINED
    elif unapproved_downloads and result.status is Status.OK:
        status, reason = Status.BLOCKED, Reason.UNAPPROVED_DOWNLOAD
    else:
        return result.status, result.reason
    return status, result.reason if result.reason is Reason.ADDRESS_IS_FILE else reason


def taken_back(result: ActionResult, urls: Sequence[str]) -> ActionResult:
    """*result* of an action that led tabs to *urls*, which are not allowed."""
    update = {"status": Status.BLOCKED, "reason": Reason.ORIGIN_NOT_ALLOWED, "message": not_allowed(urls)}
    return result.model_copy(update=update)


def windows_closed(result: ActionResult, closed: int, tabs: int) -> ActionResult:
    """*result* of an action, with the report that *closed* windows were closed because *tabs* tabs were open."""
    windows = "a window was closed" if closed == 1 else f"{closed} windows were closed"
    message = f"{windows}: {tabs} tabs are open, close one first"
    update = {
        "reason": result.reason or Reason.TOO_MANY_TABS,
        "message": "; ".join(filter(None, (result.message, message))),
    }
    return result.model_copy(update=update)


def not_allowed(urls: Sequence[str]) -> str:
    """The message about tabs that showed *urls*, which are not allowed."""
    return f"not allowed, taken back: {', '.join(storable(url)[:200] for url in urls)}"


def error_line(error: PlaywrightError | TimeoutError) -> str:
    """The first line of Playwright's message, without the name of the call and without its log."""
    line = next(iter(str(error).splitlines()), type(error).__name__)
    return storable(re.sub(r"^\w+\.\w+: ", "", line)[:300])
