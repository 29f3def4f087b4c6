"""When an answered action is right, by the rules of three published evaluations. Pure functions of two actions.

**OS-Atlas** (`eval_scripts/*/evaluation_unify.py` for AndroidControl, GUI-Odyssey and OmniACT), which SSL follows
(App. B):

    Type   the action types are equal
    SR     and so are the arguments: a point at most 14 % of the screen away, where both sides of the screen are 1; a
           text or the name of an app with an F1 of its words above 0.5; all else equal
    GR     of the steps that are a click, and were answered by a click: the share with the point right

**AITZ** (CoAT, `ActionEvaluator`), which AdaGUI-R1 reports as TM and EM:

    TM     the types are equal; pressing any key is one type, ending the task, done or impossible, is another
    EM     and so are the arguments: a point in the element; a text that contains the other one, or is similar to it by
           more than 0.8; the same key; the same direction

**Mind2Web** (`action_prediction/metric.py` and the paper's §4.1), for steps whose element is known, which LPO reports
on Multimodal-Mind2Web:

    Ele.Acc    the place is in the box of a positive candidate (as SeeClick's `mind2web_test.py` judges points; Mind2Web
               itself compares chosen candidates)
    Op.F1      F1 of the sets of words of the operation and its value, such as `TYPE Rome`
    Step SR    the element is right, and Op.F1 is 1

Three lines of the published scripts are not followed. OS-Atlas compares the first word of a text alone, the action's
name included for GUI-Odyssey: here all words of the text, without the name. CoAT takes an empty text for a part of
every text: here it equals an empty text alone. CoAT's models answer boxes, which must hold the point or overlap its
element: here a point must be in the element.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from envs.core.actions import (
    Action,
    Back,
    Click,
    ClickAt,
    Drag,
    DragAt,
    Goto,
    Press,
    Scroll,
    ScrollAt,
    Select,
    Stop,
    Type,
    Wait,
    says_impossible,
)
from training.data_sets.items import APP, ENTER, HOME, POINT_TOLERANCE, RECENT, Size
from training.grpo.rewards.geometry import Box, Point
from training.grpo.rewards.targets import StepTarget, points_of

TEXT_F1: Final = 0.5
"""OS-Atlas: a text is right above this F1."""
TEXT_SIMILARITY: Final = 0.8
"""AITZ: a text is right above this similarity."""


class StepType(StrEnum):
    """The action types of OS-Atlas, and those of the actions that it lacks."""

    CLICK = "click"
    DOUBLE_CLICK = "double click"
    MIDDLE_CLICK = "middle click"
    LONG_PRESS = "long press"
    """Or a right click: both open the context menu."""
    DRAG = "drag"
    TYPE = "type"
    SELECT = "select"
    SCROLL = "scroll"
    OPEN_APP = "open app"
    OPEN_ADDRESS = "open address"
    BACK = "back"
    HOME = "home"
    RECENT = "recent"
    ENTER = "enter"
    KEY = "key"
    WAIT = "wait"
    COMPLETE = "complete"
    IMPOSSIBLE = "impossible"
    OTHER = "other"
    """Each kind of the other actions is a type of its own."""


_KEYS: Final = {HOME.keys: StepType.HOME, RECENT.keys: StepType.RECENT, ENTER.keys: StepType.ENTER}
_BY_KIND: Final[dict[type[Action], StepType]] = {
    Drag: StepType.DRAG,
    DragAt: StepType.DRAG,
    Type: StepType.TYPE,
    Select: StepType.SELECT,
    Scroll: StepType.SCROLL,
    ScrollAt: StepType.SCROLL,
    Back: StepType.BACK,
    Wait: StepType.WAIT,
}
_PRESSING: Final = frozenset({StepType.BACK, StepType.HOME, StepType.RECENT, StepType.ENTER, StepType.KEY})
_ENDING: Final = frozenset({StepType.COMPLETE, StepType.IMPOSSIBLE})
_POINTING: Final = frozenset({StepType.CLICK, StepType.DOUBLE_CLICK, StepType.MIDDLE_CLICK, StepType.LONG_PRESS})


@dataclass(frozen=True, slots=True)
class StepScore:
    """What is right about one answer."""

    kind: StepType
    """The type of the correct action."""
    type_right: bool
    """OS-Atlas: Type."""
    success: bool
    """OS-Atlas: SR."""
    grounded: bool | None
    """OS-Atlas: GR; None if the step or its answer is no click."""
    type_match: bool
    """AITZ: TM."""
    exact_match: bool
    """AITZ: EM."""


def score_step(target: StepTarget, answer: Action | None, size: Size) -> StepScore:
    """Scores *answer*, None if it has no action. *size*: of the screenshot, in pixels, as are all points."""
    right = target.action
    kind = step_type(right)
    if answer is None:
        return StepScore(kind, type_right=False, success=False, grounded=None, type_match=False, exact_match=False)
    type_right = kind is step_type(answer) and (kind is not StepType.OTHER or answer.kind == right.kind)
    near = type_right and _near(right, answer, size)
    type_match = type_right or any({kind, step_type(answer)} <= group for group in (_PRESSING, _ENDING))
    return StepScore(
        kind,
        type_right=type_right,
        success=near and _same_arguments(right, answer),
        grounded=near if type_right and kind is StepType.CLICK else None,
        type_match=type_match,
        exact_match=type_match and _exact(target, answer, kind),
    )


@dataclass(frozen=True, slots=True)
class ElementScore:
    """What is right about one answer by Mind2Web's rules."""

    element: bool
    """Ele.Acc: the place is in the element."""
    operation_f1: float
    """Op.F1, 0 to 1."""

    @property
    def success(self) -> bool:
        """Step SR."""
        return self.element and self.operation_f1 == 1


