"""Completes results from traces that were written before :attr:`envs.core.actions.ActionResult.reason`."""

from __future__ import annotations

from envs.core.actions import UNAPPROVED, ActionResult, Reason, Status


def with_reason(result: ActionResult) -> ActionResult:
    """*result* with the reason and the cancelled downloads that its message tells of, where it was stored without them.

    It is the only place that reads an outcome from the text of a message. It maps what readers of a trace decide by:
    cancelled downloads. A result that was stored with the field is returned unchanged.
    """
    cancelled = result.message.count(UNAPPROVED)
    if "reason" in result.model_fields_set or not cancelled:
        return result
    reason = Reason.UNAPPROVED_DOWNLOAD if result.status is Status.BLOCKED else None
    return result.model_copy(update={"reason": reason, "unapproved_downloads": cancelled})
