"""Django configuration of the museum's website."""

from __future__ import annotations

from django.apps import AppConfig


class WebsiteConfig(AppConfig):
    """Name and label of the application. It has one migration, since every golden database is built from scratch."""

    name = "envs.suites.sites.apps.cms.website"
    label = "website"
