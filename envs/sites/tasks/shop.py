"""The shop's tasks for a customer."""

from __future__ import annotations

from envs.sites.tasks import shop_finding
from envs.sites.tasks.shop_parts import NOISE

__all__ = ["NOISE", "TEMPLATES"]

TEMPLATES = (*shop_finding.TEMPLATES,)
