"""The shop: django-oscar with stock, customers and orders of our own invention.

Two personas: `customer` shops, `staff` may also use the dashboard. The listing and the search ask the database
itself (`listing`), so what an episode changes is found at once and a reset needs no search index.
"""

from __future__ import annotations

from pathlib import Path

from envs.sites.apps.base import DATABASE, WSGIApplication

__all__ = ["SITE"]


class ShopSite:
    """The shop as a site; one folder a process, as Django's settings are."""

    def build(self, golden: Path) -> None:
        self._setup(golden)
        from envs.sites.apps.shop.seed import fill

        fill(golden)

    def application(self, copy: Path) -> WSGIApplication:
        self._setup(copy)
        from django.core.wsgi import get_wsgi_application

        from envs.sites.apps.shop.static_files import with_static_files

        return with_static_files(get_wsgi_application(), copy)

    def forget(self) -> None:
        """Empties Django's caches and closes this thread's connections; the rows themselves are read anew."""
        from django.contrib.contenttypes.models import ContentType
        from django.contrib.sites.models import Site
        from django.core.cache import cache
        from django.db import connections

        cache.clear()
        Site.objects.clear_cache()
        ContentType.objects.clear_cache()
        connections.close_all()

    @staticmethod
    def _setup(folder: Path) -> None:
        import django
        from django.conf import settings

        from envs.sites.apps.shop.settings import settings_for

        if not settings.configured:
            settings.configure(**settings_for(folder))
            django.setup()
        elif Path(settings.DATABASES["default"]["NAME"]) != folder / DATABASE:
            raise RuntimeError(f"this process already serves {settings.DATABASES['default']['NAME']!r}")


SITE = ShopSite()
