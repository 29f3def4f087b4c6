"""Settings of the environment room: what a session may do, how long it may take, how much it shows."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, FiniteFloat

from envs.core.record import Record
from envs.security.held_requests import HoldCategory


class Viewport(Record):
    width: int = Field(default=1280, ge=100, le=8192)
    height: int = Field(default=800, ge=100, le=8192)


class Geolocation(Record):
    latitude: float = Field(ge=-90, le=90)
    longitude: float = Field(ge=-180, le=180)


class HttpCredentials(Record):
    """What one site behind HTTP Basic authentication is told, and no other."""

    origin: str = Field(pattern=r"^https?://[^/]+$")
    """`https://staging.example`"""
    value: str = Field(pattern=r"^env:\w+$")
    """`env:NAME`: the environment variable that holds `USER:PASSWORD`, so that nothing stored holds them."""


class ObserveSettings(Record):
    """How much of a page is shown."""

    max_chars: int = Field(default=16_000, ge=500)
    """Budget of the text shown; what does not fit is counted in a group marker and can be found or expanded."""
    collapse_rows: int = Field(default=40, ge=2)
    """A run of more sibling rows of one shape than this may be collapsed once the budget is tight."""
    name_chars: int = Field(default=160, ge=20)
    """Longest accessible name or value shown, in characters; a cut is marked with `…`."""
    max_options: int = Field(default=30, ge=1)
    """Options of a drop-down shown; the rest are counted."""
    skip: str = ""
    """CSS selector of page parts that are not shown (MiniWoB repeats the goal on the page)."""
    boxes: bool = False
    """Fill `Element.box`; switched on by itself where a screenshot is marked."""
    effects: bool = False
    """Fill `Element.effect`; switched on by itself where a person approves actions."""
    timeout_s: FiniteFloat = Field(default=5.0, gt=0)
    """Bound on one observation; a frame that does not answer in half of it is named in the note and left out."""


class SettleSettings(Record):
    """When a page counts as quiet after an action."""

    quiet_ms: int = Field(default=60, ge=0)
    """No DOM mutation and no pending request for this long."""
    idle_after_ms: int = Field(default=15, ge=0)
    """An action that started no mutation and no request within this time is settled at once."""
    react_ms: int = Field(default=400, ge=0)
    """What pages answer late on purpose (a hover, typing where suggestions may come) has this long to take effect."""
    max_s: FiniteFloat = Field(default=3.0, gt=0)


class SessionSettings(Record):
    """Everything about one browser context."""

    viewport: Viewport = Viewport()
    locale: str = "en-US"
    timezone: str = "UTC"
    geolocation: Geolocation | None = None
    observe: ObserveSettings = ObserveSettings()
    settle: SettleSettings = SettleSettings()
    step_deadline_s: FiniteFloat = Field(default=30.0, gt=0)
    """Bound on one action, settling included."""
    navigation_s: FiniteFloat = Field(default=20.0, gt=0)
    allow: tuple[str, ...] = ()
    """Origin rules: `shop.example` (this host, any port, http and https), `*.shop.example`, `https://a.b:8443`; after
    `subresources:` for passive loads alone, see docs/boundary.md."""
    dialogs: Literal["ask", "dismiss", "accept"] = "ask"
    """`ask`: the policy sees the open dialog and answers it. Alerts have one answer: accepted at once and reported."""
    storage_state: Path | None = None
    http_credentials: HttpCredentials | None = None
    ignore_https_errors: bool = False
    """Open sites whose certificate nobody vouches for, as a test server's own."""
    upload_folder: Path | None = None
    """Only files below it may be uploaded; None forbids uploads."""
    downloads: Literal["keep", "approved"] = "keep"
    """`approved`: only a download that begins in a step that a person approved is kept, any other one is cancelled. It
    is set by `approve`."""
    hold: tuple[HoldCategory, ...] = ()
    """What is held in a step that nobody approved until somebody agrees, see :mod:`envs.security.request_holding`. It
    is set by `approve`."""
    background: tuple[str, ...] = ()
    """Addresses to which pages may send by themselves, so that it is never asked about: `https://shop.example/collect`,
    any query; with `*` at its end, everything that begins so."""
    max_download_bytes: int = Field(default=100_000_000, ge=0)
    """Of one download; a larger one is cancelled while it streams."""
    max_run_download_bytes: int = Field(default=1_000_000_000, ge=0)
    """Of all downloads that a run keeps."""
    download_wait_s: float = Field(default=30.0, ge=0)
    """What is still coming down when the episode stops has this long to end; then it is given up, which is said."""
    max_tabs: int = Field(default=8, ge=1)
    """A page that opens more loses the newest at once (popup storms)."""
    playwright_trace: bool = False
    """Let Playwright trace the context, see :mod:`envs.browser.playwright_trace`; refused where secrets are
    declared."""
