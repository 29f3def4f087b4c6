"""The evidence of an episode. Milestones and outcomes are judged on it alone.

It consists of the copies' databases and request logs, the URLs of the open tabs as the browser reports them, and the
answer. It contains no page text, and no page can write to it.
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
    """Read-only queries on one application's database."""

    def __init__(self, path: Path, *, frozen: bool = False) -> None:
        self.path = path
        self._mode = "mode=ro&immutable=1" if frozen else "mode=ro"

    def rows(self, sql: str, *values: SqlValue) -> tuple[tuple[Any, ...], ...]:
        """All rows of a query. Raises sqlite3.Error."""
        with closing(sqlite3.connect(f"file:{self.path}?{self._mode}", uri=True, timeout=5.0)) as database:
            return tuple(database.execute(sql, values).fetchall())

    def value(self, sql: str, *values: SqlValue) -> Any:
        """The first column of the first row; None if there is no row. Raises sqlite3.Error."""
        rows = self.rows(sql, *values)
        return rows[0][0] if rows else None


@dataclass(frozen=True, slots=True)
class PagePattern:
    """A set of pages of a site. `path` is a regular expression for the whole path, `query` a subset of the query."""

    site: SiteName
    path: str
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    """Required arguments. Values are compared without case and outer white space."""

    def covers(self, path: str, query: Sequence[tuple[str, str]]) -> bool:
        """Does a request with this path and query match?"""
        actual = {name: value.strip().casefold() for name, value in query}
        required = {name: value.strip().casefold() for name, value in self.query.items()}
        return re.fullmatch(self.path, path) is not None and required.items() <= actual.items()

    def shows(self, url: str) -> bool:
        """Does *url*, as the agent's browser reports it, match?"""
        parts = urlsplit(url)
        return parts.hostname == KINDS[self.site].host and self.covers(
            unquote(parts.path) or "/", parse_qsl(parts.query, keep_blank_values=True)
        )


@dataclass(frozen=True, slots=True)
class SiteEvidence:
    """The evidence of one site."""

    name: SiteName
    database: Database | None
    """None for a site without a database."""
    golden: Database | None
    requests: tuple[Request, ...]
    changes: tuple[Change, ...]
    """Rows that differ from the golden state, without noise."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of one episode at one moment."""

    sites: Mapping[SiteName, SiteEvidence]
    urls: tuple[str, ...]
    """URLs of the open tabs, the front tab first."""
    answer: str | None = None
    """The agent's answer; None before the end or without an answer."""

    def visited(self, page: PagePattern) -> bool:
        """Did the server deliver a matching page (a GET with status 200)?"""
        return any(
            request.method == "GET" and request.status == 200 and page.covers(request.path, request.query)
            for request in self.sites[page.site].requests
        )

    def sent(self, page: PagePattern, **fields: str) -> bool:
        """Did the server accept a form with these fields at a matching address?"""
        return any(
            request.method == "POST"
            and request.ok
            and page.covers(request.path, request.query)
            and all((request.field(name) or "").strip() == value.strip() for name, value in fields.items())
            for request in self.sites[page.site].requests
        )

    def shows(self, page: PagePattern) -> bool:
        """Does the front tab show a matching page that the server delivered?"""
        return bool(self.urls) and page.shows(self.urls[0]) and self.visited(page)

    def changed(self, site: SiteName) -> tuple[Change, ...]:
        return self.sites[site].changes

    @property
    def server_error(self) -> str:
        """The first failure of a server itself, which makes the episode `broken`; empty if there was none."""
        return next(
            (f"{s.name}: {r.server_error}" for s in self.sites.values() for r in s.requests if r.server_error), ""
        )


def site_evidence(name: SiteName, live: Path, golden: Path, requests: Sequence[Request], noise: Noise) -> SiteEvidence:
    """Reads the evidence of one copy. Raises sqlite3.Error if its database cannot be read."""
    if not KINDS[name].has_database:
        return SiteEvidence(name, None, None, tuple(requests), ())
    return SiteEvidence(
        name, Database(live), Database(golden, frozen=True), tuple(requests), changes(golden, live, noise)
    )
