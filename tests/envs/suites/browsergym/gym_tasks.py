"""A BrowserGym benchmark of three tasks, as a user would write it. Only BrowserGym's Python imports it."""

# BrowserGym is installed in another environment.
# pyright: reportMissingImports=false, reportUntypedBaseClass=false

from __future__ import annotations

import os
from typing import Any

from browsergym.core.registration import register_task
from browsergym.core.task import AbstractBrowserTask


class PressButton(AbstractBrowserTask):
    """Done with reward 1 when the page's title is `done N` for the seed N."""

    @classmethod
    def get_task_id(cls) -> str:
        return "miratest.press"

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.seed = seed

    def setup(self, page: Any) -> tuple[str, dict[str, Any]]:
        page.goto(f"{os.environ['MIRATEST_SITE']}/press?seed={self.seed}")
        return f"Press the button\nnumber {self.seed}.", {}

    def validate(self, page: Any, chat_messages: list[dict[str, Any]]) -> tuple[float, bool, str, dict[str, Any]]:
        done = any(tab.title() == f"done {self.seed}" for tab in page.context.pages)
        return float(done), done, "", {}

    def teardown(self) -> None: ...


class TellNumber(PressButton):
    """Reward 1 for the right answer in the chat, half for a wrong one."""

    @classmethod
    def get_task_id(cls) -> str:
        return "miratest.tell"

    def validate(self, page: Any, chat_messages: list[dict[str, Any]]) -> tuple[float, bool, str, dict[str, Any]]:
        answers = [message["message"] for message in chat_messages if message["role"] == "assistant"][1:]
        return (1.0 if str(self.seed) in answers else 0.5 if answers else 0.0), False, "", {}


class Broken(PressButton):
    """Raises an error when it is validated."""

    @classmethod
    def get_task_id(cls) -> str:
        return "miratest.broken"

    def validate(self, page: Any, chat_messages: list[dict[str, Any]]) -> tuple[float, bool, str, dict[str, Any]]:
        raise RuntimeError("the database is\ngone")


for task in (PressButton, TellNumber, Broken):
    register_task(task.get_task_id(), task)
