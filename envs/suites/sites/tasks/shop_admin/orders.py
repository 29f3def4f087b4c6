"""Dashboard tasks on orders and their customers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from random import Random

from envs.suites.sites.answers import Refusal, Text
from envs.suites.sites.changes import Expected, Inserted, Updated
from envs.suites.sites.evidence import PagePattern
from envs.suites.sites.page_driver import PageDriver
from envs.suites.sites.tasks.shop.shared import MOST, VISIT
from envs.suites.sites.tasks.shop_admin.shared import (
    CUSTOMERS,
    ORDERS,
    STAFF,
    Dashboard,
    find_customer,
    open_order,
    order_page,
    placed_orders,
)
from envs.suites.sites.templates import Goal, GoldenStates, Milestones, Outcome, Params, any_of, changed, shows, visited

NEXT = {
    "Pending": ("Being processed", "Cancelled"),
    "Being processed": ("Shipped", "Cancelled"),
    "Shipped": ("Delivered", "Returned"),
}
"""The next statuses of an unfinished order."""


def status_changes(order: int, old: str, new: str) -> tuple[Expected, ...]:
    """The rows that change with an order's status."""
    return (
        Updated("order_order", {"id": order}, {"status": new}),
        Inserted("order_orderstatuschange", {"order_id": order, "old_status": old, "new_status": new}),
        Inserted("order_ordernote", {"order_id": order, "user_id": STAFF, "note_type": "System"}),
    )


def order_goals(number: str, done: Goal) -> Milestones:
    """The milestones of opening an order in the dashboard and doing *done*."""
    page = order_page(number)
    searched = PagePattern("shop", ORDERS.path, {"order_number": number})
    return (
        Goal("The list of orders is open", visited(ORDERS)),
        Goal(f"Order {number} is looked for", any_of(visited(searched), visited(page))),
        Goal(f"Order {number} is open", visited(page)),
        done,
    )


@dataclass(frozen=True)
class StatusParams(Params):
    order: int
    number: str
    old: str
    new: str


