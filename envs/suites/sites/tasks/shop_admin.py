"""The shop's tasks for its staff, in the dashboard."""

from __future__ import annotations

from envs.suites.sites.tasks import shop_admin_figures, shop_admin_orders, shop_admin_stock

__all__ = ["TEMPLATES"]

TEMPLATES = (*shop_admin_orders.TEMPLATES, *shop_admin_figures.TEMPLATES, *shop_admin_stock.TEMPLATES)
