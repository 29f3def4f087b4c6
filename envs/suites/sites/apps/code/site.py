"""The code site: builds, serves and resets a Trac environment.

The Trac environment is `files/trac`, because Trac's administration writes its settings there. It refers to the database
and the repository by relative paths, so that a copy works in any folder.
"""

from __future__ import annotations

import gc
import json
import locale
import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing, redirect_stdout
from datetime import datetime
from io import StringIO
from pathlib import Path
from typing import Any

import trac.env
from trac.env import Environment, env_cache, open_environment
from trac.perm import PermissionSystem
from trac.ticket.model import Component, Milestone, Type, Version
from trac.web.main import dispatch_request
from trac.wiki.model import WikiPage

from envs.suites.sites.apps.base import DATABASE, FILES, FIXED, LOGINS, StartResponse, WSGIApplication
from envs.suites.sites.apps.code.history import build_repository, git_environment, write_sizes
from envs.suites.sites.apps.code.login import PASSWORD, hashed
from envs.suites.sites.apps.code.pages import PAGES
from envs.suites.sites.apps.code.people import ADMIN, COMPONENTS, DEVELOPERS, EVERYBODY, PERSONAS
from envs.suites.sites.apps.code.project import RELEASES
from envs.suites.sites.apps.code.tickets import MILESTONES, insert_tickets
from envs.suites.sites.clock import NOW

REPOSITORY = "tidemark.git"
SIZES = "sizes.json"
SETTINGS = (
    ("trac", "database", f"sqlite:../../{DATABASE}?synchronous=off"),
    ("trac", "default_timezone", "UTC"),
    ("trac", "default_date_format", "iso8601"),
    ("trac", "default_dateinfo_format", "absolute"),
    ("trac", "default_language", "en_US"),
    ("components", "tracopt.versioncontrol.git.*", "enabled"),
    ("components", "trac.web.auth.LoginModule", "disabled"),
    ("components", "envs.suites.sites.apps.code.login.*", "enabled"),
    ("git", "cached_repository", "true"),
    ("git", "persistent_cache", "true"),  # the repository never changes
    ("repositories", ".dir", f"../../{FIXED}/{REPOSITORY}"),
    ("repositories", ".type", "git"),
    ("repositories", ".description", "The source code of Tidemark."),
    ("project", "name", "Tidemark"),
    ("project", "descr", "Tide tables and sea level for Python"),
    ("metanav", "help", "disabled"),  # Trac's manual is not part of the wiki
    ("metanav", "about", "disabled"),
    ("project", "footer", "Tidemark is free software."),
    ("header_logo", "src", ""),
    ("header_logo", "alt", "Tidemark"),
    ("logging", "log_type", "none"),
    ("notification", "smtp_enabled", "false"),
    ("ticket", "restrict_owner", "true"),
    ("ticket", "default_component", "documentation"),
    ("ticket", "default_milestone", ""),
    ("timeline", "max_daysback", "500"),
)


class CodeSite:
    """See `envs.suites.sites.apps.base.SiteApp`."""

    def __init__(self) -> None:
        self._home: Path | None = None

    def build(self, golden: Path) -> None:
        os.environ.update(git_environment())
        (golden / FIXED).mkdir()
        build_repository(golden / FIXED / REPOSITORY)
        write_sizes(golden / FIXED / REPOSITORY, golden / FIXED / SIZES)
        print("code: repository", flush=True)  # noqa: T201
        (golden / FILES).mkdir()
        with redirect_stdout(StringIO()):  # Trac prints every commit that it reads
            env = Environment(str(_home(golden)), create=True, options=list(SETTINGS))
        _remove_examples(env)
        _write_people(env, golden)
        _write_plan(env)
        for page in PAGES:
            _write_page(env, page.name, page.author, page.text)
        insert_tickets(env)
        print("code: tickets and wiki", flush=True)  # noqa: T201
        env.shutdown()
        _name_keys(golden / DATABASE)

    def application(self, copy: Path) -> WSGIApplication:
        os.environ.update(git_environment())
        self._home = _home(copy)
        locale.setlocale(locale.LC_ALL, "C.UTF-8")
        open_environment(str(self._home), use_cache=True)
        trac.env.load_components = _already_loaded
        gc.collect()
        gc.freeze()  # Trac collects garbage after every request; this excludes objects created before
        home = str(self._home)

        def serve(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
            environ["trac.env_path"] = home
            environ["trac.locale"] = "C.UTF-8"
            return dispatch_request(environ, start_response)

        return serve

    def clear_caches(self) -> None:
        env = env_cache.pop(str(self._home), None)
        if env is not None:
            env.shutdown()
        open_environment(str(self._home), use_cache=True)


def _already_loaded(*_: object, **__: object) -> None:
    """Replaces Trac's search for plugins, which would take most of the time of a reset. Plugins stay loaded in the
    process."""


def _name_keys(database: Path) -> None:
    """Replaces UNIQUE over several columns by PRIMARY KEY in Trac's schema (the same index in SQLite), so that changes
    can be compared row by row."""
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET sql = replace(sql, 'UNIQUE (', 'PRIMARY KEY (') WHERE type = 'table'"
        )


