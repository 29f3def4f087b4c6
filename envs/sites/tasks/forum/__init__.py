"""Tasks on the forum: reading it, writing in it, moderating it, and what it does not allow."""

from __future__ import annotations

from typing import Any

from envs.sites.tasks.forum.impossible import IMPOSSIBLE
from envs.sites.tasks.forum.moderating import MODERATING
from envs.sites.tasks.forum.reading import READING
from envs.sites.tasks.forum.shared import NOISE
from envs.sites.tasks.forum.writing import WRITING
from envs.sites.templates import Template

__all__ = ["NOISE", "TEMPLATES"]

TEMPLATES: tuple[Template[Any], ...] = (*READING, *WRITING, *MODERATING, *IMPOSSIBLE)
