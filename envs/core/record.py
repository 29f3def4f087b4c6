"""The base of every typed record that is stored, and the edge at which outside text is made storable."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """Frozen, and an unknown key is an error: a typo in a config or trace never passes silently."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


def storable(text: str) -> str:
    """Returns *text* with lone surrogates and NUL replaced by U+FFFD.

    JSON, SQLite and msgpack each treat them differently; everything a page or a model says passes
    here once, at the edge, so that what is stored is what is read back. Well-formed text is
    returned unchanged (the same object).
    """
    if text.isascii():
        return text if "\0" not in text else text.replace("\0", "\ufffd")
    clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return clean.replace("\0", "\ufffd")
