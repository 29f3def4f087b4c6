"""Examples: a prompt and what is right. One JSON object a line; images are files beside it."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from envs.core.atomic_write import write_atomically
from envs.core.errors import BadInput
from envs.core.plain_values import first_problem
from envs.core.record import Record
from training.grpo.rewards import Target, places_of

Role = Literal["system", "user", "assistant"]


class Example(Record):
    """One prompt and its target."""

    name: str
    """Of the task, unique in its file."""
    messages: tuple[tuple[Role, str], ...] = Field(min_length=1)
    """(role, text) of the prompt."""
    target: Target
    image: Path | None = None
    """What the last message shows; in a file relative to its folder, in memory absolute."""

    @property
    def picture(self) -> bytes | None:
        """The image's file. Raises BadInput where it cannot be read."""
        if self.image is None:
            return None
        try:
            return self.image.read_bytes()
        except OSError as error:
            raise BadInput(f"example {self.name!r}: image {str(self.image)!r}: {error.strerror}") from error


def read_examples(path: Path, *, empty: bool = False) -> tuple[Example, ...]:
    """Raises BadInput naming the first line that is none, a name that comes twice, or an image that is not there; and
    where there is no example, unless it may be *empty*."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")  # a text may hold other ends of lines
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"examples {str(path)!r} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    found: dict[str, Example] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            example = Example.model_validate_json(line)
        except ValidationError as error:
            raise BadInput(f"{path}:{number}: no example: {first_problem(error)}") from None
        if example.name in found:
            raise BadInput(f"{path}:{number}: the name {example.name!r} comes twice")
        if example.image is not None:
            image = (path.parent / example.image).resolve()
            if not image.is_file():
                raise BadInput(f"{path}:{number}: image {str(image)!r} does not exist")
            example = example.model_copy(update={"image": image})
        found[example.name] = example
    if not found and not empty:
        raise BadInput(f"{str(path)!r} holds no examples")
    return tuple(found.values())


def read_example_files(places: Sequence[Path]) -> tuple[Example, ...]:
    """Those of several files, in their order. Raises BadInput, also for a name that comes twice among them."""
    found: dict[str, Example] = {}
    for place in places:
        for example in read_examples(place):
            if example.name in found:
                raise BadInput(f"{str(place)!r}: the name {example.name!r} is in an earlier file, too")
            found[example.name] = example
    return tuple(found.values())


def write_examples(path: Path, examples: Iterable[Example]) -> None:
    """The old file or the new one, never half of it. Images are told relative to its folder."""
    folder = path.parent.resolve()
    lines = (_relative(example, folder).model_dump_json() for example in examples)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, "".join(f"{line}\n" for line in lines))


def _relative(example: Example, folder: Path) -> Example:
    if example.image is None:
        return example
    return example.model_copy(update={"image": Path(os.path.relpath(example.image.resolve(), folder))})


def count_shared_prompts(one: Sequence[Example], other: Sequence[Example]) -> int:
    """How many of *one* ask what an example of *other* asks, too."""
    asked = {_asked(example) for example in other}
    return sum(_asked(example) in asked for example in one)


def _asked(example: Example) -> tuple[object, ...]:
    return example.messages, example.image


def image_size(picture: bytes) -> tuple[int, int]:
    """Width and height in pixels of an image file. Raises BadInput where it is none."""
    from PIL import Image

    try:
        return Image.open(io.BytesIO(picture)).size
    except (OSError, SyntaxError, ValueError) as error:  # what Pillow raises for damaged files
        raise BadInput(f"an image cannot be read: {error}") from error


def check_images(examples: Sequence[Example]) -> None:
    """Raises BadInput where only some of *examples* have an image, where one is none, or is of another size than its
    target says: its answers would be judged in the wrong place."""
    seen = [example for example in examples if example.image is not None]
    if seen and len(seen) != len(examples):
        raise BadInput(f"{len(seen)} of {len(examples)} examples have an image: either all or none")
    for example in seen:
        try:
            size = image_size(example.picture or b"")
        except BadInput as error:
            raise BadInput(f"example {example.name!r}, {str(example.image)!r}: {error}") from error
        if any(place.size != size for place in places_of(example.target)):
            raise BadInput(
                f"example {example.name!r}: its image has {size[0]} x {size[1]} pixels, its target says otherwise"
            )
