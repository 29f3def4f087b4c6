"""What an episode left behind: the only thing that milestones and outcomes are judged on.

Databases and request logs of the copies, the addresses of the open tabs as the browser has them, and the answer.
Nothing of it is page text, and nothing of it can be written by a page.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from envs.suites.sites.changes import Change, Noise, SqlValue, changes
from envs.suites.sites.kinds import KINDS, SiteName
from envs.suites.sites.requests import Request


class Database:
    """Read-only questions to one application's database."""

    def __init__(self, path: Path, *, frozen: bool = False) -> None:
        self.path = path
        self._mode = "mode=ro&immutable=1" if frozen else "mode=ro"

    def rows(self, sql: str, *values: SqlValue) -> tuple[tuple[Any, ...], ...]:
        """Raises sqlite3.Error."""
        with closing(sqlite3.connect(f"file:{self.path}?{self._mode}", uri=True, timeout=5.0)) as database:
            return tuple(database.execute(sql, values).fetchall())

    def value(self, sql: str, *values: SqlValue) -> Any:
        """The first column of the first row; None where there is no row."""
        rows = self.rows(sql, *values)
        return rows[0][0] if rows else None


@dataclass(frozen=True, slots=True)
class PagePattern:
    """A part of a site: the path fits `path` (a regular expression, matched whole) and `query` is contained."""

    site: SiteName
    path: str
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    """Arguments that must be there; a value is compared without regard to case and blanks around it."""

    def covers(self, path: str, query: Sequence[tuple[str, str]]) -> bool:
        given = {name: value.strip().casefold() for name, value in query}
        wanted = {name: value.strip().casefold() for name, value in self.query.items()}
        return re.fullmatch(self.path, path) is not None and wanted.items() <= given.items()

    def shows(self, url: str) -> bool:
        """Is *url*, as the agent's browser has it, in this part?"""
        parts = urlsplit(url)
        return parts.hostname == KINDS[self.site].host and self.covers(
            unquote(parts.path) or "/", parse_qsl(parts.query, keep_blank_values=True)
        )


@dataclass(frozen=True, slots=True)
class SiteEvidence:
    """Of one site."""

    name: SiteName
    database: Database | None
    """None for a site without one."""
    golden: Database | None
    requests: tuple[Request, ...]
    changes: tuple[Change, ...]
    """Rows that differ from the golden state, noise left out."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Of one episode, at one moment."""

    sites: Mapping[SiteName, SiteEvidence]
    urls: tuple[str, ...]
    """Addresses of the open tabs, the front one first."""
    answer: str | None = None
    """What the agent answered; None before the end and where it gave no answer."""

    def visited(self, where: PagePattern) -> bool:
        """Was a page of this part asked for and shown (a GET that succeeded, answered with the page itself)?"""
        return any(
            request.method == "GET" and request.status == 200 and where.covers(request.path, request.query)
            for request in self.sites[where.site].requests
        )

    def sent(self, where: PagePattern, **fields: str) -> bool:
        """Was a form with these fields sent to this part, and accepted?"""
        return any(
            request.method == "POST"
            and request.ok
            and where.covers(request.path, request.query)
            and all((request.field(name) or "").strip() == value.strip() for name, value in fields.items())
            for request in self.sites[where.site].requests
        )

    def shows(self, where: PagePattern) -> bool:
        """Is the front tab in this part, with a page that the server really gave?"""
        return bool(self.urls) and where.shows(self.urls[0]) and self.visited(where)

    def changed(self, site: SiteName) -> tuple[Change, ...]:
        return self.sites[site].changes

    @property
    def server_error(self) -> str:
        """Why nothing can be said of this episode: a server's own failure; empty if there was none."""
        return next(
            (f"{s.name}: {r.server_error}" for s in self.sites.values() for r in s.requests if r.server_error), ""
        )


def site_evidence(name: SiteName, live: Path, golden: Path, requests: Sequence[Request], noise: Noise) -> SiteEvidence:
    """Reads one copy. Raises sqlite3.Error where its database cannot be read."""
    if not KINDS[name].has_database:
        return SiteEvidence(name, None, None, tuple(requests), ())
    return SiteEvidence(
        name, Database(live), Database(golden, frozen=True), tuple(requests), changes(golden, live, noise)
    )
