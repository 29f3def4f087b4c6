"""A page, turns on it, and a scripted model with a vendor's tool set. No model plays here."""

from __future__ import annotations

import asyncio
import io
from dataclasses import replace
from typing import Any

from PIL import Image as Pillow

from agent.episode.policy import ActionProposal, Turn
from agent.episode.prompts import PolicyView
from agent.episode.toolsets.functions import FUNCTIONS
from agent.episode.toolsets.policy import ToolsetPolicy
from envs.core.action_languages import PROGRAM
from envs.core.actions import Action, ActionResult, Status
from envs.core.observation import Box, Element, ElementKey, Observation, Tab
from envs.core.past_actions import PastAction
from envs.core.tasks import TaskRef
from models.base import ChatReply, Usage
from models.tool_use import ModelTurn, SafetyCheck, ToolCall, ToolReply, ToolRequest, Toolset

SIZE = (1280, 800)


def png(size: tuple[int, int] = SIZE) -> bytes:
    out = io.BytesIO()
    Pillow.new("RGB", size, "white").save(out, "PNG")
    return out.getvalue()


def element(
    ref: int, role: str, name: str, *states: str, options: tuple[str, ...] = (), box: Box | None = None
) -> Element:
    return Element(ref, ElementKey("", role, name, 0, "0"), role, states, None, options, box, True)


ELEMENTS = (
    element(1, "textbox", "Email", "focused", box=Box(10, 10, 100, 20)),
    element(2, "checkbox", "Agree", "checked"),
    element(3, "combobox", "Size", options=("S", "M")),
    element(4, "button", "Save order"),
)
TEXT = '[1] textbox "Email"  [2] checkbox "Agree"\n[3] combobox "Size"  [4] button "Save order"\n\\[9] not a control'
TABS = (Tab(0, "Shop", "http://shop.test/", True), Tab(1, "Help", "http://shop.test/help", False))
OBSERVATION = Observation(
    "http://shop.test/", "Shop", TEXT, ELEMENTS, TABS, "0" * 16, SIZE, (0, 0), 4, screenshot=png(), document="d"
)
VIEW = PolicyView(instruction="Buy tea", observation=OBSERVATION, language=PROGRAM)


class ScriptedToolModel:
    """Answers with the calls of a script."""

    def __init__(
        self,
        toolset: Toolset,
        *answers: list[tuple[str, dict[str, Any]]] | str | Exception,
        checks: tuple[SafetyCheck, ...] = (),
    ) -> None:
        """*checks*: of the last call of the first answer."""
        self.spec = f"{toolset}:scripted"
        self.toolset: Toolset = toolset
        self.requests: list[ToolRequest] = []
        self._answers = iter(answers)
        self._checks = checks

    async def converse(self, request: ToolRequest) -> ToolReply:
        self.requests.append(request)
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        number = len(self.requests)
        listed = answer if isinstance(answer, list) else []
        functions = set(FUNCTIONS) - ({"navigate"} if self.toolset == "anthropic-browser" else set())
        calls = tuple(
            ToolCall(f"{number}.{place}", name, arguments, is_function=name in functions)
            for place, (name, arguments) in enumerate(listed)
        )
        if number == 1 and calls:
            calls = (*calls[:-1], replace(calls[-1], checks=self._checks))
        text = answer if isinstance(answer, str) else ""
        return ToolReply(ModelTurn(({"n": number},), text, calls), ChatReply(text, Usage(tokens_in=10), "m", 0.1))


TURN = Turn(TaskRef(suite="open", name="x", seed=0), 1, 1, VIEW)


def after(turn: Turn, action: Action | None, result: ActionResult, observation: Observation = OBSERVATION) -> Turn:
    """The next turn, in which *action* was carried out."""
    assert action is not None
    past = (*turn.past, PastAction(action, None, result))
    view = replace(turn.view, observation=observation, history=past, last=result, problems=())
    return replace(turn, step=turn.step + 1, past=past, view=view)


OK = ActionResult(status=Status.OK)


def proposed(policy: ToolsetPolicy, turn: Turn) -> ActionProposal:
    return asyncio.run(policy.propose(turn))
