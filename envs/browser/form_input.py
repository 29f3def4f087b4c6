"""Enters text and selects options in form fields, such that the page's listeners receive the events.

Text is typed key by key through the browser. A declared secret is not, because the page could move the focus: it is
inserted into the element itself, in a document whose address was checked in the same step.
"""

from __future__ import annotations

import json
import re

from playwright.async_api import Page

from envs.core.actions import ActionResult, Reason, Status, Type
from envs.observer.observer import Target
from envs.security.secret_guard import SUBMITS, SecretGuard
from envs.security.secrets import Refusal

OK = ActionResult(status=Status.OK)
LONG_TEXT = 200
"""Longer text is inserted at once instead of key by key."""
SECRET_MARK = "<secret>"
MAX_LISTED = 40
TYPED_ROLES = frozenset({"textbox", "searchbox", "spinbutton"})

# The scripts are in `envs/observer/in_page/entering.js`, where each is described.
PREPARE = "function () { return mira.prepare(this); }"
SELECT_ALL = "function () { return mira.selectAll(this); }"
CARET_TO_END = "function () { mira.caretToEnd(this); }"
SET_VALUE = "function (value) { return mira.fillValue(this, value); }"
INSERT = "function (text) { return mira.insert(this, text); }"
ADDRESS = "function () { return mira.pageAddress(this); }"
CHOOSE = "function (wanted, most) { return mira.chooseOption(this, wanted, most); }"


async def type_into(page: Page, target: Target, action: Type, guard: SecretGuard) -> ActionResult:
    """Clicks the field, clears it if requested and types the text. Raises Playwright's errors."""
    text = await _text(target, action.text, guard)
    if isinstance(text, ActionResult):
        return text
    point = await target.point(page.mouse.move)
    if isinstance(point, ActionResult):
        return point
    await page.mouse.click(point.x, point.y)
    kind = await target.call(PREPARE)
    refused = await _fill(page, target, kind, text, action) or None
    if refused is None and action.enter:
        if guard.vault and (blocked := guard.submission(await target.call(SUBMITS, True))):
            return blocked
        await page.keyboard.press("Enter")
    return refused or OK


async def choose(target: Target, option: str) -> ActionResult:
    """Selects an option of a native drop-down or list."""
    answer = json.loads(str(await target.call(CHOOSE, option, MAX_LISTED)))
    match answer["status"]:
        case "ok":
            return OK
        case "disabled":
            return ActionResult(status=Status.DISABLED, reason=Reason.DISABLED, message="the drop-down is disabled")
        case "barred":
            message = "this option is disabled: choose another"
            return ActionResult(status=Status.DISABLED, reason=Reason.DISABLED, message=message)
        case "wrong":
            instead = "type into it" if target.role in TYPED_ROLES else "click it"
            message = f"this {target.role} is no native drop-down: {instead} instead"
            return ActionResult(status=Status.NOT_ACTIONABLE, reason=Reason.WRONG_CONTROL, message=message)
        case _:
            names = ", ".join(repr(str(name)[:80]) for name in answer["options"])
            message = f"no such option among its {answer['total']}: {names}"
            return ActionResult(status=Status.FAILED, reason=Reason.NO_SUCH_OPTION, message=message)


async def _text(target: Target, text: str, guard: SecretGuard) -> str | ActionResult:
    if SECRET_MARK not in text and not guard.vault:
        return text
    address = str(await target.call(ADDRESS))
    filled = guard.vault.fill(text, address)
    if not isinstance(filled, Refusal) and (refused := await guard.typing(target, text, address)):
        return refused
    if isinstance(filled, Refusal):
        return ActionResult(status=Status.BLOCKED, reason=Reason.SECRET_NOT_ALLOWED, message=filled.message)
    return filled


async def _fill(page: Page, target: Target, kind: str, text: str, action: Type) -> ActionResult | None:
    secret = text != action.text
    match kind:
        case "disabled":
            return ActionResult(status=Status.DISABLED, reason=Reason.DISABLED, message="the field is disabled")
        case "readonly":
            return ActionResult(status=Status.NOT_ACTIONABLE, reason=Reason.READ_ONLY, message="the field is read-only")
        case "value":
            if not await target.call(SET_VALUE, text):
                return _wrong_control("the field takes no text of this form")
        case "keys" if secret:
            return _wrong_control("a secret goes into a text field only")
        case "keys":
            await _keys(page, text)
        case _:
            return await _edit(page, target, kind, text, action)
    return None


async def _edit(page: Page, target: Target, kind: str, text: str, action: Type) -> ActionResult | None:
    if not action.clear:
        await target.call(CARET_TO_END)
    elif await target.call(SELECT_ALL):
        await page.keyboard.press("Delete")
    if text == action.text:
        await _keys(page, text if kind == "lines" else re.sub(r"\r?\n|\r", " ", text))
        return None
    if not await target.call(INSERT, text):
        message = "the field does not keep the focus"
        return ActionResult(status=Status.NOT_ACTIONABLE, reason=Reason.FOCUS_LOST, message=message)
    await page.keyboard.press("End")  # for pages that read a field only after a key press
    return None


def _wrong_control(message: str) -> ActionResult:
    return ActionResult(status=Status.NOT_ACTIONABLE, reason=Reason.WRONG_CONTROL, message=message)


async def _keys(page: Page, text: str) -> None:
    """Types *text*. Line breaks are inserted as text, because the key Enter could submit the form."""
    if len(text) > LONG_TEXT or "\n" in text or "\r" in text:
        await page.keyboard.insert_text(text)
    elif text:
        await page.keyboard.type(text)
