"""The typed actions and their results. Both action languages parse to these actions; the session executes no others.

`ref` is the number shown in brackets in the current observation and is valid only there. The trace also records the
element's :class:`envs.core.observation.ElementKey`, which stays valid.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, FiniteFloat, TypeAdapter

from envs.core.key_names import named_keys
from envs.core.record import Record, Unmasked
from envs.security.blocked_requests import BlockedOrigin
from envs.security.held_requests import HeldRequest


class Click(Record):
    """Presses and releases a mouse button over the element, after scrolling it into view."""

    kind: Literal["click"] = "click"
    ref: int
    button: Literal["left", "right", "middle"] = "left"
    count: int = Field(default=1, ge=1, le=3)


class Type(Record):
    """Types into the element; `clear` empties it first, `enter` presses Enter afterwards.

    `text` may contain secret names as `<secret>NAME</secret>`; the session inserts the values, which no model sees.
    """

    kind: Literal["type"] = "type"
    ref: int
    text: str
    clear: bool = True
    enter: bool = False


class Select(Record):
    """Selects an option of a drop-down by its visible label, else by its value."""

    kind: Literal["select"] = "select"
    ref: int
    option: str


class Hover(Record):
    """Moves the pointer over an element."""

    kind: Literal["hover"] = "hover"
    ref: int


class Press(Record):
    """Presses a key or chord in Playwright's notation, for example `Enter` or `Control+A`. Other common names (`ctrl`,
    `esc`, `return`, `down`) are replaced by Playwright's."""

    kind: Literal["press"] = "press"
    keys: Annotated[str, AfterValidator(named_keys)]


class Scroll(Record):
    """Scrolls the page, or the scrollable element `ref`, by most of its visible height or width."""

    kind: Literal["scroll"] = "scroll"
    direction: Literal["up", "down", "left", "right"]
    ref: int | None = None


class Drag(Record):
    """Drags element `ref` onto element `to_ref`."""

    kind: Literal["drag"] = "drag"
    ref: int
    to_ref: int


class Upload(Record):
    """Uploads a file from the run's upload folder; `path` is relative to that folder."""

    kind: Literal["upload"] = "upload"
    ref: int
    path: str


class ClickAt(Record):
    """Clicks at x, y in CSS pixels of the viewport."""

    kind: Literal["click_at"] = "click_at"
    x: FiniteFloat
    y: FiniteFloat
    button: Literal["left", "right", "middle"] = "left"
    count: int = Field(default=1, ge=1, le=3)


class DragAt(Record):
    """Drags from (x, y) to (to_x, to_y), CSS pixels of the viewport."""

    kind: Literal["drag_at"] = "drag_at"
    x: FiniteFloat
    y: FiniteFloat
    to_x: FiniteFloat
    to_y: FiniteFloat


class ScrollAt(Record):
    """Turns the mouse wheel by (dx, dy) CSS pixels with the pointer at (x, y)."""

    kind: Literal["scroll_at"] = "scroll_at"
    x: FiniteFloat
    y: FiniteFloat
    dx: FiniteFloat = 0.0
    dy: FiniteFloat = 0.0


class Find(Record):
    """Returns every line of the page that contains `text`, also beyond the text budget. Does not touch the page."""

    kind: Literal["find"] = "find"
    text: str


class Expand(Record):
    """Returns the hidden rows of group `group` (`g1`, `g2` … in the observation). Does not touch the page."""

    kind: Literal["expand"] = "expand"
    group: str
    start: int = Field(default=1, ge=1)


class Wait(Record):
    """Waits until the page is quiet, for at most `SettleSettings.max_s`."""

    kind: Literal["wait"] = "wait"


class AnswerDialog(Record):
    """Answers the open alert, confirm, prompt or beforeunload dialog."""

    kind: Literal["answer_dialog"] = "answer_dialog"
    accept: bool
    text: str = ""


class Goto(Record):
    """Opens an address in the active tab."""

    kind: Literal["goto"] = "goto"
    url: str


class Back(Record):
    """Goes one entry back in the history of the active tab."""

    kind: Literal["back"] = "back"


class Forward(Record):
    """Goes one entry forward in the history of the active tab."""

    kind: Literal["forward"] = "forward"


class NewTab(Record):
    """Opens an empty tab and brings it to the front."""

    kind: Literal["new_tab"] = "new_tab"


class CloseTab(Record):
    """Closes the active tab."""

    kind: Literal["close_tab"] = "close_tab"


