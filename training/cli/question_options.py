"""Options of the commands that write questions for a model that sees."""

from __future__ import annotations

from typing import Annotated

import typer

Think = Annotated[bool, typer.Option("--think", help="Ask for a thought before the answer.")]
Resolution = Annotated[bool, typer.Option("--resolution", help="Include the size of the screenshot in the prompt.")]
Coordinates = Annotated[
    str,
    typer.Option(
        help="Units of the coordinates that prompts ask for: pixels, resized, thousand or unit; train with the same "
        "`coordinates`."
    ),
]
