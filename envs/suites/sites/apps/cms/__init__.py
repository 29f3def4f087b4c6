"""The CMS: Wagtail with the website of an invented museum."""

from __future__ import annotations

from envs.suites.sites.apps.cms.site import SITE

__all__ = ["SITE"]
