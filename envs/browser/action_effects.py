"""Follows one action through the open tabs: waits until they are quiet, and reports what it changed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final

from playwright.async_api import Page

from envs.browser.bounded_calls import Races
from envs.browser.downloads import Downloads
from envs.browser.settle import (
    Change,
    Quiet,
    change_since_mark,
    late_reaction,
    mark,
    offers_suggestions,
    settle,
    unmark,
)
from envs.browser.step_clock import StepClock
from envs.browser.tabs import OpenTab, Tabs
from envs.browser.text_entry import TypedText
from envs.browser.traffic import Traffic
from envs.core.actions import (
    Action,
    Click,
    ClickAt,
    Drag,
    DragAt,
    Hover,
    PageChange,
    Press,
    Scroll,
    ScrollAt,
    Select,
    Type,
    Upload,
)
from envs.core.settings import SessionSettings
from envs.security.request_holding import RequestHolding

WINDOW_S: Final = 1.0
"""Time in which a requested window opens."""
QUESTION_S: Final = 1.0
"""Timeout of a question to a page that was quiet."""
UNANSWERED_WAITS: Final = 2
"""Waits for a late reaction to typing into one field; if none comes, later ones are left out. After a click that
changed its own control only, one such wait on a page."""
_BY_POINTER = Click | ClickAt | Drag | DragAt | Hover
_ON_ELEMENT = Click | Hover | Type | Select | Upload | Drag
"""Actions that scroll their element into view first."""
_ON_PAGE = _BY_POINTER | Press | Type | Select | Upload | Scroll | ScrollAt
"""Actions whose result reports what they changed."""


@dataclass
class ActionEffects:
    """The part of a session that waits for the effects of its actions."""

    tabs: Tabs
    traffic: Traffic
    races: Races
    clock: StepClock
    settings: SessionSettings
    downloads: Downloads
    holding: RequestHolding
    typed: TypedText
    _action: Action | None = None
    _addresses: list[tuple[Page, str]] = field(default_factory=list[tuple[Page, str]])
    """The tabs before the action."""
    _windows: int = 0
    _opened: int = 0
    _acted: OpenTab | None = None
    _quiet: Quiet = field(default_factory=Quiet)
    _unanswered: dict[object, int] = field(default_factory=dict[object, int])
    """Waits for a late reaction that never came, by address and field."""

    def restart(self) -> None:
        """Forgets the waits of an earlier episode of the same session."""
        self._unanswered.clear()

    async def begin(self, action: Action) -> None:
        """Called right before *action*."""
        self.traffic.forget()
        self.typed.key, self.typed.listened = None, False
        self._action, self._quiet = action, Quiet()
        self._acted = self.tabs.front
        self._windows, self._opened = self._acted.world.windows, self.tabs.windows.count
        self._addresses = self._now()
        if isinstance(action, _ON_PAGE) and not isinstance(action, _ON_ELEMENT):
            await self.mark((action.x, action.y) if isinstance(action, ClickAt | DragAt) else None)

    async def mark(self, point: tuple[float, float] | None) -> None:
        """Called right before the action's input, at *point* where it is the pointer's: what the tabs change from now
        on is kept."""
        front = self.tabs.front
        await asyncio.gather(*(mark(tab.world, point if tab is front else None, QUESTION_S) for tab in self.tabs.all))

    async def settle(self, deadline: float) -> None:
        """Waits until the front tab is quiet, which may be a window that the action opened."""
        await self.tabs.ensure()
        front = self.tabs.front
        await self.settle_tab(front, deadline)
        await self._settle_held(deadline)
        react = min(self.settings.settle.react_ms / 1000, max(0.0, deadline - self.clock.now()))
        if await self.races.call(self._late(front, react), react + 4 * QUESTION_S):
            await self.settle_tab(front, deadline)
        elif self._quiet.change == "no":  # what comes without a mutation may have come later
            self._quiet = Quiet(await self._change_in(front), in_time=True)
        requested = self._acted.world.windows - self._windows if self._acted is not None else 0
        if requested > 0:
            await self.tabs.windows.until(self._opened + requested, WINDOW_S)
        await self.tabs.ensure()
        if self.tabs.front is not front:
            await self.settle_tab(self.tabs.front, deadline)
        await self.downloads.finish(min(self.settings.settle.max_s, deadline - self.clock.now()))
        await self._settle_held(deadline)

    async def settle_tab(self, tab: OpenTab, deadline: float) -> None:
        bound = min(self.settings.settle.max_s, max(0.0, deadline - self.clock.now()))
        limits = self.settings.settle.model_copy(update={"max_s": bound})
        waiting = settle(tab.page, tab.world, self.traffic, limits, by_pointer=isinstance(self._action, _BY_POINTER))
        self._quiet = await self.races.call(waiting, bound + 1.0)

    async def change(self) -> PageChange | None:
        """What the action changed so far; None for one that touches no page."""
        if not isinstance(self._action, _ON_PAGE):
            return None
        changes = {self._quiet.change, *await self._elsewhere()}
        if self._now() != self._addresses or changes & {"", "yes"}:
            return "yes"
        return "text" if "text" in changes else "no"

    async def _change_in(self, tab: OpenTab) -> Change:
        by_pointer = isinstance(self._action, _BY_POINTER)
        asking = change_since_mark(tab.world, by_pointer=by_pointer, seconds=QUESTION_S)
        return await self.races.call(asking, 2 * QUESTION_S)

    async def _elsewhere(self) -> list[Change]:
        """What changed in the other tabs; ends their marks."""
        behind = [tab for tab in self.tabs.all if tab is not self._acted]
        changes = await asyncio.gather(
            *(change_since_mark(tab.world, by_pointer=False, seconds=QUESTION_S) for tab in behind)
        )
        await asyncio.gather(*(unmark(tab.world, QUESTION_S) for tab in behind))
        return ["yes" if change == "text" else change for change in changes]

    def _now(self) -> list[tuple[Page, str]]:
        return [(tab.page, tab.page.url) for tab in self.tabs.all]

    async def _settle_held(self, deadline: float) -> None:
        """Waits for approval of held requests, then for the effects of approved ones."""
        while await self.holding.wait_until_decided():
            await self.tabs.ensure()
            await self.settle_tab(self.tabs.front, deadline)

    async def _late(self, front: OpenTab, seconds: float) -> bool:
        """Waits for a reaction that the page delays on purpose, where one may come; True if it came."""
        if self.traffic.begun or seconds <= 0:
            return False  # it has reacted
        match self._action:
            case Hover():
                return await late_reaction(front.world, self.traffic, seconds)
            case Type() | Press() if await offers_suggestions(front.world, QUESTION_S):
                return await late_reaction(front.world, self.traffic, seconds)
            case Type() if self.typed.listened:
                return await self._late_unless_unanswered(front, seconds, self.typed.key, UNANSWERED_WAITS)
            case Press() if _edits(self._action) and await front.observer.listens_to_focused(QUESTION_S):
                return await self._late_unless_unanswered(front, seconds, "focused", UNANSWERED_WAITS)
            case Click() | ClickAt() | Drag() | DragAt() | Press() | Select() if self._quiet.change == "no":
                return await front.observer.reacts(QUESTION_S) and await late_reaction(
                    front.world, self.traffic, seconds
                )
            case Click() | ClickAt() | Press() if not self._quiet.answered:
                return await front.observer.reacts(QUESTION_S) and await self._late_unless_unanswered(
                    front, seconds, None, 1
                )
            case _:
                return False

    async def _late_unless_unanswered(self, front: OpenTab, seconds: float, key: object, most: int) -> bool:
        """Waits for a late reaction, unless the last *most* waits for *key* on this page had no result."""
        place = (front.page.url.partition("?")[0], key)
        if self._unanswered.get(place, 0) >= most:
            return False
        reacted = await late_reaction(front.world, self.traffic, seconds)
        self._unanswered[place] = 0 if reacted else self._unanswered.get(place, 0) + 1
        return reacted


def _edits(action: Press) -> bool:
    """Whether the key changes a text or ends its entry."""
    key = action.keys.rpartition("+")[2]
    return len(key) == 1 or key in ("Enter", "Backspace", "Delete", "Space")
