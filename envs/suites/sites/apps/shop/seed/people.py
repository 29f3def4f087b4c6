"""Creates countries, customers with their address books, and the two personas."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any, NamedTuple

import pycountry
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.contrib.sites.models import Site
from oscar.core.loading import get_model

from envs.suites.sites.apps.django_base import PASSWORD, bulk
from envs.suites.sites.apps.shop.seed import words
from envs.suites.sites.apps.shop.settings import SHOP_NAME
from envs.suites.sites.clock import NOW

CUSTOMERS = 50
OWN_ADDRESSES = ("Home", "Work", "Mother's", "Cottage")
"""The customer persona has as many addresses as there are names here: her own and those of three other people."""


class Shoppers(NamedTuple):
    """All users with an account."""

    customer: Any
    staff: Any
    customers: list[Any]
    """All customers; the first is the persona."""


def create(rng: random.Random) -> Shoppers:
    """Creates all users. First names and last names are unique."""
    Site.objects.update_or_create(pk=1, defaults={"domain": "shop.test", "name": SHOP_NAME})
    _create_countries()
    first = rng.sample(words.FIRST_NAMES[1:], len(words.FIRST_NAMES) - 1)
    last = rng.sample(words.LAST_NAMES[1:], len(words.LAST_NAMES) - 1)
    names = [(words.FIRST_NAMES[0], words.LAST_NAMES[0]), *zip(first, last, strict=True)]
    password = str(make_password(PASSWORD, salt="harbour"))
    customers = bulk(User, (_user(rng, *name, password) for name in names[:CUSTOMERS]))
    staff = _user(rng, "Sam", "Okafor", password, is_staff=True)
    staff.save()
    _create_addresses(rng, customers, names[CUSTOMERS:])
    return Shoppers(customers[0], staff, customers)


def _create_countries() -> None:
    country = get_model("address", "Country")
    bulk(
        country,
        (
            country(
                iso_3166_1_a2=entry.alpha_2,
                iso_3166_1_a3=entry.alpha_3,
                iso_3166_1_numeric=entry.numeric,
                printable_name=getattr(entry, "common_name", entry.name),
                name=getattr(entry, "official_name", entry.name),
                is_shipping_country=entry.alpha_2 in words.SHIPPING_COUNTRIES,
                display_order=0,
            )
            for entry in map(_entry, sorted((*words.SHIPPING_COUNTRIES, *words.OTHER_COUNTRIES)))
        ),
    )


def _entry(code: str) -> Any:
    return pycountry.countries.get(alpha_2=code)


def _user(rng: random.Random, first: str, last: str, password: str, *, is_staff: bool = False) -> Any:
    email = f"{first}.{last}@example.test".lower()
    joined = NOW - timedelta(days=rng.randint(430, 900), minutes=rng.randint(0, 1439))
    return User(
        username=email[:30],
        email=email,
        first_name=first,
        last_name=last,
        password=password,
        is_staff=is_staff,
        is_superuser=is_staff,  # sees the whole dashboard
        date_joined=joined,
    )


def _create_addresses(rng: random.Random, customers: list[Any], others: list[tuple[str, str]]) -> None:
    """Creates one address per customer, and addresses of *others* for the persona."""
    address = get_model("address", "UserAddress")
    persona = customers[0]
    rows = [_address(rng, user, (user.first_name, user.last_name)) for user in customers]
    rows += [_address(rng, persona, name) for name in others[: len(OWN_ADDRESSES) - 1]]
    for row in rows:
        row.is_default_for_shipping = (row.first_name, row.last_name) == (row.user.first_name, row.user.last_name)
        row.hash = row.generate_hash()
        row.search_text = row.join_fields(address.search_fields, separator=" ")
    bulk(address, rows)


def _address(rng: random.Random, user: Any, name: tuple[str, str]) -> Any:
    city, letters = rng.choice(words.CITIES)
    postcode = f"{letters}{rng.randint(1, 9)} {rng.randint(1, 9)}{''.join(rng.choices('ABDEFGHJLN', k=2))}"
    return get_model("address", "UserAddress")(
        user=user,
        first_name=name[0],
        last_name=name[1],
        line1=f"{rng.randint(1, 140)} {rng.choice(words.STREETS)}",
        line4=city,
        postcode=postcode,
        country_id="GB",
    )
