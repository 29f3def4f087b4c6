"""The control protocol between this process and a site's server, over a Unix socket that no browser can access.

Each request and each reply is one line of JSON: `{"do": "ping" | "reset" | "stop"}`, then a :class:`Reply`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Literal

from pydantic import ValidationError

from envs.core.errors import ResetFailed
from envs.core.record import Record

SERVER = "server.json"
"""File in the folder of a copy. The server writes its :class:`ServerInfo` there when it is ready."""

Command = Literal["ping", "reset", "stop"]


class ServerInfo(Record):
    """Process id and addresses of a running server, stored in `SERVER`."""

    name: str
    pid: int
    port: int
    socket: str
    """Path of the control socket."""


class Reply(Record):
    """The answer to one command."""

    ok: bool
    problem: str = ""
    seconds: float = 0.0


async def ask(socket: str, command: Command, timeout_s: float) -> Reply:
    """Sends *command* and returns the reply. Raises ResetFailed if the server crashed or does not answer in time."""
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_unix_connection(socket)
            try:
                writer.write(json.dumps({"do": command}).encode() + b"\n")
                line = await reader.readline()
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
        return Reply.model_validate_json(line)
    except (OSError, TimeoutError, ValidationError) as error:
        raise ResetFailed(f"the site does not answer ({type(error).__name__})") from error
