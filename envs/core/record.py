"""The base class of all stored records, the mark of their unmasked fields, and the function that makes outside text
storable."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Final, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict


class _Mark:
    """Has no content: only its one object counts."""


UNMASKED: Final = _Mark()
Unmasked = Annotated[str, UNMASKED]
"""Text of a record in which secrets are not masked: hashes, times and numbers that Mira makes, in which a short value
can occur by chance, and ids, which are compared. No page and no model can write into such a field; ids that a user
chooses are checked when a run starts."""


class Record(BaseModel):
    """A frozen model that rejects unknown keys, so a typo in a config or trace raises an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


@cache
def unmasked_fields(model: type[BaseModel]) -> frozenset[str]:
    """Returns the fields that are not masked, because the trace would become unreadable: values of closed sets (`kind`,
    `outcome`) and :data:`Unmasked`."""
    fields = model.model_fields.items()
    return frozenset(name for name, field in fields if UNMASKED in field.metadata or _is_exact(field.annotation))


def _is_exact(annotation: Any) -> bool:
    if get_origin(annotation) is Literal or UNMASKED in getattr(annotation, "__metadata__", ()):
        return True
    parts = [part for part in get_args(annotation) if part is not type(None)]
    return bool(parts) and all(_is_exact(part) for part in parts)


def storable(text: str) -> str:
    """Returns *text* with lone surrogates and NUL replaced by U+FFFD.

    JSON, SQLite and msgpack treat these characters differently. All text from pages and models passes this function
    once, so it is read back as it was stored. Well-formed text is returned unchanged (the same object).
    """
    if text.isascii():
        return text if "\0" not in text else text.replace("\0", "\ufffd")
    clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return clean.replace("\0", "\ufffd")
