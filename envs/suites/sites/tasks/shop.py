"""The shop's tasks for a customer."""

from __future__ import annotations

from envs.suites.sites.tasks import shop_account, shop_buying, shop_checkout, shop_finding, shop_orders
from envs.suites.sites.tasks.shop_parts import NOISE

__all__ = ["NOISE", "TEMPLATES"]

TEMPLATES = (
    *shop_finding.TEMPLATES,
    *shop_orders.TEMPLATES,
    *shop_account.TEMPLATES,
    *shop_buying.TEMPLATES,
    *shop_checkout.TEMPLATES,
)
