"""Targets of each kind of task, and the verifiers C of the SSL paper, App. B.4.

A target is part of an example. No completion can change it.
"""

from __future__ import annotations

import math
import re
from string import ascii_uppercase
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import Field, FiniteFloat, NonNegativeInt, PositiveInt, model_validator

from envs.core.action_languages import ParseError, language
from envs.core.actions import Action, ClickAt, DragAt, ScrollAt
from envs.core.record import Record
from models.vision.answers import UNSCALED, ParsedCompletion, Scale
from models.vision.places import plain_ascii
from training.grpo.rewards.geometry import Box, Point
from training.grpo.rewards.grids import is_path, is_sudoku, keeps_clues, parse_path, parse_rows
from training.grpo.rewards.texts import rouge_l, word_f1

AIMS = frozenset({"x", "y", "to_x", "to_y"})
"""Coordinate fields of an action. They are judged by boxes or by their distance, not by equality."""

TYPE = frozenset({"kind", "button", "count"})
"""Fields of an action that make its type."""
_WHOLE: Final = 1 - 1e-6
"""Least similarity of a text that is right: metrics of equal texts are up to 1e-8 below 1."""
_PUNCTUATION: Final = str.maketrans("", "", ",.!?;:'\"")


class PointTarget(Record):
    """An element to point at. The answer is a point (two numbers) or a box (four)."""

    kind: Literal["point"] = "point"
    box: tuple[FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat]
    """Left, top, right, bottom of the correct element, in pixels of the image; at least one pixel wide and high."""
    size: tuple[PositiveInt, PositiveInt]
    """Width and height of the image, in pixels."""

    @property
    def region(self) -> Box:
        return Box(*self.box)

    @model_validator(mode="after")
    def _fits(self) -> PointTarget:
        box = self.region
        if min(box.width, box.height) < 1:
            raise ValueError(f"box {self.box} is smaller than a pixel; its numbers are left, top, right, bottom")
        if not Box(0, 0, *self.size).holds(box.centre):
            raise ValueError(f"box {self.box} lies outside the image of {self.size[0]} x {self.size[1]} pixels")
        return self


class ChoiceTarget(Record):
    """An element among several that are marked with letters, from A on. The answer is its letter."""

    kind: Literal["choice"] = "choice"
    boxes: tuple[tuple[FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat], ...] = Field(
        min_length=2, max_length=len(ascii_uppercase)
    )
    """Left, top, right, bottom of the marked elements, in pixels of the image. Reports draw them."""
    right: NonNegativeInt
    """Place of the correct one in `boxes`, from 0."""
    size: tuple[PositiveInt, PositiveInt]
    """Width and height of the image, in pixels."""

    @property
    def region(self) -> Box:
        return Box(*self.boxes[self.right])

    @property
    def letter(self) -> str:
        """The correct answer."""
        return ascii_uppercase[self.right]

    @model_validator(mode="after")
    def _fits(self) -> ChoiceTarget:
        if self.right >= len(self.boxes):
            raise ValueError(f"the correct element is number {self.right} of {len(self.boxes)}, from 0")
        return self


class OptionTarget(Record):
    """One of several texts that the prompt lists with letters, from A on. The answer is its letter."""

    kind: Literal["option"] = "option"
    options: tuple[str, ...] = Field(min_length=2, max_length=len(ascii_uppercase))
    right: NonNegativeInt
    """Place of the correct one in `options`, from 0."""

    @property
    def letter(self) -> str:
        """The correct answer."""
        return ascii_uppercase[self.right]

    @model_validator(mode="after")
    def _fits(self) -> OptionTarget:
        if self.right >= len(self.options):
            raise ValueError(f"the correct option is number {self.right} of {len(self.options)}, from 0")
        return self


class TextTarget(Record):
    """A text, such as a caption. The answer is scored by its similarity to the most similar correct one."""

    kind: Literal["text"] = "text"
    answers: tuple[str, ...] = Field(min_length=1)
    """Correct answers, each with a word."""
    metric: Literal["rouge_l", "word_f1"]
    """See :mod:`training.grpo.rewards.texts`."""

    @model_validator(mode="after")
    def _has_words(self) -> TextTarget:
        if not all(answer.strip(" .\n\t") for answer in self.answers):
            raise ValueError("a correct answer has no words")
        return self


