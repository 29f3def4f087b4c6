"""The base class of all stored records, and the function that makes outside text storable."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A frozen model that rejects unknown keys, so a typo in a config or trace raises an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


def storable(text: str) -> str:
    """Returns *text* with lone surrogates and NUL replaced by U+FFFD.

    JSON, SQLite and msgpack treat these characters differently. All text from pages and models passes this function
    once, so it is read back as it was stored. Well-formed text is returned unchanged (the same object).
    """
    if text.isascii():
        return text if "\0" not in text else text.replace("\0", "\ufffd")
    clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return clean.replace("\0", "\ufffd")
