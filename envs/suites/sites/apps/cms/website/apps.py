"""The application's name and label."""

from __future__ import annotations

from django.apps import AppConfig


class WebsiteConfig(AppConfig):
    """One migration is enough: a golden database is always built anew."""

    name = "envs.suites.sites.apps.cms.website"
    label = "website"
