"""Forum tasks: read, write, moderate, and refuse what the forum does not allow."""

from __future__ import annotations

from typing import Any

from envs.suites.sites.tasks.forum.impossible import IMPOSSIBLE
from envs.suites.sites.tasks.forum.moderating import MODERATING
from envs.suites.sites.tasks.forum.reading import READING
from envs.suites.sites.tasks.forum.shared import NOISE
from envs.suites.sites.tasks.forum.writing import WRITING
from envs.suites.sites.templates import Template

__all__ = ["NOISE", "TEMPLATES"]

TEMPLATES: tuple[Template[Any], ...] = (*READING, *WRITING, *MODERATING, *IMPOSSIBLE)
