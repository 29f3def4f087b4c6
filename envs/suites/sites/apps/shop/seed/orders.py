"""Creates fourteen months of orders, their status history, and Oscar's analytics of them."""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from oscar.core.loading import get_model

from envs.suites.sites.apps.django_base import bulk
from envs.suites.sites.apps.shop.seed import words
from envs.suites.sites.apps.shop.seed.people import Shoppers
from envs.suites.sites.apps.shop.shipping import Repository
from envs.suites.sites.clock import NOW

ORDERS = 300
OWN_ORDERS = 22
"""Number of orders of the customer persona."""
FIRST_NUMBER = 20_001
"""First order number. The checkout numbers its orders from 100,001."""
SPAN_DAYS = 425
NOTES = 24

PATHS = {
    "Pending": (),
    "Being processed": ("Being processed",),
    "Shipped": ("Being processed", "Shipped"),
    "Delivered": ("Being processed", "Shipped", "Delivered"),
    "Returned": ("Being processed", "Shipped", "Delivered", "Returned"),
    "Cancelled": ("Cancelled",),
}
"""The statuses of an order after `Pending`, by its current status."""


class Head(NamedTuple):
    """Buyer, time and address of an order."""

    buyer: Any
    moment: datetime
    address: Any


def create(rng: random.Random, shoppers: Shoppers, stock: list[Any]) -> int:
    """Creates the orders, numbered from the oldest. Returns their number."""
    model = get_model("order", "Order")
    addresses = {row.user_id: row for row in get_model("address", "UserAddress").objects.order_by("-pk")}
    buyers = [shoppers.customer] * OWN_ORDERS + rng.choices(shoppers.customers[1:], k=ORDERS - OWN_ORDERS)
    rng.shuffle(buyers)
    moments = sorted(_moment(rng) for _ in range(ORDERS))
    ships_to = bulk(get_model("order", "ShippingAddress"), (_ship_to(addresses[buyer.pk]) for buyer in buyers))
    drafts: list[tuple[Any, list[Any]]] = []
    for number, head in enumerate(map(Head, buyers, moments, ships_to), FIRST_NUMBER):
        drafts.append(_draft(rng, number, head, stock))
    orders = bulk(model, (order for order, _ in drafts))
    lines = bulk(get_model("order", "Line"), (line for _, order_lines in drafts for line in order_lines))
    price = get_model("order", "LinePrice")
    bulk(
        price,
        (
            price(
                order=line.order,
                line=line,
                quantity=line.quantity,
                price_incl_tax=line.unit_price_incl_tax,
                price_excl_tax=line.unit_price_excl_tax,
            )
            for line in lines
        ),
    )
    _write_history(orders)
    _write_notes(rng, orders, shoppers.staff)
    _write_analytics(rng, orders, lines)
    return len(orders)


def _moment(rng: random.Random) -> datetime:
    """A random time in the span, in opening hours, before today. Recent days have more orders."""
    day = NOW - timedelta(days=1 + int((SPAN_DAYS - 1) * rng.random() ** 1.6))
    return day.replace(hour=rng.randint(7, 21), minute=rng.randint(0, 59), second=rng.randint(0, 59))


def _ship_to(address: Any) -> Any:
    row = get_model("order", "ShippingAddress")()
    address.populate_alternative_model(row)
    row.search_text = address.search_text
    return row


def _status(rng: random.Random, moment: datetime) -> str:
    days = (NOW - moment).days
    if rng.random() < 0.08:
        return "Cancelled"
    if days <= 4:
        return rng.choice(("Pending", "Pending", "Being processed"))
    if days <= 10:
        return rng.choice(("Pending", "Being processed", "Shipped"))
    if days <= 20:
        return rng.choice(("Being processed", "Shipped", "Delivered"))
    return "Returned" if rng.random() < 0.09 else "Delivered"


