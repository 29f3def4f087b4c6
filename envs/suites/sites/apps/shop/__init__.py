"""The shop: django-oscar with invented products, customers and orders.

Two personas: `customer` shops, `staff` may also use the dashboard. Listing and search query the database directly
(`listing`), so changes are visible at once and a reset needs no search index.
"""

from __future__ import annotations

from pathlib import Path

from envs.suites.sites.apps import django_base
from envs.suites.sites.apps.base import WSGIApplication

__all__ = ["SITE"]


class ShopSite:
    """The shop as a site. One folder per process, like Django's settings."""

    def build(self, golden: Path) -> None:
        from envs.suites.sites.apps.shop.settings import configure

        configure(golden)
        from envs.suites.sites.apps.shop.seed import fill

        fill(golden)

    def application(self, copy: Path) -> WSGIApplication:
        from envs.suites.sites.apps.shop.settings import configure

        configure(copy)
        return django_base.serve(copy)

    def clear_caches(self) -> None:
        from django.contrib.sites.models import Site

        Site.objects.clear_cache()
        django_base.clear_caches()


SITE = ShopSite()
