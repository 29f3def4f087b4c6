"""Code site tasks of a developer and of the administrator."""

from __future__ import annotations

from envs.suites.sites.tasks.code import admin, facts, pairs, repository, tickets, wiki
from envs.suites.sites.tasks.code.shared import NOISE

__all__ = ["NOISE", "TEMPLATES"]

TEMPLATES = (
    *facts.TEMPLATES,
    *tickets.TEMPLATES,
    *pairs.TEMPLATES,
    *repository.TEMPLATES,
    *wiki.TEMPLATES,
    *admin.TEMPLATES,
)
