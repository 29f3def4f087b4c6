"""The code site's tasks: those of a developer, and those of the administrator."""

from __future__ import annotations

from envs.suites.sites.tasks import code_admin, code_facts, code_pairs, code_repository, code_tickets, code_wiki
from envs.suites.sites.tasks.code_parts import NOISE

__all__ = ["NOISE", "TEMPLATES"]

TEMPLATES = (
    *code_facts.TEMPLATES,
    *code_tickets.TEMPLATES,
    *code_pairs.TEMPLATES,
    *code_repository.TEMPLATES,
    *code_wiki.TEMPLATES,
    *code_admin.TEMPLATES,
)