def score_element(right: Action, elements: Sequence[Box], answer: Action | None, place: Point | None) -> ElementScore:
    """Scores *answer*, None if it has no action, which acts at *place*, by Mind2Web's rules. *elements*: boxes of the
    positive candidates, in pixels of the screenshot as *place* is."""
    if answer is None:
        return ElementScore(element=False, operation_f1=0.0)
    inside = place is not None and any(box.holds(place) for box in elements)
    return ElementScore(inside, _set_f1(operation(answer).split(), operation(right).split()))


def operation(action: Action) -> str:
    """The operation of *action* with its value, as Mind2Web writes it: `CLICK`, `TYPE Rome`, `SELECT Rome`. Actions
    that Mind2Web lacks are one word of their own."""
    match action:
        case Type():
            return f"TYPE {action.text}"
        case Select():
            return f"SELECT {action.option}"
        case _:
            kind = step_type(action)
            return (action.kind if kind is StepType.OTHER else kind.value).upper().replace(" ", "_")


def step_type(action: Action) -> StepType:
    """The type of *action*."""
    match action:
        case Click() | ClickAt():
            by_button = {"right": StepType.LONG_PRESS, "middle": StepType.MIDDLE_CLICK}
            return by_button.get(action.button, StepType.CLICK if action.count == 1 else StepType.DOUBLE_CLICK)
        case Goto():
            return StepType.OPEN_APP if action.url.startswith(APP) else StepType.OPEN_ADDRESS
        case Press():
            return _KEYS.get(action.keys, StepType.KEY)
        case Stop():
            return StepType.IMPOSSIBLE if says_impossible(action.answer) else StepType.COMPLETE
        case _:
            return _BY_KIND.get(type(action), StepType.OTHER)


def word_f1(answer: str, right: str) -> float:
    """F1 of the sets of words in any case, 0 to 1 (OS-Atlas, `calculate_f1_score`); 1 for two empty texts."""
    return _set_f1(answer.lower().split(), right.lower().split())


def _set_f1(answer: Sequence[str], right: Sequence[str]) -> float:
    answered, expected = set(answer), set(right)
    if not answered and not expected:
        return 1.0
    return 2 * len(answered & expected) / (len(answered) + len(expected))


def similarity(first: str, second: str) -> float:
    """Similarity of two texts, 0 to 1, as `Levenshtein.ratio` measures it (AITZ): twice the length of their longest
    common subsequence by the sum of their lengths; 1 for two empty texts."""
    if not first and not second:
        return 1.0
    row = [0] * (len(second) + 1)
    for letter in first:
        diagonal = 0
        for place, other in enumerate(second, 1):
            above = row[place]
            row[place] = diagonal + 1 if letter == other else max(above, row[place - 1])
            diagonal = above
    return 2 * row[-1] / (len(first) + len(second))


def _near(right: Action, answer: Action, size: Size) -> bool:
    """Whether the points are within the tolerance, or the elements of two clicks are equal; True without either."""
    if isinstance(right, Click):
        return answer == right
    pairs = zip(points_of(right), points_of(answer), strict=False)
    if len(points_of(right)) != len(points_of(answer)):
        return False
    return all(
        math.hypot((one.x - other.x) / size[0], (one.y - other.y) / size[1]) <= POINT_TOLERANCE for one, other in pairs
    )


def _same_arguments(right: Action, answer: Action) -> bool:
    """OS-Atlas: the arguments of two actions of one type, but their points."""
    match right, answer:
        case (Type(), Type()):
            return word_f1(answer.text, right.text) > TEXT_F1
        case (Select(), Select()):
            return word_f1(answer.option, right.option) > TEXT_F1
        case (Goto(), Goto()) if right.url.startswith(APP):
            return word_f1(answer.url.removeprefix(APP), right.url.removeprefix(APP)) > TEXT_F1
        case (Stop(), Stop()):
            return not right.answer or step_type(right) is StepType.IMPOSSIBLE or _text(answer) == _text(right)
        case (ClickAt(), ClickAt()) | (DragAt(), DragAt()):
            return True
        case (Scroll(), Scroll()):
            return answer.direction == right.direction
        case _:
            return answer == right


def _exact(target: StepTarget, answer: Action, kind: StepType) -> bool:
    """AITZ: the arguments of two actions of one type."""
    right = target.action
    if kind in _ENDING:
        return True
    if kind in _POINTING and points_of(right) and points_of(answer):
        place = target.places[0].region if target.places else None
        return points_of(answer) == points_of(right) if place is None else place.holds(points_of(answer)[0])
    if kind in (StepType.TYPE, StepType.SELECT, StepType.OPEN_APP):
        first, second = _text(answer), _text(right)
        inside = bool(first) and bool(second) and (first in second or second in first)
        return inside or similarity(first, second) > TEXT_SIMILARITY
    if kind is StepType.SCROLL and isinstance(right, Scroll) and isinstance(answer, Scroll):
        return right.direction == answer.direction
    return answer == right


def _text(action: Action) -> str:
    match action:
        case Type():
            return action.text
        case Select():
            return action.option
        case Goto():
            return action.url.removeprefix(APP)
        case Stop():
            return action.answer or ""
        case _:
            return ""
