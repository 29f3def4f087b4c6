"""The isolated context that a session lives in: what it is made of, and the storage it begins with."""

from __future__ import annotations

import json
import os
from pathlib import Path

from playwright.async_api import Browser, BrowserContext
from playwright.async_api import HttpCredentials as PlaywrightCredentials

from envs.errors import BadInput
from envs.proxy import Boundary
from envs.settings import HttpCredentials, SessionSettings

# [origin, entries]; a document without an origin of its own may not look at its storage.
LOCAL_STORAGE = """() => {
  try { return [location.origin, Object.entries(localStorage)]; } catch { return ['null', []]; }
}"""


async def new_context(browser: Browser, settings: SessionSettings, boundary: Boundary) -> BrowserContext:
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
    """The local storage of a storage state, by origin: kept for origins that this session never visits."""
    if path is None:
        return {}
    try:
        origins = json.loads(path.read_text(encoding="utf-8")).get("origins", [])
        return {one["origin"]: one["localStorage"] for one in origins}
    except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
        raise BadInput(f"{path} is no storage state of a browser ({type(error).__name__})") from error
