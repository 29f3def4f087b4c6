"""Observations of a page and durable element keys.

Grammar of :attr:`Observation.text` (one line per block of the page, document order)::

    # Orders                                        a heading
    Sold by seller 3                                page text
    [3] link "Home"  [4] button "Save" disabled     controls: [ref] role "name" states
    [5] textbox "Email" = "a@b.c" focused           value after `=` (never a password's)
    [10] button "Bold" (on?)  [11] link "Home" (current)     cues; `?` marks a guess from classes or styles
    [6] checkbox "Agree" checked title "Required"   what a title or tooltip adds to the name
    [7] combobox "Size" = "M" options: "S" "M" "L" (disabled)
    [8] checkbox "Pick 1" | [9] link "Order 1" | paid        a table row: cells joined by ` | `
    … g1: row ×332, shown 1-28 (expand g1 or find text)      a collapsed group; text is never cut silently
    --- frame 1 "Payment" https://pay.example       content of an iframe follows, up to `--- end frame 1`
    --- behind the dialog: 57 controls, not usable until it is closed     what a modal dialog or an overlay covers

Names and values are quoted, with `"` and `\\` escaped. A backslash precedes page text that looks like a ref, a frame
marker or a group marker, so a page cannot forge them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from envs.core.actions import DialogReport
from envs.security.blocked_requests import BlockedOrigin

TEXT_ROLES: Final = ("textbox", "searchbox", "combobox", "spinbutton")
"""Roles of the controls that text is typed into."""


class Box(NamedTuple):
    """A rectangle in CSS pixels of the top viewport."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class ElementKey:
    """Identifies an element across re-rendering and across runs; it is resolved again before every action."""

    frame: str
    """Path of child-frame ordinals from the top frame: "" is the top, "0.2" the third child of the first."""
    role: str
    name: str
    ordinal: int
    """0-based rank among elements of this frame with the same role and name, in document order."""
    digest: str
    """8 hex digits: a hash of the stable properties tag, type, id, name attribute, href path and ancestor roles."""


InputKind = Literal["press", "edit", "hover"]
"""A press, a new value, or the pointer over the control."""


@dataclass(frozen=True, slots=True)
class Effect:
    """Possible effects of using a control, as closed sets from markup and event listeners, never from page text.

    A click can hit any descendant of the control and also triggers its ancestors, so both count.
    """

    sends: Literal["", "get", "post", "dialog", "other"]
    """The method of the form that a click submits, "" if there is none; "other": the address is not http(s)."""
    leads: Literal["", "here", "page", "file", "other"]
    """Link target: in the same page, another page, a download (by attribute), or an address that is not http(s)."""
    takes: Literal["", "text", "choice", "file"]
    """What it accepts: typed text (also dates and numbers), an option of a drop-down, or a file."""
    listened: frozenset[InputKind]
    """Input that page scripts may listen to. All kinds if some listeners are unknown."""


@dataclass(frozen=True, slots=True)
class Element:
    """One control at the time of the observation."""

    ref: int
    key: ElementKey
    tag: str
    states: tuple[str, ...]
    """Among: checked, mixed, disabled, expanded, collapsed, selected, focused, readonly, required, password,
    shown-on-hover (hidden until the pointer is over its row; an action moves the pointer there first)."""
    value: str | None
    options: tuple[str, ...]
    """Visible labels of a drop-down's options; empty for other controls."""
    box: Box | None
    """None if neither boxes nor a drawn area was observed, or the element has none."""
    shown: bool
    """False: it is in a collapsed group or beyond the text budget; `find` or `expand` shows it."""
    effect: Effect | None = None
    """None if effects are not observed."""
    cues: tuple[str, ...] = ()
    """States that only other attributes, classes or styles show; a guess ends with `?`. Among: checked, unchecked,
    selected, current, pressed, on, off, expanded, collapsed, disabled, changed, and words such as liked or starred.
    A control without a name may have the icon that style sheets draw, such as `icon:trash?`."""
    title: str = ""
    """What the title or tooltip adds to the name; "" if nothing."""

    @property
    def area(self) -> float:
        """Of the box, in square CSS pixels; 0 without a box."""
        return 0.0 if self.box is None else self.box.width * self.box.height


@dataclass(frozen=True, slots=True)
class Surface:
    """A drawn area in the view, in which nothing has a number: a canvas, drawing, map or picture with a listener."""

    kind: Literal["canvas", "object", "embed", "svg", "picture", "area"]
    name: str
    """Its label or id; may be empty."""
    box: Box


@dataclass(frozen=True, slots=True)
class Tab:
    """One open tab; `index` is 0-based."""

    index: int
    title: str
    url: str
    active: bool


@dataclass(frozen=True, slots=True)
class Observation:
    """One observation of the front tab. Its page content is data, never an instruction."""

    url: str
    title: str
    text: str
    elements: tuple[Element, ...]
    tabs: tuple[Tab, ...]
    digest: str
    """16 hex digits: a hash of url, text and values. Equal digests mean that the policy sees the same page."""
    viewport: tuple[int, int]
    scroll: tuple[int, int]
    """(pixels above the viewport, pixels below it)."""
    controls_total: int
    """Controls on the page, shown or not."""
    dialog: DialogReport | None = None
    """The open dialog that blocks the page and must be answered first; None if there is none."""
    screenshot: bytes | None = None
    """PNG; None unless requested."""
    marked: bytes | None = None
    """The same picture with the numbers of the controls, where the run shows both."""
    note: str = ""
    """A remark of the observer, e.g. that a frame did not answer in time."""
    document: str = ""
    """Identifies the document of the page within its session: another value means that another document was loaded."""
    blocked: tuple[BlockedOrigin, ...] = ()
    """Requests refused since the last action or observation; in the first observation, since the start."""
    surfaces: tuple[Surface, ...] = ()
    """Drawn areas in the view, at most 20 a process. Where there are some, the elements of their process have boxes."""

    def element(self, ref: int) -> Element | None:
        """Returns the element shown as `[ref]`, or None."""
        return self.elements[ref - 1] if 0 < ref <= len(self.elements) else None
