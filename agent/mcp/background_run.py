"""A run in the background of tool calls, with its progress and its questions in order.

From protocol 2026-07-28 on, a question ends a tool call and its answer arrives with the next one, so a run outlives the
call that began it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from agent.episode.approval import ApprovalRequest, Approver
from agent.progress import Event, Listener, RunStarted, StepDone
from agent.results import RunResult

ANSWER_S: Final = 600.0
"""Seconds for which a run waits for the answer to a question. Without one the action is declined."""

Play = Callable[[Listener, Approver, asyncio.Event], Awaitable[RunResult]]
"""Starts or resumes a run with this listener and this approver, which ends when the event is set."""


@dataclass(eq=False)
class Question:
    """An action or requests of it that need approval."""

    request: ApprovalRequest
    reply: asyncio.Future[bool | None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def answer(self, approved: bool | None) -> None:
        """Ends the wait for the answer, in the terms of :data:`agent.episode.approval.Approver`. An answer after
        `ANSWER_S` has no effect."""
        if not self.reply.done():
            self.reply.set_result(approved)


Reported = RunStarted | StepDone | Question


def step_words(event: StepDone) -> str:
    """The step in words, with its status unless it is `ok`. Contains page text."""
    if event.declined:
        return f"declined: {event.declined}"
    return event.words if event.status == "ok" else f"{event.words} ({event.status})"


class BackgroundRun:
    """A run as a task of the running event loop."""

    def __init__(self, play: Play, *, answer_s: float = ANSWER_S) -> None:
        self.started = False
        """Whether the run has begun; before, it waits for others, or is being prepared."""
        self.steps: list[str] = []
        """The committed steps in words."""
        self._answer_s = answer_s
        self._reported: asyncio.Queue[Reported | None] = asyncio.Queue()
        self._stop = asyncio.Event()
        self.task = asyncio.ensure_future(play(self._listen, self._ask, self._stop))
        """Its result is that of the run, or the run's error."""
        self.task.add_done_callback(lambda _: self._reported.put_nowait(None))

    async def next_reported(self) -> Reported | None:
        """Waits for the next event or question; None after the last one. Only one call may wait at a time."""
        return await self._reported.get()

    async def stop(self) -> None:
        """Stops the run at its next step and waits until its browser is closed. `mira resume` continues it."""
        self._stop.set()
        if not self.started:
            self.task.cancel()
        await asyncio.wait({self.task})
        if not self.task.cancelled():
            self.task.exception()  # else asyncio logs it as an error that nothing has read

    def _listen(self, event: Event) -> None:
        match event:
            case StepDone():
                self.steps.append(f"{event.step}. {step_words(event)}")
                self._reported.put_nowait(event)
            case RunStarted():
                self.started = True
                self._reported.put_nowait(event)
            case _:
                pass

    async def _ask(self, request: ApprovalRequest) -> bool | None:
        question = Question(request)
        self._reported.put_nowait(question)
        done, _ = await asyncio.wait({question.reply}, timeout=self._answer_s)
        return question.reply.result() if done else None
