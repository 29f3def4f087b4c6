"""What a tool call comes to: actions, an answer from what is known, or a refusal; and the checks of its arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from agent.episode.prompts import PolicyView
from agent.episode.toolsets.display import Display
from agent.episode.toolsets.keys import chords
from envs.core.actions import Action, Click, ClickAt, DragAt, Press, ScrollAt, Select, Type
from envs.core.observation import Element, ElementKey, Observation
from models.base import Image
from models.prompting.prompt_text import NOTHING, PromptText, words

MAX_PRESSES: Final = 20
"""Key presses of one call."""
TEXT_CHARS: Final = 100_000
"""Longest text of one call."""


@dataclass(frozen=True, slots=True)
class Do:
    """Actions, in order."""

    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class TextResult:
    """An answer that needs no action."""

    text: PromptText = NOTHING
    picture: Image | None = None


@dataclass(frozen=True, slots=True)
class Refuse:
    """The call has no equivalent here, or its arguments are wrong."""

    reason: PromptText


Outcome = Do | TextResult | Refuse


class BadCall(Exception):
    """Wrong arguments; the text is this program's."""

    def __init__(self, reason: PromptText) -> None:
        super().__init__(reason.text)
        self.reason = reason


@dataclass(slots=True)
class Refs:
    """Names of elements that the model was shown, `ref_1`, `ref_2` and so on. They stay valid as long as the element is
    on the page."""

    keys: list[ElementKey] = field(default_factory=list[ElementKey])
    _numbers: dict[ElementKey, int] = field(default_factory=dict[ElementKey, int])

    def name(self, key: ElementKey) -> str:
        if key not in self._numbers:
            self.keys.append(key)
            self._numbers[key] = len(self.keys)
        return f"ref_{self._numbers[key]}"

    def key(self, name: str) -> ElementKey | None:
        digits = name.strip().strip("[]").removeprefix("ref_")
        number = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 7 else 0
        return self.keys[number - 1] if 0 < number <= len(self.keys) else None


@dataclass(frozen=True, slots=True)
class Scene:
    """What a call is read against: the page as it is now."""

    view: PolicyView
    display: Display
    refs: Refs
    last: Action | None
    """The last action that was carried out."""

    @property
    def observation(self) -> Observation:
        return self.view.observation

    @property
    def screenshot(self) -> bytes | None:
        return self.view.observation.screenshot


Handler = Callable[["Arguments", Scene], Outcome]
Table = Mapping[str, Handler]


@dataclass(frozen=True, slots=True)
class Arguments:
    """The unchecked arguments of a call. Its methods raise :class:`BadCall`."""

    values: Mapping[str, Any]
    display: Display

    def text(self, name: str, default: str | None = None) -> str:
        value = self.values.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str) or len(value) > TEXT_CHARS:
            raise BadCall(words("a text is missing or too long in the arguments"))
        return value

    def number(self, name: str, default: float | None = None) -> float:
        value = self.values.get(name)
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
            raise BadCall(words("a number is missing in the arguments"))
        return value

    def inner(self, name: str) -> Arguments:
        value = self.values.get(name)
        if not isinstance(value, dict):
            raise BadCall(words("an object is missing in the arguments"))
        return Arguments(value, self.display)

    def pair(self, name: str) -> tuple[float, float]:
        """A point `[x, y]`, in CSS pixels of the view."""
        return self._css(*self._numbers(name, 2))

    def point(self) -> tuple[float, float]:
        """The point of `x` and `y`, in CSS pixels of the view."""
        return self._css(self.number("x"), self.number("y"))

    def region(self, name: str) -> tuple[float, float, float, float]:
        """`[x0, y0, x1, y1]` in the picture."""
        x0, y0, x1, y1 = self._numbers(name, 4)
        if not (self.display.contains(x0, y0) and self.display.contains(x1, y1) and x0 < x1 and y0 < y1):
            raise BadCall(words("the region is empty or outside the screenshot"))
        return x0, y0, x1, y1

    def refuse(self, *names: str) -> None:
        """Refuses arguments that have no equivalent."""
        if any(self.values.get(name) for name in names):
            raise BadCall(words("keys cannot be held down during a mouse action here"))

    def _numbers(self, name: str, count: int) -> list[float]:
        value = self.values.get(name)
        if not isinstance(value, list | tuple) or len(value) != count:
            raise BadCall(words("coordinates are missing in the arguments"))
        inner = Arguments({str(place): each for place, each in enumerate(value)}, self.display)
        return [inner.number(str(place)) for place in range(count)]

    def _css(self, x: float, y: float) -> tuple[float, float]:
        if not self.display.contains(x, y):
            raise BadCall(words("the point is outside the screenshot"))
        return self.display.to_css(x, y)


