"""One worker's sites: its own copies behind its own boundary, one fresh browser context an episode."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from envs.browser.action_replay import redo
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
"""Expiry of restored cookies, seconds since 1970: the sites' clocks and the browser's are not the same."""


class Instances(Protocol):
    """Makes tasks from their names."""

    async def instance(self, task: TaskRef) -> Instance[Any]: ...


class SitesEnvironment:
    """Plays tasks of the sites. The whole state is rebuilt from the seed, so a killed episode is replayed: what was
    submitted is submitted again, to a copy that nobody else has seen."""

    restore: Restore = "replay"

    def __init__(
        self, chromium: Chromium, settings: SessionSettings, instances: Instances, *, copies: Path, kept: Path
    ) -> None:
        """*copies*: a folder for servers, thrown away; *kept*: where downloads go."""
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
        """Evidence and what it was read from: it is read again only after something happened."""

    @property
    def session(self) -> BrowserSession:
        if self._session is None:
            raise ResetFailed("the task was not started: call reset first")
        return self._session

    @property
    def task(self) -> Instance[Any]:
        """The task that is being played. Raises ResetFailed before the first one."""
        if self._instance is None:
            raise ResetFailed("the task was not started: call reset first")
        return self._instance

    @property
    def fleet(self) -> Fleet:
        """The copies of this environment."""
        return self._fleet

    async def reset(self, task: TaskRef) -> EpisodeStart:
        """Golden state on every site of the task, somebody logged in, one tab a site. Raises ResetFailed, BadInput."""
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
        """Never: only the agent ends a task."""
        return False

    async def score(self, answer: str | None) -> Score | None:
        """The outcome checker's word. Broken where a server crashed, hangs or could not write."""
        problem = await self._fleet.problem(self.task.template.sites)
        if problem:
            return Score(status="broken", reward=0.0, evidence=problem)
        try:
            evidence = replace(await self.evidence(), answer=answer)
        except sqlite3.Error as error:
            return Score(status="broken", reward=0.0, evidence=f"a database cannot be read: {error}")
        if evidence.server_error:
            return Score(status="broken", reward=0.0, evidence=evidence.server_error)
        missed = self.task.outcome.missed(evidence)
        if missed:
            return Score(status="failure", reward=0.0, evidence=missed)
        return Score(status="success", reward=1.0, evidence="the outcome is exactly as asked")

    async def check_milestones(self) -> tuple[MilestoneCheck, ...] | None:
        """Judged on databases, request logs and addresses; unknown counts as not achieved."""
        try:
            evidence = await self.evidence()
        except sqlite3.Error as error:
            told = f"a database cannot be read: {error}"
            return tuple(MilestoneCheck(achieved=False, evidence=told) for _ in self.task.goals)
        met = [goal.met(evidence) for goal in self.task.goals]
        return tuple(MilestoneCheck(achieved=one, evidence="state of the site" if one else "") for one in met)

    async def evidence(self) -> Evidence:
        """What the episode has left behind so far. Raises sqlite3.Error."""
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
        """Nothing is kept: the seed and the committed actions are the state."""

    async def restore_state(self, task: TaskRef, folder: Path, committed: Sequence[Action]) -> EpisodeStart:
        return await redo(self, task, committed)

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
        """A context that is logged in and can reach the task's sites alone, each open in a tab, the first in front."""
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
        """Of the accounts that the task is done with."""
        template = instance.template
        found: list[Mapping[str, object]] = []
        for name in template.sites:
            kind = KINDS[name]
            persona = template.personas.get(name, kind.personas[0] if kind.personas else "")
            if not persona:
                continue
            known = json.loads((self._fleet[name].golden / LOGINS).read_text(encoding="utf-8"))
            if persona not in known:
                raise BadInput(f"the site {name} has no persona {persona!r}: known are {', '.join(known)}")
            found += [
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
        return found


def _first(group: BaseExceptionGroup[EnvError]) -> str:
    """The message of the first error in a group of groups."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error)
