"""Past actions for logs, made from plain values."""

from __future__ import annotations

from envs.core.actions import ActionResult, Click, Press, Status, Type, Wait
from envs.core.observation import ElementKey
from envs.core.past_actions import PastAction

OK = ActionResult(status=Status.OK)
WAITED = PastAction(Wait(), None, OK)
"""`wait`"""


def key(name: str, role: str = "button") -> ElementKey:
    return ElementKey("", role, name, 0, "0" * 8)


def clicked(name: str, role: str = "button", result: ActionResult | None = OK) -> PastAction:
    """`click button "NAME"`"""
    return PastAction(Click(ref=1), key(name, role), result)


def typed(text: str, name: str) -> PastAction:
    """`type "TEXT" into textbox "NAME"`"""
    return PastAction(Type(ref=1, text=text), key(name, "textbox"), OK)


def pressed(keys: str) -> PastAction:
    """`press KEYS`, for any text."""
    return PastAction(Press(keys=keys), None, OK)


def failed(status: Status, message: str = "") -> ActionResult:
    return ActionResult(status=status, message=message)
