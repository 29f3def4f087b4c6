"""The environment of the sites suite: private copies, a private allowlist proxy, a new browser context per episode."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from envs.browser.action_replay import replay_actions
from envs.browser.chromium import Chromium
from envs.browser.session import BrowserSession
from envs.core.actions import Action, ActionResult, Goto, NewTab
from envs.core.errors import BadInput, EnvError, ResetFailed
from envs.core.observation import Observation
from envs.core.settings import SessionSettings
from envs.core.tasks import EpisodeStart, Milestone, MilestoneCheck, Restore, Score, TaskRef
from envs.security.allowlist import Origins
from envs.security.allowlist_proxy import AllowlistProxy
from envs.suites.sites.apps.base import LOGINS
from envs.suites.sites.catalog import noise
from envs.suites.sites.evidence import Evidence, SiteEvidence, site_evidence
from envs.suites.sites.fleet import Fleet
from envs.suites.sites.kinds import KINDS, SiteName
from envs.suites.sites.templates import Instance

COOKIES_LAST_S = 4_000_000_000
"""Expiry of restored cookies, seconds since 1970. The browser's clock differs from the sites' clocks."""


class Instances(Protocol):
    """Creates task instances from task references."""

    async def instance(self, task: TaskRef) -> Instance[Any]: ...


class SitesEnvironment:
    """Runs tasks on the sites. The seed determines the whole state. So a killed episode is continued by replay on a
    private copy: submitted forms are submitted again."""

    restore: Restore = "replay"

    def __init__(
        self, chromium: Chromium, settings: SessionSettings, instances: Instances, *, copies: Path, kept: Path
    ) -> None:
        """*copies*: a temporary folder for the servers. *kept*: the folder for downloads."""
        self._chromium = chromium
        self._settings = settings
        self._instances = instances
        self._copies = copies
        self._kept = kept
        self._fleet = Fleet(copies)
        self._boundary = AllowlistProxy(Origins.parse([]))
        self._session: BrowserSession | None = None
        self._instance: Instance[Any] | None = None
        self._seen: tuple[tuple[object, ...], Evidence] | None = None
        """A cache: the evidence with the URLs and log lengths it was read at."""

    @property
    def session(self) -> BrowserSession:
        if self._session is None:
            raise ResetFailed("the task was not started: call reset first")
        return self._session

    @property
    def task(self) -> Instance[Any]:
        """The current task. Raises ResetFailed before the first reset."""
        if self._instance is None:
            raise ResetFailed("the task was not started: call reset first")
        return self._instance

    @property
    def fleet(self) -> Fleet:
        """The copies of this environment."""
        return self._fleet

    async def reset(self, task: TaskRef) -> EpisodeStart:
        """Restores the golden state of the task's sites, logs the personas in and opens one tab per site.

        Raises ResetFailed and BadInput."""
        self._seen = None
        self._instance = instance = await self._instances.instance(task)
        template = instance.template
        try:
            await asyncio.gather(self._fleet.ready(template.sites), self._leave())
        except* ResetFailed as group:
            raise ResetFailed(f"{task.id}: {_first(group)}") from group
        except* BadInput as group:
            raise BadInput(_first(group)) from group
        await self._enter(instance)
        return EpisodeStart(
            instruction=instance.instruction,
            category=template.category,
            milestones=tuple(Milestone(id=f"m{i}", text=goal.text) for i, goal in enumerate(instance.goals, 1)),
        )

    async def observe(self, *, screenshot: bool = False) -> Observation:
        return await self.session.observe(screenshot=screenshot)

    async def execute(self, action: Action) -> ActionResult:
        return await self.session.execute(action)

    async def done(self) -> bool:
        """Always False: only the agent ends a task."""
        return False

    async def score(self, answer: str | None) -> Score | None:
        """Checks the outcome. The score is `broken` if a server crashed, hangs or could not write."""
        problem = await self._fleet.problem(self.task.template.sites)
        if problem:
            return Score(status="broken", reward=0.0, evidence=problem)
        try:
            evidence = replace(await self.evidence(), answer=answer)
        except sqlite3.Error as error:
            return Score(status="broken", reward=0.0, evidence=f"a database cannot be read: {error}")
        if evidence.server_error:
            return Score(status="broken", reward=0.0, evidence=evidence.server_error)
        problem = self.task.outcome.problem(evidence)
        if problem:
            return Score(status="failure", reward=0.0, evidence=problem)
        return Score(status="success", reward=1.0, evidence="the outcome is exactly as asked")

    async def check_milestones(self) -> tuple[MilestoneCheck, ...] | None:
        """Checks the milestones on databases, request logs and URLs. An unknown milestone counts as not achieved."""
        try:
            evidence = await self.evidence()
        except sqlite3.Error as error:
            message = f"a database cannot be read: {error}"
            return tuple(MilestoneCheck(achieved=False, evidence=message) for _ in self.task.goals)
        met = [goal.met(evidence) for goal in self.task.goals]
        return tuple(MilestoneCheck(achieved=is_met, evidence="state of the site" if is_met else "") for is_met in met)

    async def evidence(self) -> Evidence:
        """The evidence of the episode at this moment. Raises sqlite3.Error."""
        sites = self.task.template.sites
        logs = {name: self._fleet[name].requests() for name in sites}
        tabs = self.session.tabs
        front = self.session.url if tabs.all else ""
        urls = (front, *(tab.page.url for tab in tabs.all if tab.page.url != front))
        read_from = (urls, *(len(log) for log in logs.values()))
        if self._seen is None or self._seen[0] != read_from:
            self._seen = (read_from, Evidence({name: await self._read(name) for name in sites}, urls))
        return self._seen[1]

    async def save_state(self, folder: Path) -> None:
        """Saves nothing: the seed and the committed actions determine the state."""

    async def restore_state(self, task: TaskRef, folder: Path, committed: Sequence[Action]) -> EpisodeStart:
        return await replay_actions(self, task, committed)

    async def save_playwright_trace(self, path: Path) -> bool:
        return await self.session.save_playwright_trace(path)

    async def close(self) -> None:
        await self._leave()
        await self._boundary.close()
        await self._fleet.close()

    async def _read(self, name: SiteName) -> SiteEvidence:
        copy = self._fleet[name]
        return await asyncio.to_thread(
            site_evidence, name, copy.database, copy.golden_database, copy.requests(), noise(name)
        )

    async def _leave(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _enter(self, instance: Instance[Any]) -> None:
        """Opens a logged-in browser context that can access the task's sites only: one tab per site, the first in
        front."""
        template = instance.template
        origins = [KINDS[name].origin for name in template.sites]
        self._boundary.origins = Origins.parse(origins)
        self._boundary.routes = {KINDS[name].origin: self._fleet[name].address for name in template.sites}
        await self._boundary.start()
        logins = self._copies / "logins.json"
        logins.parent.mkdir(parents=True, exist_ok=True)
        logins.write_text(json.dumps({"cookies": self._cookies(instance), "origins": []}), encoding="utf-8")
        settings = self._settings.model_copy(update={"storage_state": logins, "allow": tuple(origins)})
        self._session = await self._chromium.session(settings, self._boundary, self._kept)
        for number, name in enumerate(template.sites):
            if number:
                await self._session.execute(NewTab())
            result = await self._session.execute(Goto(url=KINDS[name].origin + template.start.get(name, "/")))
            if not result.ok:
                raise ResetFailed(f"{KINDS[name].title} could not be opened: {result.message or result.status.value}")
        self._session.tabs.focus(self._session.tabs.all[0])

    def _cookies(self, instance: Instance[Any]) -> Sequence[Mapping[str, object]]:
        """The login cookies of the task's personas."""
        template = instance.template
        cookies: list[Mapping[str, object]] = []
        for name in template.sites:
            kind = KINDS[name]
            persona = template.personas.get(name, kind.personas[0] if kind.personas else "")
            if not persona:
                continue
            known = json.loads((self._fleet[name].golden / LOGINS).read_text(encoding="utf-8"))
            if persona not in known:
                raise BadInput(f"the site {name} has no persona {persona!r}: known are {', '.join(known)}")
            cookies += [
                {
                    "name": cookie,
                    "value": value,
                    "domain": kind.host,
                    "path": "/",
                    "expires": COOKIES_LAST_S,
                    "httpOnly": True,
                    "secure": False,
                    "sameSite": "Lax",
                }
                for cookie, value in known[persona].items()
            ]
        return cookies


def _first(group: BaseExceptionGroup[EnvError]) -> str:
    """The message of the first error in nested exception groups."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error)
