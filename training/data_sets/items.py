"""What an importer yields, and the actions of devices in terms of Mira's.

Mira acts in a browser. Actions of phones and desktops that a browser lacks have these equivalents, so that examples
need no action language of their own:

    long press            a right click: both open the context menu
    type                  `element="0"`: element 0 is the field that has the focus
    open an app           the address `app:NAME`
    home, recent apps     the keys GoHome and AppSwitch (UI Events: names of mobile phone keys)
    task complete         exit without an answer
    task impossible       exit with the answer N/A
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, Literal

from envs.core.action_languages import PROGRAM
from envs.core.actions import Action, Back, ClickAt, Goto, Press, Scroll, Stop, Type, Wait
from training.grpo.examples import Split

Picture = Path | bytes
Size = tuple[int, int]
"""Width and height in pixels."""
Corners = tuple[float, float, float, float]
"""Left, top, right and bottom."""
Direction = Literal["up", "down", "left", "right"]
FOCUSED: Final = 0
"""The element number that stands for the field that has the focus."""
APP: Final = "app:"
POINT_TOLERANCE: Final = 0.14
"""Of :func:`around`, as a share of the picture's width and height."""
HOME: Final = Press(keys="GoHome")
RECENT: Final = Press(keys="AppSwitch")
ENTER: Final = Press(keys="Enter")
BACK: Final = Back()
WAIT: Final = Wait()
COMPLETE: Final = Stop()
IMPOSSIBLE: Final = Stop(answer="N/A")


class Exclusion(StrEnum):
    """Why a row becomes no example."""

    SPLIT = "rows, episodes or files of another split"
    OTHER_QUESTION = "rows that another --ask imports"
    NO_PICTURE = "rows without a picture"
    NO_BOX = "rows without a box"
    OUTSIDE = "rows whose box is outside of the picture"
    NO_POINT = "steps that act at no point, which --ask goal needs"
    POINTER = "steps that move or drag the pointer from where it is"
    NO_ACTION = "steps without an action that is known"


@dataclass(frozen=True, slots=True)
class Step:
    """One action of an episode."""

    action: Action
    """Points are in pixels of the picture."""
    instruction: str = ""
    """What this step does, if the data set says so."""
    history: tuple[str, ...] = ()
    """The actions before it, oldest first."""


@dataclass(frozen=True, slots=True)
class Choices:
    """A picture on which elements are marked with letters from A on, one of which is right."""

    picture: Picture
    size: Size
    boxes: tuple[Corners, ...]
    """Of the marked elements, in pixels of this picture."""
    right: int
    """Place of the right one in *boxes*, from 0."""
    click: bool
    """Whether it is asked what to click for the task; else what the task describes."""


@dataclass(frozen=True, slots=True)
class TextQuestion:
    """A question about the picture whose answer is a text, or one of several texts."""

    kind: Literal["caption", "heading", "question", "element text", "result of a click"]
    answers: tuple[str, ...] = ()
    """Right ones; of a choice among *options* none."""
    options: tuple[str, ...] = ()
    right: int = 0
    """Place of the right one in *options*, from 0."""
    box: Corners | None = None
    """The red rectangle on the picture that the question is about, in shares of the picture's width and height."""


@dataclass(frozen=True, slots=True)
class Item:
    """A picture, what is asked about it, and what is right."""

    where: str
    """File and row, for messages."""
    name: str
    """Unique in the data set."""
    picture: Picture
    size: Size
    task: str
    """The instruction, or the goal of the episode."""
    box: Corners | None = None
    """The element that is meant or acted on, in pixels of the picture."""
    step: Step | None = None
    """None: only the place is asked for."""
    choices: Choices | None = None
    """The marked elements, of data sets that ask for a letter."""
    question: TextQuestion | None = None
    """Of data sets that ask for a text."""
    elements: tuple[Corners, ...] = ()
    """Boxes in any of which a place is right, where the data set scores the element of every step."""
    element: Literal["text", "icon", ""] = ""
    platform: str = ""
    group: str = ""
    """Part of the data set, as its tables name it."""
    episode: str = ""
    split: Split | None = None


def click(x: float, y: float) -> ClickAt:
    """A click at a point, in pixels of the image."""
    return ClickAt(x=x, y=y)


def long_press(x: float, y: float) -> ClickAt:
    """A right click, for a long press at a point, in pixels of the image."""
    return ClickAt(x=x, y=y, button="right")


def typed(text: str) -> Type:
    """Types into the field that has the focus."""
    return Type(ref=FOCUSED, text=text)


def open_app(name: str) -> Goto:
    """Opens the app *name*: the address `app:NAME`."""
    return Goto(url=f"{APP}{name}")


def scroll(direction: Direction) -> Scroll:
    """*direction*: where the view moves; down shows what is below."""
    return Scroll(direction=direction)


def scroll_by_finger(start: tuple[float, float], end: tuple[float, float]) -> Scroll:
    """The scroll of a finger that moves from *start* to *end*: the view moves against the finger."""
    across, down = end[0] - start[0], end[1] - start[1]
    if abs(across) > abs(down):
        return scroll("right" if across < 0 else "left")
    return scroll("down" if down < 0 else "up")


def in_words(action: Action) -> str:
    """*action* as a model writes it."""
    return PROGRAM.show(action)


def around(x: float, y: float, size: Size) -> Corners:
    """The box of a point whose element is not known: 14 % of the picture to each side, the tolerance with which these
    data sets are evaluated (AITW, OS-Atlas). It keeps the point in its centre, so it may end outside of the picture."""
    across, down = POINT_TOLERANCE * size[0], POINT_TOLERANCE * size[1]
    return x - across, y - down, x + across, y + down


def smallest_around(x: float, y: float, boxes: list[Corners]) -> Corners | None:
    """The smallest of *boxes* that holds the point and is at least a pixel wide and high; None if none does."""
    fitting = [box for box in boxes if box[0] <= x <= box[2] and box[1] <= y <= box[3]]
    fitting = [box for box in fitting if min(box[2] - box[0], box[3] - box[1]) >= 1]
    return min(fitting, key=lambda box: (box[2] - box[0]) * (box[3] - box[1]), default=None)
