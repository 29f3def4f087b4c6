"""The oracle's hand: finds controls by role and name as a person would, acts through the same actions as a policy.

It sees only observations: a control that is collapsed or beyond the budget has to be found first, which costs an
action, as it does a policy.
"""

from __future__ import annotations

import re
from typing import Protocol

from envs.core.actions import Action, ActionResult, Back, Click, Find, FocusTab, Press, Select, Status, Type, Wait
from envs.core.observation import Observation

_CONTROL = re.compile(r'\[(\d+)\] (\w+)(?: "((?:[^"\\]|\\.)*)")?')
Name = str | re.Pattern[str]
PATIENCE = 2
"""Times that a hand waits for a control that is not there yet; each is an action."""


class Unsolvable(Exception):
    """The oracle did not find what it needs; the message says what, and on which page."""


class Stage(Protocol):
    """Where a hand acts: an environment, or a policy that is asked step by step."""

    async def observe(self) -> Observation: ...

    async def execute(self, action: Action) -> ActionResult: ...


class PageDriver:
    """One episode's. Every method that acts looks first and raises Unsolvable where the action did not succeed."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.page: Observation | None = None
        """The last look."""

    async def look(self) -> Observation:
        """The page as it is now."""
        self.page = await self._stage.observe()
        return self.page

    async def text(self) -> str:
        """The text of the page as it is now."""
        return (await self.look()).text

    async def click(self, role: str, name: Name, *, row: str | None = None, nth: int = 0) -> None:
        """Clicks the control; *row* is text on the same line, which singles it out among rows alike.

        Waits, as for a control that is not there yet, while something that is just closing still lies over it.
        """
        for _ in range(PATIENCE):
            result = await self._stage.execute(Click(ref=await self.ref(role, name, row=row, nth=nth)))
            if result.status is not Status.COVERED:
                self._check("click", result)
                return
            await self.act(Wait())
        await self.act(Click(ref=await self.ref(role, name, row=row, nth=nth)))

    async def type(
        self,
        role: str,
        name: Name,
        text: str,
        *,
        enter: bool = False,
        clear: bool = True,
        row: str | None = None,
        nth: int = 0,
    ) -> None:
        ref = await self.ref(role, name, row=row, nth=nth)
        await self.act(Type(ref=ref, text=text, enter=enter, clear=clear))

    async def select(self, role: str, name: Name, option: str, *, row: str | None = None, nth: int = 0) -> None:
        await self.act(Select(ref=await self.ref(role, name, row=row, nth=nth), option=option))

    async def press(self, keys: str) -> None:
        await self.act(Press(keys=keys))

    async def back(self) -> None:
        await self.act(Back())

    async def tab(self, index: int) -> None:
        await self.act(FocusTab(index=index))

    async def read(self, pattern: str) -> str:
        """The first group of *pattern* in the page as it is now (multi-line). Raises Unsolvable."""
        text = await self.text()
        match = re.search(pattern, text, re.MULTILINE)
        if match is None:
            raise Unsolvable(f"nothing on {self._where()} fits {pattern!r}")
        return match.group(1)

    async def has(self, role: str, name: Name, *, row: str | None = None) -> bool:
        """Is such a control shown now?"""
        return bool(_refs((await self.look()).text, role, name, row))

    async def ref(self, role: str, name: Name, *, row: str | None = None, nth: int = 0) -> int:
        """The number under which the control is shown now; it is searched for where it is not shown."""
        page = await self.look()
        found = _refs(page.text, role, name, row)
        for _ in range(PATIENCE):
            if len(found) > nth or any(not one.shown for one in page.elements):
                break
            await self.act(Wait())  # a page that is still being filled in
            page = await self.look()
            found = _refs(page.text, role, name, row)
        if len(found) <= nth:
            wanted = row or (name if isinstance(name, str) else "")
            hidden = any(not one.shown for one in page.elements)
            if wanted and hidden:
                found = _refs((await self.act(Find(text=wanted))).output, role, name, row)
        if len(found) <= nth:
            near = f" beside {row!r}" if row else ""
            shown = name if isinstance(name, str) else name.pattern
            raise Unsolvable(f"no {role} {shown!r}{near} on {self._where()}")
        return found[nth]

    async def act(self, action: Action) -> ActionResult:
        """Does any action of the action set. Raises Unsolvable where it did not succeed."""
        result = await self._stage.execute(action)
        self._check(action.kind, result)
        return result

    def _check(self, kind: str, result: ActionResult) -> None:
        if result.status is not Status.OK:
            raise Unsolvable(f"{kind} on {self._where()} ended as {result.status.value}: {result.message}")

    def _where(self) -> str:
        return self.page.url if self.page else "no page"


def _refs(text: str, role: str, name: Name, row: str | None) -> list[int]:
    """Controls of this role and name, in order. *row* must stand on the same line, in text or in a name."""
    found: list[int] = []
    for line in text.splitlines():
        if row is not None and row not in _unquoted(line):
            continue
        for match in _CONTROL.finditer(line):
            shown = _unquoted(match[3] or "")
            fits = shown == name if isinstance(name, str) else name.search(shown) is not None
            if match[2] == role and fits:
                found.append(int(match[1]))
    return found


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
