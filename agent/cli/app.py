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
from typing import Annotated, Final, NamedTuple

import typer
from typer.exceptions import Abort, TyperException

from agent.cli.output import EXIT_BAD_INPUT, EXIT_FAILED, EXIT_INTERRUPTED, print_problem
from envs.core.errors import BadInput, BrowserNotStarted, EnvError, NotWritten


class Place(NamedTuple):
    """Where a command is defined."""

    module: str
    attribute: str
    """A function, or a group of commands."""
    summary: str
    """The first paragraph of its help, written down here so that the list of commands imports none of them."""


COMMANDS: Final[Mapping[str, Place]] = {
    "run": Place("agent.cli.run", "run", "Does one open task at a URL, or plays tasks of a suite."),
    "resume": Place(
        "agent.cli.run",
        "resume",
        "Continues a run that was killed or interrupted, or whose model failed. Repeats no committed action.",
    ),
    "demo": Place(
        "agent.cli.run",
        "demo",
        "The embedded model plays ten MiniWoB++ tasks live in Chromium, planner and judge in the loop.",
    ),
    "replay": Place(
        "agent.cli.replay",
        "replay",
        "Does a trace again against the live site. Exit code 0: same outcome, 1: another one, 2: wrong input.",
    ),
    "show": Place("agent.cli.inspect", "show", "Lists the episodes of runs, or the steps of one trace."),
    "report": Place(
        "agent.cli.report",
        "report",
        "Writes one HTML file, good offline, that shows every episode: its steps, its milestones, and why it failed.",
    ),
    "analyze": Place(
        "agent.cli.analyze",
        "analyze",
        "Says of each failed episode what was achieved, which kind of failure it is, and at which step it began.",
    ),
    "quality": Place(
        "agent.cli.quality",
        "quality",
        "Measures subgoal quality: do milestones done tell success, beside the numbers of the MiRA paper (§5.1)?",
    ),
    "compare": Place(
        "agent.cli.compare",
        "compare",
        "Compares two runs: success with a paired test on common tasks, pass@k, failures, steps, tokens, time, cost.",
    ),
    "train": Place("training.cli.train", "app", "Makes a local policy better from traces."),
    "eval": Place(
        "training.cli.evaluate",
        "evaluate",
        "Reports success, pass@k, failures, cost and milestones of runs; sets phases and arms beside each other.",
    ),
    "export": Place(
        "training.cli.export",
        "export",
        "Writes what `vllm serve` takes: merged weights or a LoRA adapter, compared with the checkpoint they come "
        "from.",
    ),
    "import": Place(
        "agent.cli.import_logs",
        "import_traces",
        "Turns logs of other harnesses into traces that `show`, `analyze` and `report` read.",
    ),
    "tasks": Place(
        "agent.cli.inspect",
        "tasks",
        "Lists the tasks of a suite: which have a checker, milestones, a solver for the oracle, and what they need.",
    ),
    "models": Place(
        "agent.cli.inspect", "models", "Says which model specs work here and what is missing for the others."
    ),
    "doctor": Place(
        "agent.cli.inspect",
        "doctor",
        "Starts Chromium once and says what this machine has. Exit code 2: there is no browser, 1: it is too slow.",
    ),
    "sites": Place(
        "agent.cli.sites",
        "app",
        "Real web applications as a world for agents: shop, forum, code site, CMS, map.",
    ),
    "data": Place("agent.cli.data", "app", "Data of other projects: task files of WebArena, a map of Helsinki."),
}
"""By name, in the order in which `mira --help` lists them. Places, not imports: `training` is above `agent`."""

COMPLETE: Final = "_MIRA_COMPLETE"
"""Set by the shell's completion script, with the command line in other variables."""
_COMPLETION_OPTIONS: Final = frozenset(("--install-completion", "--show-completion"))


