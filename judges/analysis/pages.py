"""What an episode saw, made comparable with what another episode saw.

`Seen.state` tells pages of one episode apart, but holds the address as it was: a world on loopback has another port in
every run. Here an address on this machine loses its origin, so that two episodes of one task agree. Page texts are read
only where addresses and hashes do not decide.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from typing import Final

from envs.blobs import BlobStore
from envs.errors import TraceError
from envs.page_state import steady_text, steady_url
from envs.trace import Seen

_HERE: Final = re.compile(r"https?://(?:127(?:\.\d+){3}|localhost|\[::1\])(?::\d+)?", re.IGNORECASE)
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)*")
_KEPT: Final = 20_000
"""Pages whose fingerprints are kept, per kind."""


def place(url: str) -> str:
    """The address without tokens; without its origin where that is this machine."""
    return _HERE.sub("", steady_url(url)) or "/"


class Pages:
    """The page texts of one folder of traces."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        self._prints: OrderedDict[str, str | None] = OrderedDict()

    def fingerprint(self, seen: Seen) -> str | None:
        """Equal for equal pages, also over episodes and runs; None where the text is not at hand."""
        return self._print(seen.text_blob, numbers=True)

    def unnumbered(self, seen: Seen) -> str | None:
        """As `fingerprint`, and equal for pages that differ in numbers alone."""
        text = self._print(seen.text_blob, numbers=False)
        return None if text is None else f"{place(seen.url)} {text}"

    def _print(self, name: str, *, numbers: bool) -> str | None:
        key = f"{name}{numbers}"
        if key not in self._prints:
            self._prints[key] = self._read(name, numbers=numbers)
            if len(self._prints) > _KEPT:
                self._prints.popitem(last=False)
        return self._prints[key]

    def _read(self, name: str, *, numbers: bool) -> str | None:
        try:
            text = steady_text(self._blobs.text(name))
        except TraceError:
            return None  # a lost page text makes a comparison weaker, never impossible
        text = _HERE.sub("", text)
        return hashlib.sha256((text if numbers else _NUMBER.sub("#", text)).encode("utf-8", "replace")).hexdigest()[:16]
