"""The line between the kernel and a site's process: a Unix socket that no browser can reach.

One JSON object a line each way: `{"do": "ping" | "reset" | "stop"}` is answered by a :class:`Reply`.
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
"""Where a serving process says of itself, in the folder of its copy, that it is ready."""

Command = Literal["ping", "reset", "stop"]


class ServerInfo(Record):
    """What a serving process says of itself, in `SERVER` of its copy."""

    name: str
    pid: int
    port: int
    socket: str
    """Path of the control socket."""


class Reply(Record):
    ok: bool
    problem: str = ""
    seconds: float = 0.0


async def ask(socket: str, command: Command, timeout_s: float) -> Reply:
    """Raises ResetFailed where the server does not answer in time: it crashed or hangs."""
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
