"""Shop tasks of the staff, in the dashboard."""

from __future__ import annotations

from envs.suites.sites.tasks.shop_admin import figures, orders, stock

__all__ = ["TEMPLATES"]

TEMPLATES = (*orders.TEMPLATES, *figures.TEMPLATES, *stock.TEMPLATES)
