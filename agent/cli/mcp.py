"""`mira mcp`: an MCP server on stdin and stdout, for agents that give tasks on websites to Mira."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer

from agent.cli import options, role_options
from agent.cli.app import installed_version
from agent.cli.output import EXIT_INTERRUPTED, EXIT_OK, print_problem
from agent.cli.outputs import output_folder
from models.optional import require

Start = Annotated[
    list[str] | None,
    typer.Option(
        help="Tasks may begin at this origin: https://shop.example or *.shop.example; repeatable. any: everywhere on "
        "the public internet."
    ),
]
Workers = Annotated[int | None, typer.Option(min=1, max=64, help="Number of tasks in parallel; default: 1.")]
Out = Annotated[
    Path, output_folder("Folder in which the runs' folders are created; a client can resume the runs in it.")
]


def serve(
    start: Start = None,
    policy: options.Policy = None,
    planner: options.Planner = None,
    judge: options.Judge = None,
    base_url: role_options.BaseUrl = None,
    workers: Workers = None,
    max_steps: options.MaxSteps = None,
    max_seconds: options.MaxSeconds = None,
    max_tokens: options.MaxTokens = None,
    max_cost: options.MaxCost = None,
    headed: options.Headed = False,
    allow: options.Allow = None,
    proxy: options.Proxy = None,
    secret: options.Secret = None,
    tools: options.Tools = None,
    approve: options.Approve = None,
    storage_state: options.StorageState = None,
    upload_folder: options.UploadFolder = None,
    screenshots: options.Screenshots = None,
    config: options.ConfigFile = None,
    out: Out = Path("runs/mcp"),
) -> int:
    """Serve the tools run_task and resume_run to an MCP client, on stdin and stdout.

    The client chooses task, start address and form of the answer; everything else is decided here. Actions that need
    approval are shown to the client's user. Needs the extra mcp."""
    require("mira mcp", "mcp", "mcp")
    limits = {"max_steps": max_steps, "max_seconds": max_seconds, "max_tokens": max_tokens, "max_cost_usd": max_cost}
    session = {"allow": allow, "proxy": {"server": proxy}, "storage_state": storage_state}
    values = {
        **{"policy": policy, "planner": planner, "judge": judge, **role_options.base_urls(base_url)},
        **{"workers": workers, "headed": headed or None, "secrets": secret, "screenshots": screenshots},
        **{"tools": options.chosen_names(tools, "--tools"), "limits": limits},
        "approve": options.approved_classes(approve),
        "session": {**session, "upload_folder": upload_folder},
    }
    from agent.mcp.server import ServerSettings, start_origins
    from agent.mcp.stdio import serve_stdio

    settings = ServerSettings(options.build_config(config, values), start_origins(start or ()), out)
    if sys.stdin.isatty():
        print_problem("waiting for an MCP client on stdin; name this command in the client's settings")
    asyncio.run(serve_stdio(settings, installed_version(), interrupted=EXIT_INTERRUPTED))
    return EXIT_OK
