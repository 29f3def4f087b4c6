"""The source of the answers that `mira eval grounding`, `planning`, `grids` and `texts` score: a model or a file."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from agent.cli.output import counting
from envs.core.errors import BadInput

if TYPE_CHECKING:
    from models.base import ChatModel
    from training.grpo.predictions import Answer, StoredAnswers

A = TypeVar("A", bound="Answer")
T = TypeVar("T")

Policy = Annotated[str | None, typer.Option(help="Model spec.")]
Predictions = Annotated[Path | None, typer.Option(help="Score this file of predictions instead: name and answer.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Use the first examples only.")]
Workers = Annotated[int, typer.Option(min=1, max=256, help="Questions in flight.")]
Family = Annotated[
    str,
    typer.Option(
        "--vision-profile",
        help="Family of the model, which says its coordinates, as `mira models` lists them; or auto.",
    ),
]


def check_source(policy: str | None, predictions: Path | None) -> None:
    """Raises BadInput unless answers come from exactly one of both."""
    if (policy is None) == (predictions is None):
        raise BadInput("name either a model, --policy, or a file of --predictions")


def ask_for_missing(
    spec: str,
    base_url: str | None,
    asked: Sequence[T],
    name: Callable[[T], str],
    stored: StoredAnswers[A],
    answer: Callable[[ChatModel, Sequence[T], Callable[[A], None]], Awaitable[None]],
    *,
    noun: str,
    quiet: bool,
) -> dict[str, A]:
    """Asks the model for what *stored* lacks of *asked*, with the progress of *noun*. *answer* gives each answer to its
    last argument as it comes."""
    from models.specs import make_model

    missing = [each for each in asked if name(each) not in stored.answers]
    if not missing:
        return stored.answers
    with stored, counting(noun, len(asked), quiet=quiet) as watch:

        def keep(prediction: A) -> None:
            stored.add(prediction)
            watch(len(stored.answers))

        async def ask() -> None:
            model = make_model(spec, base_url=base_url)
            try:
                await answer(model, missing, keep)
            finally:
                await model.aclose()

        watch(len(stored.answers))
        asyncio.run(ask())
    return stored.answers
