"""Generates the command line reference from the commands."""

from __future__ import annotations

import re
from typing import Any

import typer
from typer.cli import get_docs_for_click

from agent.cli.app import COMMANDS, application

_BULLET = re.compile(r"^\* `(\S+)`: .*$", re.MULTILINE)
_COMMAND_LIST = re.compile(r"\*\*Commands\*\*:\n\n(?:\* .*\n)+")
INTRODUCTION = """Generated from the commands. `mira COMMAND --help` shows the same. Everything that prints a result
takes `--json`. Commands, options and files complete in a shell after `mira --install-completion`.
"""


def cli_page() -> str:
    """Markdown of one page with every command, its arguments and options."""
    group: Any = typer.main.get_command(application())
    context = typer.Context(group, info_name="mira")
    text = get_docs_for_click(obj=group, ctx=context, name="mira", title="Command line")
    text = _COMMAND_LIST.sub(lambda match: _linked(match[0], text, group), text)
    title, _, rest = text.partition("\n")
    return f"{title}\n\n{INTRODUCTION}{rest}"


def _linked(listing: str, text: str, group: Any) -> str:
    """Rewrites the command list of a group with links and complete summaries."""
    above = text[: text.index(listing)]
    names = re.findall(r"^## `mira (\S+)`", above, re.MULTILINE)
    parent = group.commands[names[-1]] if names else group
    prefix = ["mira", names[-1]] if names else ["mira"]
    return _BULLET.sub(lambda match: _entry([*prefix, match[1]], parent.commands[match[1]]), listing)


def _entry(path: list[str], command: Any) -> str:
    known = COMMANDS.get(path[1]) if len(path) == 2 else None
    summary = known.summary if known else (command.help or "").partition("\n\n")[0]
    return f"* [`{' '.join(path)}`](#{'-'.join(path)}): {' '.join(summary.split())}"
