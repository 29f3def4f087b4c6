"""CMS tasks: read the museum's site, edit and arrange its pages, refuse impossible requests."""

from __future__ import annotations

from typing import Any

from envs.suites.sites.tasks.cms.arranging import ARRANGING
from envs.suites.sites.tasks.cms.editing import EDITING
from envs.suites.sites.tasks.cms.impossible import IMPOSSIBLE
from envs.suites.sites.tasks.cms.reading import READING
from envs.suites.sites.tasks.cms.shared import NOISE
from envs.suites.sites.templates import Template

__all__ = ["NOISE", "TEMPLATES"]

TEMPLATES: tuple[Template[Any], ...] = (*READING, *EDITING, *ARRANGING, *IMPOSSIBLE)