class SetOrderStatus(Dashboard[StatusParams]):
    name = "shop-admin-set-order-status"
    kind = "content"
    difficulty = "medium"
    wordings = (
        'Set the status of order {number} to "{new}".',
        'Order {number} is now "{new}": change its status accordingly.',
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[StatusParams]:
        return [
            StatusParams(order.id, order.number, order.status, new)
            for order in placed_orders(golden)
            for new in NEXT.get(order.status, ())
        ]

    def milestones(self, p: StatusParams) -> Milestones:
        done = changed("shop", "order_order", id=p.order, status=p.new)
        return order_goals(p.number, Goal(f"Order {p.number} is {p.new}", done))

    def outcome(self, p: StatusParams) -> Outcome:
        return Outcome(changes={"shop": status_changes(p.order, p.old, p.new)}, allowed=VISIT)

    async def solve(self, driver: PageDriver, p: StatusParams) -> None:
        await open_order(driver, p.number)
        await driver.select("combobox", "New order status", p.new)
        await driver.click("button", "Change status")


@dataclass(frozen=True)
class LatestParams(StatusParams):
    customer: str
    customer_id: int


class SetLatestStatus(Dashboard[LatestParams]):
    """Names the customer instead of the order's number."""

    name = "shop-admin-set-latest-status"
    kind = "content"
    difficulty = "medium"
    wordings = (
        'Find the latest order of {customer} and set its status to "{new}".',
        'The most recent order that {customer} placed is to become "{new}". Make that change.',
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[LatestParams]:
        latest = {order.customer: order for order in placed_orders(golden)}
        return [
            LatestParams(order.id, order.number, order.status, new, customer, order.customer_id)
            for customer, order in latest.items()
            for new in NEXT.get(order.status, ())
        ]

    def milestones(self, p: LatestParams) -> Milestones:
        customer = visited(PagePattern("shop", rf"/dashboard/users/{p.customer_id}/"))
        page = visited(order_page(p.number))
        return (
            Goal("The list of customers or of orders is open", any_of(visited(CUSTOMERS), visited(ORDERS))),
            Goal(f"The orders of {p.customer} are found", any_of(customer, page)),
            Goal(f"The latest order of {p.customer} is open", page),
            Goal(f"The order is {p.new}", changed("shop", "order_order", id=p.order, status=p.new)),
        )

    def outcome(self, p: LatestParams) -> Outcome:
        return Outcome(changes={"shop": status_changes(p.order, p.old, p.new)}, allowed=VISIT)

    async def solve(self, driver: PageDriver, p: LatestParams) -> None:
        await find_customer(driver, p.customer)
        await driver.click("link", "View", row=p.customer)
        await driver.click("link", p.number)
        await driver.select("combobox", "New order status", p.new)
        await driver.click("button", "Change status")


@dataclass(frozen=True)
class NoteParams(Params):
    order: int
    number: str
    message: str


class AddNote(Dashboard[NoteParams]):
    name = "shop-admin-add-note"
    kind = "content"
    difficulty = "medium"
    wordings = (
        'Add a note to order {number} that says: "{message}"',
        'Please leave this note with order {number}: "{message}"',
    )
    messages = (
        "Customer asked for delivery in the afternoon.",
        "Refund of the delivery charge agreed by phone.",
        "Second attempt at delivery failed.",
        "Gift wrapping was forgotten; card sent with apologies.",
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[NoteParams]:
        orders = rng.sample(placed_orders(golden), 75)
        return [NoteParams(order.id, order.number, text) for order, text in product(orders, self.messages)]

    def milestones(self, p: NoteParams) -> Milestones:
        done = changed("shop", "order_ordernote", order_id=p.order, message=p.message)
        return order_goals(p.number, Goal("The note is stored with the order", done))

    def outcome(self, p: NoteParams) -> Outcome:
        note = Inserted("order_ordernote", {"order_id": p.order, "user_id": STAFF, "message": p.message})
        return Outcome(changes={"shop": (note,)}, allowed=VISIT)

    async def solve(self, driver: PageDriver, p: NoteParams) -> None:
        await open_order(driver, p.number)
        await driver.click("link", "Notes")
        await driver.type("textbox", "Message", p.message)
        await driver.click("button", "Save note")


@dataclass(frozen=True)
class ReaddressParams(Params):
    order: int
    number: str
    address: int
    street: str
    city: str
    postcode: str


class Readdress(Dashboard[ReaddressParams]):
    name = "shop-admin-readdress"
    kind = "content"
    difficulty = "hard"
    wordings = (
        "Order {number} is to go to {street}, {city}, {postcode}. Correct its shipping address; the name stays.",
        "The recipient of order {number} has moved: change its shipping address to {street} in {city}, "
        "postcode {postcode}.",
    )
    places = (
        ("3 Coopers Yard", "Bath", "BA1 5LN"),
        ("48 Castle Wynd", "Stirling", "FK8 1ED"),
        ("21 Henrietta Street", "Whitby", "YO21 3PT"),
        ("9 Mill Street", "Ludlow", "SY8 1AZ"),
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[ReaddressParams]:
        open_orders = [order for order in placed_orders(golden) if order.status in NEXT]
        return [
            ReaddressParams(order.id, order.number, order.address_id, *place)
            for order, place in product(open_orders, self.places)
        ]

    def milestones(self, p: ReaddressParams) -> Milestones:
        page, form = order_page(p.number), PagePattern("shop", rf"/dashboard/orders/{p.number}/shipping-address/")
        stored = changed("shop", "order_shippingaddress", id=p.address, line1=p.street, postcode=p.postcode)
        return (
            Goal("The list of orders is open", visited(ORDERS)),
            Goal(f"Order {p.number} is open", visited(page)),
            Goal("The form of its shipping address is open", visited(form)),
            Goal("The new address is stored", stored),
        )

    def outcome(self, p: ReaddressParams) -> Outcome:
        to = {"line1": p.street, "line4": p.city, "postcode": p.postcode}
        note = Inserted("order_ordernote", {"order_id": p.order, "user_id": STAFF, "note_type": "System"})
        entry = Updated("order_shippingaddress", {"id": p.address}, to, allowed=("search_text",))
        return Outcome(changes={"shop": (entry,)}, allowed={"shop": (*VISIT["shop"], note)})

    async def solve(self, driver: PageDriver, p: ReaddressParams) -> None:
        await open_order(driver, p.number)
        await driver.click("link", "Shipping")
        await driver.click("link", "Update")
        await driver.type("textbox", "First line of address", p.street)
        await driver.type("textbox", "City", p.city)
        await driver.type("textbox", "Post/Zip-code", p.postcode)
        await driver.click("button", "Update address")


@dataclass(frozen=True)
class OwnerParams(Params):
    number: str
    asked: str
    value: str


class OrderOwner(Dashboard[OwnerParams]):
    name = "shop-admin-order-owner"
    kind = "information"
    difficulty = "easy"
    wordings = (
        "What is {asked} of order {number}? Answer with that alone.",
        "Look up order {number} in the dashboard and tell me {asked}, nothing else.",
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[OwnerParams]:
        instances: list[OwnerParams] = []
        for order in rng.sample(placed_orders(golden), 100):
            facts = (
                ("the e-mail address of the customer", order.email),
                ("the full name of the customer", order.customer),
                ("the status", order.status),
            )
            instances += [OwnerParams(order.number, phrase, value) for phrase, value in facts]
        return instances

    def milestones(self, p: OwnerParams) -> Milestones:
        return order_goals(p.number, Goal(f"Order {p.number} is shown", shows(order_page(p.number))))

    def outcome(self, p: OwnerParams) -> Outcome:
        return Outcome(answer=Text(p.value), allowed=VISIT)

    async def solve(self, driver: PageDriver, p: OwnerParams) -> str:
        await open_order(driver, p.number)
        await driver.read(f"({p.value})")
        return p.value


@dataclass(frozen=True)
class RefusedParams(Params):
    number: str
    status: str
    wanted: str


class IllegalStatus(Dashboard[RefusedParams]):
    name = "shop-admin-illegal-status"
    kind = "impossible"
    difficulty = "easy"
    wordings = (
        'Set order {number} to "{wanted}". If the shop does not let you, change nothing and tell me why.',
        'Order {number} should have the status "{wanted}". Answer N/A with the reason if that cannot be done.',
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[RefusedParams]:
        instances = [
            RefusedParams(order.number, order.status, wanted)
            for order in placed_orders(golden)
            for wanted in ("Pending", "Being processed")
            if order.status in ("Delivered", "Returned", "Cancelled")
        ]
        return rng.sample(instances, min(MOST, len(instances)))

    def milestones(self, p: RefusedParams) -> Milestones:
        return order_goals(p.number, Goal(f"Order {p.number} is shown", shows(order_page(p.number))))

    def outcome(self, p: RefusedParams) -> Outcome:
        return Outcome(answer=self._refusal(p), allowed=VISIT)

    async def solve(self, driver: PageDriver, p: RefusedParams) -> str:
        await open_order(driver, p.number)
        return self._refusal(p).truth()

    @staticmethod
    def _refusal(p: RefusedParams) -> Refusal:
        mentions = (p.status.lower(), r"not (offered|available|allowed|an option|permitted)|no (such )?(option|status)")
        return Refusal(f"a {p.status.lower()} order cannot become {p.wanted.lower()}", mentions)


TEMPLATES = (SetOrderStatus(), SetLatestStatus(), AddNote(), Readdress(), OrderOwner(), IllegalStatus())
