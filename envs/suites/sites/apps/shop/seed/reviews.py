"""Creates reviews (most approved, some waiting, some refused) and the customer's wish lists."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

from oscar.core.loading import get_model

from envs.suites.sites.apps.django_base import bulk
from envs.suites.sites.apps.shop.seed import words
from envs.suites.sites.apps.shop.seed.people import Shoppers
from envs.suites.sites.clock import NOW

REVIEWS = 340
WAITING = 24
REFUSED = 6
WISH_LISTS = {"Birthday ideas": 4, "New kitchen": 5, "Camping trip": 3}
"""Wish list to its number of products."""


def create(rng: random.Random, shoppers: Shoppers, stock: list[Any]) -> None:
    """Creates reviews and wish lists. No user reviews a product twice.

    The customer persona reviews no product of the last third of the stock."""
    _review(rng, shoppers, [record.product for record in stock])
    _wish(rng, shoppers.customer, [record.product for record in stock])


def _review(rng: random.Random, shoppers: Shoppers, products: list[Any]) -> None:
    review, product_model = get_model("reviews", "ProductReview"), get_model("catalogue", "Product")
    others = shoppers.customers[1:]
    pairs = rng.sample([(product, user) for product in products for user in others], REVIEWS)
    own = rng.sample(products[: 2 * len(products) // 3], 6)
    pairs[:6] = [(product, shoppers.customer) for product in own]
    rows: list[Any] = []
    for number, (product, user) in enumerate(pairs):
        score = rng.choices((1, 2, 3, 4, 5), weights=(1, 2, 3, 6, 7))[0]
        waiting = len(pairs) - WAITING <= number
        refused = len(pairs) - WAITING - REFUSED <= number < len(pairs) - WAITING
        rows.append(
            review(
                product=product,
                user=user,
                score=score,
                title=rng.choice(words.REVIEW_TITLES[score]),
                body=rng.choice(words.REVIEW_BODIES[score]),
                status=review.FOR_MODERATION if waiting else review.REJECTED if refused else review.APPROVED,
            )
        )
    for number, row in enumerate(bulk(review, rows)):
        waiting = len(rows) - WAITING <= number
        age = timedelta(days=rng.randint(0, 9) if waiting else rng.randint(10, 400), minutes=rng.randint(1, 1439))
        row.date_created = NOW - age
    review.objects.bulk_update(rows, ["date_created"], batch_size=200)
    for product in products:
        product_model.objects.filter(pk=product.pk).update(rating=product.calculate_rating())


def _wish(rng: random.Random, customer: Any, products: list[Any]) -> None:
    wish_list, line = get_model("wishlists", "WishList"), get_model("wishlists", "Line")
    # Saving a list would give it a random key, so that its URL would differ from build to build.
    lists = bulk(
        wish_list, (wish_list(owner=customer, name=name, key=f"wish{n:02d}") for n, name in enumerate(WISH_LISTS))
    )
    for wishes in lists:
        chosen = rng.sample(products, WISH_LISTS[wishes.name])
        bulk(line, (line(wishlist=wishes, product=product, title=product.title) for product in chosen))
