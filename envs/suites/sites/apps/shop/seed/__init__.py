"""Fills an empty shop. Two builds differ in tokens and session keys only."""

from __future__ import annotations

import random
from pathlib import Path

from envs.suites.sites.apps import django_base

SEED = 4_2026


def fill(golden: Path) -> None:
    """Builds the database, the pictures and the logins of *golden*. Configure Django for it first."""
    from envs.suites.sites.apps.shop.seed import catalogue, marketing, orders, people, reviews

    rng = random.Random(SEED)
    _create_tables()
    _report("tables created")
    shoppers = people.create(rng)
    products = catalogue.create(rng, golden)
    _report(f"{len(products)} products, {len(shoppers.customers)} customers")
    placed = orders.create(rng, shoppers, products)
    reviews.create(rng, shoppers, products)
    marketing.create()
    _report(f"{placed} orders, reviews, offers and vouchers")
    logins = {"customer": shoppers.customer, "staff": shoppers.staff}
    django_base.write_logins(golden, logins, "oscar.apps.customer.auth_backends.EmailBackend")
    django_base.compact_database()


def _report(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - a build reports its progress on standard output


def _create_tables() -> None:
    """Creates the tables from the models, which is faster than running all migrations."""
    from django.apps import apps
    from django.conf import settings
    from django.core.management import call_command

    settings.MIGRATION_MODULES = {config.label: None for config in apps.get_app_configs()}
    call_command("migrate", run_syncdb=True, verbosity=0, interactive=False)
