"""The forum as a site: Spirit's settings, build and application."""

from __future__ import annotations

import logging
from pathlib import Path

from envs.suites.sites.apps import django_base
from envs.suites.sites.apps.base import WSGIApplication

APPS = (
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "spirit.core",
    "spirit.admin",
    "spirit.search",
    "spirit.user",
    "spirit.user.admin",
    "spirit.user.auth",
    "spirit.category",
    "spirit.category.admin",
    "spirit.topic",
    "spirit.topic.admin",
    "spirit.topic.favorite",
    "spirit.topic.moderate",
    "spirit.topic.notification",
    "spirit.topic.private",
    "spirit.topic.unread",
    "spirit.comment",
    "spirit.comment.bookmark",
    "spirit.comment.flag",
    "spirit.comment.flag.admin",
    "spirit.comment.history",
    "spirit.comment.like",
    "spirit.comment.poll",
    "djconfig",
    "haystack",
)
MIDDLEWARE = (
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "spirit.user.middleware.TimezoneMiddleware",
    "spirit.user.middleware.LastIPMiddleware",
    "spirit.user.middleware.LastSeenMiddleware",
    "spirit.user.middleware.ActiveUserMiddleware",
    "spirit.core.middleware.PrivateForumMiddleware",
    "djconfig.middleware.DjConfigMiddleware",
)
CONTEXT = (
    "django.contrib.auth.context_processors.auth",
    "django.template.context_processors.i18n",
    "django.template.context_processors.media",
    "django.template.context_processors.static",
    "django.template.context_processors.tz",
    "django.template.context_processors.request",
    "django.contrib.messages.context_processors.messages",
    "djconfig.context_processors.config",
)
BACKEND = "spirit.user.auth.backends.UsernameAuthBackend"


class Forum:
    """Django-spirit 0.14 (MIT)."""

    def build(self, golden: Path) -> None:
        _configure(golden)
        django_base.create_tables()
        print("forum: tables", flush=True)  # noqa: T201
        from envs.suites.sites.apps.forum import seed

        people = seed.fill()
        print("forum: members, topics, comments", flush=True)  # noqa: T201
        django_base.write_logins(golden, people, BACKEND)
        django_base.compact_database()

    def application(self, copy: Path) -> WSGIApplication:
        _configure(copy)
        return django_base.serve(copy)

    def clear_caches(self) -> None:
        from djconfig.conf import config

        django_base.clear_caches()
        config._cache.clear()  # pyright: ignore[reportPrivateUsage]  # otherwise cached until a setting changes


def _configure(folder: Path) -> None:
    logging.captureWarnings(True)
    (folder / "files").mkdir(exist_ok=True)
    (folder / "fixed").mkdir(exist_ok=True)
    django_base.configure(
        folder,
        name="forum",
        apps=APPS,
        middleware=MIDDLEWARE,
        CACHES=django_base.memory_caches("default", "st_rate_limit"),
        ROOT_URLCONF="envs.suites.sites.apps.forum.urls",
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "APP_DIRS": True,
                "OPTIONS": {"context_processors": list(CONTEXT)},
            }
        ],
        AUTHENTICATION_BACKENDS=[BACKEND, "spirit.user.auth.backends.EmailAuthBackend"],
        HAYSTACK_CONNECTIONS={"default": {"ENGINE": "envs.suites.sites.apps.forum.search.RowEngine"}},
        STORAGES={
            "default": {"BACKEND": "spirit.core.storage.OverwriteFileSystemStorage"},
            "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
        },
        LOGIN_URL="spirit:user:auth:login",
        LOGIN_REDIRECT_URL="spirit:index",
        LOGOUT_REDIRECT_URL="spirit:index",
        USE_I18N=False,
        ST_SITE_URL="http://forum.test/",
        ST_RATELIMIT_ENABLE=False,  # agents click quickly, and a reset sets the clock back
    )


SITE = Forum()