def _home(folder: Path) -> Path:
    return folder.resolve() / FILES / "trac"


def _write_people(env: Any, golden: Path) -> None:
    """Writes the accounts, their permissions and the logins of the personas."""
    seen = int(NOW.timestamp())
    with env.db_transaction as db:
        for person in EVERYBODY:
            db("INSERT INTO session (sid, authenticated, last_visit) VALUES (%s, 1, %s)", (person.user, seen))
            rows = (("name", person.name), ("email", person.email), (PASSWORD, hashed(person.user, person.password)))
            db.executemany(
                "INSERT INTO session_attribute (sid, authenticated, name, value) VALUES (%s, 1, %s, %s)",
                [(person.user, name, value) for name, value in rows],
            )
        logins: dict[str, dict[str, str]] = {}
        for persona, person in PERSONAS.items():
            cookie = hashed(person.user, "login")[:32]
            db(
                "INSERT INTO auth_cookie (cookie, name, ipnr, time) VALUES (%s, %s, '', %s)",
                (cookie, person.user, seen),
            )
            logins[persona] = {"trac_auth": cookie, "trac_form_token": hashed(person.user, "form")[:24]}
    (golden / LOGINS).write_text(json.dumps(logins, indent=1), encoding="utf-8")
    system: Any = PermissionSystem  # Trac's components take the environment in a metaclass
    permissions = system(env)
    for person in DEVELOPERS:
        permissions.grant_permission(person.user, "developers")
    for action in ("TICKET_MODIFY", "TICKET_CREATE", "WIKI_MODIFY", "REPORT_CREATE"):
        permissions.grant_permission("developers", action)
    permissions.grant_permission(ADMIN.user, "TRAC_ADMIN")


def _remove_examples(env: Any) -> None:
    """Deletes the example pages, components, versions and milestones of a new Trac environment."""
    with env.db_transaction as db:
        for table in ("wiki", "component", "version", "milestone"):
            db(f"DELETE FROM {table}")
        db("UPDATE cache SET generation=generation+1")


def _write_plan(env: Any) -> None:
    for name, owner in COMPONENTS.items():
        component = Component(env)
        component.name, component.owner = name, owner
        component.insert()
    for name, day in RELEASES.items():
        version = Version(env)
        version.name, version.time = name, _evening(day)
        version.insert()
    for name, (due, completed) in MILESTONES.items():
        milestone: Any = Milestone(env)
        milestone.name, milestone.due, milestone.completed = name, _evening(due), _evening(completed)
        milestone.description = f"Release {name} of Tidemark." if name[0].isdigit() else ""
        milestone.insert()
    kind = Type(env)
    kind.name = "documentation"
    kind.insert()


def _write_page(env: Any, name: str, author: str, text: str) -> None:
    page = WikiPage(env, name)
    page.text = text
    page.save(author, "", t=NOW.replace(month=2, hour=8))


def _evening(day: str) -> datetime | None:
    return datetime.fromisoformat(f"{day}T17:00:00+00:00") if day else None
