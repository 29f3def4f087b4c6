"""Reads and writes examples: a prompt and its target, one JSON object per line. Images are separate files."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Final, Literal

from pydantic import Field, FiniteFloat, ValidationError

from envs.core.atomic_write import write_atomically
from envs.core.errors import BadInput
from envs.core.plain_values import first_problem
from envs.core.record import Record
from models.base import Image, Message
from models.vision.coordinates import Size
from models.vision.grounding import restated
from training.grpo.rewards import ChoiceTarget, Target, places_of

_PNG: Final = b"\x89PNG"

Role = Literal["system", "user", "assistant"]


Split = Literal["train", "validation", "test"]


class Facts(Record):
    """What is known of an example. Evaluations group answers by it; no model is shown it."""

    subject: str = ""
    """What is looked for, in words: the instruction without the form of the prompt."""
    question: Literal["where_is", "where_to_click"] = "where_is"
    """The question of :class:`models.vision.grounding.GroundingPrompt` that *subject* completes: an element, or a
    goal."""
    asks: Literal["name", "function", "relation", ""] = ""
    """How the subject names the element: by its name, by what it does, or by its neighbours."""
    element: Literal["text", "icon", ""] = ""
    """Whether the element shows text, or a picture alone."""
    platform: str = ""
    """Where the image was made: web, windows, android …"""
    source: str = ""
    """What made it: a suite, a generator or a data set."""
    template: str = ""
    """Page template. Examples of one template are alike: they are in one split and are drawn together by intervals."""
    group: str = ""
    """Part of the data set, as its tables name it: ScreenSpot-Pro's category, Mind2Web's split, VisualWebBench's
    subtask."""
    elements: tuple[tuple[FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat], ...] = ()
    """Boxes of the element that a step acts on, in pixels of the image, also where its action names no point; a place
    in any of them is right. Of data sets that score the element of every step (Mind2Web)."""
    split: Split | None = None
    distractors: tuple[tuple[FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat], ...] = ()
    """Boxes of other elements that resemble the correct one: left, top, right, bottom in pixels of the image."""


class Preparation(Record):
    """How a thought to imitate was made: AdaGUI-R1, §3.2, §3.3 and Alg. 1."""

    solved: float
    """ρ: share of sampled answers that were correct, 0 to 1 (Eq. 3)."""
    level: int
    """Difficulty (Eq. 4); 1 is easy."""
    hard: bool
    agreed: bool | None = None
    """Whether the action predicted from the first thought was judged equivalent to the correct one; None without a
    thought."""
    revised: bool = False
    """Whether the thought is the revised one."""
    calls: int = 0
    """Requests to both models."""
    tokens_in: int = 0
    tokens_out: int = 0
    """Thinking included."""
    cost_usd: float | None = None
    """None if a price is unknown."""


class Example(Record):
    """One prompt and its target."""

    name: str
    """Unique in its file."""
    messages: tuple[tuple[Role, str], ...] = Field(min_length=1)
    """Messages of the prompt: (role, text)."""
    target: Target
    image: Path | None = None
    """Image of the last message. The path is relative to the folder in a file, absolute in memory."""
    facts: Facts | None = None
    thought: str | None = None
    """The thought that supervised fine-tuning imitates before the correct answer, in tags; empty: empty tags; None: no
    tags."""
    preparation: Preparation | None = None
    """How `thought` was made, where models made it."""

    @property
    def picture(self) -> bytes | None:
        """The bytes of the image file. Raises BadInput if it cannot be read."""
        if self.image is None:
            return None
        try:
            return self.image.read_bytes()
        except OSError as error:
            raise BadInput(f"example {self.name!r}: image {str(self.image)!r}: {error.strerror}") from error

    @property
    def picture_digest(self) -> str | None:
        """SHA-256 of the bytes of the image file, in hexadecimal: equal for copies under other paths. Raises BadInput
        if it cannot be read."""
        picture = self.picture
        return None if picture is None else hashlib.sha256(picture).hexdigest()


def picture_as_png(example: Example) -> bytes:
    """The image of *example* as PNG, which models are sent. Raises BadInput if it cannot be read."""
    picture = example.picture or b""
    if picture.startswith(_PNG):
        return picture
    from PIL import Image

    out = io.BytesIO()
    try:
        with Image.open(io.BytesIO(picture)) as opened:
            opened.convert("RGB").save(out, format="PNG")
    except (OSError, ValueError) as error:
        raise BadInput(f"example {example.name!r}: its image cannot be read: {error}") from None
    return out.getvalue()


def read_examples(path: Path, *, empty: bool = False) -> tuple[Example, ...]:
    """Reads a file of examples. Raises BadInput for an invalid line, a duplicate name, a missing image, or a file
    without examples unless it may be *empty*."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")  # a text may hold other ends of lines
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"examples {str(path)!r} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    examples_by_name: dict[str, Example] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            example = Example.model_validate_json(line)
        except ValidationError as error:
            raise BadInput(f"{path}:{number}: not an example: {first_problem(error)}") from None
        if example.name in examples_by_name:
            raise BadInput(f"{path}:{number}: the name {example.name!r} comes twice")
        if example.image is not None:
            image = (path.parent / example.image).resolve()
            if not image.is_file():
                raise BadInput(f"{path}:{number}: image {str(image)!r} does not exist")
            example = example.model_copy(update={"image": image})
        examples_by_name[example.name] = example
    if not examples_by_name and not empty:
        raise BadInput(f"{str(path)!r} holds no examples")
    return tuple(examples_by_name.values())


