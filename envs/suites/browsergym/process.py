"""Client of the BrowserGym worker process: one request, one answer, each with a timeout."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from envs.core.errors import BadInput, EnvError

VARIABLE = "BROWSERGYM_PYTHON"
WORKER = Path(__file__).with_name("worker.py")
LIST_S = 120.0
ANSWER_S = 180.0
END_S = 5.0
MAX_ANSWER_BYTES = 4 * 2**20


class GymFailed(EnvError):
    """BrowserGym or one of its tasks failed. This says nothing about the agent."""


def gym_python() -> str:
    """The Python in which BrowserGym is installed: `BROWSERGYM_PYTHON`, else this one. Raises BadInput."""
    configured = os.environ.get(VARIABLE)
    if configured and not os.access(configured, os.X_OK):
        raise BadInput(f"{VARIABLE}={configured!r} is not a program: set it to the python of BrowserGym's environment")
    return configured or sys.executable


def registered(environment: str) -> tuple[str, ...]:
    """The BrowserGym environments that *environment* names. Raises BadInput: not installed or not registered."""
    request = json.dumps({"do": "list", "environment": environment}) + "\n"
    command = [gym_python(), str(WORKER)]
    try:
        done = subprocess.run(command, input=request, capture_output=True, text=True, timeout=LIST_S, check=False)
        answer = _read(done.stdout or "{}")
    except (subprocess.TimeoutExpired, GymFailed) as error:
        raise BadInput(f"BrowserGym could not list {environment!r}: {error}") from error
    if not answer.get("environments"):
        raise BadInput(f"BrowserGym has no environment {environment!r}: use an id such as miniwob.click-test")
    return tuple(answer["environments"])


class GymProcess:
    """A running worker. Create it with :meth:`start` and `end` it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, log: Path) -> GymProcess:
        """Starts the worker; BrowserGym's output goes to *log*. Raises BadInput, GymFailed."""
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as errors:
            process = await asyncio.create_subprocess_exec(
                gym_python(),
                str(WORKER),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                limit=MAX_ANSWER_BYTES,
                start_new_session=True,
            )
        return cls(process)

    async def ask(self, do: str, **more: object) -> dict[str, Any]:
        """Sends a request and returns the answer. Raises BadInput, or GymFailed: an error, a timeout, a dead worker."""
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None and answers is not None, "both are pipes"
        try:
            async with asyncio.timeout(ANSWER_S):
                requests.write((json.dumps({"do": do, **more}) + "\n").encode())
                await requests.drain()
                line = await answers.readline()
        except TimeoutError as error:
            await self.end()
            raise GymFailed(f"BrowserGym did not answer {do!r} within {ANSWER_S:g} s and was ended") from error
        except (OSError, ValueError) as error:
            raise GymFailed(f"BrowserGym's process takes no request: {error}") from error
        if not line:
            raise GymFailed("BrowserGym's process has ended: see browsergym.log in the run's folder")
        return _read(line.decode("utf-8"))

    async def end(self) -> None:
        """Ends the worker and its child processes; safe to call twice."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with suppress(TimeoutError):
            async with asyncio.timeout(END_S):
                await self._process.wait()


def _read(line: str) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = json.loads(line)
    except ValueError as error:
        raise GymFailed(f"BrowserGym's process answered no JSON: {line[:80]!r}") from error
    if "missing" in answer:
        raise BadInput(
            f"{gym_python()} has no {answer['missing']}: BrowserGym pins an old Playwright, so give it an environment "
            f"of its own (python -m venv gym; gym/bin/pip install browsergym-core) and set {VARIABLE}=gym/bin/python"
        )
    if "error" in answer:
        raise GymFailed(" ".join(str(answer["error"]).split())[:300])
    return answer
