"""What a policy sees of a page, and the keys under which its elements survive re-rendering.

Grammar of :attr:`Observation.text` (one line per block of the page, document order)::

    # Orders                                        a heading
    Sold by seller 3                                page text
    [3] link "Home"  [4] button "Save" disabled     controls: [ref] role "name" states
    [5] textbox "Email" = "a@b.c" focused           value after `=` (never a password's)
    [6] checkbox "Agree" checked
    [7] combobox "Size" = "M" options: "S" "M" "L" (disabled)
    [8] checkbox "Pick 1" | [9] link "Order 1" | paid        a table row: cells joined by ` | `
    … g1: row ×332, shown 1-28 (expand g1 or find text)      a collapsed group, never a silent cut
    --- frame 1 "Payment" https://pay.example       content of an iframe follows, up to `--- end frame 1`

Names and values are quoted with `"` and `\\` escaped. Page text that imitates a ref, a frame
marker or a group marker is shown with a backslash before it, so only the observer makes refs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from envs.core.actions import DialogReport
from envs.security.blocked_requests import BlockedOrigin


class Box(NamedTuple):
    """A rectangle in CSS pixels of the top viewport."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class ElementKey:
    """Names an element across re-renderings and runs: resolved again before every action."""

    frame: str
    """Path of child-frame ordinals from the top frame: "" is the top, "0.2" the third child of the first."""
    role: str
    name: str
    ordinal: int
    """0-based rank among elements of this frame with the same role and name, in document order."""
    digest: str
    """8 hex digits over tag, type, id, name attribute, href path and the ancestors' roles: what tends to stay."""


Heard = Literal["press", "edit", "hover"]


@dataclass(frozen=True, slots=True)
class Effect:
    """What using a control can set off: closed sets from markup and event listeners, never from page text.

    A click may land on anything inside the control and acts for what lies around it, so both count.
    """

    sends: Literal["", "get", "post", "dialog", "other"]
    """The method by which a click sends a form, "" where it sends none; "other": to an address that is not http(s)."""
    leads: Literal["", "here", "page", "file", "other"]
    """Where a click leads as a link: within the page, to a page, to a download (the attribute), or to something else
    than an http(s) address."""
    takes: Literal["", "text", "choice", "file"]
    """What can be put into it: typed text (also dates and numbers), an option of a drop-down, a file."""
    heard: frozenset[Heard]
    """What scripts of the page may react to: a press, a new value, the pointer over it. All of them where not all
    listeners are known."""


@dataclass(frozen=True, slots=True)
class Element:
    """One control as it was when observed."""

    ref: int
    key: ElementKey
    tag: str
    states: tuple[str, ...]
    """Among: checked, mixed, disabled, expanded, collapsed, selected, focused, readonly, required, password."""
    value: str | None
    options: tuple[str, ...]
    """Visible labels of a drop-down's options, else empty."""
    box: Box | None
    """None where the observer was not asked for boxes or the element has none."""
    shown: bool
    """False: it exists behind a collapsed group or beyond the budget; `find` or `expand` shows it."""
    effect: Effect | None = None
    """None where the observer was not asked for effects."""


@dataclass(frozen=True, slots=True)
class Tab:
    index: int
    title: str
    url: str
    active: bool


@dataclass(frozen=True, slots=True)
class Observation:
    """One look at the front tab. Everything in it that came from the page is data."""

    url: str
    title: str
    text: str
    elements: tuple[Element, ...]
    tabs: tuple[Tab, ...]
    digest: str
    """16 hex digits over url, text and values: equal digests mean the policy would see the same page."""
    viewport: tuple[int, int]
    scroll: tuple[int, int]
    """(pixels above the viewport, pixels below it)."""
    controls_total: int
    """Controls on the page, shown or not."""
    dialog: DialogReport | None = None
    """The open dialog, if one blocks the page: answer it before anything else."""
    screenshot: bytes | None = None
    """PNG, only when asked for."""
    note: str = ""
    """What the observer has to say, e.g. that a frame did not answer in time."""
    blocked: tuple[BlockedOrigin, ...] = ()
    """Requests refused since the last action ended or the last look; at the first look, since the start."""

    def element(self, ref: int) -> Element | None:
        """The element shown as `[ref]`, or None."""
        return self.elements[ref - 1] if 0 < ref <= len(self.elements) else None
