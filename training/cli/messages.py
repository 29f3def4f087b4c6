"""What the commands that train share: their options, and how they tell of long work."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.output import stderr
from envs.core.disk_errors import writing
from envs.core.errors import SAME_COMMAND, BadInput, NotWritten
from envs.core.wait_notices import waiting_for
from models.optional import LOCAL_PACKAGES, install_command, missing_modules

if TYPE_CHECKING:
    from agent.cli.display import RunDisplay
    from training.engine.progress import Watcher

Config = Annotated[Path | None, typer.Option("--config", "-c", help="TOML file.")]
NamedConfig = Annotated[
    str | None,
    typer.Option(
        "--config", "-c", help="TOML file, or the name of one that ships, such as smoke; an unknown name lists them."
    ),
]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder of the run; one that was broken off goes on.")]
Changes = Annotated[list[str] | None, typer.Option("--set", help="KEY=VALUE over the file, e.g. targets.alpha=0.1")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


_TRAINING = ("accelerate", "datasets", "pyarrow", "trl", "peft", "scipy", "sklearn")


def tell(line: str) -> None:
    stderr.print(line, highlight=False, markup=False, soft_wrap=True)


def watcher_of(display: RunDisplay) -> Watcher:
    """A bar of *display* where a person looks, a line a minute elsewhere."""
    from training.engine.progress import Lines

    return display.learning if stderr.is_terminal else Lines(tell)


@contextmanager
def room_for(out: Path) -> Generator[None]:
    """Around a command that trains or writes *out*. Raises NotWritten in place of whatever a library raises where the
    disk is full; the same command goes on, whatever broke off inside."""
    try:
        with writing(out):
            yield
    except NotWritten as error:
        error.continue_with = SAME_COMMAND
        raise


def importing(*names: str) -> None:
    """Says that these libraries are imported next, where that takes its time: where torch is not there yet."""
    if "torch" not in sys.modules:
        waiting_for(f"importing {' and '.join(names)}")


def needs_extra() -> None:
    """Raises BadInput in one line where the extra `training` is missing."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    _require("training", "training", *LOCAL_PACKAGES, *_TRAINING)
    _check_torchvision()


def needs_local(what: str) -> None:
    """Raises BadInput in one line where the extra `local`, which *what* needs, is missing."""
    _require(what, "local", *LOCAL_PACKAGES)


def _require(what: str, extra: str, *names: str) -> None:
    if missing := missing_modules(*names):
        raise BadInput(f"{what} needs {', '.join(missing)}: {install_command(extra)}")


def _check_torchvision() -> None:
    """Raises BadInput where one is installed that does not fit torch: transformers could import no trainer then."""
    from importlib import import_module
    from importlib.util import find_spec

    if find_spec("torchvision") is None:
        return
    try:
        import_module("torchvision")
    except (ImportError, OSError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:100]
        raise BadInput(
            f"torchvision is installed and cannot be imported ({reason}): take the version that fits your torch"
        ) from error
