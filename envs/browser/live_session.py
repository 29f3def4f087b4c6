"""A browser session on a server that keeps the state: what it takes to come back to it after a kill.

The tabs' addresses are opened again (a GET each) with the cookies and local storage of the last step;
nothing is submitted again. Not kept: session storage, form fields that were filled but not sent, and
storage entries that hold a declared secret, because a secret is never written to disk.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.async_api import Error as PlaywrightError

from envs.browser.chromium import Chromium
from envs.browser.context import stored_origins
from envs.browser.session import BrowserSession
from envs.core.actions import Action, ActionResult, Goto, NewTab, Reason, Status
from envs.core.atomic_write import write_atomically
from envs.core.errors import BadInput, ResetFailed
from envs.core.observation import Observation
from envs.core.record import Record
from envs.core.settings import SessionSettings
from envs.security.allowlist import Origins
from envs.security.allowlist_proxy import AllowlistProxy
from envs.security.secrets import NO_SECRETS, SecretVault
from envs.security.tls_termination import unverified

STORAGE_FILE = "storage.json"
TABS_FILE = "tabs.json"


class SavedTabs(Record):
    """What is opened again."""

    urls: tuple[str, ...]
    active: int


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where a session may go, where its files go, and how it behaves."""

    folder: Path
    settings: SessionSettings
    origins: Origins
    vault: SecretVault = NO_SECRETS


Begin = Callable[["LiveSession"], Awaitable[None]]
"""Brings a fresh session to the start of the task. Raises ResetFailed."""
Reopened = Callable[[BrowserSession], None]
"""Told of a session that was brought back to its saved tabs."""


class LiveSession:
    """One session at a time, behind a boundary of its own, opened anew as often as needed."""

    def __init__(self, chromium: Chromium, bounds: Bounds, begin: Begin, reopened: Reopened | None = None) -> None:
        self.bounds = bounds
        authorities = unverified() if bounds.settings.ignore_https_errors else None
        self.boundary = AllowlistProxy(bounds.origins, authorities=authorities)
        self._chromium = chromium
        self._begin = begin
        self._reopened = reopened
        self._session: BrowserSession | None = None
        self._saved: dict[Path, str] = {}
        self._state_folder: Path | None = None

    @property
    def session(self) -> BrowserSession:
        """Raises ResetFailed before the first start."""
        if self._session is None:
            raise ResetFailed("the task was not started: call reset first")
        return self._session

    async def start(self) -> None:
        """A fresh context, brought to the start of the task. Raises ResetFailed."""
        self._state_folder = None
        await self.open(self.bounds.settings)
        await self._begin(self)

    async def observe(self, *, screenshot: bool = False) -> Observation:
        """One look; a browser that died is started again at the last saved state."""
        await self.revive()
        return await self.session.observe(screenshot=screenshot)

    async def revive(self) -> None:
        """Starts a browser that died again, at the last saved state. Raises ResetFailed."""
        if not self.session.alive:
            await self.reopen(self._state_folder)

    async def execute(self, action: Action) -> ActionResult:
        return await self.session.execute(action)

    async def save(self, folder: Path) -> None:
        """Writes tabs, cookies and local storage where they have changed."""
        session = self.session
        self._state_folder = folder
        pages = [tab.page.url for tab in session.tabs.all if tab.page.url.startswith("http")]
        front = session.page.url
        tabs = SavedTabs(urls=tuple(pages), active=pages.index(front) if front in pages else 0)
        self._write(folder / TABS_FILE, self.bounds.vault.mask(tabs.model_dump_json()))
        try:
            storage = await session.storage()
        except (PlaywrightError, TimeoutError):
            return  # the page is blocked or gone: what was written at the last step still holds
        self._write(folder / STORAGE_FILE, json.dumps(_without_secrets(storage, self.bounds.vault)))

    async def reopen(self, folder: Path | None) -> None:
        """Opens the saved tabs again with their storage; the start, if nothing was saved. Raises ResetFailed."""
        tabs = _read_tabs(folder) if folder else None
        if folder is None or tabs is None:
            await self.start()
            return
        self._state_folder = folder
        await self.open(_with_storage(self.bounds.settings, folder / STORAGE_FILE))
        self.session.guard.typed.update(self.bounds.vault.names)  # which ones were is not kept
        if not tabs.urls:  # its pages were gone when it was saved; who was logged in still is
            await self._begin(self)
            return
        self.session.holding.reopen()
        await self.go_to(tabs.urls)
        self.session.tabs.focus(self.session.tabs.all[min(tabs.active, len(self.session.tabs.all) - 1)])
        if self._reopened is not None:
            self._reopened(self.session)

    async def open(self, settings: SessionSettings) -> None:
        """Replaces the session by a blank one. Raises ResetFailed, and BadInput for the storage state."""
        if self._session is not None:
            await self._session.close()
            self._session = None
        self._saved.clear()
        try:
            await self.boundary.start()
            self._session = await self._chromium.session(settings, self.boundary, self.bounds.folder, self.bounds.vault)
        except OSError as error:
            raise ResetFailed(f"the boundary could not be started: {error.strerror}") from error

    async def go_to(self, urls: Sequence[str]) -> None:
        """Opens *urls*, the first in the front tab, each other in a new one; what was refused meanwhile, the next look
        tells. Raises ResetFailed."""
        for number, url in enumerate(urls):
            if number:
                await self.session.execute(NewTab())
            result = await self.session.execute(Goto(url=url))
            shown = self.bounds.vault.mask(url)
            if result.reason is Reason.ADDRESS_IS_FILE:
                await self.session.downloads.end(0)
                raise ResetFailed(f"{shown} is a file, not a page: start at a page that leads to it")
            if result.status is not Status.OK:
                raise ResetFailed(f"{shown} could not be opened: {_why(result)}")
        self.session.requests.report_again()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
        await self.boundary.close()

    def _write(self, path: Path, text: str) -> None:
        """Not at all if the file holds this text already."""
        if self._saved.get(path) != text:
            write_atomically(path, text, private=True, sync=False)
            self._saved[path] = text


def _why(result: ActionResult) -> str:
    """Why an address did not open. The browser does not report the target of a refused tunnel: the rules are added."""
    is_proxy_message = result.reason is Reason.REQUEST_REFUSED  # it names the rule itself
    blocked = [] if is_proxy_message else [one for one in result.blocked_requests if one.allow]
    rules = (f"no rule allows {one.origin}, if that is meant: --allow {one.allow}" for one in blocked)
    return "; ".join([result.message or result.status.value, *rules])


def _read_tabs(folder: Path) -> SavedTabs | None:
    """None where nothing was saved, and where a power cut left the file torn: the task's start is opened then."""
    path = folder / TABS_FILE
    try:
        return SavedTabs.model_validate_json(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None


def _with_storage(settings: SessionSettings, path: Path) -> SessionSettings:
    """*settings* with the saved storage; with their own where none was saved or a power cut left the file torn."""
    try:
        stored_origins(path)
    except BadInput:
        return settings
    return settings.model_copy(update={"storage_state": path})


def _without_secrets(storage: dict[str, Any], vault: SecretVault) -> dict[str, Any]:
    """Playwright's storage state less the cookies and entries in which a secret stands."""

    def clean(entry: object) -> bool:
        text = json.dumps(entry)
        return vault.mask(text) == text

    cookies = [cookie for cookie in storage["cookies"] if clean(cookie)]
    origins = [
        {"origin": one["origin"], "localStorage": [entry for entry in one["localStorage"] if clean(entry)]}
        for one in storage["origins"]
    ]
    return {"cookies": cookies, "origins": origins}
