"""Masks all free text of a record."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel


def masked_values(value: Any, mask: Callable[[str], str]) -> Any:
    """Returns *value* as JSON types with all free text masked; values of closed sets (`kind`, `outcome`) stay."""
    match value:
        case BaseModel():
            closed = _closed_fields(type(value))
            fields = value.__dict__.items()
            return {name: item if name in closed else masked_values(item, mask) for name, item in fields}
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


@cache
def _closed_fields(model: type[BaseModel]) -> frozenset[str]:
    """Returns the fields with values of a closed set, which are not masked: the line would become unreadable."""
    return frozenset(name for name, field in model.model_fields.items() if _is_closed(field.annotation))


def _is_closed(annotation: Any) -> bool:
    if get_origin(annotation) is Literal:
        return True
    parts = [part for part in get_args(annotation) if part is not type(None)]
    return bool(parts) and all(get_origin(part) is Literal for part in parts)
