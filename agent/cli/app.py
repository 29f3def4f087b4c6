"""Builds the command line, runs it, and turns errors into one line and an exit code.

Only the module of the requested command is imported, because imports dominate the time of a short command.
"""

from __future__ import annotations

import atexit
import errno
import gc
import inspect
import logging
import os
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer
from typer.exceptions import Abort, TyperException

from agent.cli.output import EXIT_BAD_INPUT, EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, print_problem
from agent.cli.terminal import drop_output
from envs.core.errors import BadInput, BrowserNotStarted, EnvError, NotWritten


class Place(NamedTuple):
    """Where a command is defined."""

    module: str
    attribute: str
    """A function, or a group of commands."""
    summary: str
    """The first paragraph of its help, repeated here so that `mira --help` imports no command."""


COMMANDS: Final[Mapping[str, Place]] = {
    "run": Place("agent.cli.run", "run", "Run one task at a URL, or tasks of a suite."),
    "resume": Place(
        "agent.cli.run",
        "resume",
        "Continue a run that was killed or interrupted, or whose model failed, without repeating a committed action.",
    ),
    "demo": Place(
        "agent.cli.run",
        "demo",
        "Play ten MiniWoB++ tasks in Chromium with the embedded model.",
    ),
    "replay": Place(
        "agent.cli.replay",
        "replay",
        "Repeat a trace step by step, heal it, or branch from it with another policy.",
    ),
    "show": Place("agent.cli.inspect", "show", "List the episodes of runs, or the steps of one trace."),
    "report": Place(
        "agent.cli.report",
        "report",
        "Write one self-contained HTML report: steps, milestones and cause of failure of every episode.",
    ),
    "analyze": Place(
        "agent.cli.analyze",
        "analyze",
        "Explain failed episodes: milestones achieved, failure category, the step where the failure began, and what a "
        "success of the same task did instead.",
    ),
    "quality": Place(
        "agent.cli.quality",
        "quality",
        "Measure how well milestones predict success, next to the values of the MiRA paper (§5.1).",
    ),
    "compare": Place(
        "agent.cli.compare",
        "compare",
        "Compare two runs: success with a paired test on common tasks, pass@k, failures, steps, tokens, time, cost.",
    ),
    "train": Place(
        "training.cli.train", "app", "Fine-tune and train policies: SFT, MiRA and its baselines, M-GRPO, GRPO."
    ),
    "eval": Place(
        "training.cli.evaluate",
        "app",
        "Evaluate runs: success, pass@k, failures, cost and milestones; compare phases and arms.",
    ),
    "export": Place(
        "training.cli.export",
        "export",
        "Export a checkpoint for `vllm serve` as merged weights or LoRA adapter, and verify its logits.",
    ),
    "import": Place(
        "agent.cli.import_logs",
        "import_traces",
        "Convert logs of other harnesses to traces.",
    ),
    "tasks": Place(
        "agent.cli.inspect",
        "tasks",
        "List the tasks of a suite with their checkers, milestones, oracle solvers and requirements.",
    ),
    "models": Place(
        "agent.cli.inspect",
        "models",
        "List model specs, whether each works here, what is missing, and prompt profiles.",
    ),
    "doctor": Place(
        "agent.cli.inspect",
        "doctor",
        "Check that Chromium starts, and list the installed extras.",
    ),
    "login": Place(
        "agent.cli.login",
        "login",
        "Log in by hand in a window; runs start with the login.",
    ),
    "mcp": Place(
        "agent.cli.mcp",
        "serve",
        "Serve the tools run_task and resume_run to an MCP client, on stdin and stdout.",
    ),
    "sites": Place(
        "agent.cli.sites",
        "app",
        "Manage the web applications of the suite `sites`: shop, forum, code site, CMS, map.",
    ),
    "data": Place(
        "training.cli.data",
        "app",
        "Download data sets, import them, and render pages into grounding examples.",
    ),
}
"""By name, in the order of `mira --help`. Modules are strings, not imports, because `training` is above `agent`."""

COMPLETE: Final = "_MIRA_COMPLETE"
"""Set by the shell's completion script, with the command line in other variables."""
_COMPLETION_OPTIONS: Final = frozenset(("--install-completion", "--show-completion"))


def application(words: Sequence[str] | None = None) -> typer.Typer:
    """Builds the command line with all commands.

    With *words*, only the command that they name is imported; the others show their summary."""
    app = typer.Typer(
        name="mira",
        help="Run, analyze and train agents for the web.",
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
    )
    app.callback(invoke_without_command=True)(menu)
    requested = frozenset(COMMANDS) if words is None else {command_name(words)}
    for name, place in COMMANDS.items():
        if name not in requested:
            app.command(name, help=place.summary)(_placeholder)
            continue
        command = getattr(import_module(place.module), place.attribute)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name)(command)
    _unwrap(app)
    return app


def _unwrap(app: typer.Typer) -> None:
    """Joins the lines of each paragraph of help, which are wrapped for the source: a terminal has its own width."""
    for command in app.registered_commands:
        text = command.help or inspect.getdoc(command.callback) or ""
        command.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
    for group in app.registered_groups:
        if group.typer_instance is not None:
            _unwrap(group.typer_instance)


def command_name(words: Sequence[str]) -> str:
    """The command that *words*, a command line without its program, name; empty if they name none."""
    return next((word for word in words if not word.startswith("-")), "")


def _placeholder() -> None:
    """Represents a command that was not requested in the list of commands."""


