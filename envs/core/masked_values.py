"""Masks all free text of a record."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from envs.core.record import storable, unmasked_fields


def masked_values(value: Any, mask: Callable[[str], str]) -> Any:
    """Returns *value* as JSON types with *mask* applied to all text. Only :func:`envs.core.record.unmasked_fields` of
    records get no mask."""
    match value:
        case BaseModel():
            exact = unmasked_fields(type(value))
            fields = value.__dict__.items()
            return {name: masked_values(item, storable if name in exact else mask) for name, item in fields}
        case Enum():
            return value.value
        case str():
            return mask(value)
        case dict():
            return {masked_values(key, mask): masked_values(item, mask) for key, item in value.items()}
        case list() | tuple():
            return [masked_values(item, mask) for item in value]
        case Path():
            return mask(str(value))
        case _:
            return value
