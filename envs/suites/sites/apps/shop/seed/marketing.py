"""Creates ranges, automatic offers, and vouchers: valid, expired and future ones."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from oscar.core.loading import get_model

from envs.suites.sites.clock import NOW


class Code(NamedTuple):
    """A voucher: name, code, discount and validity."""

    name: str
    code: str
    percent: int
    category: str | None
    """None: valid for all products."""
    from_day: int
    """First day of validity, in days from now."""
    to_day: int
    """Last day of validity, in days from now."""


CODES = (
    Code("Welcome", "WELCOME10", 10, None, -200, 200),
    Code("Kitchen fortnight", "KITCHEN15", 15, "Kitchen", -3, 11),
    Code("Readers' club", "BOOKCLUB20", 20, "Books", -60, 120),
    Code("Spring in the garden", "SPRING25", 25, "Garden", -15, 45),
    Code("Winter sale", "WINTER30", 30, None, -100, -20),
    Code("Midsummer", "MIDSUMMER12", 12, None, 80, 110),
)


class Rule(NamedTuple):
    """An offer: a number of items of a range gives a benefit."""

    name: str
    description: str
    benefit: str
    worth: int | None
    """Per cent; None if the benefit needs no number."""
    things: int
    type: str = "Site"


def create() -> None:
    """Creates a range for each department and one for all products, two offers, and the vouchers."""
    ranges: dict[str | None, Any] = {None: _range("All products")}
    for category in get_model("catalogue", "Category").objects.filter(depth=1):
        ranges[category.name] = _range(f"{category.name} range", category)
    _offer(Rule("Games pair", "Buy two games and get the cheaper one free.", "Multibuy", None, 2), ranges["Games"])
    description = "Ten per cent off everything for the outdoors."
    _offer(Rule("Camping week", description, "Percentage", 10, 1), ranges["Outdoors"])
    for code in CODES:
        _voucher(code, ranges[code.category])


def _range(name: str, category: Any = None) -> Any:
    row = get_model("offer", "Range").objects.create(
        name=name, includes_all_products=category is None, is_public=category is not None
    )
    if category is not None:
        row.included_categories.add(category)
    return row


def _offer(rule: Rule, range_: Any) -> Any:
    worth = None if rule.worth is None else Decimal(rule.worth)
    condition = get_model("offer", "Condition").objects.create(range=range_, type="Count", value=rule.things)
    benefit = get_model("offer", "Benefit").objects.create(range=range_, type=rule.benefit, value=worth)
    return get_model("offer", "ConditionalOffer").objects.create(
        name=rule.name, description=rule.description, offer_type=rule.type, condition=condition, benefit=benefit
    )


def _voucher(code: Code, range_: Any) -> None:
    row = get_model("voucher", "Voucher").objects.create(
        name=code.name,
        code=code.code,
        usage="Multi-use",
        start_datetime=NOW + timedelta(days=code.from_day),
        end_datetime=NOW + timedelta(days=code.to_day),
    )
    description = f"{code.percent} per cent off with the code {code.code}."
    row.offers.add(_offer(Rule(f"{code.name} offer", description, "Percentage", code.percent, 1, "Voucher"), range_))
