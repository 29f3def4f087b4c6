"""The shop's three shipping methods with their charges."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from oscar.apps.shipping import methods, repository


class Standard(methods.FixedPrice):
    """The default method."""

    code = "standard"
    name = "Standard delivery"
    description = "Three to five working days"

    def __init__(self) -> None:
        super().__init__(Decimal("3.95"), Decimal("3.95"))


class Express(methods.FixedPrice):
    """The fast and most expensive method."""

    code = "express"
    name = "Express delivery"
    description = "Next working day"

    def __init__(self) -> None:
        super().__init__(Decimal("8.50"), Decimal("8.50"))


class Collect(methods.Free):
    """The free method."""

    code = "collect"
    name = "Collect from the shop"
    description = "Ready within two hours"


class Repository(repository.Repository):
    """Offers all three methods to everybody. The basket page shows the charge of the first."""

    methods: tuple[Any, ...] = (Standard(), Express(), Collect())
