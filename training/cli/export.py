"""`mira export`: exports a checkpoint for a server; `--check` verifies an existing export."""

from __future__ import annotations

import shlex
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli import options
from agent.cli.output import EXIT_OK, print_json, printable, stderr, stdout
from envs.core.disk_errors import writing
from envs.core.errors import BadInput
from models.providers.local import LocalSpec
from models.specs import parse_spec
from training.cli.messages import needs_local
from training.serving.artifact import Dtype, Kind
from training.starts import start_folder

if TYPE_CHECKING:
    from training.serving.verify import Verification

Source = Annotated[
    str,
    typer.Argument(
        help="Checkpoint DIR or FILE.gguf, alone or with +ADAPTER; with --check, an export.", metavar="CHECKPOINT"
    ),
]
To = Annotated[Path | None, typer.Option("--to", "--out", "-o", help="New folder for the export.")]
KindOption = Annotated[Kind, typer.Option("--kind", help="Merged model, or an adapter with a reference to its base.")]
DtypeOption = Annotated[
    Dtype | None, typer.Option("--dtype", help="Data type of merged weights; default: that of the base model.")
]
Check = Annotated[bool, typer.Option("--check", help="Write nothing; compare an existing export with its source.")]


def export(
    source: Source,
    *,
    to: To = None,
    kind: KindOption = "merged",
    dtype: DtypeOption = None,
    check: Check = False,
    as_json: options.Json = False,
) -> int:
    """Export a checkpoint for `vllm serve` as merged weights or LoRA adapter, and verify its logits."""
    if check == (to is not None):
        raise BadInput("use either --to DIR to export, or --check to verify an existing export")
    needs_local("mira export")
    if check:
        folder, verified = Path(source), _checked(Path(source), as_json)
    else:
        folder = to or Path()
        verified = _exported(source, folder, kind, dtype, as_json)
    command = shlex.join(verified.manifest.serve_command(folder.resolve()))
    if as_json:
        print_json({"folder": str(folder), "serve": command, **verified.model_dump(mode="json")})
        return EXIT_OK
    manifest = verified.manifest
    stdout.print(f"{printable(str(folder))}: {manifest.kind}, {manifest.parameters:,} parameters in {manifest.dtype}")
    stdout.print(
        f"logits differ from the source's by {verified.difference:.2g} of their spread (allowed {verified.bound:g}) "
        f"over {verified.tokens} tokens; {verified.choices_changed} next-token choices changed"
    )
    stdout.print(printable(command), soft_wrap=True, highlight=False)
    return EXIT_OK


def _exported(source: str, to: Path, kind: Kind, dtype: Dtype | None, quiet: bool) -> Verification:
    spec = parse_spec(source if source.startswith("local:") else f"local:{source}")
    base = start_folder(str(spec.folder)) if isinstance(spec, LocalSpec) else Path()
    if not isinstance(spec, LocalSpec) or not (base / "config.json").is_file():
        raise BadInput(f"{source!r} is not a checkpoint folder (it has no config.json): use DIR or DIR+ADAPTER")
    with _working("reading, writing, comparing", quiet):
        from training.serving.export import export as write  # imports torch, which takes seconds

        with writing(to):
            return write(base, spec.adapter, to, kind=kind, dtype=dtype)


def _checked(folder: Path, quiet: bool) -> Verification:
    with _working("comparing", quiet):
        from training.serving.verify import verify

        return verify(folder)


def _working(text: str, quiet: bool) -> AbstractContextManager[object]:
    return stderr.status(text) if stderr.is_terminal and not quiet else nullcontext()