class StepTarget(Record):
    """One action of an agent."""

    kind: Literal["step"] = "step"
    action: Action
    language: Literal["program", "id"] = "program"
    """Action language of the answer."""
    places: tuple[PointTarget, ...] = ()
    """Target of each point of the action; a drag has a start and an end. Empty: points must be equal, see
    :func:`is_right_step`."""

    @model_validator(mode="after")
    def _fits(self) -> StepTarget:
        points = points_of(self.action)
        if self.places and len(self.places) != len(points):
            raise ValueError(f"{self.action.kind!r} names {len(points)} points, not {len(self.places)}")
        if not all(place.region.holds(point) for point, place in zip(points, self.places, strict=False)):
            raise ValueError(f"{self.action.kind!r} does not aim into its own places")
        return self


class MazeTarget(Record):
    """A maze: `#` wall, `.` floor, `S` start, `G` goal. The answer is a path as letters U, D, L, R."""

    kind: Literal["maze"] = "maze"
    rows: tuple[str, ...]
    path: str
    """A correct path, used for the proximity. Every other correct path is accepted too."""

    @model_validator(mode="after")
    def _is_one(self) -> MazeTarget:
        if len({len(row) for row in self.rows}) != 1 or set("".join(self.rows)) - set("#.SG"):
            raise ValueError("a maze is rows of one length, of the characters # . S G")
        if not is_path(self.rows, self.path):
            raise ValueError(f"{self.path!r} does not lead from S to G")
        return self


class SudokuTarget(Record):
    """A sudoku of 4x4 or 9x9: rows of digits, 0 for an empty cell. The answer is the filled rows."""

    kind: Literal["sudoku"] = "sudoku"
    puzzle: tuple[str, ...]
    solution: tuple[str, ...]

    @model_validator(mode="after")
    def _is_one(self) -> SudokuTarget:
        if not (keeps_clues(self.puzzle, self.solution) and is_sudoku(self.solution)):
            raise ValueError("the solution does not solve the puzzle")
        return self


class GridTarget(Record):
    """A grid of digits, as in ARC. The answer is its rows."""

    kind: Literal["grid"] = "grid"
    rows: tuple[str, ...]

    @model_validator(mode="after")
    def _is_one(self) -> GridTarget:
        joined = "".join(self.rows)
        if len({len(row) for row in self.rows}) != 1 or not (joined.isascii() and joined.isdigit()):
            raise ValueError("a grid is rows of one length, of the digits 0 to 9")
        return self


Target = Annotated[
    PointTarget | ChoiceTarget | OptionTarget | TextTarget | StepTarget | MazeTarget | SudokuTarget | GridTarget,
    Field(discriminator="kind"),
]


def is_right(target: Target, completion: ParsedCompletion) -> bool:
    """C(τ): whether the answer solves the task."""
    match target:
        case PointTarget():
            point = parse_point(completion)
            return point is not None and target.region.holds(point)
        case ChoiceTarget():
            return parse_choice(completion, len(target.boxes)) == target.right
        case OptionTarget():
            return parse_choice(completion, len(target.options)) == target.right
        case TextTarget():
            return similarity(target, completion) >= _WHOLE
        case StepTarget():
            return is_right_step(target, parse_action(target, completion), completion.scale)
        case MazeTarget():
            return is_path(target.rows, parse_path(completion))
        case SudokuTarget():
            rows = parse_rows(completion)
            return keeps_clues(target.puzzle, rows) and is_sudoku(rows)
        case GridTarget():
            return parse_rows(completion) == target.rows


def similarity(target: TextTarget, completion: ParsedCompletion) -> float:
    """The target's metric of the answer and the most similar correct one, 0 to 1."""
    metric = rouge_l if target.metric == "rouge_l" else word_f1
    return max(metric(completion.answer, answer) for answer in target.answers)


class AimedPoint(NamedTuple):
    """A point of an answer, with its target."""

    point: Point
    right: Point
    """The correct point: the centre of an element, or the point of the target's action."""
    place: PointTarget


def aimed_points(target: Target, completion: ParsedCompletion, *, by_type: bool = False) -> tuple[AimedPoint, ...]:
    """Returns the answer's points with their targets; empty if it has none, or if the action differs in anything else,
    such as the mouse button. *by_type*: empty if the action is of another type, see :func:`has_type`."""
    match target:
        case PointTarget():
            point = parse_point(completion)
            return () if point is None else (AimedPoint(point, target.region.centre, target),)
        case StepTarget():
            action = parse_action(target, completion)
            if action is None or not (_same_type(target, action) if by_type else _does_the_same(target, action)):
                return ()
            points = zip(points_of(action), points_of(target.action), target.places, strict=False)
            return tuple(AimedPoint(*each) for each in points)
        case _:
            return ()


def has_type(target: PointTarget | StepTarget, completion: ParsedCompletion) -> bool:
    """Whether the answer is an action of the target's type: its kind, with the mouse button and the number of clicks. A
    point answers every question for a place."""
    if isinstance(target, PointTarget):
        return parse_point(completion) is not None
    action = parse_action(target, completion)
    return action is not None and _same_type(target, action)


