"""The BrowserGym worker: a small program that runs in the Python in which BrowserGym is installed.

It imports nothing of Mira. It reads one JSON request per line from standard input and writes one JSON
answer per line. It ends with its input, so it never outlives the run. Output of libraries goes to
standard error.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from typing import Any, TextIO

PREFIX = "browsergym/"


class QuietChat:
    """BrowserGym's chat without its window, which would be a second browser. Tasks read only `messages`."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.messages: list[dict[str, Any]] = []

    def add_message(self, role: str, msg: str) -> None:
        if role != "info":
            self.messages.append({"role": role, "timestamp": 0.0, "message": msg})

    def close(self) -> None:
        """Does nothing: there is no window."""


class Worker:
    """Executes requests on one environment."""

    def __init__(self) -> None:
        self._env: Any = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Executes the operation `request["do"]`."""
        match request["do"]:
            case "list":
                return {"environments": registered(request["environment"])}
            case "open":
                return self._open(request["environment"], request["endpoint"])
            case "reset":
                return self._reset(request["seed"])
            case "say":
                self._env.chat.add_message("assistant", request["text"])
                return self._check()
            case "check":
                return self._check()
            case "new_tab":
                self._env.context.new_page()
                return {}
            case other:
                raise ValueError(f"unknown request {other!r}")

    def _open(self, environment: str, endpoint: str) -> dict[str, Any]:
        load(environment)
        core: Any = importlib.import_module("browsergym.core")
        core_env: Any = importlib.import_module("browsergym.core.env")
        chromium = core._get_global_playwright().chromium

        def connect(*_: object, **__: object) -> Any:
            return chromium.connect_over_cdp(endpoint)

        chromium.launch = connect
        core_env.Chat = QuietChat
        if self._env is not None:
            self._env.close()
        gym: Any = importlib.import_module("gymnasium")
        wrapped = gym.make(_full_name(environment), disable_env_checker=True, pre_observation_delay=0.0)
        self._env = wrapped.unwrapped
        return {}

    def _reset(self, seed: int) -> dict[str, Any]:
        self._env.reset(seed=seed)
        parts = [part["text"] for part in self._env.goal_object if part["type"] == "text"]
        return {"goal": "\n".join(parts), "url": self._env.page.url}

    def _check(self) -> dict[str, Any]:
        """Validates the task. Unlike `step`, this does not change the page."""
        env = self._env
        env.context.cookies()  # runs pending callbacks, including those that set the active page
        env._active_page_check()
        reward, done, _, _ = env.task.validate(env.page, env.chat.messages)
        return {"reward": float(reward), "done": bool(done)}


def load(environment: str) -> None:
    """Imports what registers *environment*: `browsergym.X` for `X.task`, or the module before a colon."""
    importlib.import_module("browsergym.core")
    module, _, name = environment.rpartition(":")
    benchmark = f"browsergym.{name.removeprefix(PREFIX).partition('.')[0]}"
    if module:
        importlib.import_module(module)
    elif importlib.util.find_spec(benchmark) is not None:
        importlib.import_module(benchmark)


def registered(environment: str) -> list[str]:
    """The environment of this name, or all below it (`miniwob` selects every `miniwob.…`)."""
    load(environment)
    prefix = _full_name(environment)
    gym: Any = importlib.import_module("gymnasium")
    names = sorted(name for name in gym.registry if name == prefix or name.startswith(f"{prefix}."))
    return [name.removeprefix(PREFIX) for name in names]


def _full_name(environment: str) -> str:
    return PREFIX + environment.rpartition(":")[2].removeprefix(PREFIX)


def serve(requests: TextIO, answers: TextIO) -> None:
    """Answers every request; an error inside BrowserGym becomes an answer."""
    worker = Worker()
    for line in requests:
        try:
            answer = worker.answer(json.loads(line))
        except ModuleNotFoundError as error:
            answer = {"missing": error.name or str(error)}
        except Exception as error:  # noqa: BLE001  # a task may raise any exception: the client interprets it
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def main() -> None:
    """Runs the worker, with standard output reserved for answers."""
    del sys.path[0]  # this file's folder contains module names that are not BrowserGym's
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    serve(sys.stdin, answers)


if __name__ == "__main__":
    main()
