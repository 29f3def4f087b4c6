"""Holds the requests of a step until a person approves them. No choice of action bypasses this part of approval.

Guarantees, for the held categories (:data:`envs.security.held_requests.HoldCategory`):
  - From the start of a step that was not approved until the next step starts, no such request is sent, whatever causes
    it: an element, a key, a listener, a timer, a worker, a page that is left. It is shown with method, address and
    fields; then it is sent, or it fails.
  - A declined request fails, and so do all requests held later in the same step: there is one question.
  - Requests that are held together share one question. The clock of the step is paused meanwhile.

Sent without a question: requests of an approved step; requests of pages while the start of the task is opened; repeated
requests of that kind (:mod:`envs.security.background_requests`); and background requests named in the settings.
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
"""Asks a person about held requests. True sends them; None means that no person was available. Its exceptions are
raised by the step."""

CHECK: Final = "approval"
"""The name of the check in the allowlist proxy."""
GATHER_S: Final = 0.1
"""Requests at most this far apart share one question."""
GATHER_MOST_S: Final = 1.0
MAX_TOGETHER: Final = 10
"""Requests in one question; further ones are asked about separately."""
MAX_QUESTIONS: Final = 10
"""Questions in one step; later requests of the step fail."""
MAX_REPORTED: Final = 50
"""Held requests listed in one result."""
_MESSAGES: Final[dict[Answer, str]] = {
    "no": "was not sent, a person declined it: do not try it again",
    "nobody": "was not sent, nobody is there to approve it: do not try it again",
}
_ALL: Final[frozenset[HoldCategory]] = frozenset(("submit", "navigation"))
_DOCUMENTS: Final[frozenset[HoldCategory]] = frozenset(("navigation",))
_NOTHING: Final[frozenset[HoldCategory]] = frozenset()


@dataclass(eq=False, slots=True)
class _Window:
    """The time from the start of a step until the next step starts."""

    passes: frozenset[HoldCategory]
    questions: int = 0
    refused: Answer = ""
    """The answer for all later requests of the step, set by the first refusal."""
    is_reported: bool = True
    """True: results list the held requests."""


@dataclass(eq=False, slots=True)
class _Held:
    shown: HeldRequest
    window: _Window
    answer: asyncio.Future[Answer] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class RequestHolding:
    """Holds the requests of one browser session. Initially everything passes and is learned as background, as at the
    start of a task."""

    def __init__(self, held: Sequence[HoldCategory], background: Sequence[str] = (), mask: Mask = str) -> None:
        """*held*: categories to hold; empty holds nothing. *background*: see `SessionSettings.background`. *mask* is
        applied to what is shown."""
        self.clock = StepClock(may_stop=bool(held))
        self.ask: Ask | None = None
        """None: no person is available."""
        self._held = frozenset(held)
        self._mask = mask
        self._background = Background(background)
        self._window = _Window(_ALL)
        self._waiting: list[_Held] = []
        self._asking: asyncio.Task[None] | None = None
        self._reported: list[HeldRequest] = []

    def begin(self, *, approved: bool) -> None:
        """Starts a step. With *approved* all its requests pass."""
        self._background.learning = False
        self._window = _Window(_ALL if approved else _NOTHING)

    def restart(self) -> None:
        """Starts opening the start of a task, which the user named: all requests pass and are learned."""
        self._background.learning = True
        self._window = _Window(_ALL)

    def reopen(self) -> None:
        """Starts reopening saved tabs: their documents pass. Other requests fail without a question, because a person
        may have declined them before. They belong to no step, so no result lists them."""
        self._background.learning = False
        self._window = _Window(_DOCUMENTS, refused="nobody", is_reported=False)

    def acted(self) -> None:
        """Ends learning of background, because an action was done on a page."""
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

    async def wait_until_decided(self) -> bool:
        """Waits until nothing is held. Returns whether anything was held. Raises the exceptions of `ask`."""
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
        """The requests held and answered since the last call; at most MAX_REPORTED."""
        reported, self._reported = self._reported, []
        return tuple(reported)

    async def close(self) -> None:
        """Lets all held requests fail, and all that would be held later."""
        self._window = _Window(_NOTHING, refused="nobody")
        asking, self._asking = self._asking, None
        if asking is not None:
            asking.cancel()
            await asyncio.wait({asking})
            _ = asking.cancelled() or asking.exception()
        for held in self._waiting:
            self._settle(held, "nobody")
        self._waiting.clear()

    async def _decision(self, held: _Held) -> Answer:
        self._waiting.append(held)
        if self._asking is None or self._asking.done():
            self._asking = asyncio.ensure_future(self._ask_all())
        try:
            return await held.answer
        finally:
            if held in self._waiting:  # the browser has cancelled the request
                self._waiting.remove(held)

    async def _ask_all(self) -> None:
        """Asks one question after the other until nothing is held."""
        with self.clock.stopped():
            while self._waiting:
                await self._wait_for_more()
                batch = [held for held in self._waiting if held.window is self._waiting[0].window][:MAX_TOGETHER]
                try:
                    answer = await self._answer(batch)
                except BaseException:
                    self._decide(self._waiting, "nobody")
                    raise
                self._decide(batch, answer)

    async def _wait_for_more(self) -> None:
        """Waits until no more requests arrive, so that they share one question."""
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
        answer = await self.ask(tuple(held.shown for held in batch)) if self.ask is not None else None
        return "yes" if answer is True else "nobody" if answer is None else "no"

    def _decide(self, batch: Sequence[_Held], answer: Answer) -> None:
        for held in tuple(batch):
            self._settle(held, answer)
            if held in self._waiting:
                self._waiting.remove(held)

    def _settle(self, held: _Held, answer: Answer) -> None:
        if answer != "yes":
            held.window.refused = answer
        self._report(held.shown.model_copy(update={"answer": answer}), held.window)
        if not held.answer.done():
            held.answer.set_result(answer)

    def _report(self, shown: HeldRequest, window: _Window) -> None:
        if window.is_reported and len(self._reported) < MAX_REPORTED:
            self._reported.append(shown if shown.answer else shown.model_copy(update={"answer": window.refused}))


def refusal_messages(requests: Sequence[HeldRequest]) -> tuple[str, ...]:
    """The lines of a result for requests that were not sent: the first three, and the number of the others."""
    refused = [request for request in requests if not request.sent]
    lines = [
        f"the request {request.method_in_words} {request.place} {_MESSAGES[request.answer]}" for request in refused
    ]
    more = f"{len(lines) - 3} more requests were not sent"
    return (*lines[:3], *([more] if len(lines) > 3 else []))
