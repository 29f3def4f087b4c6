"""Enters text and selects options in form fields, such that the page's listeners receive the events.

Text is typed key by key through the browser and read back (:mod:`envs.browser.text_entry`). A declared secret is not
typed, because the page could move the focus: it is inserted into the element itself, in a document whose address was
checked in the same step.
"""

from __future__ import annotations

import json
import re

from playwright.async_api import Page

from envs.browser.text_entry import LONG_TEXT, TextEntry
from envs.core.actions import ActionResult, Reason, Status, Type
from envs.observer.observer import Target
from envs.observer.world import WorldGone
from envs.security.secret_guard import SUBMITS, SecretGuard
from envs.security.secrets import Refusal

OK = ActionResult(status=Status.OK)
REPLACED_BY_TYPING = ActionResult(
    status=Status.OK, reason=Reason.PAGE_REPLACED, message="another document was loaded while the text was typed"
)
SECRET_MARK = "<secret>"
MAX_LISTED = 40
FORMATS = {
    "date": "YYYY-MM-DD",
    "time": "HH:MM (24 hours)",
    "month": "YYYY-MM",
    "week": "YYYY-Www",
    "datetime-local": "YYYY-MM-DDTHH:MM",
}
"""The text that each type of field takes, whatever its appearance."""
TYPED_ROLES = frozenset({"textbox", "searchbox", "spinbutton"})
UNTYPED_ROLES = {"checkbox": "click it", "radio": "click it", "switch": "click it", "slider": "press its arrow keys"}
"""Roles of controls that take no text, not even after a click, with what to do instead."""

# The scripts are in `envs/observer/in_page/entering.js`, where each is described.
PREPARE = "function () { return mira.prepare(this); }"
SELECT_ALL = "function () { return mira.selectAll(this); }"
CARET_TO_END = "function () { mira.caretToEnd(this); }"
SET_VALUE = "function (value) { return mira.fillValue(this, value); }"
INSERT = "function (text) { return mira.insert(this, text); }"
ADDRESS = "function () { return mira.pageAddress(this); }"
CHOOSE = "function (wanted, most) { return mira.chooseOption(this, wanted, most); }"


async def type_into(page: Page, entry: TextEntry, action: Type, guard: SecretGuard) -> ActionResult:
    """Clicks the field, clears it if requested, types the text and reads it back. Raises Playwright's errors."""
    text = await _text(entry.target, action.text, guard)
    if isinstance(text, ActionResult):
        return text
    entry.secret = text != action.text
    instead = UNTYPED_ROLES.get(entry.target.role)
    if instead is not None and entry.target.type != "range":
        return _wrong_control(f"this {entry.target.role} takes no text: {instead} instead")
    point = await entry.target.point(page.mouse.move)
    if isinstance(point, ActionResult):
        return point
    await entry.mark(point)
    await page.mouse.click(point.x, point.y)
    kind = await entry.target.call(PREPARE)
    if kind == "gone":  # the click has rendered it again
        found = await entry.find_again()
        if isinstance(found, ActionResult):
            return found
        entry.target = found
        kind = await found.call(PREPARE)
    try:
        entered = await _fill(page, entry, kind, text, action)
        if entered is not None and not entered.ok:
            return entered
        if action.enter:
            if guard.vault and (blocked := guard.submission(await entry.target.call(SUBMITS, True))):
                return blocked
            await entry.press_enter()
    except WorldGone:
        return REPLACED_BY_TYPING
    return entered or OK


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


async def _fill(page: Page, entry: TextEntry, kind: str, text: str, action: Type) -> ActionResult | None:
    """Enters the text; returns a result that is not OK, or that says what the field holds instead."""
    match kind:
        case "disabled":
            return ActionResult(status=Status.DISABLED, reason=Reason.DISABLED, message="the field is disabled")
        case "readonly":
            return ActionResult(status=Status.NOT_ACTIONABLE, reason=Reason.READ_ONLY, message="the field is read-only")
        case "value":
            if not await entry.target.call(SET_VALUE, text):
                expected = FORMATS.get(entry.target.type)
                message = "the field takes no text of this form"
                return _wrong_control(f"{message}, only {expected}" if expected else message)
            return await entry.check(text, keys=False)
        case "none":
            return _wrong_control(f"this {entry.target.role} takes no text: it was only clicked")
        case "keys" if entry.secret:
            return _wrong_control("a secret goes into a text field only")
        case "keys":
            await _keys(page, text)
            return None
        case _:
            return await _edit(page, entry, kind, text, action)


async def _edit(page: Page, entry: TextEntry, kind: str, text: str, action: Type) -> ActionResult | None:
    if not action.clear:
        await entry.target.call(CARET_TO_END)
    elif await entry.target.call(SELECT_ALL):
        await page.keyboard.press("Delete")
        await entry.take_focus()
    await entry.listen(entered=action.enter)
    if entry.secret:
        if not await entry.target.call(INSERT, text):
            message = "the field does not keep the focus"
            return ActionResult(status=Status.NOT_ACTIONABLE, reason=Reason.FOCUS_LOST, message=message)
        await page.keyboard.press("End")  # for pages that read a field only after a key press
        return await entry.check(text)
    text = text if kind == "lines" else re.sub(r"\r?\n|\r", " ", text)
    if len(text) > LONG_TEXT or "\n" in text or "\r" in text or not text:
        await _keys(page, text)
    else:
        await entry.keys(text)
    return await entry.check(text)


def _wrong_control(message: str) -> ActionResult:
    return ActionResult(status=Status.NOT_ACTIONABLE, reason=Reason.WRONG_CONTROL, message=message)


async def _keys(page: Page, text: str) -> None:
    """Types *text*. Line breaks are inserted as text, because the key Enter could submit the form."""
    if len(text) > LONG_TEXT or "\n" in text or "\r" in text:
        await page.keyboard.insert_text(text)
    elif text:
        await page.keyboard.type(text)
