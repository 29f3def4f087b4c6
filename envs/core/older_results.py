"""Completes results from traces that were written before :attr:`envs.core.actions.ActionResult.reason`."""

from __future__ import annotations

from envs.core.actions import UNAPPROVED, ActionResult, Reason, Status


def with_reason(result: ActionResult) -> ActionResult:
    """Adds reason and number of cancelled downloads, read from the message, to a *result* that was stored without them.

    No other code reads an outcome from the text of a message. Only cancelled downloads are read, because approval
    depends on them after a resume. A result that was stored with a reason is returned unchanged.
    """
    cancelled = result.message.count(UNAPPROVED)
    if "reason" in result.model_fields_set or not cancelled:
        return result
    reason = Reason.UNAPPROVED_DOWNLOAD if result.status is Status.BLOCKED else None
    return result.model_copy(update={"reason": reason, "unapproved_downloads": cancelled})
