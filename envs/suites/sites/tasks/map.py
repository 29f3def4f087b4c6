"""The map's tasks."""

from __future__ import annotations

from envs.suites.sites.changes import Noise
from envs.suites.sites.tasks import map_nearest, map_places, map_routes

__all__ = ["NOISE", "TEMPLATES"]

NOISE = Noise()
"""It has no database."""
TEMPLATES = (*map_places.TEMPLATES, *map_routes.TEMPLATES, *map_nearest.TEMPLATES)
