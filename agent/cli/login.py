"""`mira login`: a window in which a person logs in, for `--storage-state`."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from agent.cli import options
from agent.cli.output import EXIT_OK, print_json, print_problem, stdout
from agent.cli.outputs import output_file
from agent.config import parse_config

Out = Annotated[Path, output_file("File for the cookies and the storage, which only you can read.")]


def login(
    url: Annotated[str, typer.Argument(help="Address of the login page.", metavar="URL")],
    proxy: options.Proxy = None,
    out: Out = Path("login.json"),
    as_json: options.Json = False,
) -> int:
    """Log in by hand in a window; runs start with the login.

    Cookies and storage are written when you press Enter here or close the last tab. `mira run --storage-state FILE`
    starts with them. Log in with an account that has no more rights than the task needs."""
    from agent.run.environments import check_display
    from envs.browser.login import state_after_login
    from envs.core.atomic_write import write_atomically
    from envs.security.allowlist import check_address

    check_address(url)
    check_display(parse_config({"headed": True}, "login"))
    if not as_json:
        enter = "Press Enter here, or close" if sys.stdin.isatty() else "Close"
        stdout.print(f"Log in in the window. {enter} the last tab when you are done.", highlight=False)
    state = asyncio.run(state_after_login(url, _enter, proxy=proxy))
    write_atomically(out, json.dumps(state, indent=2), private=True)
    hosts = sorted({cookie["domain"].lstrip(".") for cookie in state["cookies"]})
    hosts += [host for origin in state["origins"] if (host := urlsplit(origin["origin"]).netloc) not in hosts]
    if not hosts:
        print_problem(f"{out} has no cookies and no storage: the site keeps its login elsewhere, or nobody logged in")
    if as_json:
        print_json({"file": str(out), "hosts": hosts})
    else:
        stdout.print(f"{out}: state of {', '.join(hosts) or 'no site'}", soft_wrap=True, highlight=False)
    return EXIT_OK


async def _enter() -> None:
    """Returns when Enter is pressed in the terminal; never without one."""
    pressed, loop = asyncio.Event(), asyncio.get_running_loop()

    def read() -> None:
        with suppress(OSError, RuntimeError):  # RuntimeError: the window was closed, and so was the loop
            if sys.stdin.readline():
                loop.call_soon_threadsafe(pressed.set)

    if sys.stdin.isatty():
        threading.Thread(target=read, name="enter", daemon=True).start()
    await pressed.wait()