class FocusTab(Record):
    """Brings tab `index` (0-based, in the order of the observation's tab list) to the front."""

    kind: Literal["focus_tab"] = "focus_tab"
    index: int = Field(ge=0)


class UseTool(Record):
    """Calls a tool that the run provides (:mod:`agent.episode.tools`). Does not touch the page; environments refuse it,
    because the loop calls the tool."""

    kind: Literal["use_tool"] = "use_tool"
    tool: str
    input: str = ""
    """The text of the tool's only parameter, or a JSON object of its parameters."""


class Stop(Record):
    """Ends the episode. `answer` is returned to the user; None if the task asks for no answer."""

    kind: Literal["stop"] = "stop"
    answer: str | None = None


_IMPOSSIBLE: Final = re.compile(r"[\s\"'“‘*`]*n/a\s*(?:$|[^\w\s])", re.IGNORECASE)


def says_impossible(answer: str | None) -> bool:
    """Whether *answer* is `N/A`, alone or with a reason behind a sign (`N/A: …`): the task cannot be done.

    Prompts ask for this form."""
    return answer is not None and _IMPOSSIBLE.match(answer) is not None


Action = Annotated[
    Click
    | Type
    | Select
    | Hover
    | Press
    | Scroll
    | Drag
    | Upload
    | ClickAt
    | DragAt
    | ScrollAt
    | Find
    | Expand
    | Wait
    | AnswerDialog
    | Goto
    | Back
    | Forward
    | NewTab
    | CloseTab
    | FocusTab
    | UseTool
    | Stop,
    Field(discriminator="kind"),
]
ACTION: TypeAdapter[Action] = TypeAdapter(Action)
"""Validates and dumps one action of any kind."""
FORM_FILLING = (Click, Type, Select)
"""Actions that fill in a form: another action may follow one of them in the same answer."""
WAITING = (Wait, Find, Expand, UseTool)
"""Actions that start no new step for requests and downloads: late ones belong to the step before."""


class Status(StrEnum):
    """How an action ended. Only OK and STOPPED mean that it was carried out as requested."""

    OK = "ok"
    STOPPED = "stopped"
    """The action was Stop: nothing was sent to the page."""
    STALE = "stale"
    """The element is gone; nothing else was clicked."""
    AMBIGUOUS = "ambiguous"
    """Several elements match the key equally well; none was touched."""
    NO_SUCH_REF = "no_such_ref"
    """The current observation does not contain the number."""
    COVERED = "covered"
    """Another element covers the target and would receive the click."""
    DISABLED = "disabled"
    NOT_ACTIONABLE = "not_actionable"
    """The element does not support this action, or has no visible box."""
    BLOCKED = "blocked"
    """A rule forbids it (origin, upload folder, scheme, secret scope, approval), or a person declined it."""
    DIALOG_OPEN = "dialog_open"
    """A dialog blocks the page; answer it first."""
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    FAILED = "failed"
    """The browser refused it; the message gives the reason."""


