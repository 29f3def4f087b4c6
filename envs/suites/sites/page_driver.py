"""Drives pages for the oracle: finds controls by role and name, and acts through the actions of a policy.

It sees observations only. For a control that is collapsed or beyond the observation budget it needs a find action, as
a policy does.
"""

from __future__ import annotations

import re
from typing import Protocol

from envs.core.actions import Action, ActionResult, Back, Click, Find, FocusTab, Press, Select, Status, Type, Wait
from envs.core.observation import Observation

_CONTROL = re.compile(r'\[(\d+)\] (\w+)(?: "((?:[^"\\]|\\.)*)")?')
Name = str | re.Pattern[str]
PATIENCE = 2
"""How many wait actions the driver spends on a control that has not appeared yet."""


class Unsolvable(Exception):
    """The oracle cannot solve the task, for example because a control is missing. The message names the page."""


class Stage(Protocol):
    """Executes actions and returns observations: an environment, or a policy that the runtime queries step by step."""

    async def observe(self) -> Observation: ...

    async def execute(self, action: Action) -> ActionResult: ...


class PageDriver:
    """Drives the pages of one episode.

    Each acting method observes the page first and raises Unsolvable if its action does not succeed."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.page: Observation | None = None
        """The last observation."""

    async def observe(self) -> Observation:
        """Observes the page."""
        self.page = await self._stage.observe()
        return self.page

    async def text(self) -> str:
        """The current text of the page."""
        return (await self.observe()).text

    async def click(self, role: str, name: Name, *, row: str | None = None, nth: int = 0) -> None:
        """Clicks a control. *row* is text on the same line; it selects one of several similar rows.

        Waits while a closing element still covers the control.
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
        """Types into a control."""
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
        """The first group of *pattern* (multi-line) in the current text of the page. Raises Unsolvable."""
        text = await self.text()
        match = re.search(pattern, text, re.MULTILINE)
        if match is None:
            raise Unsolvable(f"nothing on {self._location()} matches {pattern!r}")
        return match.group(1)

    async def has(self, role: str, name: Name, *, row: str | None = None) -> bool:
        """Does the page show such a control?"""
        return bool(_refs((await self.observe()).text, role, name, row))

    async def ref(self, role: str, name: Name, *, row: str | None = None, nth: int = 0) -> int:
        """The current number of a control. Searches for the control if the observation does not show it."""
        page = await self.observe()
        refs = _refs(page.text, role, name, row)
        for _ in range(PATIENCE):
            if len(refs) > nth or any(not element.shown for element in page.elements):
                break
            await self.act(Wait())  # the page is still loading content
            page = await self.observe()
            refs = _refs(page.text, role, name, row)
        if len(refs) <= nth:
            text = row or (name if isinstance(name, str) else "")
            hidden = any(not element.shown for element in page.elements)
            if text and hidden:
                refs = _refs((await self.act(Find(text=text))).output, role, name, row)
        if len(refs) <= nth:
            near = f" beside {row!r}" if row else ""
            shown = name if isinstance(name, str) else name.pattern
            raise Unsolvable(f"no {role} {shown!r}{near} on {self._location()}")
        return refs[nth]

    async def act(self, action: Action) -> ActionResult:
        """Executes an action. Raises Unsolvable if it does not succeed."""
        result = await self._stage.execute(action)
        self._check(action.kind, result)
        return result

    def _check(self, kind: str, result: ActionResult) -> None:
        if result.status is not Status.OK:
            raise Unsolvable(f"{kind} on {self._location()} ended as {result.status.value}: {result.message}")

    def _location(self) -> str:
        return self.page.url if self.page else "no page"


def _refs(text: str, role: str, name: Name, row: str | None) -> list[int]:
    """Numbers of the controls with this role and name, in order. *row* must occur on the same line."""
    refs: list[int] = []
    for line in text.splitlines():
        if row is not None and row not in _unquoted(line):
            continue
        for match in _CONTROL.finditer(line):
            shown = _unquoted(match[3] or "")
            fits = shown == name if isinstance(name, str) else name.search(shown) is not None
            if match[2] == role and fits:
                refs.append(int(match[1]))
    return refs


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
