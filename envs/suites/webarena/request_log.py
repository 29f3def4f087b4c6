"""Records a session's requests from the browser's events, for the network-event evaluators.

It records documents, forms and calls of scripts, but not images, fonts, styles and scripts. A request
is recorded when it is made, so requests without a response are included.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

from playwright.async_api import BrowserContext, Request, Response
from playwright.async_api import Error as PlaywrightError
from pydantic import Field, TypeAdapter

from envs.browser.request_watch import is_for_tab
from envs.core.atomic_write import write_atomically
from envs.core.record import Record, storable
from envs.suites.webarena.json_text import load_json
from envs.suites.webarena.task import Json

SENT_FILE = "requests.json"
NO_ANSWER = -1
ASSETS = frozenset({"image", "font", "stylesheet", "script", "media", "manifest", "texttrack"})
MAX_REQUESTS = 20_000
MAX_POST_CHARS = 1_000_000
MAX_CONTENT_BYTES = 1_000_000
READ_S = 5.0
"""Longest wait for the headers and the content of one response."""


class SentRequest(Record):
    """One request and its response."""

    method: str
    url: str
    navigation: bool = False
    """True for the document of a tab."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Request headers; names in lower case."""
    post_data: dict[str, Json] | None = None
    """Fields of a form or keys of a JSON object; None for another or no body."""
    status: int = NO_ANSWER
    content: Json = None
    """The response's JSON, if it was JSON."""
    cookies: dict[str, str] = Field(default_factory=dict)
    """Cookies set by the response, decoded."""


@dataclass(eq=False)
class _Row:
    request: Request
    sent: SentRequest
    reading: asyncio.Task[None] | None = None


@dataclass
class Recorder:
    """Records the requests of one context after :meth:`attach`."""

    with_answers: bool = True
    """True: also records full headers, cookies and JSON of responses, which some checks need. They cost two more calls
    per request."""
    _rows: list[_Row] = field(default_factory=list[_Row])
    _saved: tuple[SentRequest, ...] | None = None
    _earlier: list[SentRequest] = field(default_factory=list[SentRequest])
    _by_request: dict[Request, _Row] = field(default_factory=dict[Request, _Row])

    def attach(self, context: BrowserContext) -> None:
        context.on("request", self._on_request)
        context.on("response", self._on_response)

    async def all(self) -> tuple[SentRequest, ...]:
        """All recorded requests. Waits at most READ_S for responses that are still being read."""
        reading = [row.reading for row in self._rows if row.reading is not None and not row.reading.done()]
        if reading:
            await asyncio.wait(reading, timeout=READ_S)
        return (*self._earlier, *(row.sent for row in self._rows))

    def save(self, folder: Path) -> None:
        """Writes the record, so that a killed episode can be scored."""
        sent = (*self._earlier, *(row.sent for row in self._rows))
        if sent != self._saved:
            text = json.dumps([request.model_dump(mode="json") for request in sent])
            write_atomically(folder / SENT_FILE, text, private=True, sync=False)
            self._saved = sent

    def load(self, folder: Path) -> None:
        """Continues the record in *folder*, if there is one."""
        path = folder / SENT_FILE
        self._rows.clear()
        self._by_request.clear()
        text = path.read_text(encoding="utf-8") if path.exists() else "[]"
        self._earlier = TypeAdapter(list[SentRequest]).validate_json(text)

    def _on_request(self, request: Request) -> None:
        if request.resource_type in ASSETS or len(self._rows) >= MAX_REQUESTS:
            return
        headers = {name.lower(): storable(value) for name, value in request.headers.items()}
        sent = SentRequest(
            method=request.method,
            url=storable(request.url),
            navigation=is_for_tab(request),
            headers=headers,
            post_data=_post_data(request, headers.get("content-type", "")),
        )
        row = _Row(request, sent)
        self._rows.append(row)
        self._by_request[request] = row

    def _on_response(self, response: Response) -> None:
        row = self._by_request.get(response.request)
        if row is None:
            return
        row.sent = row.sent.model_copy(update={"status": response.status})
        if self.with_answers:
            row.reading = asyncio.ensure_future(self._read(row, response))

    async def _read(self, row: _Row, response: Response) -> None:
        try:
            async with asyncio.timeout(READ_S):
                headers = {name.lower(): storable(value) for name, value in (await row.request.all_headers()).items()}
                row.sent = row.sent.model_copy(update={"headers": headers, "cookies": await _cookies(response)})
                content = await _content(response)
                row.sent = row.sent.model_copy(update={"content": content})
        except (PlaywrightError, TimeoutError):
            return  # the page navigated before its response was read: the record stays partial


async def _cookies(response: Response) -> dict[str, str]:
    lines = await response.header_values("set-cookie")
    pairs = (line.partition(";")[0].partition("=") for line in lines)
    return {storable(name.strip()): storable(unquote(value.strip())) for name, _, value in pairs}


async def _content(response: Response) -> Json:
    kind = await response.header_value("content-type") or ""
    if "json" not in kind or 300 <= response.status < 400:
        return None
    body = await response.body()
    if len(body) > MAX_CONTENT_BYTES:
        return None
    return _json(body.decode("utf-8", "replace"))


def _post_data(request: Request, kind: str) -> dict[str, Json] | None:
    body = request.post_data_buffer
    if not body or len(body) > MAX_POST_CHARS:
        return None
    if "multipart/form-data" in kind:
        return multipart_fields(kind, body)
    text = storable(body.decode("utf-8", "replace"))
    if "json" in kind:
        value = _json(text)
        return value if isinstance(value, dict) else None
    if "urlencoded" in kind:
        return form_fields(text)
    return None


def form_fields(text: str) -> dict[str, Json]:
    """The fields of a form; for a repeated field, the first value."""
    return _collected(parse_qsl(text, keep_blank_values=True))


def multipart_fields(kind: str, body: bytes) -> dict[str, Json]:
    """The fields of a multipart form; a file's value is its content as text."""
    message = BytesParser(policy=HTTP).parsebytes(f"Content-Type: {kind}\r\n\r\n".encode() + body)
    pairs: list[tuple[str, str]] = []
    for part in message.iter_parts() if message.is_multipart() else ():
        name = part.get_param("name", header="content-disposition")
        content = part.get_payload(decode=True)
        if isinstance(name, str) and isinstance(content, bytes):
            pairs.append((name, storable(content.decode("utf-8", "replace"))))
    return _collected(pairs)


def _collected(pairs: list[tuple[str, str]]) -> dict[str, Json]:
    fields: dict[str, Json] = {}
    for name, value in pairs:
        fields.setdefault(storable(name), storable(value))
    return fields


def _json(text: str) -> Any:
    try:
        return load_json(text)
    except ValueError:
        return None