def application(words: Sequence[str] | None = None) -> typer.Typer:
    """The command line with all commands; where *words* are given, only the one that they name is imported, and the
    others show their summary."""
    app = typer.Typer(
        name="mira",
        help="An agent for the web that plans, judges itself and learns from its traces.",
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
    )
    app.callback(invoke_without_command=True)(menu)
    asked = frozenset(COMMANDS) if words is None else {named(words)}
    for name, place in COMMANDS.items():
        if name not in asked:
            app.command(name, help=place.summary)(_not_asked)
            continue
        command = getattr(import_module(place.module), place.attribute)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name)(command)
    return app


def named(words: Sequence[str]) -> str:
    """The command that *words*, a command line without its program, are about; empty where they name none."""
    return next((word for word in words if not word.startswith("-")), "")


def _not_asked() -> None:
    """Stands in the list for a command that was not asked for."""


def completed_words(environ: Mapping[str, str]) -> list[str]:
    """The command line that a shell wants completed, without its program; the word at the cursor is left out, where
    it may still become the name of a command."""
    line = environ.get("_TYPER_COMPLETE_ARGS") or environ.get("COMP_WORDS", "")
    words = line.split()[1:]
    return words if len(words) > 1 or line.endswith((" ", "\n")) else []


def menu(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.", is_eager=True)] = False,
) -> None:
    """Shows the commands when none is given."""
    if version:
        typer.echo(f"mira {_version()}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


_SHELLS: Final = ("bash", "zsh", "fish", "powershell", "pwsh")
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})


def _drop_output() -> None:
    """What stands in stdout's buffer cannot be written either: the interpreter would complain of it when it ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _version() -> str:
    from importlib import metadata

    try:
        return metadata.version("mira-web")
    except metadata.PackageNotFoundError:
        return "of a source tree that is not installed"


def main() -> None:
    """Runs the command line. Exit codes: 0 done, 1 the open task failed, the browser did not start or the disk is full,
    2 wrong input, 130 interrupted."""
    # What goes wrong is in the trace, masked; a library's log line on the terminal would be neither.
    logging.basicConfig(handlers=[logging.NullHandler()])
    words = completed_words(os.environ) if COMPLETE in os.environ else sys.argv[1:]
    atexit.register(gc.freeze)  # the interpreter's last collection would walk through all of torch, for a second
    try:
        if _COMPLETION_OPTIONS & set(words):
            _check_shell()
        code = application(words)(standalone_mode=False, prog_name="mira")
    except TyperException as error:
        print_problem(f"{error.format_message()} (see mira --help)")
        sys.exit(EXIT_BAD_INPUT)
    except EnvError as error:
        print_problem(str(error))
        sys.exit(EXIT_FAILED if isinstance(error, BrowserNotStarted | NotWritten) else EXIT_BAD_INPUT)
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        where = error.filename or "what was to be written"
        print_problem(f"{where}: {error.strerror}; make room, then continue with: mira resume RUN, or the same command")
        _drop_output()
        sys.exit(EXIT_BAD_INPUT)
    except (KeyboardInterrupt, Abort):
        print_problem("interrupted")
        sys.exit(EXIT_INTERRUPTED)
    except Exception as error:
        if not _is_models(error):
            raise
        print_problem(str(error))
        sys.exit(EXIT_BAD_INPUT)
    sys.exit(code if isinstance(code, int) else 0)


def _is_models(error: Exception) -> bool:
    """Whether a model raised it. Without the module there is no such error, and `mira --help` does without it."""
    base = sys.modules.get("models.base")
    return base is not None and isinstance(error, base.ModelError)


def _check_shell() -> None:
    """Raises BadInput where no shell that has completion runs this command."""
    import shellingham

    try:
        shell, _ = shellingham.detect_shell()
    except shellingham.ShellDetectionFailure:
        shell = "none that is known"
    if shell not in _SHELLS:
        raise BadInput(f"completion is for {', '.join(_SHELLS)}; the shell that runs this is {shell}: run it from one")
