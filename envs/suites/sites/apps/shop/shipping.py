"""How the shop delivers: three methods, each with a charge that a task can ask for."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from oscar.apps.shipping import methods, repository


class Standard(methods.FixedPrice):
    """Cheap, and the usual one."""

    code = "standard"
    name = "Standard delivery"
    description = "Three to five working days"

    def __init__(self) -> None:
        super().__init__(Decimal("3.95"), Decimal("3.95"))


class Express(methods.FixedPrice):
    """The dear one."""

    code = "express"
    name = "Express delivery"
    description = "Next working day"

    def __init__(self) -> None:
        super().__init__(Decimal("8.50"), Decimal("8.50"))


class Collect(methods.Free):
    """Costs nothing."""

    code = "collect"
    name = "Collect from the shop"
    description = "Ready within two hours"


class Repository(repository.Repository):
    """Offers all three to everybody; the basket page quotes the first."""

    methods: tuple[Any, ...] = (Standard(), Express(), Collect())