def read_example_files(places: Sequence[Path]) -> tuple[Example, ...]:
    """Reads several files, in order. Raises BadInput, also for a duplicate name among them."""
    examples_by_name: dict[str, Example] = {}
    for place in places:
        for example in read_examples(place):
            if example.name in examples_by_name:
                raise BadInput(
                    f"{str(place)!r}: the name {example.name!r} is in an earlier file, too: rename one of them"
                )
            examples_by_name[example.name] = example
    return tuple(examples_by_name.values())


def holds_examples(path: Path) -> bool:
    """Whether *path* is a file of examples, and no trace."""
    try:
        with path.open(encoding="utf-8") as file:
            first: object = json.loads(next((line for line in file if line.strip()), ""))
    except (OSError, ValueError):
        return False
    return isinstance(first, dict) and {"messages", "target"} <= first.keys()


def write_examples(path: Path, examples: Iterable[Example]) -> None:
    """Writes a file of examples atomically. Image paths become relative to its folder."""
    folder = path.parent.resolve()
    lines = (example_line(example, folder) for example in examples)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, "".join(lines))


def example_line(example: Example, folder: Path) -> str:
    """The line of *example* in a file in the absolute *folder*, with its end."""
    unset = {name for name in ("thought", "preparation") if getattr(example, name) is None}
    return _relative(example, folder).model_dump_json(exclude=unset) + "\n"


def _relative(example: Example, folder: Path) -> Example:
    if example.image is None:
        return example
    return example.model_copy(update={"image": Path(os.path.relpath(example.image.resolve(), folder))})


def examples_digest(examples: Iterable[Example], *, thoughts: bool = False) -> str:
    """16 hex digits that identify what a policy learns from: names, prompts, targets and pictures, without facts; with
    *thoughts* also those to imitate."""
    digest = hashlib.sha256()
    for example in examples:
        shown = example.model_copy(update={"image": None}).model_dump_json(exclude={"facts", "thought", "preparation"})
        digest.update(shown.encode())
        digest.update((example.thought or "").encode() if thoughts else b"")
        digest.update(example.picture or b"")
    return digest.hexdigest()[:16]


def count_shared_prompts(examples: Sequence[Example], others: Sequence[Example]) -> int:
    """Counts the *examples* with a prompt that one of *others* has too: equal messages, and equal bytes of the picture,
    in whatever file. Raises BadInput if a picture cannot be read."""
    known = {_prompt_key(example) for example in others}
    return sum(_prompt_key(example) in known for example in examples)


def _prompt_key(example: Example) -> tuple[object, ...]:
    return example.messages, example.picture_digest


def share_of(examples: Sequence[Example], share: float, seed: int = 0) -> tuple[Example, ...]:
    """Draws a *share* of *examples*, above 0 to 1, in their order. A smaller share is a subset of a larger one."""
    if share >= 1:
        return tuple(examples)
    order = list(range(len(examples)))
    Random(f"share {seed}").shuffle(order)
    drawn = set(order[: math.ceil(share * len(examples) - 1e-9)])
    return tuple(example for place, example in enumerate(examples) if place in drawn)


def image_size(picture: bytes) -> tuple[int, int]:
    """Returns width and height of an image file in pixels. Raises BadInput if it is not an image."""
    from PIL import Image

    try:
        return Image.open(io.BytesIO(picture)).size
    except (OSError, SyntaxError, ValueError) as error:  # raised by Pillow for damaged files
        raise BadInput(f"an image cannot be read: {error}") from error


def messages_of(example: Example, images: tuple[Image, ...] = (), shown: Size | None = None) -> tuple[Message, ...]:
    """The messages of *example*, the last one with *images*. *shown*: the size in which the model sees them, which the
    prompt then states if it states one."""
    *before, (role, text) = example.messages
    stated = text if shown is None else restated(text, shown)
    return (*(Message(*one) for one in before), Message(role, stated, images))


def check_images(examples: Sequence[Example]) -> None:
    """Raises BadInput if only some of *examples* have an image, or if an image is invalid or has another size than its
    target states."""
    pictured = [example for example in examples if example.image is not None]
    if pictured and len(pictured) != len(examples):
        raise BadInput(f"{len(pictured)} of {len(examples)} examples have an image: give all of them one, or none")
    for example in pictured:
        try:
            size = image_size(example.picture or b"")
        except BadInput as error:
            raise BadInput(f"example {example.name!r}, {str(example.image)!r}: {error}") from error
        if any(stated != size for stated in _stated_sizes(example.target)):
            raise BadInput(
                f"example {example.name!r}: its image has {size[0]} x {size[1]} pixels, but its target "
                "has another size: correct one of them"
            )


def _stated_sizes(target: Target) -> tuple[tuple[int, int], ...]:
    return (target.size,) if isinstance(target, ChoiceTarget) else tuple(place.size for place in places_of(target))
