"""Computes the cost of a call from a dated table of list prices. The cost of an unknown model is None, never 0.

The table is `prices.json` beside this module, with its date. `MIRA_PRICES=FILE` replaces it by a file of the same form.
"""

from __future__ import annotations

import os
import re
from datetime import date
from functools import lru_cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from models.base import ModelUnavailable, Usage

PRICES_VARIABLE = "MIRA_PRICES"
_SHIPPED = Path(__file__).with_name("prices.json")
_SNAPSHOT = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8}|\d{3}|latest|preview)$")
"""A dated name, as `gpt-4o-2024-08-06` or `claude-haiku-4-5-20251001`, has the price of its family."""


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Rates(_Table):
    """US dollars per 1,000,000 tokens."""

    input: float = Field(ge=0)
    cached: float = Field(ge=0)
    """Input tokens from the server's prefix cache."""
    output: float = Field(ge=0)
    """Visible and thinking tokens."""
    written: float | None = Field(default=None, ge=0)
    """Input tokens that are written to the server's prefix cache; None: at the price of other input."""


class LongRates(Rates):
    above_tokens: int = Field(gt=0)
    """The whole call is billed at these rates if its prompt is longer."""


class ModelPrice(Rates):
    long: LongRates | None = None


class PriceTable(_Table):
    as_of: date
    note: str = ""
    models: dict[str, ModelPrice]

    def knows(self, model: str) -> bool:
        return self._price(model) is not None

    def _price(self, model: str) -> ModelPrice | None:
        return self.models.get(model) or self.models.get(_SNAPSHOT.sub("", model))

    def cost_usd(self, model: str, usage: Usage, *, written: int = 0) -> float | None:
        """The cost of *usage* on *model*, *written* of whose input tokens went into the prefix cache; None if the table
        has no such model."""
        price = self._price(model)
        if price is None:
            return None
        rates: Rates = price
        if price.long and usage.tokens_in > price.long.above_tokens:
            rates = price.long
        fresh = usage.tokens_in - usage.tokens_cached - written
        billed_in = fresh * rates.input + written * (rates.input if rates.written is None else rates.written)
        billed_out = usage.tokens_out + usage.tokens_thinking
        return (billed_in + usage.tokens_cached * rates.cached + billed_out * rates.output) / 1e6


def own_prices() -> bool:
    """Whether `MIRA_PRICES` is set; such a table applies to models on any server."""
    return bool(os.environ.get(PRICES_VARIABLE))


def price_table() -> PriceTable:
    """The current table, read when a model is made.

    Raises :class:`ModelUnavailable` if the file that `MIRA_PRICES` names cannot be used.
    """
    return _read(os.environ.get(PRICES_VARIABLE) or str(_SHIPPED))


@lru_cache(maxsize=8)
def _read(path: str) -> PriceTable:
    try:
        return PriceTable.model_validate_json(Path(path).read_bytes())
    except (OSError, ValidationError) as error:
        first = str(error).splitlines()[0]
        raise ModelUnavailable(
            f"price table {path!r} cannot be used ({first}): fix it or unset {PRICES_VARIABLE}"
        ) from None
