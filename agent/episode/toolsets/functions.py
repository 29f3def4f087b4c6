"""Functions of this program that every tool set gets: to end the episode, and what the vendors' tools lack here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agent.episode.toolsets.calls import Arguments, Do, Outcome, Refuse, Scene, Table
from envs.core.actions import AnswerDialog, Back, CloseTab, FocusTab, Forward, Goto, Stop
from models.prompting.prompt_text import words
from models.tool_use import FunctionTool


def _parameters(required: tuple[str, ...] = (), **properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


FINISH: Final = FunctionTool(
    "finish",
    "Ends the task. Call it when the goal is reached, with the answer if the goal asks for one, or when it cannot be "
    "reached, with an answer that begins with N/A: and the reason.",
    _parameters(answer={"type": "string", "description": "The answer, as the goal asks for it. Leave it out if none."}),
)
DIALOG: Final = FunctionTool(
    "answer_dialog",
    "Answers the dialog of the page that is open (alert, confirm, prompt). It blocks the page and is not in the "
    "screenshot.",
    _parameters(
        ("accept",),
        accept={"type": "boolean"},
        text={"type": "string", "description": "The text for a prompt."},
    ),
)
NAVIGATE: Final = FunctionTool(
    "navigate",
    "Opens an address in the tab shown, or goes back or forward in its history. The browser's own bars are not in the "
    "screenshot.",
    _parameters(("url",), url={"type": "string", "description": "An address, or: back, forward, reload."}),
)
TAB: Final = FunctionTool(
    "tab",
    "Brings a tab to the front, or closes the tab shown.",
    _parameters(
        index={"type": "integer", "description": "Number of the tab to show, as listed."},
        close={"type": "boolean", "description": "Close the tab shown instead."},
    ),
)


def navigated(call: Arguments, scene: Scene) -> Outcome:
    url = call.text("url").strip()
    match url.lower():
        case "back":
            return Do((Back(),))
        case "forward":
            return Do((Forward(),))
        case "reload":
            return Do((Goto(url=scene.observation.url),))
        case _:
            return Do((Goto(url=url),))


def _finished(call: Arguments, _: Scene) -> Outcome:
    return Do((Stop(answer=call.text("answer", "") or None),))


def _dialog(call: Arguments, scene: Scene) -> Outcome:
    if scene.observation.dialog is None:
        return Refuse(words("no dialog is open"))
    accept = call.values.get("accept")
    if not isinstance(accept, bool):
        return Refuse(words("say whether to accept the dialog: true or false"))
    return Do((AnswerDialog(accept=accept, text=call.text("text", "")),))


def _tab(call: Arguments, _: Scene) -> Outcome:
    if call.values.get("close") is True:
        return Do((CloseTab(),))
    index = call.number("index")
    if index < 0 or index != int(index):
        return Refuse(words("a tab has a number from 0"))
    return Do((FocusTab(index=int(index)),))


FUNCTIONS: Final[Table] = {
    FINISH.name: _finished,
    DIALOG.name: _dialog,
    NAVIGATE.name: navigated,
    TAB.name: _tab,
}
FOR_BROWSER: Final = (FINISH, DIALOG)
"""The browser tool set has its own calls for addresses and tabs."""
FOR_COMPUTER: Final = (FINISH, DIALOG, NAVIGATE, TAB)
