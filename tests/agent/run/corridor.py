"""A task of 40 steps on real pages: a code stands on page 3 and is asked for on page 38.

The scripted model answers from nothing but what its prompt shows. `python -m tests.agent.run.corridor FOLDER URL STEP`
runs the task and kills its own process when step STEP is to be chosen (0: never).
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from agent.config import RunConfig
from agent.episode.policy import ModelPolicy
from agent.run.runner import run_open
from envs.core.action_languages import PROGRAM
from models.base import ChatRequest
from models.providers.scripted_model import ScriptedModel
from tests.agent.shop import Shop, config

FACT, ASKED = 3, 38
"""The pages with the code and with the field for it."""
CODE = "KX-4711"
GOAL = "Walk through all pages and send the code that page 3 shows"
_CODE = re.compile(r"the code is ([\w-]+)")
_PAGE = re.compile(r"DATA page⟧⟧\n(.*)⟦⟦END page", re.DOTALL)


class Corridor(Shop):
    """Pages `/1` to `/38`, each with a link to the next. `sent` lists the codes that `/send` received."""

    def __init__(self, requested: Callable[[int], None] = lambda number: None) -> None:
        """*requested* is called with the number of each page before it is answered."""
        super().__init__()
        self.sent: list[str] = []
        self._requested = requested

    def page(self, path: str) -> str:
        place, _, query = path.strip("/").partition("?")
        if place == "send":
            code = query.partition("code=")[2]
            self.sent.append(code)
            return f"<title>Sent</title><p>{'Accepted' if code == CODE else 'Wrong code'}</p>"
        if not place.isdigit():
            return "<title>Nothing</title>"
        self._requested(int(place))
        return _html(int(place))

    @property
    def url(self) -> str:
        return f"{super().url}1"


def _html(number: int) -> str:
    title = f"<title>Page {number}</title><h1>Page {number}</h1>"
    if number == ASKED:
        return f"{title}<form action=/send><input name=code aria-label=Code><button>Send</button></form>"
    fact = f"<p>Remember: the code is {CODE}.</p>" if number == FACT else ""
    return f"{title}{fact}<a href=/{number + 1}>Next</a>"


def reader(dies_at: int = 0) -> ModelPolicy:
    """A policy whose model reads its prompt: it notes the code where it sees it, if the prompt offers notes."""
    asked = 0

    async def answer(request: ChatRequest) -> str:
        nonlocal asked
        asked += 1
        if asked == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        system, user = (message.text for message in request.messages[:2])
        found = _PAGE.search(user)
        page = found[1] if found else ""
        known = _CODE.search(user)
        if "Title: Sent" in page:
            return f'exit(message="{"accepted" if "Accepted" in page else "refused"}")'
        if 'textbox "Code"' not in page:
            note = (
                f"# Note: the code is {known[1]}\n" if known and known[0] in page and "# Note: text" in system else ""
            )
            return f'{note}do(action="Click", element="1")'
        code = known[1] if known else "unknown"
        return (
            'do(action="Click", element="2")'
            if f'"{code}"' in page
            else f'do(action="Type", argument="{code}", element="1")'
        )

    return ModelPolicy(ScriptedModel(answer), PROGRAM, "full")


def settings(max_notes: int = 20) -> RunConfig:
    return config(max_notes=max_notes, planner="none", judge="none", limits={"max_steps": 60})


async def walk(folder: Path, url: str, dies_at: int = 0) -> None:
    await run_open(settings(), GOAL, url, folder, run_id="r", policy=reader(dies_at))


if __name__ == "__main__":
    asyncio.run(walk(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
