"""Turns what importers yield into the examples of `mira train grpo`."""

from __future__ import annotations

import hashlib
import io
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from pydantic import ValidationError

from envs.core.atomic_write import replacing
from envs.core.errors import BadInput
from envs.core.plain_values import first_problem
from envs.core.record import storable
from models.vision.coordinates import CoordinateSpace
from models.vision.coordinates import Size as ViewSize
from models.vision.grounding import GroundingPrompt
from models.vision.profiles import profile_named
from training.data_sets.items import Choices, Exclusion, Item, Picture, Step, TextQuestion
from training.data_sets.pictures import upright
from training.data_sets.prompts import choice_prompt, step_prompt, text_prompt
from training.data_sets.registry import DATA_SETS, Ask
from training.grpo.examples import Example, Facts
from training.grpo.frames import DECLARED_PROFILE
from training.grpo.rewards import ChoiceTarget, OptionTarget, PointTarget, StepTarget, TextTarget
from training.grpo.rewards.targets import points_of

_SUFFIX: Final = {"PNG": ".png", "JPEG": ".jpg", "WEBP": ".webp"}


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What is read, and what its examples ask."""

    ask: Ask | None = None
    """None: the data set's default."""
    split: str | None = None
    limit: int | None = None
    """The most examples."""
    low: bool = False
    """Steps: add the instruction of the single step, where the data set has one."""
    think: bool = False
    resolution: bool = False
    coordinates: CoordinateSpace = CoordinateSpace.PIXELS


@dataclass(slots=True)
class Imported:
    """The examples of a data set, and the rows that became none, by reason."""

    examples: list[Example] = field(default_factory=list[Example])
    left_out: Counter[Exclusion] = field(default_factory=Counter[Exclusion])


def import_data(name: str, folder: Path, options: ImportOptions, images: Path) -> Imported:
    """Reads the data set *name* in *folder*. Pictures that are inside of its files are written to *images*.

    Raises BadInput, which names the row, for a row of another format, and if nothing remains."""
    data_set = DATA_SETS.load(name)
    ask = options.ask or data_set.asks[0]
    if ask not in data_set.asks:
        raise BadInput(f"--ask {ask}: {name} has no such question: use {' or '.join(data_set.asks)}")
    if not folder.exists():
        raise BadInput(f"{str(folder)!r} does not exist: {name} is {data_set.files}")
    result = Imported()
    names = set[str]()
    for item in _limited(data_set.read(folder, options.split), options.limit, result):
        example = _example(item, name, ask, options, images) if isinstance(item, Item) else item
        if isinstance(example, Exclusion):
            result.left_out[example] += 1
        elif example.name in names:
            raise BadInput(f"{item.where if isinstance(item, Item) else name}: the name {example.name!r} comes twice")
        else:
            names.add(example.name)
            result.examples.append(example)
    if not result.examples:
        counts = ", ".join(f"{count} {reason.value}" for reason, count in result.left_out.items())
        raise BadInput(f"no row of {str(folder)!r} becomes an example{': ' if counts else ''}{counts}")
    return result


def _limited(items: Iterable[Item | Exclusion], limit: int | None, result: Imported) -> Iterable[Item | Exclusion]:
    for item in items:
        if limit is not None and len(result.examples) >= limit:
            return
        yield item


def _example(item: Item, source: str, ask: Ask, options: ImportOptions, images: Path) -> Example | Exclusion:
    target = _target(item, ask)
    if isinstance(target, Exclusion):
        return target
    click = item.choices.click if ask == "choice" and item.choices is not None else ask == "goal"
    facts = Facts(
        subject=storable(_subject(item, ask, low=options.low)),
        question="where_to_click" if click else "where_is",
        element=item.element,
        platform=storable(item.platform),
        group=storable(item.group),
        source=source,
        template=storable(item.episode),
        elements=item.elements,
        split=item.split,
    )
    messages: tuple[tuple[Literal["user"], str], ...] = (("user", storable(_question(item, ask, options))),)
    picture = item.choices.picture if ask == "choice" and item.choices is not None else item.picture
    try:
        image = _stored(upright(picture), images)
    except (OSError, SyntaxError, ValueError) as error:  # raised by Pillow for damaged files
        raise BadInput(f"{item.where}: the picture cannot be read: {error}") from None
    return Example(name=storable(item.name), messages=messages, target=target, image=image, facts=facts)


