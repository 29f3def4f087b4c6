"""The CMS as a site: Wagtail's settings, build and application."""

from __future__ import annotations

from pathlib import Path

from envs.suites.sites.apps import django_base
from envs.suites.sites.apps.base import WSGIApplication

APPS = (
    "envs.suites.sites.apps.cms.website",
    "wagtail.contrib.redirects",
    "wagtail.contrib.settings",
    "wagtail.embeds",
    "wagtail.sites",
    "wagtail.users",
    "wagtail.snippets",
    "wagtail.documents",
    "wagtail.images",
    "wagtail.search",
    "wagtail.admin",
    "wagtail",
    "modelcluster",
    "taggit",
    "django_filters",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
)
MIDDLEWARE = (
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "wagtail.contrib.redirects.middleware.RedirectMiddleware",
)
CONTEXT = (
    "django.template.context_processors.request",
    "django.contrib.auth.context_processors.auth",
    "django.contrib.messages.context_processors.messages",
)
BACKEND = "django.contrib.auth.backends.ModelBackend"


class Cms:
    """Wagtail 8 (BSD-3-Clause) with custom page types."""

    def build(self, golden: Path) -> None:
        _configure(golden)
        django_base.create_tables()
        print("cms: tables", flush=True)  # noqa: T201
        from envs.suites.sites.apps.cms import seed

        people = seed.fill()
        print("cms: pages, pictures, redirects", flush=True)  # noqa: T201
        django_base.write_logins(golden, people, BACKEND)
        django_base.compact_database()

    def application(self, copy: Path) -> WSGIApplication:
        _configure(copy)
        return django_base.serve(copy)

    def clear_caches(self) -> None:
        """Clears Django's caches. Wagtail keeps its state between requests there (site roots, sidebar)."""
        django_base.clear_caches()


def _configure(folder: Path) -> None:
    (folder / "files").mkdir(exist_ok=True)
    (folder / "fixed").mkdir(exist_ok=True)
    django_base.configure(
        folder,
        name="cms",
        apps=APPS,
        middleware=MIDDLEWARE,
        CACHES=django_base.memory_caches("default", "renditions"),
        ROOT_URLCONF="envs.suites.sites.apps.cms.urls",
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "APP_DIRS": True,
                "OPTIONS": {"context_processors": list(CONTEXT)},
            }
        ],
        USE_I18N=False,
        WAGTAIL_SITE_NAME="Tidewater Museum",
        WAGTAILADMIN_BASE_URL="http://cms.test",
        WAGTAILSEARCH_BACKENDS={"default": {"BACKEND": "wagtail.search.backends.database"}},
        # No requests to other hosts: no avatars, no embeds, no update checks.
        WAGTAIL_GRAVATAR_PROVIDER_URL=None,
        WAGTAILEMBEDS_FINDERS=[],
        WAGTAIL_ENABLE_UPDATE_CHECK=False,
        WAGTAIL_ENABLE_WHATS_NEW_BANNER=False,
        WAGTAILADMIN_COMMENTS_ENABLED=False,
        # Autosave is off, so that the result of an episode does not depend on its duration.
        WAGTAIL_AUTOSAVE_INTERVAL=0,
        WAGTAIL_EDITING_SESSION_PING_INTERVAL=600_000,
        DATA_UPLOAD_MAX_NUMBER_FIELDS=10_000,
    )


SITE = Cms()
