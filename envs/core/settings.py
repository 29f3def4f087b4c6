"""Settings of browser sessions: permissions, time limits and observations."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from pydantic import Field, FiniteFloat, field_validator

from envs.core.record import Record
from envs.security.held_requests import HoldCategory


class Viewport(Record):
    """Size of the page's view, in CSS pixels."""

    width: int = Field(default=1280, ge=100, le=8192)
    height: int = Field(default=800, ge=100, le=8192)


class Geolocation(Record):
    """The position that the Geolocation API gives to pages, in degrees (WGS 84)."""

    latitude: float = Field(ge=-90, le=90)
    longitude: float = Field(ge=-180, le=180)


class HttpCredentials(Record):
    """Credentials for HTTP Basic authentication at one origin; they are sent to no other."""

    origin: str = Field(pattern=r"^https?://[^/]+$")
    """`https://staging.example`"""
    value: str = Field(pattern=r"^env:\w+$")
    """`env:NAME`: the environment variable that contains `USER:PASSWORD`. The value is never stored."""


class ProxySettings(Record):
    """An HTTP proxy behind which the sites are reached. Model calls do not use it."""

    server: str
    """`http://proxy.example:3128`"""
    credentials: str | None = Field(default=None, pattern=r"^env:\w+$")
    """`env:NAME`: the environment variable that contains `USER:PASSWORD`. The value is never stored."""
    bypass: tuple[str, ...] = ()
    """Hosts that are reached directly, in the forms of `allow`; this machine always is."""

    @field_validator("server")
    @classmethod
    def _http_address(cls, server: str) -> str:
        plain = server.removesuffix("/")
        if "@" in plain:
            raise ValueError("name and password do not belong here: set credentials = 'env:NAME' beside it")
        if not re.fullmatch(r"http://(\[[0-9a-fA-F:.]+\]|[^\s/?#:\[\]]+):[0-9]{1,5}", plain):
            raise ValueError("write http://HOST:PORT (no SOCKS proxy, and no proxy behind TLS)")
        return plain


class ObserveSettings(Record):
    """Contents and limits of an observation."""

    max_chars: int = Field(default=16_000, ge=500)
    """Text budget in characters; a group marker counts the rest, which `find` and `expand` show."""
    collapse_rows: int = Field(default=40, ge=2)
    """Groups of more similar sibling rows than this may be collapsed to fit the budget."""
    name_chars: int = Field(default=160, ge=20)
    """Longest accessible name or value in characters; a longer one is cut and ends with `…`."""
    max_options: int = Field(default=30, ge=1)
    """Options of a drop-down shown; the rest are counted."""
    skip: str = ""
    """CSS selector of page parts to leave out (MiniWoB repeats the goal on the page)."""
    boxes: bool = False
    """Fill `Element.box`; switched on automatically for set-of-marks screenshots."""
    effects: bool = False
    """Fill `Element.effect`; switched on automatically if actions need approval."""
    timeout_s: FiniteFloat = Field(default=5.0, gt=0)
    """Timeout of one observation; a frame that does not answer in half of it is left out, and the note names it."""


class SettleSettings(Record):
    """When a page counts as quiet after an action."""

    quiet_ms: int = Field(default=60, ge=0)
    """A page is quiet after this time without a DOM mutation or pending request."""
    idle_after_ms: int = Field(default=15, ge=0)
    """An action that starts no mutation and no request within this time counts as settled."""
    react_ms: int = Field(default=400, ge=0)
    """Time for reactions that pages delay on purpose, e.g. to hovering, or suggestions after typing."""
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
    """Timeout of one action, including settling."""
    navigation_s: FiniteFloat = Field(default=20.0, gt=0)
    allow: tuple[str, ...] = ()
    """Allowlist rules: `shop.example` (this host, any port, http and https), `*.shop.example`, `https://a.b:8443`; with
    the prefix `subresources:` for passive loads only, see docs/boundary.md."""
    dialogs: Literal["ask", "dismiss", "accept"] = "ask"
    """`ask`: the policy sees the open dialog and answers it. Alerts are always accepted at once and reported."""
    storage_state: Path | None = None
    http_credentials: HttpCredentials | None = None
    proxy: ProxySettings | None = None
    """The proxy behind which the sites are reached; None: they are reached directly."""
    ignore_https_errors: bool = False
    """Accept untrusted certificates, such as a test server's self-signed one."""
    upload_folder: Path | None = None
    """Only files in this folder may be uploaded; None forbids uploads."""
    downloads: Literal["keep", "approved"] = "keep"
    """`approved`: downloads are cancelled unless they begin in a step that a person approved. Set by `approve`."""
    hold: tuple[HoldCategory, ...] = ()
    """Requests that are held for approval in a step that was not approved, see :mod:`envs.security.request_holding`.
    Set by `approve`."""
    background: tuple[str, ...] = ()
    """Addresses of background requests, which need no approval: `https://shop.example/collect` with any query; a final
    `*` matches any suffix."""
    max_download_bytes: int = Field(default=100_000_000, ge=0)
    """Size limit of one download in bytes; a larger one is cancelled while it streams."""
    max_run_download_bytes: int = Field(default=1_000_000_000, ge=0)
    """Size limit of all downloads of a run in bytes."""
    download_wait_s: float = Field(default=30.0, ge=0)
    """Time for unfinished downloads when the episode stops; the rest is then cancelled and reported."""
    max_tabs: int = Field(default=8, ge=1)
    """Tabs beyond this number are closed at once (popup storms)."""
    playwright_trace: bool = False
    """Record a Playwright trace, see :mod:`envs.browser.playwright_trace`; refused if secrets are declared."""

    @field_validator("storage_state", "upload_folder", mode="before")
    @classmethod
    def _named_path(cls, path: object) -> object:
        """Refuses an empty text, whose path would be the current folder."""
        if path == "":
            raise ValueError("this names no file or folder: give a path, or omit it")
        return path
