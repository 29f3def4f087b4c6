"""Describes held requests for the approval question and the trace: bounded, and without secrets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any, Final, Literal, cast
from urllib.parse import parse_qsl

from envs.core.record import Record, storable
from envs.security.blocked_requests import RequestKind
from envs.security.outgoing_requests import MESSAGE, Outgoing

Mask = Callable[[str], str]
"""Replaces the values of declared secrets by their names."""
HoldCategory = Literal["submit", "navigation"]
"""Categories of held requests. `submit`: requests by any method except GET, HEAD and OPTIONS, and WebSocket messages.
`navigation`: requests whose response a tab or frame shows."""
Answer = Literal["", "yes", "no", "nobody"]
"""The answer of a person. `nobody`: no person was available; empty: not answered yet."""

MAX_FIELDS: Final = 20
MAX_NAME: Final = 60
MAX_VALUE: Final = 200
MAX_URL: Final = 500
MAX_PLACE: Final = 100
_SAFE: Final = frozenset(("GET", "HEAD", "OPTIONS"))
_OVERRIDES: Final = (b"x-http-method-override", b"x-http-method", b"x-method-override")


class HeldRequest(Record):
    """One request that is held until a person approves it."""

    method: str
    """MESSAGE for a WebSocket message."""
    overrides: tuple[str, ...] = ()
    """Values of the headers by which a server may treat the request as one by another method, cut to MAX_VALUE."""
    url: str
    """Canonical, cut to MAX_URL characters."""
    kind: RequestKind | None = None
    fields: tuple[tuple[str, str], ...] = ()
    """Names and values of the sent fields, at most MAX_FIELDS, decoded and cut; page text."""
    answer: Answer = ""

    @property
    def sent(self) -> bool:
        return self.answer == "yes"

    @property
    def changes_nothing(self) -> bool:
        """True if the method is safe (GET, HEAD, OPTIONS) by its HTTP definition, and no header overrides it."""
        return self.method in _SAFE and not self.overrides

    @property
    def method_in_words(self) -> str:
        """The method, and those that headers put in its place: `GET as DELETE`."""
        return " as ".join((self.method, *self.overrides))

    @property
    def place(self) -> str:
        """The address without its query, cut to MAX_PLACE characters because the page chose it."""
        return _cut(self.url.partition("?")[0], MAX_PLACE)

    def in_words(self) -> str:
        """Describes method, address and fields in one line."""
        shown_fields = ", ".join(f"{name}={value}" for name, value in self.fields)
        return f"{self.method_in_words} {self.url}" + (f" with {shown_fields}" if shown_fields else "")


def categories_of(sent: Outgoing) -> frozenset[HoldCategory]:
    """The categories of a request; empty for a plain load, which is never held."""
    categories: set[HoldCategory] = set()
    if sent.method not in _SAFE or method_overrides(sent):
        categories.add("submit")
    if sent.opens_page and sent.method != MESSAGE:
        categories.add("navigation")
    return frozenset(categories)


def method_overrides(sent: Outgoing) -> tuple[tuple[bytes, bytes], ...]:
    """The headers by which a server may treat the request as one by another method."""
    return tuple(field for field in sent.fields if field[0] in _OVERRIDES)


def held_request(sent: Outgoing, mask: Mask) -> HeldRequest:
    """Describes *sent*. Values are masked before they are cut, so no part of a secret remains."""
    fields = [(_cut(mask(name), MAX_NAME), _cut(mask(value), MAX_VALUE)) for name, value in _fields(sent)]
    if len(fields) > MAX_FIELDS:
        fields = [*fields[: MAX_FIELDS - 1], ("…", f"{len(fields) - MAX_FIELDS + 1} more")]
    return HeldRequest(
        method=mask(sent.method),
        overrides=tuple(_cut(mask(value.decode("latin-1")), MAX_VALUE) for _, value in method_overrides(sent)),
        url=_cut(mask(sent.url), MAX_URL),
        kind=sent.kind,
        fields=tuple(fields),
    )


def _cut(text: str, most: int) -> str:
    plain = storable(text)
    return plain if len(plain) <= most else plain[: most - 1] + "…"


def _fields(sent: Outgoing) -> list[tuple[str, str]]:
    fields = list(_decoded(sent))
    return fields if sent.is_whole else [*fields, ("…", "the body continues")]


def _decoded(sent: Outgoing) -> Iterable[tuple[str, str]]:
    if not sent.body:
        return ()
    if sent.method == MESSAGE:
        return _text_fields("message", sent.body)
    kind = b"".join(sent.values(b"content-type")[:1])
    if kind.lower().startswith(b"application/x-www-form-urlencoded"):
        return parse_qsl(sent.body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=None)
    if kind.lower().startswith(b"multipart/"):
        return _parts(kind, sent.body)
    return _text_fields("body", sent.body)


def _text_fields(name: str, body: bytes) -> Iterable[tuple[str, str]]:
    """The members of a JSON object; other text unchanged; binary data as its size and beginning."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return ((name, f"{len(body)} bytes: {body[:MAX_VALUE].decode('utf-8', 'replace')}"),)
    try:
        content: Any = json.loads(text)
    except (ValueError, RecursionError):
        return ((name, text),)
    if not isinstance(content, dict) or not content:
        return ((name, text),)
    members = cast("dict[str, Any]", content).items()
    return ((key, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)) for key, value in members)


def _parts(kind: bytes, body: bytes) -> Iterator[tuple[str, str]]:
    """The fields of a multipart form; a file is shown by its name and size."""
    message = BytesParser(policy=HTTP).parsebytes(b"Content-Type: " + kind + b"\r\n\r\n" + body)
    if not message.is_multipart():
        yield "body", f"{len(body)} bytes"
        return
    for part in message.iter_parts():
        payload = cast("bytes | None", part.get_payload(decode=True)) or b""
        name, file = str(part.get_param("name", "", "content-disposition")), part.get_filename()
        yield name, payload.decode("utf-8", "replace") if file is None else f"file {file!r}, {len(payload)} bytes"
