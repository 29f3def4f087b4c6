"""Takes one picture of a page with its controls, each verified by `elementFromPoint`.

A control is usable if an element with its box lies on top at the box's centre and at four points around it, where the
box is clipped to the view. Every other control is counted by the reason why it is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from envs.browser.session import BrowserSession
from envs.core.errors import EnvError
from envs.core.observation import Box, Element, Observation
from models.vision.pictures import picture_size
from training.grounding.controls import Control
from training.grpo.rewards.geometry import Box as Corners

_PROBE: Final = Path(__file__).with_name("probe.js").read_text("utf-8")
LEAST_SIDE: Final = 6.0
"""Smallest side of a control in the view, in CSS pixels."""
LEAST_SHARE: Final = 0.6
"""Smallest share of a control that is in the view."""
MOST_OF_VIEW: Final = 0.5
"""Largest share of the view that a control covers."""
NAME_CHARS: Final = 60
ROLES: Final[Mapping[str, str]] = {
    "textbox": "text field",
    "searchbox": "search field",
    "spinbutton": "number field",
    "combobox": "drop-down list",
    "menuitem": "menu item",
    "gridcell": "cell",
    "clickable": "area",
    "radio": "radio button",
}
"""Words for roles in instructions; others are their own words."""
_PICTURED: Final = frozenset({"button", "link", "tab", "menu item", "img"})
"""Roles of controls that are called icons where they show no text. A checkbox stays one."""


class Unusable(StrEnum):
    """Why a control has no example."""

    OUTSIDE = "outside the view"
    SIZE = "too small or too large"
    COVERED = "not on top at its centre or around it"
    UNKNOWN = "without a name, or with another one than its page gives it"


@dataclass(frozen=True, slots=True)
class Seen:
    """A control in a picture."""

    control: Control
    box: Corners
    """In pixels of the picture, clipped to it."""
    text: bool
    """Whether it shows text."""


@dataclass(frozen=True, slots=True)
class Shot:
    """A picture of a page."""

    picture: bytes
    """PNG."""
    size: tuple[int, int]
    """In pixels."""
    controls: tuple[Control, ...]
    """All of the page, whether they can be seen or not."""
    seen: tuple[Seen, ...]
    """Those whose box was verified."""
    unusable: Counter[Unusable] = field(default_factory=Counter[Unusable])


async def take(session: BrowserSession, known: Sequence[Control] | None, scale: float) -> Shot:
    """Takes a picture of the front tab. *known*: the page's controls, if a generator wrote them with their ids; None:
    those that the session observes. *scale*: pixels of the picture per CSS pixel.

    Raises EnvError if the page cannot be observed."""
    observation = await session.observe(screenshot=True)
    if observation.screenshot is None:
        raise EnvError(f"the page cannot be shown: {observation.note or 'no screenshot'}")
    wide, high = picture_size(observation.screenshot)
    observed = tuple(_observed(element) for element in observation.elements)
    by_id = {control.id: control for control in (observed if known is None else known)}
    unusable: Counter[Unusable] = Counter()
    asked = list(_in_view(observation, unusable))
    answers: list[dict[str, Any] | None] = await session.page.evaluate(_PROBE, [list(box) for _, box, _ in asked])
    seen: list[Seen] = []
    for (element, _, clipped), answer in zip(asked, answers, strict=True):
        if answer is None or answer["covered"]:
            unusable[Unusable.COVERED] += 1
            continue
        control = by_id.get(str(element.ref) if known is None else answer["control"])
        if control is None or not _is_named(control, element):
            unusable[Unusable.UNKNOWN] += 1
            continue
        text = bool(answer["text"])
        pictured = known is None and not text and control.role in _PICTURED
        shown = control.model_copy(update={"icon": True}) if pictured else control
        seen.append(Seen(shown, _in_pixels(clipped, scale, (wide, high)), text))
    return Shot(observation.screenshot, (int(wide), int(high)), tuple(by_id.values()), tuple(seen), unusable)


def _in_view(observation: Observation, unusable: Counter[Unusable]) -> Iterator[tuple[Element, Box, Box]]:
    """Elements with their box and the part of it that is in the view; the others are counted in *unusable*."""
    view = Box(0, 0, *observation.viewport)
    for element in observation.elements:
        if element.box is None or element.box.width <= 0:
            continue
        clipped = _clipped(element.box, view)
        problem = _problem(element.box, clipped, view)
        if clipped is None or problem is not None:
            unusable[problem or Unusable.OUTSIDE] += 1
        else:
            yield element, element.box, clipped


def _observed(element: Element) -> Control:
    role = element.key.role
    return Control(id=str(element.ref), role=ROLES.get(role, role), name=element.key.name)


def _is_named(control: Control, element: Element) -> bool:
    """Whether the browser's accessible name is the control's, and fit for an instruction."""
    name = " ".join(control.name.split())
    named = name == " ".join(element.key.name.split())
    return named and len(name) <= NAME_CHARS and not name.endswith("…") and any(map(str.isalnum, name))


def _clipped(box: Box, view: Box) -> Box | None:
    left, top = max(box.x, view.x), max(box.y, view.y)
    right, bottom = min(box.x + box.width, view.width), min(box.y + box.height, view.height)
    return Box(left, top, right - left, bottom - top) if right > left and bottom > top else None


def _problem(box: Box, clipped: Box | None, view: Box) -> Unusable | None:
    if clipped is None or clipped.width * clipped.height < LEAST_SHARE * box.width * box.height:
        return Unusable.OUTSIDE
    large = clipped.width * clipped.height > MOST_OF_VIEW * view.width * view.height
    return Unusable.SIZE if large or min(clipped.width, clipped.height) < LEAST_SIDE else None


def _in_pixels(box: Box, scale: float, size: tuple[float, float]) -> Corners:
    """*box* in pixels of a picture of *size*, rounded to hundredths."""
    edges = (box.x, box.y, box.x + box.width, box.y + box.height)
    left, top, right, bottom = (round(edge * scale, 2) for edge in edges)
    return Corners(left, top, min(right, size[0]), min(bottom, size[1]))