def completed_words(environ: Mapping[str, str]) -> list[str]:
    """The command line that a shell asks to complete, without its program.

    The word at the cursor is left out if it may still become the name of a command."""
    line = environ.get("_TYPER_COMPLETE_ARGS") or environ.get("COMP_WORDS", "")
    words = line.split()[1:]
    return words if len(words) > 1 or line.endswith((" ", "\n")) else []


def menu(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.", is_eager=True)] = False,
) -> None:
    """Shows the list of commands if none is named."""
    if version:
        typer.echo(f"mira {installed_version()}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


_SHELLS: Final = ("bash", "zsh", "fish", "powershell", "pwsh")
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
_WRONG_PLACE: Final = frozenset(
    {
        errno.EACCES,
        errno.EEXIST,
        errno.EISDIR,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.ENOENT,
        errno.ENOTDIR,
        errno.EPERM,
    }
)
"""Error numbers of a file or folder that the user named and that cannot be used."""
_PACKAGES: Final = ("agent", "envs", "judges", "models", "planners", "training")
_DEFAULT_FOLDER: Final = "runs"
"""Where runs are written if no word of the command line names a folder."""


def _open_closed_streams() -> None:
    """Opens the null device for each standard stream that the caller closed (`>&-`), in the order of their numbers, so
    that no file of a run gets one of them."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))


def installed_version() -> str:
    """The installed version of this distribution."""
    from importlib import metadata

    try:
        return metadata.version("mira-web")
    except metadata.PackageNotFoundError:
        return "of a source tree that is not installed"


def main() -> None:
    """Runs the command line. Exit codes: 0 done; 1 the open task failed, the browser did not start in time, or the
    disk is full; 2 wrong input, or Chromium is missing; 3 the policy answers that the open task cannot be done; 130
    interrupted, or the program that read stdout ended."""
    # Errors are recorded in the trace, masked. Log lines of libraries on the terminal would not be masked.
    logging.basicConfig(handlers=[logging.NullHandler()])
    _open_closed_streams()
    words = completed_words(os.environ) if COMPLETE in os.environ else sys.argv[1:]
    atexit.register(gc.freeze)  # else the last garbage collection walks through all of torch, for a second
    try:
        if _COMPLETION_OPTIONS & set(words):
            _check_shell()
        code = application(words)(standalone_mode=False, prog_name="mira")
    except TyperException as error:
        if not (message := error.format_message()):
            sys.exit(EXIT_OK)  # a group without a command printed its help, as `mira` does
        print_problem(f"{message} (see mira --help)")
        sys.exit(EXIT_BAD_INPUT)
    except EnvError as error:
        print_problem(str(error))
        sys.exit(EXIT_FAILED if isinstance(error, BrowserNotStarted | NotWritten) else EXIT_BAD_INPUT)
    except OSError as error:
        if error.errno in _WRONG_PLACE and isinstance(error.filename, str) and _is_users(error.filename, words):
            print_problem(f"{error.filename}: {error.strerror}; name another place")
            sys.exit(EXIT_BAD_INPUT)
        if error.errno not in _NO_ROOM:
            raise
        target = error.filename or "output"
        print_problem(
            f"{target}: {error.strerror}; make room, then continue with: mira resume RUN, or the same command"
        )
        drop_output()
        sys.exit(EXIT_FAILED)
    except (KeyboardInterrupt, Abort):
        print_problem("interrupted")
        sys.exit(EXIT_INTERRUPTED)
    except Exception as error:
        if not _is_model_error(error):
            raise
        print_problem(str(error))
        sys.exit(EXIT_BAD_INPUT)
    sys.exit(code if isinstance(code, int) else 0)


def _is_users(file: str, words: Sequence[str]) -> bool:
    """Whether *file* is outside of all installed packages, or *words* name it, a folder above it or a file below it.

    Another file of a package, such as a template that is missing, is a bug of the package: no other place helps."""
    try:
        path = Path(os.path.realpath(file))
        named = [Path(os.path.realpath(place)) for place in _named_places(words)]
    except FileNotFoundError:
        return True  # the working directory was deleted: the user's other paths do not exist either
    source = Path(__file__).resolve().parents[2]
    installed = (*(source / name for name in _PACKAGES), *map(sysconfig.get_path, ("purelib", "platlib")))
    if not any(path.is_relative_to(os.path.realpath(folder)) for folder in installed):
        return True
    return any(path.is_relative_to(place) or place.is_relative_to(path) for place in named)


def _named_places(words: Sequence[str]) -> list[str]:
    """The words that may be paths; of `--option=PATH` and `-oPATH` the path."""
    places = [_DEFAULT_FOLDER]
    for word in words:
        short = word.startswith("-") and not word.startswith("--")
        places += [word, word[2:] if short else word.partition("=")[2]]
    return [place for place in places if place]


def _is_model_error(error: Exception) -> bool:
    """Whether a model raised *error*. `models.base` is not imported for this: if it is not loaded, no model raised."""
    base = sys.modules.get("models.base")
    return base is not None and isinstance(error, base.ModelError)


def _check_shell() -> None:
    """Raises BadInput unless a shell that supports completion runs this command."""
    import shellingham

    try:
        shell, _ = shellingham.detect_shell()
    except shellingham.ShellDetectionFailure:
        shell = "unknown"
    if shell not in _SHELLS:
        raise BadInput(
            f"completion supports {', '.join(_SHELLS)}, and this shell is {shell}: run the command in one of them"
        )
