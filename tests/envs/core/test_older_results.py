"""Results from traces that were written before they had a reason."""

from __future__ import annotations

import pytest

from envs.core.actions import UNAPPROVED, ActionResult, Reason, Status
from envs.core.older_results import with_reason


def stored(**fields: object) -> ActionResult:
    return ActionResult.model_validate(fields)


@pytest.mark.parametrize(
    ("status", "reason"), [(Status.BLOCKED, Reason.UNAPPROVED_DOWNLOAD), (Status.STALE, None)], ids=str
)
def test_cancelled_downloads_are_read_from_an_older_message(status: Status, reason: Reason | None) -> None:
    message = f"moved; download 'a.csv' {UNAPPROVED}; download 'b.csv' {UNAPPROVED}"
    result = with_reason(stored(status=status, message=message))
    assert (result.reason, result.unapproved_downloads, result.message) == (reason, 2, message)


def test_other_older_results_stay_as_they_are() -> None:
    older = stored(status="stale", message="the element is gone")
    assert with_reason(older) is older and older.reason is None


def test_a_result_that_was_stored_with_a_reason_is_not_read_again() -> None:
    newer = ActionResult(status=Status.OK, message=f"download 'a' {UNAPPROVED}", reason=None)
    assert with_reason(ActionResult.model_validate_json(newer.model_dump_json())) == newer
