"""Saves and restores a browser session whose state is on a server, for a resume after a kill.

The tabs' addresses are opened again (one GET each) with the cookies and local storage of the last step; nothing is
submitted again. Not restored: session storage, form fields that were filled but not sent, and storage entries with a
declared secret, which is never written to disk.
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
from envs.core.errors import BadInput, BrowserDied, ResetFailed
from envs.core.observation import Observation
from envs.core.record import Record
from envs.core.settings import SessionSettings
from envs.security.allowlist import Origins
from envs.security.allowlist_proxy import proxy_of_session
from envs.security.secrets import NO_SECRETS, SecretVault
from envs.security.upstream_proxy import proxy_variable

STORAGE_FILE = "storage.json"
TABS_FILE = "tabs.json"


class SavedTabs(Record):
    """The tabs to open again."""

    urls: tuple[str, ...]
    active: int


@dataclass(frozen=True, slots=True)
class Bounds:
    """Allowed origins, folder, settings and secrets of a session."""

    folder: Path
    settings: SessionSettings
    origins: Origins
    vault: SecretVault = NO_SECRETS


Begin = Callable[["LiveSession"], Awaitable[None]]
"""Brings a new session to the start of the task. Raises ResetFailed."""
Reopened = Callable[[BrowserSession], None]
"""Called with a session whose saved tabs were opened again."""


class LiveSession:
    """One session at a time with its own proxy; it can be opened again any number of times."""

    def __init__(self, chromium: Chromium, bounds: Bounds, begin: Begin, reopened: Reopened | None = None) -> None:
        self.bounds = bounds
        self.boundary = proxy_of_session(bounds.settings, bounds.origins)
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
        """Opens a new context at the start of the task. Raises ResetFailed."""
        self._state_folder = None
        await self.open(self.bounds.settings)
        await self._begin(self)

    async def observe(self, *, screenshot: bool = False) -> Observation:
        """Observes the page. A browser that died, or dies meanwhile, is restarted at the last saved state."""
        await self.revive()
        try:
            return await self.session.observe(screenshot=screenshot)
        except BrowserDied:
            await self.revive()
            return await self.session.observe(screenshot=screenshot)

    async def revive(self) -> None:
        """Restarts a browser that died, at the last saved state. Raises ResetFailed."""
        if not self.session.alive:
            await self.reopen(self._state_folder)

    async def execute(self, action: Action) -> ActionResult:
        return await self.session.execute(action)

    async def save(self, folder: Path) -> None:
        """Writes tabs, cookies and local storage if they have changed."""
        session = self.session
        self._state_folder = folder
        pages = [tab.page.url for tab in session.tabs.all if tab.page.url.startswith("http")]
        front = session.page.url
        tabs = SavedTabs(urls=tuple(pages), active=pages.index(front) if front in pages else 0)
        self._write(folder / TABS_FILE, self.bounds.vault.mask(tabs.model_dump_json()))
        try:
            storage = await session.storage()
        except (PlaywrightError, TimeoutError):
            return  # the page is blocked or gone: the storage of the last step stays valid
        self._write(folder / STORAGE_FILE, json.dumps(_without_secrets(storage, self.bounds.vault)))

    async def reopen(self, folder: Path | None) -> None:
        """Opens the saved tabs with their storage, or the start if nothing was saved. Raises ResetFailed."""
        tabs = _read_tabs(folder) if folder else None
        if folder is None or tabs is None:
            await self.start()
            return
        self._state_folder = folder
        await self.open(_with_storage(self.bounds.settings, folder / STORAGE_FILE))
        self.session.guard.typed.update(self.bounds.vault.names)  # which of them were typed is not stored
        if not tabs.urls:  # it had no pages when it was saved; the login stays
            await self._begin(self)
            return
        self.session.holding.reopen()
        await self.go_to(tabs.urls)
        self.session.tabs.focus(self.session.tabs.all[min(tabs.active, len(self.session.tabs.all) - 1)])
        if self._reopened is not None:
            self._reopened(self.session)

    async def open(self, settings: SessionSettings) -> None:
        """Replaces the session by a blank one. Raises ResetFailed, or BadInput for an invalid storage state."""
        if self._session is not None:
            await self._session.close()
            self._session = None
        self._saved.clear()
        try:
            await self.boundary.start()
            self._session = await self._chromium.session(settings, self.boundary, self.bounds.folder, self.bounds.vault)
        except OSError as error:
            raise ResetFailed(f"the allowlist proxy could not be started: {error.strerror}") from error

    async def go_to(self, urls: Sequence[str]) -> None:
        """Opens *urls*, the first one in the front tab, the others in new tabs. The next observation reports requests
        that were refused meanwhile. Raises ResetFailed."""
        for number, url in enumerate(urls):
            if number:
                await self.session.execute(NewTab())
            result = await self.session.execute(Goto(url=url))
            shown = self.bounds.vault.mask(url)
            if result.reason is Reason.ADDRESS_IS_FILE:
                await self.session.downloads.end(0)
                raise ResetFailed(f"{shown} is a file, not a page: start at a page that leads to it")
            if result.status is not Status.OK:
                raise ResetFailed(f"{shown} could not be opened: {self._why(url, result)}")
        self.session.requests.report_again()

    def _why(self, url: str, result: ActionResult) -> str:
        """Why an address did not open. The browser does not report the target of a refused tunnel: the rules are added.
        A machine that names a proxy in its environment often has no other way to the sites."""
        is_proxy_message = result.reason is Reason.REQUEST_REFUSED  # it names the rule itself
        blocked = [] if is_proxy_message else [request for request in result.blocked_requests if request.allow]
        rules = [f"no rule allows {request.origin}, if that is meant: --allow {request.allow}" for request in blocked]
        if result.reason is Reason.UNREACHABLE and self.bounds.settings.proxy is None and (name := proxy_variable(url)):
            rules.append(f"{name} is for model calls, for sites use --proxy")
        return "; ".join([result.message or result.status.value, *rules])

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
        await self.boundary.close()

    def _write(self, path: Path, text: str) -> None:
        """Writes *text* unless the file contains it already."""
        if self._saved.get(path) != text:
            write_atomically(path, text, private=True, sync=False)
            self._saved[path] = text


def _read_tabs(folder: Path) -> SavedTabs | None:
    """Reads the saved tabs; None if there are none or the file is torn, in which case the task's start is opened."""
    path = folder / TABS_FILE
    try:
        return SavedTabs.model_validate_json(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None


def _with_storage(settings: SessionSettings, path: Path) -> SessionSettings:
    """Returns *settings* with the saved storage, or unchanged if none was saved or the file is torn."""
    try:
        stored_origins(path)
    except BadInput:
        return settings
    return settings.model_copy(update={"storage_state": path})


def _without_secrets(storage: dict[str, Any], vault: SecretVault) -> dict[str, Any]:
    """Returns Playwright's storage state without the cookies and entries that contain a secret."""

    def clean(entry: object) -> bool:
        text = json.dumps(entry)
        return vault.mask(text) == text

    cookies = [cookie for cookie in storage["cookies"] if clean(cookie)]
    origins = [
        {"origin": site["origin"], "localStorage": [entry for entry in site["localStorage"] if clean(entry)]}
        for site in storage["origins"]
    ]
    return {"cookies": cookies, "origins": origins}