def read_call(table: Table, name: str, values: Mapping[str, Any], scene: Scene) -> Outcome:
    """What the call *name* comes to."""
    handler = table.get(name)
    if handler is None:
        return Refuse(words("this tool is not available here"))
    try:
        return handler(Arguments(values, scene.display), scene)
    except BadCall as error:
        return Refuse(error.reason)


def screenshot(_: Arguments, scene: Scene) -> Outcome:
    if scene.screenshot is None:
        return Refuse(words("the screenshot was withheld, because it may show a secret"))
    return TextResult(picture=scene.display.picture(scene.screenshot))


def zoom(call: Arguments, scene: Scene) -> Outcome:
    if scene.screenshot is None:
        return screenshot(call, scene)
    return TextResult(picture=scene.display.zoom(scene.screenshot, call.region("region")))


def typed(call: Arguments, scene: Scene) -> Outcome:
    """Text goes to the field with the focus. After an action that selects its content, it replaces the content."""
    text = call.text("text")
    if not text:
        return Refuse(words("there is no text to type; press keys to delete what a field holds"))
    if not text.strip("\n"):
        return Do((Press(keys="Enter"),) * min(len(text), MAX_PRESSES))
    field_ = _focused(scene.observation)
    if field_ is None:
        return Refuse(words("no field has the keyboard focus: click one first"))
    if field_.options:
        return Do((Select(ref=field_.ref, option=text.strip()),))
    body = text.rstrip("\n") if "\n" not in text.rstrip("\n") else text
    return Do((Type(ref=field_.ref, text=body, clear=_selects_all(scene.last), enter=body != text),))


def pressed(text: str, repeat: float = 1) -> Outcome:
    keys = chords(text)
    if keys is None:
        return Refuse(words("a key has no name that is known here"))
    times = max(1, int(repeat))
    if times * len(keys) > MAX_PRESSES:
        return Refuse(words("these are too many key presses for one call"))
    return Do(tuple(Press(keys=each) for each in keys) * times)


def drag(start: tuple[float, float], end: tuple[float, float]) -> Outcome:
    return Do((DragAt(x=start[0], y=start[1], to_x=end[0], to_y=end[1]),))


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer that is too large for a float
        return False


def pointer(scene: Scene) -> tuple[float, float]:
    """Where the last action at a point left the pointer. Raises BadCall where there was none."""
    match scene.last:
        case ClickAt(x=x, y=y) | ScrollAt(x=x, y=y) | DragAt(to_x=x, to_y=y):
            return x, y
        case _:
            raise BadCall(words("give a coordinate: the place of the pointer is not known"))


def element_at(observation: Observation, x: float, y: float) -> Element | None:
    """The smallest control whose box holds the point."""
    hit = [
        (element.box.width * element.box.height, element)
        for element in observation.elements
        if element.box is not None
        and element.box.x <= x <= element.box.x + element.box.width
        and element.box.y <= y <= element.box.y + element.box.height
    ]
    return min(hit, key=lambda pair: pair[0])[1] if hit else None


def _focused(observation: Observation) -> Element | None:
    """The element with the focus; one of the top document, where a frame keeps a focus of its own."""
    focused = [element for element in observation.elements if "focused" in element.states]
    return next((element for element in focused if element.key.frame == ""), focused[-1] if focused else None)


def _selects_all(action: Action | None) -> bool:
    match action:
        case Click(count=3) | ClickAt(count=3):
            return True
        case Press(keys=keys):
            return keys.lower() in ("control+a", "meta+a", "controlormeta+a")
        case _:
            return False
