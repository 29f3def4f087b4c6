"""`mira data import`: converts published data sets, or a folder of screenshots, to examples for `mira train grpo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from agent.cli.output import EXIT_OK, print_json, stdout
from agent.cli.outputs import output_file
from envs.core.errors import BadInput
from training.cli.messages import AsJson, log
from training.cli.question_options import Coordinates, Resolution, Think

NAMES = (
    "screenspot, screenspot-v2, screenspot-pro, android-control, gui-odyssey, aitz, omniact, mind2web, gui-r1-3k, "
    "visualwebbench, folder"
)


def import_examples(
    name: Annotated[
        str, typer.Argument(help=f"Data set: {NAMES} (your own screenshots), or one of a package.", metavar="NAME")
    ],
    folder: Annotated[Path, typer.Argument(help="Folder or file as it is published, unpacked.", metavar="FOLDER")],
    out: Annotated[Path, output_file("Output file, e.g. train.jsonl.")],
    ask: Annotated[
        str | None,
        typer.Option(
            help="Question of an example. element: where is this; goal: where to click for this; step: the next "
            "action; choice: the letter of a mark; text: a text about the page. Default: step for episodes, goal for "
            "benchmarks of positions, choice for visualwebbench, element for a folder."
        ),
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Part of the data set, as it names it; an unknown name lists them; default: all.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of examples, from the start; default: all.")
    ] = None,
    low: Annotated[
        bool, typer.Option("--low", help="Also show the instruction of the single step (AndroidControl-Low).")
    ] = False,
    think: Think = False,
    resolution: Resolution = False,
    coordinates: Coordinates = "pixels",
    as_json: AsJson = False,
) -> int:
    """Convert a published data set, or your own screenshots, to examples for `mira train grpo` and `mira eval`."""
    from training.data_sets.examples import ImportOptions, import_data
    from training.data_sets.registry import Ask
    from training.grpo.examples import write_examples
    from training.grpo.frames import parse_coordinates

    if ask is not None and ask not in get_args(Ask):
        raise BadInput(f"--ask {ask!r}: use {', '.join(get_args(Ask))}")
    options = ImportOptions(
        cast("Ask | None", ask), split, limit, low, think, resolution, parse_coordinates(coordinates)
    )
    result = import_data(name, folder, options, out.parent / f"{out.stem}-images")
    for reason, count in result.left_out.items():
        log(f"left out: {count} {reason.value}")
    write_examples(out, result.examples)
    if as_json:
        left = {reason.value: count for reason, count in result.left_out.items()}
        print_json({"file": str(out), "examples": len(result.examples), "left_out": left})
    else:
        stdout.print(f"{len(result.examples)} examples: {out}", highlight=False, markup=False)
    return EXIT_OK