class Reason(StrEnum):
    """Why an action ended with its status. Code decides by this, never by the text of a message.

    Plain success has no reason. The set is closed; an action that a foreign log recorded has none.
    """

    NO_EFFECT = "no_effect"
    """A no-op action: it was carried out and changed nothing (nothing moved, the address or the page stayed)."""
    FIELD_DIFFERS = "field_differs"
    """The field holds something else than was typed: the page formatted, cut, completed or refused it."""
    ADDRESS_IS_FILE = "address_is_file"
    """The address leads to a download and to no page, whether the download was kept or refused."""
    DIALOG_OPENED = "dialog_opened"
    """A dialog opened during the action and blocks the page."""
    DIALOG_ANSWERED = "dialog_answered"
    TAB_CLOSED = "tab_closed"
    """The page closed its own tab."""
    UNREACHABLE = "unreachable"
    """The server of the address could not be reached."""
    STALE_ELEMENT = "stale_element"
    PAGE_REPLACED = "page_replaced"
    """Another document was loaded since the element was shown."""
    AMBIGUOUS_ELEMENT = "ambiguous_element"
    UNKNOWN_REF = "unknown_ref"
    COVERED = "covered"
    DISABLED = "disabled"
    NO_VISIBLE_BOX = "no_visible_box"
    READ_ONLY = "read_only"
    WRONG_CONTROL = "wrong_control"
    """The control does not take this action or this value."""
    FOCUS_LOST = "focus_lost"
    ORIGIN_NOT_ALLOWED = "origin_not_allowed"
    REQUEST_REFUSED = "request_refused"
    """The proxy refused the request of the page itself; the message is the proxy's and says what to allow."""
    UPLOAD_NOT_ALLOWED = "upload_not_allowed"
    SECRET_NOT_ALLOWED = "secret_not_allowed"
    """The action would use a secret outside its scope."""
    DECLINED = "declined"
    """A person declined the action or a request that it sends."""
    NO_APPROVER = "no_approver"
    """The action or a request needs approval, and there is nobody to ask."""
    UNAPPROVED_DOWNLOAD = "unapproved_download"
    """A download began in a step that was not approved; it was cancelled."""
    DIALOG_OPEN = "dialog_open"
    """A dialog was open before the action, which was not sent."""
    NO_DIALOG = "no_dialog"
    NO_SUCH_OPTION = "no_such_option"
    NO_SUCH_TAB = "no_such_tab"
    TOO_MANY_TABS = "too_many_tabs"
    """The limit on open tabs was reached: no tab was opened, or a window that a page opened was closed."""
    PAGE_HUNG = "page_hung"
    DIALOG_FLOOD = "dialog_flood"
    """The page opened dialogs without end."""
    PAGE_CRASHED = "page_crashed"
    BROWSER_DIED = "browser_died"
    NAVIGATION_FAILED = "navigation_failed"
    """The address could not be opened, for a reason that the browser gives."""
    NO_SUCH_TOOL = "no_such_tool"
    TOOL_FAILED = "tool_failed"
    """The tool raised an error, or refused its input."""
    BROWSER_ERROR = "browser_error"
    """The browser, or a script on the page, failed otherwise."""


class DialogReport(Record):
    """A dialog that the page opened, and how it was answered."""

    type: Literal["alert", "confirm", "prompt", "beforeunload"]
    message: str
    answer: Literal["open", "accepted", "dismissed"]


DOWNLOADS: Final = "downloads"
"""Folder of the downloaded files, in the run's folder."""
AFTER_LAST_STEP: Final = "after-the-last-step.txt"
"""File in that folder about downloads that no step reports."""


class Download(Record):
    """A downloaded file, stored in the run's folder."""

    name: str
    path: str
    """Relative to the run's folder."""
    sha256: Unmasked
    bytes: int

    @property
    def in_words(self) -> str:
        return f'downloaded "{self.name}" ({self.bytes} bytes)'


PageChange = Literal["no", "text", "yes"]
"""What an action changed: nothing that can be seen; the document, whose text may be the same all the same; or something
else (values, states, focus, scroll position, appearance, address, tabs, clipboard, a dialog, a download)."""


UNAPPROVED = "refused, nobody approved it: do the same again to have it asked about"
"""Ends the message about a download that began in a step that was not approved."""


class ActionResult(Record):
    """The result of one action. Expected failures have a status; they raise no exception."""

    status: Status
    message: str = ""
    """For people and for the policy: what happened and, after a failure, what to do. Code reads `reason` instead."""
    output: str = ""
    """The answer to Find and Expand, or the result of a tool: data and never an instruction."""
    url: str = ""
    """Canonical URL of the front tab after the action."""
    dialogs: tuple[DialogReport, ...] = ()
    """Dialogs that opened since the previous step."""
    downloads: tuple[Download, ...] = ()
    new_tabs: int = 0
    blocked_requests: tuple[BlockedOrigin, ...] = ()
    """Requests that the proxy refused during this action, by origin."""
    held_requests: tuple[HeldRequest, ...] = ()
    """Requests that were held for approval, with the answers; includes those that arrived after the previous step
    had ended."""
    seconds: float = 0.0
    change: PageChange | None = None
    """What it changed by the end of the step; a change that comes later is seen by the next observation. None: not
    known (actions that touch no page, failures, other environments, older traces)."""
    reason: Reason | None = None
    """Why it ended with this status; None for plain success, and in traces from before this field."""
    unapproved_downloads: int = 0
    """Downloads that were cancelled since the last step because their step was not approved, whatever the status."""

    @property
    def ok(self) -> bool:
        return self.status in (Status.OK, Status.STOPPED)

    @property
    def remark(self) -> str:
        """The message and the downloaded files, for people."""
        return "; ".join(filter(None, (self.message, *(file.in_words for file in self.downloads))))
