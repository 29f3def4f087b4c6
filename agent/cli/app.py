"""Commands and the boundary at which errors become one line and an exit code.

Only the module of the command that is asked for is imported: most of what a short command costs is its imports.
"""

from __future__ import annotations

import atexit
import errno
import gc
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Final

import typer
from typer.exceptions import Abort, TyperException

from agent.cli.output import EXIT_BAD_INPUT, EXIT_INTERRUPTED, print_problem
from envs.errors import EnvError
from models.base import ModelError

COMMANDS: Final[Mapping[str, str]] = {
    "run": "agent.cli.running:run",
    "resume": "agent.cli.running:resume",
    "demo": "agent.cli.running:demo",
    "replay": "agent.cli.replaying:replay",
    "show": "agent.cli.inspecting:show",
    "report": "agent.cli.reporting:report",
    "analyze": "agent.cli.analyzing:analyze",
    "quality": "agent.cli.measuring:quality",
    "compare": "agent.cli.comparing:compare",
    "train": "training.cli.training:app",
    "eval": "training.cli.evaluating:evaluate",
    "export": "training.cli.exporting:export",
    "import": "agent.cli.importing:import_traces",
    "tasks": "agent.cli.inspecting:tasks",
    "models": "agent.cli.inspecting:models",
    "doctor": "agent.cli.inspecting:doctor",
    "sites": "agent.cli.sites:app",
    "data": "agent.cli.data:app",
}
"""Name and place, in the order in which `mira --help` lists them. Places, not imports: `training` is above `agent`."""


def application(words: Sequence[str] = ()) -> typer.Typer:
    """The command line: with the one command that *words* begin with, or with all of them."""
    app = typer.Typer(
        name="mira",
        help="An agent for the web that plans, judges itself and learns from its traces.",
        add_completion=False,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
    )
    app.callback(invoke_without_command=True)(menu)
    for name in words[:1] if words and words[0] in COMMANDS else COMMANDS:
        module, _, attribute = COMMANDS[name].partition(":")
        command = getattr(import_module(module), attribute)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name)(command)
    return app


def menu(context: typer.Context) -> None:
    """Shows the commands when none is given."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})


def _drop_output() -> None:
    """What stands in stdout's buffer cannot be written either: the interpreter would complain of it when it ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main() -> None:
    """Runs the command line. Exit codes: 0 done, 1 the open task failed, 2 wrong input, 130 interrupted."""
    # What goes wrong is in the trace, masked; a library's log line on the terminal would be neither.
    logging.basicConfig(handlers=[logging.NullHandler()])
    atexit.register(gc.freeze)  # the interpreter's last collection would walk through all of torch, for a second
    try:
        code = application(sys.argv[1:])(standalone_mode=False)
    except TyperException as error:
        print_problem(f"{error.format_message()} (see mira --help)")
        sys.exit(EXIT_BAD_INPUT)
    except (EnvError, ModelError) as error:
        print_problem(str(error))
        sys.exit(EXIT_BAD_INPUT)
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        where = error.filename or "what was to be written"
        print_problem(f"{where}: {error.strerror}; make room, then go on: mira resume RUN, or the same command")
        _drop_output()
        sys.exit(EXIT_BAD_INPUT)
    except (KeyboardInterrupt, Abort):
        print_problem("interrupted")
        sys.exit(EXIT_INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)
