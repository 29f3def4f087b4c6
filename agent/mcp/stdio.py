"""Serves an MCP client on stdin and stdout."""

from __future__ import annotations

import asyncio
import os
import sys

from agent.mcp.server import ServerSettings, TaskTools, check_settings, make_server
from agent.run.stopping import on_signals


async def serve_stdio(settings: ServerSettings, version: str, *, interrupted: int) -> None:
    """Serves until the client closes stdin. After SIGINT or SIGTERM the runs stop at their next step, then the process
    ends with the exit code *interrupted*. Raises the errors of `check_settings`."""
    await check_settings(settings)
    tools, stopped = TaskTools(settings), asyncio.Event()
    with on_signals(stopped.set):
        serving = asyncio.create_task(make_server(tools, version).run_stdio_async())
        stopping = asyncio.create_task(stopped.wait())
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not serving.done():
            if tools.running:
                await asyncio.wait(tools.running)
            # A thread waits for a line of stdin: the event loop and the interpreter would wait for the thread.
            sys.stderr.flush()
            os._exit(interrupted)
        stopping.cancel()
        await serving
