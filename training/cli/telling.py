"""What the commands that train share: their options, and how they tell of long work."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.output import stderr
from envs.errors import BadInput

if TYPE_CHECKING:
    from agent.display import RunDisplay
    from training.stages.watching import Watcher

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


def tell(line: str) -> None:
    stderr.print(line, highlight=False, markup=False, soft_wrap=True)


def watcher_of(display: RunDisplay) -> Watcher:
    """A bar of *display* where a person looks, a line a minute elsewhere."""
    from training.stages.watching import Lines

    return display.learning if stderr.is_terminal else Lines(tell)


def needs_extra() -> None:
    """Raises BadInput in one line where the extra `training` is missing."""
    from importlib.util import find_spec

    warnings.filterwarnings("ignore", message=".*is_gradient_checkpointing.*")  # transformers' own use of its old name
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    missing = [name for name in ("accelerate", "pyarrow", "trl", "peft") if find_spec(name) is None]
    if missing:
        raise BadInput(f"training needs {', '.join(missing)}: pip install 'mira-web[training]'")
