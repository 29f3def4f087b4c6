"""Shared parts of the Django sites: settings, migrations, logins and cache clearing. One Django site per process."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application

from envs.suites.sites.apps.base import DATABASE, FILES, LOGINS, WSGIApplication

A_YEAR_S = 365 * 24 * 3600
PASSWORD = "quayside-2026"
"""The password of every account. Tasks rarely need it, because the golden state has live logins."""


def configure(folder: Path, *, name: str, apps: Sequence[str], middleware: Sequence[str], **more: Any) -> None:
    """Configures Django for *folder*. Call it once per process. Django writes its database and `files/` only."""
    settings.configure(
        SECRET_KEY=f"not a secret: the {name} site of a test suite, reachable from its own machine only",
        DEBUG=False,
        ALLOWED_HOSTS=["*"],
        INSTALLED_APPS=list(apps),
        MIDDLEWARE=list(middleware),
        DATABASES={"default": _database(folder / DATABASE)},
        CACHES=more.pop("CACHES", {"default": _memory("default")}),
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        EMAIL_BACKEND="django.core.mail.backends.dummy.EmailBackend",
        LANGUAGE_CODE="en",
        TIME_ZONE="UTC",
        USE_TZ=True,
        STATIC_URL="/static/",
        MEDIA_URL="/media/",
        MEDIA_ROOT=str(folder / FILES),
        SESSION_COOKIE_AGE=A_YEAR_S,
        CSRF_COOKIE_AGE=A_YEAR_S,
        # Every account has the same known password, so a slow hash would protect nothing.
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        LOGGING=_LOGGING,
        **more,
    )
    django.setup()


def _database(path: Path) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        # Writers queue from their first statement: a transaction that starts as a reader could not become a writer.
        "OPTIONS": {"init_command": "PRAGMA synchronous=OFF", "transaction_mode": "IMMEDIATE", "timeout": 20},
    }


def _memory(name: str) -> dict[str, Any]:
    return {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": name, "TIMEOUT": None}


def memory_caches(*names: str) -> dict[str, dict[str, Any]]:
    """In-process caches. :func:`clear_caches` empties them."""
    return {name: _memory(name) for name in names}


_LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"stderr": {"class": "logging.StreamHandler"}},
    "root": {"handlers": ["stderr"], "level": "ERROR"},
    "loggers": {
        "django": {"handlers": ["stderr"], "level": "ERROR", "propagate": False},
        "django.server": {"handlers": ["stderr"], "level": "ERROR", "propagate": False},
    },
}


def create_tables() -> None:
    """Creates all tables by running the migrations."""
    from django.core.management import call_command

    call_command("migrate", verbosity=0, interactive=False)


def serve(folder: Path) -> WSGIApplication:
    """The WSGI application over *folder*. Call `configure` first."""
    from envs.suites.sites.apps.django_files import FileMiddleware

    application: Any = get_wsgi_application()
    return FileMiddleware(application, folder / FILES)


def write_logins(folder: Path, users: Mapping[str, Any], backend: str) -> None:
    """Logs in each persona and writes the session cookies to `logins.json`."""
    cookies = {persona: {settings.SESSION_COOKIE_NAME: _session(user, backend)} for persona, user in users.items()}
    (folder / LOGINS).write_text(json.dumps(cookies, indent=2) + "\n", encoding="utf-8")


def _session(user: Any, backend: str) -> str:
    from django.contrib import auth
    from django.http import HttpRequest

    request: Any = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore()
    auth.login(request, user, backend=backend)
    request.session.save()
    return str(request.session.session_key)


def compact_database() -> None:
    """Compacts the database into one file without a journal."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("VACUUM")
    connection.close()


def clear_caches() -> None:
    """Clears Django's caches and content types and closes this thread's connections."""
    from django.contrib.contenttypes.models import ContentType
    from django.core.cache import caches
    from django.db import connections

    for cache in caches.all():
        cache.clear()
    ContentType.objects.clear_cache()
    connections.close_all()


def bulk(model: Any, rows: Iterable[Any]) -> list[Any]:
    """Inserts *rows* in batches, without signals."""
    return list(model.objects.bulk_create(list(rows), batch_size=200))