def places_of(target: Target) -> tuple[PointTarget, ...]:
    """Returns the targets of a correct answer's points; empty if it has no points."""
    match target:
        case PointTarget():
            return (target,)
        case StepTarget():
            return target.places
        case _:
            return ()


def has_places(target: Target) -> bool:
    """Whether a correct answer has points that are judged by boxes."""
    return bool(places_of(target))


def parse_choice(completion: ParsedCompletion, count: int) -> int | None:
    """Returns the place of the answered letter among *count* choices, from 0; None without one.

    As VisualWebBench reads it (`parse_multi_choice_response`): the answer is a letter, or begins with one and a full
    stop; else it is the last letter in brackets, else the last one between spaces, punctuation aside.
    """
    answer, letters = completion.answer.strip(), ascii_uppercase[:count]
    if len(answer) == 1 or re.match(r"[A-Z]\.", answer):
        found = letters.find(answer[0].upper())
        return None if found < 0 else found
    words = f" {answer.translate(_PUNCTUATION)} "
    for before, after in (("(", ")"), (" ", " ")):
        last, letter = max((words.rfind(f"{before}{letter}{after}"), letter) for letter in letters)
        if last >= 0:
            return letters.index(letter)
    return None


def parse_point(completion: ParsedCompletion) -> Point | None:
    """Returns the answer's point, or the centre of its box; None if there is no point or more than one."""
    return None if completion.point is None else Point(*completion.point)


def parse_box(completion: ParsedCompletion) -> Box | None:
    """Returns the answer's box; None if there is no box or more than one."""
    return None if completion.box is None else Box(*completion.box)


def parse_action(target: StepTarget, completion: ParsedCompletion) -> Action | None:
    """Parses the action in the answer, with its points in pixels of the image; None if there is none. Full-width
    characters and Unicode minus signs are read as ASCII where the answer cannot be parsed otherwise."""
    for text in dict.fromkeys((completion.answer, plain_ascii(completion.answer))):
        try:
            return scaled_action(language(target.language).parse(text).action, completion.scale)
        except ParseError:
            continue
    return None


def is_right_step(target: StepTarget, action: Action | None, scale: Scale = UNSCALED) -> bool:
    """Whether kind and arguments are equal and each point is in its box (SSL paper, App. B.4, 1 to 3), or equals the
    target's if it has no boxes: up to half a pixel, or half a step of numbers in units of *scale* pixels, which no
    rounded answer can avoid."""
    if action is None or not _does_the_same(target, action):
        return False
    points = points_of(action)
    if target.places:
        return all(place.region.holds(point) for point, place in zip(points, target.places, strict=True))
    tolerances = [(1 + 1e-6) * max(1.0, unit * 10.0 ** -decimals_of(unit)) / 2 for unit in scale]
    return all(
        abs(value - right) <= tolerance
        for point, correct in zip(points, points_of(target.action), strict=True)
        for value, right, tolerance in zip(point, correct, tolerances, strict=True)
    )


def decimals_of(unit: float) -> int:
    """Decimals with which a number in units of *unit* pixels is written: none, but where a unit is many pixels, as of 0
    to 1, those that tell pixels apart."""
    return 0 if unit <= 10 else math.ceil(math.log10(2 * unit))


def _does_the_same(target: StepTarget, action: Action) -> bool:
    """Whether the actions are equal, except for their points."""
    return action.model_dump(exclude=set(AIMS)) == target.action.model_dump(exclude=set(AIMS))


def _same_type(target: StepTarget, action: Action) -> bool:
    return action.model_dump(include=set(TYPE)) == target.action.model_dump(include=set(TYPE))


def scaled_action(action: Action, scale: Scale) -> Action:
    """Multiplies the points of *action* by *scale*."""
    if scale == UNSCALED:
        return action
    across, down = scale
    match action:
        case ClickAt() | ScrollAt():
            return action.model_copy(update={"x": action.x * across, "y": action.y * down})
        case DragAt():
            start = {"x": action.x * across, "y": action.y * down}
            return action.model_copy(update={**start, "to_x": action.to_x * across, "to_y": action.to_y * down})
        case _:
            return action


def points_of(action: Action) -> tuple[Point, ...]:
    """Returns the points on the screen that *action* names."""
    match action:
        case ClickAt() | ScrollAt():
            return (Point(action.x, action.y),)
        case DragAt():
            return (Point(action.x, action.y), Point(action.to_x, action.to_y))
        case _:
            return ()