def _draft(rng: random.Random, number: int, head: Head, stock: list[Any]) -> tuple[Any, list[Any]]:
    """An unsaved order and its lines."""
    buyer, moment, address = head
    method = rng.choices(Repository.methods, weights=(6, 3, 2))[0]
    charge = Decimal(getattr(method, "charge_incl_tax", "0.00"))
    status = _status(rng, moment)
    order = get_model("order", "Order")(
        number=str(number),
        site_id=1,
        user=buyer,
        currency="GBP",
        shipping_incl_tax=charge,
        shipping_excl_tax=charge,
        shipping_method=method.name,
        shipping_code=method.code,
        shipping_address=address,
        status=status,
        date_placed=moment,
    )
    chosen = rng.sample(stock, rng.choices((1, 2, 3, 4), weights=(4, 4, 2, 1))[0])
    lines = [
        _line(order, record, rng.choices((1, 2, 3, 4, 6), weights=(9, 4, 2, 1, 1))[0], status) for record in chosen
    ]
    order.total_incl_tax = order.total_excl_tax = charge + sum(line.line_price_incl_tax for line in lines)
    return order, lines


def _line(order: Any, record: Any, quantity: int, status: str) -> Any:
    each = Decimal(record.price)
    return get_model("order", "Line")(
        order=order,
        partner=record.partner,
        partner_name=record.partner.name,
        partner_sku=record.partner_sku,
        stockrecord=record,
        product=record.product,
        title=record.product.title,
        upc=record.product.upc,
        quantity=quantity,
        line_price_incl_tax=each * quantity,
        line_price_excl_tax=each * quantity,
        line_price_before_discounts_incl_tax=each * quantity,
        line_price_before_discounts_excl_tax=each * quantity,
        unit_price_incl_tax=each,
        unit_price_excl_tax=each,
        status=status,
        num_allocated=0,
    )


def _write_history(orders: list[Any]) -> None:
    """Creates one status change per day, from six hours after the order."""
    change = get_model("order", "OrderStatusChange")
    rows: list[Any] = []
    moments: list[datetime] = []
    for order in orders:
        before = "Pending"
        for step, status in enumerate(PATHS[order.status]):
            rows.append(change(order=order, old_status=before, new_status=status))
            moments.append(min(order.date_placed + timedelta(days=step, hours=6), NOW))
            before = status
    for row, moment in zip(bulk(change, rows), moments, strict=True):
        row.date_created = moment
    change.objects.bulk_update(rows, ["date_created"], batch_size=200)


def _write_notes(rng: random.Random, orders: list[Any], staff: Any) -> None:
    note = get_model("order", "OrderNote")
    rows = [
        note(order=order, user=staff, note_type="Info", message=rng.choice(words.NOTES))
        for order in rng.sample(orders, NOTES)
    ]
    for row in bulk(note, rows):
        moment = min(row.order.date_placed + timedelta(hours=5), NOW)
        note.objects.filter(pk=row.pk).update(date_created=moment, date_updated=moment)


def _write_analytics(rng: random.Random, orders: list[Any], lines: list[Any]) -> None:
    """Creates Oscar's counters from the orders. Numbers of views are random."""
    record, user_record = get_model("analytics", "ProductRecord"), get_model("analytics", "UserRecord")
    sold = defaultdict[int, int](int)
    by_order = defaultdict[str, list[Any]](list)
    for line in lines:
        sold[line.product.pk] += line.quantity
        by_order[line.order.number].append(line)
    bulk(
        record,
        (
            record(
                product_id=pk, num_views=count * 3 + rng.randint(2, 60), num_basket_additions=count, num_purchases=count
            )
            for pk, count in sorted(sold.items())
        ),
    )
    users: dict[int, Any] = {}
    for order in orders:
        row = users.setdefault(order.user.pk, user_record(user=order.user, num_product_views=rng.randint(10, 90)))
        row.num_orders += 1
        row.num_order_lines += len(by_order[order.number])
        row.num_order_items += sum(line.quantity for line in by_order[order.number])
        row.total_spent += order.total_incl_tax
        row.date_last_order = order.date_placed
    bulk(user_record, users.values())
