"""The forum: Spirit with the members and topics of an invented town."""

from __future__ import annotations

from envs.suites.sites.apps.forum.site import SITE

__all__ = ["SITE"]
