"""Fills an empty shop: the same one each time, for tokens and session keys alone are drawn anew."""

from __future__ import annotations

import random
from pathlib import Path

from envs.suites.sites.apps import django_base

SEED = 4_2026


def fill(golden: Path) -> None:
    """Builds the database, the pictures and the logins of *golden*; Django is set up over it."""
    from envs.suites.sites.apps.shop.seed import catalogue, marketing, opinions, orders, people

    rng = random.Random(SEED)
    _create_tables()
    _tell("tables created")
    shoppers = people.create(rng)
    products = catalogue.create(rng, golden)
    _tell(f"{len(products)} products, {len(shoppers.customers)} customers")
    placed = orders.create(rng, shoppers, products)
    opinions.create(rng, shoppers, products)
    marketing.create()
    _tell(f"{placed} orders, reviews, offers and vouchers")
    logins = {"customer": shoppers.customer, "staff": shoppers.staff}
    django_base.write_logins(golden, logins, "oscar.apps.customer.auth_backends.EmailBackend")
    django_base.pack()


def _tell(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - the contract of a build: its progress is what it prints


def _create_tables() -> None:
    """Creates the tables from the models as they are: five years of migrations would only take longer."""
    from django.apps import apps
    from django.conf import settings
    from django.core.management import call_command

    settings.MIGRATION_MODULES = {config.label: None for config in apps.get_app_configs()}
    call_command("migrate", run_syncdb=True, verbosity=0, interactive=False)
