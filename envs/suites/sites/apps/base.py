"""The interface between the suite's kernel and the applications in `envs.suites.sites.apps.*`.

Layout of a *golden* folder, built once, and of a *copy* of it, one per rollout::

    db.sqlite3      the application's whole database (absent for a site without one)
    files/          files that the application may write; restored at every reset
    fixed/          files that it only reads: search index, git repository, pictures, map data; a link in a copy
    logins.json     {persona: {cookie name: cookie value}} of sessions in the golden database

Rules for an application:
  - It is deterministic. The clock stands at `clock.NOW` and `random` is seeded before `build`; the application seeds
    other generators such as `Faker`. Two builds differ in tokens, hashes and UUIDs only.
  - While it serves, it changes `db.sqlite3` and `files/` only. `PRAGMA synchronous=OFF`.
  - Neither the server nor its pages send requests to other hosts.
  - It builds URLs from the request's Host header, since a copy does not know its own address. Cookies are for the host
    without a port. They last for the session or for a year by Max-Age, since the browser's clock differs.
  - It runs in one process with 4 threads (waitress). It sends no mail.
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
    """An application. It serves one folder per process."""

    def build(self, golden: Path) -> None:
        """Fills the empty folder *golden* with the layout above. Prints lines of progress."""
        ...

    def application(self, copy: Path) -> WSGIApplication:
        """The application over the folder *copy*. Called once per process."""
        ...

    def clear_caches(self) -> None:
        """Drops caches and pooled connections after database and files were restored.

        Called while no request is in flight."""
        ...
