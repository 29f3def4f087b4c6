"""Types text into one field and reads back what it holds.

Pages render a field again while somebody types: the node with the focus is replaced, and further keys are lost. Typing
then resumes on the node that took its place. Where keys were lost all the same, the text is entered once more, at
once, unless the page has already acted on it: nothing is submitted twice. What the field holds is reported wherever it
differs from what was typed.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, Literal

from playwright.async_api import Page

from envs.core.actions import ActionResult, Reason, Status
from envs.core.observation import ElementKey
from envs.observer.target import Target
from envs.observer.text_listeners import listens_to_text

LONG_TEXT: Final = 200
"""Longer text is inserted at once instead of key by key."""
RESUMED_KEYS: Final = 60
"""Most keys that are typed one by one, each with a check of the field."""

# The scripts are in `envs/observer/in_page/read_back.js`, where each is described.
FOCUS_STATE = "function () { return mira.focusState(this); }"
RESUME = "function () { return mira.resumeEntry(this); }"
READ_BACK = "function (...args) { return mira.readBack(this, ...args); }"
ENTER_AT_ONCE = "function (text) { return mira.enterAtOnce(this, text); }"

Holds = Literal["same", "empty", "changed", "lost", "other", "gone"]
"""What a field holds: the text, nothing, the text as the page formatted, cut or completed it, part of it with keys
missing, something else; or the field is gone."""
FocusState = Literal["here", "other", "gone", "lost"]


@dataclass(slots=True)
class TypedText:
    """What the last `type` action did, for what follows it in the same step."""

    key: ElementKey | None = None
    """The field; None where nothing was typed."""
    listened: bool = False
    """Scripts of the page listen to what is typed there."""


@dataclass(slots=True)
class TextEntry:
    """One text on its way into one field."""

    page: Page
    target: Target
    find_again: Callable[[], Awaitable[Target | ActionResult]]
    """Resolves the field after it was rendered again."""
    acted: Callable[[], bool]
    """Whether the page sent something or loaded a document since typing began."""
    mark: Callable[[tuple[float, float] | None], Awaitable[None]]
    """Called right before the first input."""
    cleared: bool
    """The field was emptied before."""
    secret: bool = False
    """The text holds a secret, so what the field holds is not read out."""
    listened: bool = False
    replaced: bool = field(default=False, init=False)
    """The field was rendered again while it was typed into."""

    async def listen(self, *, entered: bool) -> bool:
        """Finds out whether scripts listen to what is typed."""
        target = self.target
        self.listened = await listens_to_text(
            target.world, target.object_id, entered=entered, timeout_s=target.timeout_s
        )
        return self.listened

    async def keys(self, text: str) -> None:
        """Types *text* key by key; checks after the first key whether the field still has the focus."""
        await self.page.keyboard.type(text[:1])
        if len(text) == 1:
            return
        match await self._focus():
            case "here" | "other":  # a row of fields with one digit each moves the focus itself
                await self.page.keyboard.type(text[1:])
            case "gone" | "lost":
                await self._resume(text[1:])

    async def check(self, text: str, *, keys: bool = True) -> ActionResult | None:
        """Compares what the field holds with *text*; enters it again where *keys* were lost. Returns a result that says
        what the field holds where it differs."""
        held = await self._read(text)
        if self.secret or not keys:
            return _report(held["holds"], held["value"])
        if held["start"] and self.replaced and not self.acted():
            await self._resume(text[int(held["start"]) :])
            held = await self._read(text)
        # A missing blank may be taken out by the page, or be a key that a field lost while it was rendered again.
        lost = held["holds"] == "lost" or (held["holds"] == "changed" and self.replaced)
        if lost and self.cleared and not self.acted() and await self.target.call(ENTER_AT_ONCE, text):
            held = await self._read(text)
        return _report(held["holds"], held["value"])

    async def press_enter(self) -> None:
        """Presses Enter in the field; a field that was rendered again gets the focus first."""
        if await self._focus() in ("gone", "lost"):
            await self.take_focus()
        await self.page.keyboard.press("Enter")

    async def _focus(self) -> FocusState:
        return await self.target.call(FOCUS_STATE)

    async def _resume(self, text: str) -> None:
        """Types the rest of a text into a field that is rendered again at every key."""
        self.replaced = True
        for key in text[:RESUMED_KEYS]:
            if not await self.take_focus():
                return
            await self.page.keyboard.type(key)
        if len(text) > RESUMED_KEYS and await self.take_focus():
            await self.page.keyboard.insert_text(text[RESUMED_KEYS:])

    async def take_focus(self) -> bool:
        """Focuses the field, or the one that took its place, with the caret at its end."""
        state = await self._focus()
        if state == "here":
            return True
        if state == "gone" and not await self._found_again():
            return False
        return bool(await self.target.call(RESUME))

    async def _found_again(self) -> bool:
        self.replaced = True
        found = await self.find_again()
        if isinstance(found, ActionResult):
            return False
        self.target = found
        return True

    async def _read(self, text: str) -> dict[str, str | int | None]:
        args = (text, self.cleared, self.secret, self.listened or self.replaced)
        held = json.loads(str(await self.target.call(READ_BACK, *args)))
        if held["holds"] == "gone" and await self._found_again():
            held = json.loads(str(await self.target.call(READ_BACK, *args)))
        return held


def _report(holds: str | int | None, value: str | int | None) -> ActionResult | None:
    match holds:
        case "same":
            return None
        case "gone":
            message = "the field left the page while it was typed into"
        case "empty":
            message = "the field is empty now"
        case _ if value is None:
            message = "the field now holds something else than was typed (hidden)"
        case _:
            message = f"the field now holds {json.dumps(str(value), ensure_ascii=False)}"
    return ActionResult(status=Status.OK, reason=Reason.FIELD_DIFFERS, message=message)
