"""An open task on a live website: a goal, an address, no checker. The world of `mira run "…" --url …`.

The state lives on the server, so a killed episode is *re-opened*: the tabs' addresses are opened
again (a GET each) with the cookies and local storage of the last step; nothing is submitted again.
Not kept: session storage, form fields that were filled but not sent, and storage entries that hold
a declared secret, because a secret is never written to disk.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.async_api import Error as PlaywrightError

from envs.actions import Action, ActionResult, Goto, NewTab, Status
from envs.chromium import Chromium
from envs.errors import BadInput, ResetFailed
from envs.observation import Observation
from envs.origins import Origins
from envs.proxy import Boundary
from envs.record import Record
from envs.secrets import NO_SECRETS, SecretVault
from envs.session import BrowserSession
from envs.settings import SessionSettings
from envs.tasks import EpisodeStart, MilestoneCheck, Restore, Score, TaskInfo, TaskRef

SUITE = "open"
TASK = "task"
STORAGE_FILE = "storage.json"
TABS_FILE = "tabs.json"


class SavedTabs(Record):
    """What `restore_state` opens again."""

    urls: tuple[str, ...]
    active: int


@dataclass(frozen=True, slots=True)
class OpenTask:
    """What is to be done, where, and within which bounds."""

    instruction: str
    url: str
    folder: Path
    settings: SessionSettings
    origins: Origins
    vault: SecretVault


class OpenWorld:
    """The suite of one open task."""

    name = SUITE

    def __init__(
        self,
        chromium: Chromium,
        folder: Path,
        settings: SessionSettings,
        *,
        instruction: str,
        url: str,
        vault: SecretVault = NO_SECRETS,
    ) -> None:
        """Allowed is what `settings.allow` names, and the origin of *url*. Raises BadInput."""
        plain = " ".join(instruction.split())
        if not plain:
            raise BadInput("the task has no instruction: say what is to be done")
        self._chromium = chromium
        self._task = OpenTask(plain, url, folder, settings, Origins.parse(settings.allow).with_url(url), vault)

    def tasks(self) -> Sequence[TaskInfo]:
        return (TaskInfo(name=TASK, category=SUITE, has_checker=False),)

    async def environment(self) -> OpenEnvironment:
        return OpenEnvironment(self._chromium, self._task)

    async def close(self) -> None:
        """Each environment closes what it opened; nothing is left for the suite."""


class OpenEnvironment:
    """Plays the task in one browser session behind a boundary of its own."""

    restore: Restore = "reopen"

    def __init__(self, chromium: Chromium, task: OpenTask) -> None:
        self._chromium = chromium
        self._task = task
        self._start = EpisodeStart(instruction=task.instruction, category=SUITE)
        self._boundary = Boundary(task.origins)
        self._session: BrowserSession | None = None
        self._saved: dict[Path, str] = {}
        self._state_folder: Path | None = None

    @property
    def session(self) -> BrowserSession:
        if self._session is None:
            raise ResetFailed("the task was not started: call reset first")
        return self._session

    async def reset(self, task: TaskRef) -> EpisodeStart:
        """Opens the task's address in a fresh context. Raises ResetFailed."""
        self._state_folder = None
        await self._open(self._task.settings)
        await self._go(self._task.url)
        return self._start

    async def observe(self, *, screenshot: bool = False) -> Observation:
        """One look; a browser that died is started again at the last saved state."""
        if not self.session.alive:
            await self._reopen(self._state_folder)
        return await self.session.observe(screenshot=screenshot)

    async def execute(self, action: Action) -> ActionResult:
        return await self.session.execute(action)

    async def done(self) -> bool:
        """Never: only the agent ends an open task."""
        return False

    async def score(self, answer: str | None) -> Score | None:
        """None: there is no checker, the outcome judge decides."""
        return None

    async def check_milestones(self) -> tuple[MilestoneCheck, ...] | None:
        return None

    async def save_state(self, folder: Path) -> None:
        """Writes tabs, cookies and local storage where they have changed."""
        session = self.session
        self._state_folder = folder
        pages = [tab.page.url for tab in session.tabs.all if tab.page.url.startswith("http")]
        front = session.page.url
        tabs = SavedTabs(urls=tuple(pages), active=pages.index(front) if front in pages else 0)
        self._write(folder / TABS_FILE, self._task.vault.mask(tabs.model_dump_json()))
        try:
            storage = await session.storage()
        except (PlaywrightError, TimeoutError):
            return  # the page is blocked or gone: what was written at the last step still holds
        self._write(folder / STORAGE_FILE, json.dumps(_without_secrets(storage, self._task.vault)))

    async def restore_state(self, task: TaskRef, folder: Path, committed: Sequence[Action]) -> EpisodeStart:
        """Opens the saved tabs again with their storage; the start, if nothing was saved. Raises ResetFailed."""
        await self._reopen(folder)
        return self._start

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
        await self._boundary.close()

    async def _reopen(self, folder: Path | None) -> None:
        tabs = _read_tabs(folder) if folder else None
        if folder is None or tabs is None or not tabs.urls:
            await self._open(self._task.settings)
            await self._go(self._task.url)
            return
        self._state_folder = folder
        await self._open(_with_storage(self._task.settings, folder / STORAGE_FILE))
        for number, url in enumerate(tabs.urls):
            if number:
                await self.session.execute(NewTab())
            await self._go(url)
        self.session.tabs.focus(self.session.tabs.all[min(tabs.active, len(self.session.tabs.all) - 1)])

    async def _open(self, settings: SessionSettings) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
        self._saved.clear()
        try:
            await self._boundary.start()
            self._session = await self._chromium.session(settings, self._boundary, self._task.folder, self._task.vault)
        except OSError as error:
            raise ResetFailed(f"the boundary could not be started: {error.strerror}") from error

    async def _go(self, url: str) -> None:
        result = await self.session.execute(Goto(url=url))
        if result.status is not Status.OK:
            raise ResetFailed(
                f"{self._task.vault.mask(url)} could not be opened: {result.message or result.status.value}"
            )

    def _write(self, path: Path, text: str) -> None:
        """Replaces the file in one step, readable by its owner only; not at all if it holds this text already."""
        if self._saved.get(path) == text:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        part.replace(path)
        self._saved[path] = text


def _read_tabs(folder: Path) -> SavedTabs | None:
    path = folder / TABS_FILE
    return SavedTabs.model_validate_json(path.read_text(encoding="utf-8")) if path.exists() else None


def _with_storage(settings: SessionSettings, path: Path) -> SessionSettings:
    return settings.model_copy(update={"storage_state": path}) if path.exists() else settings


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
