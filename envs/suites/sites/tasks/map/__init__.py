"""The map's tasks."""

from __future__ import annotations

from envs.suites.sites.changes import Noise
from envs.suites.sites.tasks.map import nearest, places, routes

__all__ = ["NOISE", "TEMPLATES"]

NOISE = Noise()
"""It has no database."""
TEMPLATES = (*places.TEMPLATES, *routes.TEMPLATES, *nearest.TEMPLATES)
