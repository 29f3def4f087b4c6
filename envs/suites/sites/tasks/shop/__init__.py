"""Shop tasks of a customer."""

from __future__ import annotations

from envs.suites.sites.tasks.shop import account, buying, checkout, finding, orders
from envs.suites.sites.tasks.shop.shared import NOISE

__all__ = ["NOISE", "TEMPLATES"]

TEMPLATES = (
    *finding.TEMPLATES,
    *orders.TEMPLATES,
    *account.TEMPLATES,
    *buying.TEMPLATES,
    *checkout.TEMPLATES,
)
