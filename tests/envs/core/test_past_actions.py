"""The log line of a committed action, and its texts."""

from __future__ import annotations

import pytest

from envs.core.actions import ActionResult, Click, Drag, Goto, Status, Stop, Type, Upload
from envs.core.observation import ElementKey
from envs.core.past_actions import PastAction, describe

NAME = ElementKey("", "textbox", 'The "Name"', 0, "0" * 8)
OK = ActionResult(status=Status.OK)
STALE = ActionResult(status=Status.STALE, message="ann is gone")


@pytest.mark.parametrize(
    ("result", "carried_out", "end"),
    [
        (OK, True, ""),
        (ActionResult(status=Status.STOPPED), True, ""),
        (STALE, False, ": stale, ann is gone"),
        (ActionResult(status=Status.TIMEOUT), False, ": timeout"),
        (ActionResult(status=Status.NO_SUCH_REF, message="no [7]"), False, ": no_such_ref, no control had this number"),
        (None, False, ": unknown whether it happened"),
    ],
)
def test_the_log_line_ends_with_the_result(result: ActionResult | None, carried_out: bool, end: str) -> None:
    past = PastAction(Type(ref=1, text="ann: stale"), NAME, result)
    assert past.log_line() == f'type "ann: stale" into textbox "The \\"Name\\""{end}'
    assert past.carried_out is carried_out


def test_uploads_and_drags_are_described() -> None:
    assert describe(Upload(ref=1, path="a.csv"), None) == 'upload "a.csv" to the page'
    assert describe(Drag(ref=1, to_ref=2), NAME) == 'drag textbox "The \\"Name\\""'
    assert describe(Stop(answer="42"), None) == "stop answer=42"


def test_texts_are_changed_everywhere_but_in_words_of_closed_sets() -> None:
    past = PastAction(Type(ref=1, text="ann types"), ElementKey("", "textbox", "ann", 0, "0" * 8), STALE)
    masked = past.with_texts(lambda text: text.replace("ann", "<secret>A</secret>").replace("type", "-"))
    assert (
        masked.log_line()
        == 'type "<secret>A</secret> -s" into textbox "<secret>A</secret>": stale, <secret>A</secret> is gone'
    )
    assert PastAction(Click(ref=1), None, OK).with_texts(str.upper) == PastAction(Click(ref=1), None, OK)
    assert PastAction(Goto(url="a"), None).with_texts(str.upper) == PastAction(Goto(url="A"), None)
