"""Creates the isolated browser context of a session with its initial storage."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from playwright.async_api import Browser, BrowserContext
from playwright.async_api import HttpCredentials as PlaywrightCredentials
from pydantic import BaseModel, ValidationError

from envs.core.errors import BadInput
from envs.core.settings import HttpCredentials, SessionSettings
from envs.security.allowlist_proxy import AllowlistProxy

# [origin, entries]; a document without an origin has no access to storage.
LOCAL_STORAGE = """() => {
  try { return [location.origin, Object.entries(localStorage)]; } catch { return ['null', []]; }
}"""


async def new_context(
    browser: Browser, settings: SessionSettings, boundary: AllowlistProxy, device_scale: float = 1.0
) -> BrowserContext:
    """Creates a context whose requests all go through the proxy *boundary*, without service workers. The only
    permission is a configured geolocation. *device_scale*: pixels of a screenshot per CSS pixel.

    Raises BadInput if the variable with the HTTP credentials is not set.
    """
    place = settings.geolocation
    return await browser.new_context(
        viewport={"width": settings.viewport.width, "height": settings.viewport.height},
        device_scale_factor=device_scale,
        locale=settings.locale,
        timezone_id=settings.timezone,
        geolocation={"latitude": place.latitude, "longitude": place.longitude} if place else None,
        permissions=["geolocation"] if place else [],
        storage_state=settings.storage_state,
        http_credentials=_credentials(settings.http_credentials),
        ignore_https_errors=settings.ignore_https_errors,
        accept_downloads=True,
        service_workers="block",
        # Without an own list Playwright leaves out `<-loopback>`, by which loopback addresses use the proxy, where
        # PLAYWRIGHT_DISABLE_FORCED_CHROMIUM_PROXIED_LOOPBACK is set.
        proxy={"server": boundary.server, "bypass": "<-loopback>"},
    )


def _credentials(named: HttpCredentials | None) -> PlaywrightCredentials | None:
    if named is None:
        return None
    variable = named.value.removeprefix("env:")
    user, colon, password = os.environ.get(variable, "").partition(":")
    if not colon:
        raise BadInput(f"session.http_credentials: set {variable} to USER:PASSWORD")
    return {"username": user, "password": password, "origin": named.origin}


def stored_origins(path: Path | None) -> dict[str, list[dict[str, str]]]:
    """Reads the local storage of a storage state, by origin, to keep it for origins that the session does not visit.
    Raises BadInput if *path* is not a storage state in Playwright's format."""
    if path is None:
        return {}
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BadInput(f"storage state {str(path)!r} does not exist: {_STORAGE_HINT}") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise BadInput(f"storage state {str(path)!r} cannot be read: {reason}") from None
    try:
        state = _StorageState.model_validate_json(text)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]  # the input may contain credentials
        key = ".".join(str(part) for part in problem["loc"])
        reason = f"{key}: {problem['msg']}" if key else problem["msg"]
        raise BadInput(f"{str(path)!r} is not a storage state of a browser: {reason}; {_STORAGE_HINT}") from None
    return {stored.origin: [entry.model_dump() for entry in stored.localStorage] for stored in state.origins}


_STORAGE_HINT = "write one with `mira login URL`, or with Playwright's context.storage_state(path=…)"


class _Stored(BaseModel):
    """The parts of a storage state that Playwright requires; others are ignored."""

    name: str
    value: str


class _Cookie(_Stored):
    domain: str
    path: str
    sameSite: Literal["Strict", "Lax", "None"] | None = None  # noqa: N815 - Playwright's name


class _StoredOrigin(BaseModel):
    origin: str
    localStorage: list[_Stored]  # noqa: N815 - Playwright's name


class _StorageState(BaseModel):
    cookies: list[_Cookie] = []
    origins: list[_StoredOrigin] = []
