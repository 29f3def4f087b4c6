"""Holds what a step sends until somebody has agreed to it: the part of approval that no choice of action gets past.

Guarantees, for the categories that it holds (:data:`envs.security.held_requests.HoldCategory`):
  - From the start of a step that was not approved until the next step starts, no such request is sent, whatever causes
    it: an element, a key, a listener, a timer, a worker, a page that is left. It is shown with method, address and
    fields; then it is sent, or it fails.
  - What was declined fails, and so does everything further that is held in the same step: it is asked about once.
  - Requests that are held together make one question. The clock of the step stands still meanwhile.

Sent without a question: what belongs to a step that was approved; what pages send while the task's start is opened;
what repeats such a request (:mod:`envs.security.background_requests`), and what the user's settings name as background.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from envs.browser.step_clock import StepClock
from envs.security.background_requests import Background
from envs.security.held_requests import Answer, HeldRequest, HoldCategory, Mask, categories_of, held_request
from envs.security.outgoing_requests import Outgoing

Ask = Callable[[tuple[HeldRequest, ...]], Awaitable[bool | None]]
"""Shows a person what is held. True lets it go, None says that nobody was there to ask. What it raises is raised by
the step."""

CHECK: Final = "approval"
"""The name of the check at the boundary."""
GATHER_S: Final = 0.1
"""Requests that come no further apart than this make one question."""
GATHER_MOST_S: Final = 1.0
MAX_TOGETHER: Final = 10
"""Requests in one question; further ones make another."""
MAX_QUESTIONS: Final = 10
"""About one step; what it sends after that fails."""
MAX_REPORTED: Final = 50
"""Requests that one result tells of."""
_MESSAGES: Final[dict[Answer, str]] = {
    "no": "was not sent, a person declined it: do not try it again",
    "nobody": "was not sent, nobody is there to approve it: do not try it again",
}
_ALL: Final[frozenset[HoldCategory]] = frozenset(("submit", "navigation"))
_DOCUMENTS: Final[frozenset[HoldCategory]] = frozenset(("navigation",))
_NOTHING: Final[frozenset[HoldCategory]] = frozenset()


@dataclass(eq=False, slots=True)
class _Window:
    """From the start of a step until the next step starts."""

    passes: frozenset[HoldCategory]
    questions: int = 0
    refused: Answer = ""
    """What everything further is answered, once one question was."""
    is_reported: bool = True
    """Whether results tell of what was held."""


@dataclass(eq=False, slots=True)
class _Held:
    shown: HeldRequest
    window: _Window
    answer: asyncio.Future[Answer] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class RequestHolding:
    """Of one browser session. Begins as the task's start: everything passes, and is learned as background."""

    def __init__(self, held: Sequence[HoldCategory], background: Sequence[str] = (), mask: Mask = str) -> None:
        """Holds nothing where *held* is empty. *background*: see `SessionSettings.background`; *mask* is put over what
        is shown."""
        self.clock = StepClock(may_stop=bool(held))
        self.ask: Ask | None = None
        """None: nobody is there to ask."""
        self._held = frozenset(held)
        self._mask = mask
        self._background = Background(background)
        self._window = _Window(_ALL)
        self._waiting: list[_Held] = []
        self._asking: asyncio.Task[None] | None = None
        self._reported: list[HeldRequest] = []

    def begin(self, *, approved: bool) -> None:
        """A step starts. With *approved* everything that it sends passes."""
        self._background.learning = False
        self._window = _Window(_ALL if approved else _NOTHING)

    def restart(self) -> None:
        """The start of a task is opened, which the user has named."""
        self._background.learning = True
        self._window = _Window(_ALL)

    def reopen(self) -> None:
        """Saved tabs are opened again: their documents pass. What they send by themselves fails unasked, for it may be
        what a person has declined before; it belongs to no step, so no result tells of it."""
        self._background.learning = False
        self._window = _Window(_DOCUMENTS, refused="nobody", is_reported=False)

    def acted(self) -> None:
        """Something was done to a page: what it sends from now on is not only its own doing."""
        self._background.learning = False

    async def check(self, sent: Outgoing) -> str:
        """See :data:`envs.security.outgoing_requests.Check`."""
        window, categories = self._window, categories_of(sent) & self._held
        if not categories or self._background.covers(sent) or categories <= window.passes:
            if categories:
                self._background.see(sent)
            return ""
        shown = held_request(sent, self._mask)
        if window.refused:
            self._report(shown, window)
            return _MESSAGES[window.refused]
        return _MESSAGES.get(await self._decision(_Held(shown, window)), "")

    async def decided(self) -> bool:
        """Waits until nothing is held; whether anything was. Raises what the asking raised."""
        asking = self._asking
        if asking is None:
            return False
        try:
            await asyncio.shield(asking)
        finally:
            if asking.done() and self._asking is asking:
                self._asking = None
        return True

    def drain(self) -> tuple[HeldRequest, ...]:
        """What was held and answered since the last call; at most MAX_REPORTED."""
        reported, self._reported = self._reported, []
        return tuple(reported)

    async def close(self) -> None:
        """Whatever is held fails, and everything that would be held from now on."""
        self._window = _Window(_NOTHING, refused="nobody")
        asking, self._asking = self._asking, None
        if asking is not None:
            asking.cancel()
            await asyncio.wait({asking})
            _ = asking.cancelled() or asking.exception()
        for one in self._waiting:
            self._settle(one, "nobody")
        self._waiting.clear()

    async def _decision(self, held: _Held) -> Answer:
        self._waiting.append(held)
        if self._asking is None or self._asking.done():
            self._asking = asyncio.ensure_future(self._ask_all())
        try:
            return await held.answer
        finally:
            if held in self._waiting:  # the browser has given the request up
                self._waiting.remove(held)

    async def _ask_all(self) -> None:
        """One question after the other until nothing is held."""
        with self.clock.stopped():
            while self._waiting:
                await self._gathered()
                batch = [one for one in self._waiting if one.window is self._waiting[0].window][:MAX_TOGETHER]
                try:
                    answer = await self._answer(batch)
                except BaseException:
                    self._decide(self._waiting, "nobody")
                    raise
                self._decide(batch, answer)

    async def _gathered(self) -> None:
        """Waits for what comes together."""
        for _ in range(int(GATHER_MOST_S / GATHER_S)):
            count = len(self._waiting)
            await asyncio.sleep(GATHER_S)
            if len(self._waiting) <= count:
                return

    async def _answer(self, batch: Sequence[_Held]) -> Answer:
        if not batch:
            return "nobody"
        window = batch[0].window
        if window.refused or window.questions >= MAX_QUESTIONS:
            return window.refused or "no"
        window.questions += 1
        answer = await self.ask(tuple(one.shown for one in batch)) if self.ask is not None else None
        return "yes" if answer is True else "nobody" if answer is None else "no"

    def _decide(self, batch: Sequence[_Held], answer: Answer) -> None:
        for one in tuple(batch):
            self._settle(one, answer)
            if one in self._waiting:
                self._waiting.remove(one)

    def _settle(self, one: _Held, answer: Answer) -> None:
        if answer != "yes":
            one.window.refused = answer
        self._report(one.shown.model_copy(update={"answer": answer}), one.window)
        if not one.answer.done():
            one.answer.set_result(answer)

    def _report(self, shown: HeldRequest, window: _Window) -> None:
        if window.is_reported and len(self._reported) < MAX_REPORTED:
            self._reported.append(shown if shown.answer else shown.model_copy(update={"answer": window.refused}))


def refusal_messages(requests: Sequence[HeldRequest]) -> tuple[str, ...]:
    """What a result says of requests that were not sent: the first three, and how many more."""
    lines = [f"the request {one.method} {one.place} {_MESSAGES[one.answer]}" for one in requests if not one.sent]
    more = f"{len(lines) - 3} more requests were not sent"
    return (*lines[:3], *([more] if len(lines) > 3 else []))
