"""Shared options, progress messages and checks of the training commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.output import EXIT_FAILED, print_problem, stderr
from agent.cli.outputs import output_folder
from envs.core.disk_errors import writing
from envs.core.errors import SAME_COMMAND, BadInput, NotWritten
from envs.core.wait_notices import waiting_for
from models.optional import LOCAL_PACKAGES, missing_line

if TYPE_CHECKING:
    from agent.cli.display import RunDisplay
    from training.engine.progress import Watcher

Config = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="TOML file with settings; default: none, each setting has its default."),
]
NamedConfig = Annotated[
    str | None,
    typer.Option(
        "--config",
        "-c",
        help="TOML file, or the name of a built-in one, e.g. smoke; an unknown name lists them; default: none, each "
        "setting has its default.",
    ),
]
Out = Annotated[Path, output_folder("Folder of the run; an interrupted run continues.")]
Changes = list[str] | None
"""Values of `--set`."""


def changes_option(example: str) -> typer.models.OptionInfo:
    """The option `--set` of a command whose configuration has the setting of *example*."""
    return typer.Option("--set", help=f"Override a setting as KEY=VALUE, e.g. {example}; repeatable.")


AsJson = Annotated[bool, typer.Option("--json", help="Print only the result, as JSON, on stdout.")]


_TRAINING = ("accelerate", "datasets", "pyarrow", "trl", "peft", "scipy", "sklearn")


def log(line: str) -> None:
    """Prints *line* on stderr."""
    stderr.print(line, highlight=False, markup=False, soft_wrap=True)


def watcher_of(display: RunDisplay) -> Watcher:
    """Shows training progress as a bar of *display* on a terminal, as one line per minute elsewhere."""
    from training.engine.progress import Lines

    return display.learning if stderr.is_terminal else Lines(log)


@contextmanager
def reporting_full_disk(out: Path) -> Generator[None]:
    """Wraps a command that writes *out*. Raises NotWritten for any error of a library that a full disk causes; the same
    command, run again, continues."""
    try:
        with writing(out):
            yield
    except NotWritten as error:
        error.continue_with = SAME_COMMAND
        raise


@contextmanager
def stopping_if_diverged() -> Generator[None]:
    """Ends the command with one line and exit code 1 where training diverged. It imports torch."""
    from training.engine.trainer import TrainingDiverged

    try:
        yield
    except TrainingDiverged as error:
        print_problem(str(error))
        raise typer.Exit(EXIT_FAILED) from error


def importing(*names: str) -> None:
    """Shows a notice that these libraries are imported, if torch is not loaded yet."""
    if "torch" not in sys.modules:
        waiting_for(f"importing {' and '.join(names)}")


def needs_extra() -> None:
    """Raises BadInput, in one line, if the extra `training` is missing."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    _require("training", "training", *LOCAL_PACKAGES, *_TRAINING)
    _check_torchvision()


def needs_local(command: str) -> None:
    """Raises BadInput, in one line, if the extra `local`, which *command* needs, is missing."""
    _require(command, "local", *LOCAL_PACKAGES)


def _require(feature: str, extra: str, *modules: str) -> None:
    if line := missing_line(feature, extra, *modules):
        raise BadInput(line)


def _check_torchvision() -> None:
    """Raises BadInput if torchvision does not fit torch: transformers could not import its trainer."""
    from importlib import import_module
    from importlib.util import find_spec

    if find_spec("torchvision") is None:
        return
    try:
        import_module("torchvision")
    except (ImportError, OSError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:100]
        raise BadInput(
            f"torchvision is installed and cannot be imported ({reason}): install the version that fits your torch"
        ) from error
