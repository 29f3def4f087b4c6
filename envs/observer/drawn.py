"""Returns all text that a tab draws, without the budget of an observation.

The source is Chromium's snapshot of each process: laid-out text (including CSS content, list marks, closed shadow roots
and all frames; passwords as dots), the values of fields, and the drawn attributes and styles. Drawn content that is not
text is listed by kind.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from playwright.async_api import Page

from envs.core.errors import PageHung
from envs.observer.frames import FrameWorlds
from envs.observer.world import bounded

_STYLES: Final = ("background-image", "border-image-source", "list-style-image", "content", "-webkit-mask-image")
_DRAWN_ATTRIBUTES: Final = frozenset(
    ("placeholder", "value", "alt", "label", "src", "srcset", "poster", "data", "href", "xlink:href")
)
_OPAQUE_TAGS: Final = frozenset(("CANVAS", "VIDEO", "OBJECT", "EMBED"))
_OPAQUE_IMAGE: Final = re.compile(r"blob:|data:image/(?!svg)|paint\(|element\(|-webkit-canvas\(", re.IGNORECASE)
_NOT_DRAWN: Final = frozenset(("SCRIPT", "META", "LINK", "STYLE", "BASE", "A", "FORM", "PARAM"))
"""Elements whose attributes are not drawn."""


@dataclass(frozen=True, slots=True)
class Drawn:
    texts: tuple[str, ...]
    """The text of each document, then each drawn attribute, value and style."""
    opaque: tuple[str, ...]
    """Kinds of drawn content that cannot be searched, e.g. `a canvas`."""


async def drawn(frames: FrameWorlds, page: Page, timeout_s: float) -> Drawn:
    """Returns what the tab draws. Raises PageHung, PageCrashed, WorldGone or PlaywrightError if it is incomplete."""
    sessions = await frames.sessions(timeout_s)
    params = {"computedStyles": list(_STYLES)}
    calls = (
        bounded(session.send("DOMSnapshot.captureSnapshot", params), timeout_s, "a snapshot") for session in sessions
    )
    snapshots = await asyncio.gather(*calls)
    documents = [
        _Document(document, snapshot["strings"]) for snapshot in snapshots for document in snapshot["documents"]
    ]
    if len({doc.frame for doc in documents}) < len(page.frames):
        raise PageHung("a frame could not be searched")
    texts = [text for doc in documents for text in (doc.laid_out, *doc.values)]
    return Drawn(tuple(texts), tuple(dict.fromkeys(name for doc in documents for name in doc.opaque())))


class _Document:
    """One document of a snapshot; strings are indexes into a shared table."""

    def __init__(self, document: dict[str, Any], strings: Sequence[str]) -> None:
        self._strings = strings
        self._nodes = document["nodes"]
        self._layout = document["layout"]
        self._names = [self._at(index).upper() for index in self._nodes["nodeName"]]
        self.frame = self._at(document["frameId"])

    def _at(self, index: int) -> str:
        return self._strings[index] if index >= 0 else ""

    @property
    def laid_out(self) -> str:
        return "".join(self._at(index) for index in self._layout["text"])

    @property
    def values(self) -> Iterator[str]:
        for index in range(len(self._names)):
            yield from self._values_of(index)
        for column in ("inputValue", "textValue"):
            values = self._nodes.get(column, {"index": [], "value": []})
            for index, value in zip(values["index"], values["value"], strict=True):
                if not self._is_unseen(index):
                    yield self._at(value)
        yield from {self._at(index) for styles in self._layout["styles"] for index in styles}

    def _values_of(self, index: int) -> Iterator[str]:
        name = self._names[index]
        if name == "#TEXT":
            if self._names[self._nodes["parentIndex"][index]] == "OPTION":
                yield self._at(self._nodes["nodeValue"][index])
        elif name not in _NOT_DRAWN and self._nodes["attributes"][index]:
            hidden = {"value"} if self._is_unseen(index) else set[str]()
            yield from (value for key, value in self._attributes(index).items() if key in _DRAWN_ATTRIBUTES - hidden)

    def _attributes(self, index: int) -> dict[str, str]:
        flat = self._nodes["attributes"][index]
        return {self._at(key).lower(): self._at(value) for key, value in zip(flat[::2], flat[1::2], strict=True)}

    def _is_unseen(self, index: int) -> bool:
        """Whether the element is a field that does not draw its value."""
        if self._names[index] != "INPUT":
            return False
        return self._attributes(index).get("type", "").lower() in ("password", "hidden", "checkbox", "radio")

    def opaque(self) -> Iterator[str]:
        rows = zip(self._layout["nodeIndex"], self._layout["bounds"], self._layout["styles"], strict=True)
        for index, (_, _, width, height), styles in rows:
            if width < 1 or height < 1:
                continue
            name = self._names[index]
            if name in _OPAQUE_TAGS:
                yield f"{'an' if name[0] in 'EO' else 'a'} {name.lower()}"
            shown = [self._at(style) for style in styles]
            if name in ("IMG", "IMAGE", "INPUT"):
                shown += [v for k, v in self._attributes(index).items() if k in ("src", "srcset", "href", "xlink:href")]
            if any(_OPAQUE_IMAGE.search(value) for value in shown):
                yield "a picture made by a script"
