"""The shop: django-oscar with stock, customers and orders of our own invention.

Two personas: `customer` shops, `staff` may also use the dashboard. The listing and the search ask the database
itself (`listing`), so what an episode changes is found at once and a reset needs no search index.
"""

from __future__ import annotations

from pathlib import Path

from envs.suites.sites.apps import django_base
from envs.suites.sites.apps.base import WSGIApplication

__all__ = ["SITE"]


class ShopSite:
    """The shop as a site; one folder a process, as Django's settings are."""

    def build(self, golden: Path) -> None:
        from envs.suites.sites.apps.shop.settings import configure

        configure(golden)
        from envs.suites.sites.apps.shop.seed import fill

        fill(golden)

    def application(self, copy: Path) -> WSGIApplication:
        from envs.suites.sites.apps.shop.settings import configure

        configure(copy)
        return django_base.serve(copy)

    def forget(self) -> None:
        from django.contrib.sites.models import Site

        Site.objects.clear_cache()
        django_base.forget()


SITE = ShopSite()
