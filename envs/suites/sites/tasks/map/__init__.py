"""Map tasks: places, routes and what is nearest."""

from __future__ import annotations

from envs.suites.sites.changes import Noise
from envs.suites.sites.tasks.map import nearest, places, routes

__all__ = ["NOISE", "TEMPLATES"]

NOISE = Noise()
"""Empty, because the map has no database."""
TEMPLATES = (*places.TEMPLATES, *routes.TEMPLATES, *nearest.TEMPLATES)
