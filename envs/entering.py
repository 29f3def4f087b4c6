"""Putting text and choices into fields, so that the page's own listeners notice.

Text goes in key by key through the browser. A declared secret does not: keys go wherever the page
has moved the focus by then, so a secret is put into the very element, in its own document, whose
address was checked in the same step.
"""

from __future__ import annotations

import re

from playwright.async_api import Page

from envs.actions import ActionResult, Status, Type
from envs.observer import Target
from envs.secret_guard import SUBMITS, SecretGuard
from envs.secrets import Refusal

OK = ActionResult(status=Status.OK)
LONG_TEXT = 200
"""Longer text goes in at once instead of key by key."""
SECRET_MARK = "<secret>"
MAX_LISTED = 40
TYPED_ROLES = frozenset({"textbox", "searchbox", "spinbutton"})

# What kind of field the element is, and the focus on it (a click on a label or wrapper may not have given it).
PREPARE = """function () {
  const tag = this.tagName, type = tag === 'INPUT' ? this.type : '';
  if (this.disabled) return 'disabled';
  if (['date', 'time', 'month', 'week', 'datetime-local', 'range', 'color'].includes(type)) return 'value';
  const buttons = ['checkbox', 'radio', 'button', 'submit', 'reset', 'image', 'file', 'hidden'];
  const text = tag === 'TEXTAREA' || (tag === 'INPUT' && !buttons.includes(type));
  if (!text && !this.isContentEditable) return 'keys';
  if (this.readOnly) return 'readonly';
  const active = this.getRootNode().activeElement;
  if (active !== this && !this.contains(active)) this.focus();
  return tag === 'INPUT' ? 'line' : 'lines';
}"""

# Selects all that is in the field; false if it is empty.
SELECT_ALL = """function () {
  if (!this.isContentEditable) { this.select(); return this.value !== '' || !this.validity.valid; }
  const range = this.ownerDocument.createRange(), selection = this.ownerDocument.defaultView.getSelection();
  range.selectNodeContents(this);
  selection.removeAllRanges();
  selection.addRange(range);
  return this.textContent !== '';
}"""

CARET_TO_END = """function () {
  if (this.isContentEditable) {
    const selection = this.ownerDocument.defaultView.getSelection();
    selection.selectAllChildren(this);
    selection.collapseToEnd();
  } else if (this.selectionStart !== null) this.setSelectionRange(this.value.length, this.value.length);
}"""

# For fields that no keyboard fills the same way in every locale; false if the value is of the wrong form.
SET_VALUE = """function (value) {
  if (this.readOnly) return false;
  this.value = value;
  this.dispatchEvent(new Event('input', {bubbles: true, composed: true}));
  this.dispatchEvent(new Event('change', {bubbles: true}));
  return value === '' || this.value !== '';
}"""

# Puts text into this element and no other, with trusted input events; false if it does not hold the focus.
INSERT = """function (text) {
  if (this.getRootNode().activeElement !== this) return false;
  return this.ownerDocument.execCommand('insertText', false, text);
}"""

ADDRESS = "function () { return this.ownerDocument.defaultView.location.href; }"

# By label, by value, then by label whatever its case; a list that takes several keeps what is chosen.
CHOOSE = """function (wanted, most) {
  if (this.tagName !== 'SELECT') return {status: 'wrong'};
  if (this.disabled) return {status: 'disabled'};
  const squeeze = text => text.replace(/\\s+/g, ' ').trim();
  const label = option => squeeze(option.label || option.text), name = squeeze(wanted);
  const barred = o => o.disabled || (o.parentNode.tagName === 'OPTGROUP' && o.parentNode.disabled);
  const usable = [...this.options].filter(o => !barred(o));
  const tests = [o => label(o) === name, o => o.value === wanted, o => label(o).toLowerCase() === name.toLowerCase()];
  const among = options => tests.map(test => options.find(test)).find(found => found);
  const option = among(usable);
  if (!option && among([...this.options])) return {status: 'barred'};
  if (!option) return {status: 'none', options: usable.slice(0, most).map(label), total: usable.length};
  this.focus();
  if (this.multiple) option.selected = true; else this.selectedIndex = option.index;
  this.dispatchEvent(new Event('input', {bubbles: true, composed: true}));
  this.dispatchEvent(new Event('change', {bubbles: true}));
  return {status: 'ok'};
}"""


async def type_into(page: Page, target: Target, action: Type, guard: SecretGuard) -> ActionResult:
    """Clicks the field, empties it if asked to, types; raises what Playwright raises."""
    text = await _text(target, action.text, guard)
    if isinstance(text, ActionResult):
        return text
    point = await target.point()
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
    """Chooses an option of a native drop-down or list."""
    answer = await target.call(CHOOSE, option, MAX_LISTED)
    match answer["status"]:
        case "ok":
            return OK
        case "disabled":
            return ActionResult(status=Status.DISABLED, message="the drop-down is disabled")
        case "barred":
            return ActionResult(status=Status.DISABLED, message="this option is disabled: choose another")
        case "wrong":
            instead = "type into it" if target.role in TYPED_ROLES else "click it"
            message = f"this {target.role} is no native drop-down: {instead} instead"
            return ActionResult(status=Status.NOT_ACTIONABLE, message=message)
        case _:
            names = ", ".join(repr(str(name)[:80]) for name in answer["options"])
            message = f"no such option among its {answer['total']}: {names}"
            return ActionResult(status=Status.FAILED, message=message)


async def _text(target: Target, text: str, guard: SecretGuard) -> str | ActionResult:
    if SECRET_MARK not in text and not guard.vault:
        return text
    address = str(await target.call(ADDRESS))
    filled = guard.vault.fill(text, address)
    if not isinstance(filled, Refusal) and (refused := await guard.typing(target, text, address)):
        return refused
    return ActionResult(status=Status.BLOCKED, message=filled.message) if isinstance(filled, Refusal) else filled


async def _fill(page: Page, target: Target, kind: str, text: str, action: Type) -> ActionResult | None:
    secret = text != action.text
    match kind:
        case "disabled":
            return ActionResult(status=Status.DISABLED, message="the field is disabled")
        case "readonly":
            return ActionResult(status=Status.NOT_ACTIONABLE, message="the field is read-only")
        case "value":
            if not await target.call(SET_VALUE, text):
                return ActionResult(status=Status.NOT_ACTIONABLE, message="the field takes no text of this form")
        case "keys" if secret:
            return ActionResult(status=Status.NOT_ACTIONABLE, message="a secret goes into a text field only")
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
        return ActionResult(status=Status.NOT_ACTIONABLE, message="the field does not keep the focus")
    await page.keyboard.press("End")  # for pages that look at a field only when a key was pressed
    return None


async def _keys(page: Page, text: str) -> None:
    """Types *text*; a line break in it goes in as text, because as a key it would be Enter, which nobody asked for."""
    if len(text) > LONG_TEXT or "\n" in text or "\r" in text:
        await page.keyboard.insert_text(text)
    elif text:
        await page.keyboard.type(text)
