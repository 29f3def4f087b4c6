"""The isolated context that a session lives in: what it is made of, and the storage it begins with."""

from __future__ import annotations

import os
from pathlib import Path

from playwright.async_api import Browser, BrowserContext
from playwright.async_api import HttpCredentials as PlaywrightCredentials
from pydantic import BaseModel, ValidationError

from envs.core.errors import BadInput
from envs.core.settings import HttpCredentials, SessionSettings
from envs.security.allowlist_proxy import AllowlistProxy

# [origin, entries]; a document without an origin of its own may not look at its storage.
LOCAL_STORAGE = """() => {
  try { return [location.origin, Object.entries(localStorage)]; } catch { return ['null', []]; }
}"""


async def new_context(browser: Browser, settings: SessionSettings, boundary: AllowlistProxy) -> BrowserContext:
    """Every request passes *boundary*; no service workers, no permissions but a location that was given.

    Raises BadInput where HTTP credentials are named and not to be had.
    """
    place = settings.geolocation
    return await browser.new_context(
        viewport={"width": settings.viewport.width, "height": settings.viewport.height},
        locale=settings.locale,
        timezone_id=settings.timezone,
        geolocation={"latitude": place.latitude, "longitude": place.longitude} if place else None,
        permissions=["geolocation"] if place else [],
        storage_state=settings.storage_state,
        http_credentials=_credentials(settings.http_credentials),
        ignore_https_errors=settings.ignore_https_errors,
        accept_downloads=True,
        service_workers="block",
        proxy={"server": boundary.server},
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
    """The local storage of a storage state, by origin: kept for origins that this session never visits. Raises
    BadInput where *path* is no storage state as Playwright writes it."""
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
        wrong = error.errors(include_url=False, include_input=False)[0]  # the input may be somebody's login
        key = ".".join(str(part) for part in wrong["loc"])
        reason = f"{key}: {wrong['msg']}" if key else wrong["msg"]
        raise BadInput(f"{str(path)!r} is no storage state of a browser: {reason}; {_STORAGE_HINT}") from None
    return {one.origin: [entry.model_dump() for entry in one.localStorage] for one in state.origins}


_STORAGE_HINT = "give a file that Playwright's context.storage_state(path=…) wrote"


class _Stored(BaseModel):
    """Parts of a storage state that Playwright requires; it may hold more."""

    name: str
    value: str


class _Cookie(_Stored):
    domain: str
    path: str


class _StoredOrigin(BaseModel):
    origin: str
    localStorage: list[_Stored]  # noqa: N815 - Playwright's name


class _StorageState(BaseModel):
    cookies: list[_Cookie] = []
    origins: list[_StoredOrigin] = []
