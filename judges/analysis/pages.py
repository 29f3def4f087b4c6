"""Makes pages of different episodes comparable.

`ObservationRecord.state` distinguishes pages of one episode, but contains the address: an environment on loopback has
another port in every run. Here the origin of a loopback address is removed, so that two episodes of one task agree.
Page texts are read only if addresses and hashes do not decide.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, TypeVar

from envs.core.blobs import BlobStore
from envs.core.errors import TraceError
from envs.core.trace import ObservationRecord
from envs.observer.page_state import steady_text, steady_url
from judges.analysis.numbers import Split, split

_HERE: Final = re.compile(r"https?://(?:127(?:\.\d+){3}|localhost|\[::1\])(?::\d+)?", re.IGNORECASE)
_PRINTS_KEPT: Final = 20_000
_SPLITS_KEPT: Final = 2_000
_TEXTS_KEPT: Final = 200

_T = TypeVar("_T")


def place(url: str) -> str:
    """The address without tokens, and without its origin if that is this machine."""
    return without_origin(steady_url(url)) or "/"


def without_origin(text: str) -> str:
    """*text* without the origins of this machine, whose ports differ from run to run."""
    return _HERE.sub("", text)


class Pages:
    """The page texts of one folder of traces. A text that cannot be read is None, which weakens a comparison."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        self._texts: OrderedDict[str, str | None] = OrderedDict()
        self._prints: OrderedDict[str, str | None] = OrderedDict()
        self._splits: OrderedDict[str, Split | None] = OrderedDict()

    def text(self, seen: ObservationRecord) -> str | None:
        """The text without elapsed times, tokens, focus, numbers of elements and the origin of this machine."""
        return _kept(self._texts, _TEXTS_KEPT, seen.text_blob, self._read)

    def fingerprint(self, seen: ObservationRecord) -> str | None:
        """A hash that is equal for equal pages, also across episodes and runs."""
        return _kept(self._prints, _PRINTS_KEPT, seen.text_blob, lambda _: self._hashed(seen))

    def split(self, seen: ObservationRecord) -> Split | None:
        """The text separated from its numbers."""
        return _kept(self._splits, _SPLITS_KEPT, seen.text_blob, lambda _: self._split(seen))

    def _read(self, name: str) -> str | None:
        try:
            return without_origin(steady_text(self._blobs.text(name)))
        except TraceError:
            return None

    def _hashed(self, seen: ObservationRecord) -> str | None:
        text = self.text(seen)
        return None if text is None else hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]

    def _split(self, seen: ObservationRecord) -> Split | None:
        text = self.text(seen)
        return None if text is None else split(text)


def _kept(cache: OrderedDict[str, _T], most: int, name: str, make: Callable[[str], _T]) -> _T:
    """Caches the latest *most* results of *make*."""
    if name not in cache:
        cache[name] = make(name)
        if len(cache) > most:
            cache.popitem(last=False)
    return cache[name]
