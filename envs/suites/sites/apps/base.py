"""What an application must bring to be a site: the contract between the kernel and `envs.suites.sites.apps.*`.

Layout of a *golden* folder, built once, and of a *copy* of it, one per rollout::

    db.sqlite3      the application's whole database (absent for a site without one)
    files/          what the application may write besides the database; restored at every reset
    fixed/          what it only reads: search index, git repository, pictures, map data; a link in a copy
    logins.json     {persona: {cookie name: cookie value}} of sessions that live in the golden database

Rules for an application:
  - Deterministic: the clock stands at `clock.NOW` and `random` is seeded before `build`; `Faker` and the
    like are seeded by the application. Two builds differ at most in tokens, hashes and UUIDs.
  - Nothing but `db.sqlite3` and `files/` changes while it serves. `PRAGMA synchronous=OFF`.
  - No request to the outside, from the server or from its pages.
  - URLs are made from the request's Host header: the copy does not know its own address. Cookies are for the
    host without a port, by Max-Age (the browser's clock is another one) or for the session, and last for a year.
  - It runs threaded (waitress, 4 threads) in one process; mail goes nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

StartResponse = Callable[..., Any]
WSGIApplication = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]

DATABASE = "db.sqlite3"
FILES = "files"
FIXED = "fixed"
LOGINS = "logins.json"


class SiteApp(Protocol):
    """Serves one folder per process."""

    def build(self, golden: Path) -> None:
        """Fills the empty folder *golden* as laid out above, and reports progress by printing lines."""
        ...

    def application(self, copy: Path) -> WSGIApplication:
        """The application over the folder *copy*; called once a process."""
        ...

    def forget(self) -> None:
        """Drops what the process has cached or pooled: the database and files were just put back to the golden state.

        Called with no request in flight."""
        ...