def _question(item: Item, ask: Ask, options: ImportOptions) -> str:
    if ask == "choice":
        return choice_prompt(item, think=options.think).text
    if ask == "text":
        return text_prompt(item, think=options.think).text
    profile = profile_named(DECLARED_PROFILE[options.coordinates])
    size = profile.sent_size(ViewSize(*item.size))
    if ask == "step":
        space, stated = options.coordinates, size if options.resolution else None
        return step_prompt(item, space=space, low=options.low, think=options.think, resolution=stated).text
    form = GroundingPrompt(think=options.think, resolution=options.resolution, profile=profile)
    if ask == "element":
        return form.where_is(item.task, size).text
    return form.where_to_click(_subject(item, ask, low=options.low), size).text


def _subject(item: Item, ask: Ask, *, low: bool) -> str:
    """The task, for goals with the instruction of the step if that is shown."""
    instruction = item.step.instruction if low and ask == "goal" and item.step is not None else ""
    return f"{item.task}; {instruction}" if instruction else item.task


def _target(item: Item, ask: Ask) -> PointTarget | StepTarget | ChoiceTarget | OptionTarget | TextTarget | Exclusion:
    if (item.question is not None) != (ask == "text"):
        return Exclusion.OTHER_QUESTION
    if item.question is not None:
        return _text_target(item, item.question)
    if ask == "choice" and item.choices is not None:
        return _choice_target(item, item.choices)
    if ask == "step" and item.step is not None:
        return _step_target(item, item.step)
    if item.box is None:
        return Exclusion.NO_POINT if item.step is not None else Exclusion.NO_BOX
    return _place(item) or Exclusion.OUTSIDE


def _step_target(item: Item, step: Step) -> StepTarget | Exclusion:
    if not points_of(step.action):
        return StepTarget(action=step.action)
    place = _place(item)
    if place is None:
        return Exclusion.OUTSIDE
    try:
        return StepTarget(action=step.action, places=(place,))
    except ValidationError:
        raise BadInput(f"{item.where}: its point is outside of its box") from None


def _choice_target(item: Item, choices: Choices) -> ChoiceTarget:
    try:
        return ChoiceTarget(boxes=choices.boxes, right=choices.right, size=choices.size)
    except ValidationError as error:
        raise BadInput(f"{item.where}: {first_problem(error)}") from None


def _text_target(item: Item, question: TextQuestion) -> OptionTarget | TextTarget:
    metric = "word_f1" if question.kind == "question" else "rouge_l"
    try:
        if question.options:
            return OptionTarget(options=question.options, right=question.right)
        return TextTarget(answers=question.answers, metric=metric)
    except ValidationError as error:
        raise BadInput(f"{item.where}: {first_problem(error)}") from None


def _place(item: Item) -> PointTarget | None:
    try:
        return None if item.box is None else PointTarget(box=item.box, size=item.size)
    except ValidationError:
        return None


def _stored(picture: Picture, images: Path) -> Path:
    """The file of *picture*; bytes are written to a file that is named after them."""
    if isinstance(picture, Path):
        return picture.resolve()
    path = images / f"{hashlib.sha256(picture).hexdigest()[:24]}{_suffix(picture)}"
    if not path.exists():
        images.mkdir(parents=True, exist_ok=True)
        with replacing(path) as part:
            part.write_bytes(picture)
    return path.resolve()


def _suffix(picture: bytes) -> str:
    from PIL import Image

    with Image.open(io.BytesIO(picture)) as image:
        return _SUFFIX.get(str(image.format), ".img")
