"""Asks a model where something is on a screenshot, and reads its answer: in training and in play alike.

`mira train examples --ask element` writes these prompts, `mira train grpo` rewards the answers, and a run with a
grounder sends the same prompts with the policy's words in place of an element's role and name.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Final, Literal, LiteralString

from models.local.declarations import declarations, declare
from models.prompting.prompt_text import NOTHING, PromptText, joined, number, on_one_line, own, words
from models.prompting.thought_request import THOUGHT_REQUEST
from models.vision.answers import read_completion
from models.vision.coordinates import CoordinateSpace, ImageFrame, Point, Size
from models.vision.places import holds_several_points, names_axes
from models.vision.profiles import GENERAL, PROFILES, VisionProfile

SUBJECT_CHARS: Final = 8_000
"""Longest description of what is looked for."""
THINK: Final = f" {THOUGHT_REQUEST}"
_KEY: Final = "grounding"
"""Key of the form in `mira.json`."""
_PLAIN: Final = "plain"
"""The form in `mira.json` of a question that asks for a point, without a thought and the resolution."""
_RESOLUTION: Final = re.compile(r"The screenshot resolution is \d+x\d+\. ")
_STATED: Final = re.compile(r"^The screenshot resolution is \d+x\d+\.", re.MULTILINE)
_WHERE: Final = "Where is "
_CLICK: Final = "Where to click next: "


class AnswerShape(StrEnum):
    """What a question asks for. The centre of a box is the answered point."""

    POINT = "point"
    BOX = "box"
    JSON_BOX = "json_box"


_SHAPES: Final[Mapping[AnswerShape, tuple[LiteralString, LiteralString]]] = {
    AnswerShape.POINT: (" Answer with x and y ", "."),
    AnswerShape.BOX: (" Answer with the bounding box [x1, y1, x2, y2] ", "."),
    AnswerShape.JSON_BOX: (" Answer with the bounding box [x1, y1, x2, y2] ", ", in JSON format."),
}
"""Words before and after the units."""
UNITS: Final[Mapping[CoordinateSpace, LiteralString]] = {
    CoordinateSpace.PIXELS: "in pixels",
    CoordinateSpace.RESIZED: "in pixels",
    CoordinateSpace.THOUSAND: "from 0 to 1000",
    CoordinateSpace.UNIT: "from 0 to 1",
}
"""How a prompt asks for coordinates."""
_PLAIN_FIRST: Final = sorted(PROFILES, key=lambda profile: profile.click != GENERAL.click)
_FORMS: Final = tuple((profile, shape) for shape in AnswerShape for profile in _PLAIN_FIRST)
"""Questions for a box do not tell families with the same coordinates apart: the plainest comes first."""


@dataclass(frozen=True, slots=True)
class GroundingPrompt:
    """The form of the question that a model was trained on."""

    think: bool = False
    """It asks for a thought before the answer."""
    resolution: bool = False
    """It states the size of the screenshot."""
    shape: AnswerShape = AnswerShape.POINT
    """What it asks for."""
    profile: VisionProfile = GENERAL
    """Its coordinates. Where its family writes a point in a way of its own, the question says how."""

    def where_is(self, subject: str, size: Size) -> PromptText:
        """Asks for the place of *subject*, which is text from outside, on an image of *size*."""
        return self._question(words(_WHERE) + on_one_line(subject, SUBJECT_CHARS) + words("?"), size)

    def where_to_click(self, goal: str, size: Size) -> PromptText:
        """Asks for the place of the next click for *goal*."""
        return self._question(words(_CLICK) + on_one_line(goal, SUBJECT_CHARS), size)

    def reworded(self, question: str, size: Size) -> str | None:
        """The same *question* in this form, in the coordinates that it asks for; None if it is no question of
        :meth:`where_is` or :meth:`where_to_click`."""
        asked = question.removesuffix(THINK)
        asked = asked[found.end() :] if (found := _RESOLUTION.match(asked)) else asked
        for profile, shape in _FORMS:
            ending = _asks_for(profile, shape).text
            if asked.startswith((_WHERE, _CLICK)) and asked.endswith(ending):
                form = replace(self, profile=profile)
                return form._question(on_one_line(asked.removesuffix(ending), 2 * SUBJECT_CHARS), size).text
        return None

    def _question(self, question: PromptText, size: Size) -> PromptText:
        shown = (resolution_sentence(size), words(" "))
        thought = words(THINK) if self.think else NOTHING
        asked = _asks_for(self.profile, self.shape)
        return joined("", (*(shown if self.resolution else ()), question, asked, thought))


def resolution_sentence(size: Size) -> PromptText:
    """States that the screenshot has *size* in pixels: after resizing, if answers are in pixels of that image."""
    wide, high = number(int(size.width)), number(int(size.height))
    return joined("", (words("The screenshot resolution is "), wide, words("x"), high, words(".")))


def states_resolution(prompt: str) -> bool:
    """Whether a line of *prompt* begins with :func:`resolution_sentence`."""
    return _STATED.search(prompt) is not None


def restated(prompt: str, size: Size) -> str:
    """*prompt* with *size* in the last line that begins with :func:`resolution_sentence`; *prompt* without one."""
    stated = tuple(_STATED.finditer(prompt))
    if not stated:
        return prompt
    last = stated[-1]
    return f"{prompt[: last.start()]}{resolution_sentence(size).text}{prompt[last.end() :]}"


def _asks_for(profile: VisionProfile, shape: AnswerShape) -> PromptText:
    before, after = _SHAPES[shape]
    asked = joined("", (words(before), words(UNITS[profile.space]), words(after)))
    if shape is not AnswerShape.POINT or profile.space is GENERAL.space or profile.click == GENERAL.click:
        return asked
    return joined("", (asked, words(" Write them as "), own(profile.click), words(".")))


def prompt_form(questions: Iterable[str]) -> GroundingPrompt | None:
    """The form of *questions* of :meth:`GroundingPrompt.where_is`, without their profile; None if one is no such
    question, or they differ."""
    forms = {_form(question) for question in questions}
    return forms.pop() if len(forms) == 1 else None


def _form(question: str) -> GroundingPrompt | None:
    asked = question.removesuffix(THINK)
    shown = _RESOLUTION.match(asked)
    if not asked.startswith(_WHERE, 0 if shown is None else shown.end()):
        return None
    shapes = (shape for profile, shape in _FORMS if asked.endswith(f"?{_asks_for(profile, shape).text}"))
    shape = next(shapes, None)
    return None if shape is None else GroundingPrompt(asked != question, shown is not None, shape)


def shape_of(question: str) -> AnswerShape | None:
    """What a question asks for that ends as one of :class:`GroundingPrompt`; None for others."""
    found = _ending(question.removesuffix(THINK))
    return None if found is None else found[1]


def _ending(asked: str) -> tuple[str, AnswerShape] | None:
    """The longest ending of a form that *asked* has, and what it asks for."""
    ends = ((_asks_for(profile, shape).text, shape) for profile, shape in _FORMS)
    return max((one for one in ends if asked.endswith(one[0])), key=lambda one: len(one[0]), default=None)


def subject_of(question: str) -> tuple[Literal["where_is", "where_to_click"], str] | None:
    """What a question of :class:`GroundingPrompt` asks for: an element or a goal, and its words. None for others."""
    asked = question.removesuffix(THINK)
    shown = _RESOLUTION.match(asked)
    asked = asked[0 if shown is None else shown.end() :]
    if (found := _ending(asked)) is None:
        return None
    asked = asked.removesuffix(found[0])
    if asked.startswith(_WHERE) and asked.endswith("?"):
        return "where_is", asked[len(_WHERE) : -1]
    return ("where_to_click", asked[len(_CLICK) :]) if asked.startswith(_CLICK) else None


def declare_form(folder: Path, form: GroundingPrompt | None) -> None:
    """Declares in `mira.json` that the checkpoint in *folder* was trained on questions of *form*; does nothing for
    None. Its profile is declared by :func:`models.vision.checkpoints.declare_profile`."""
    if form is not None:
        declare(folder, _KEY, _word(form))


def declared_form(*folders: Path) -> GroundingPrompt | None:
    """The form that the first of *folders* with a declaration declares; None without one."""
    forms = itertools.starmap(GroundingPrompt, itertools.product((False, True), (False, True), AnswerShape))
    known = {_word(form): form for form in forms}
    declared = (known.get(str(declarations(folder).get(_KEY))) for folder in folders)
    return next((form for form in declared if form is not None), None)


def _word(form: GroundingPrompt) -> str:
    """The form in `mira.json`: what the question asks for and states, besides a point."""
    parts = (("think", form.think), ("resolution", form.resolution), (form.shape, form.shape is not AnswerShape.POINT))
    return ", ".join(str(word) for word, given in parts if given) or _PLAIN


class PointProblem(StrEnum):
    """Why an answer names no usable point. The value completes "Your answer"; the model is asked again with it."""

    NONE = "names no point"
    SEVERAL = "names several points"
    OUTSIDE = "names a point outside of the image"


def read_point(text: str, form: GroundingPrompt, frame: ImageFrame) -> Point | PointProblem:
    """The point of an answer in CSS pixels of the view: its only point, or the centre of its only box.

    Rewards read answers likewise, except that they take two points for the corners of a box however they are written.
    """
    completion = read_completion(text)
    pointed = completion.point
    if holds_several_points(completion.answer) or (pointed is None and len(completion.places) > 1):
        return PointProblem.SEVERAL
    if pointed is None:
        return PointProblem.NONE
    if form.profile.order == "yx" and not names_axes(completion.answer):
        pointed = (pointed[1], pointed[0])
    point = frame.to_view(form.profile.space, Point(*pointed))
    inside = 0 <= point.x < frame.view.width and 0 <= point.y < frame.view.height
    return point if inside else PointProblem.OUTSIDE
