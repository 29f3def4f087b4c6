"""The request log of a site. The server writes it; no page and no policy can forge it."""

from __future__ import annotations

import email.parser
import email.policy
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from envs.core.json_lines import json_lines
from envs.core.record import Record

LOG = "requests.jsonl"
FORM_BYTES = 2_000_000
"""Largest request body that is logged, in bytes."""


class Request(Record):
    """One request and the status of its answer."""

    number: int
    """0-based number in order of arrival since the reset."""
    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    form: tuple[tuple[str, str], ...] = ()
    """Text fields of the body; for a file, its name."""
    status: int
    location: str = ""
    """Target of a redirect."""
    server_error: str = ""
    """A failure of the server itself, such as a full disk or an unreadable database. It makes the episode `broken`."""

    @property
    def ok(self) -> bool:
        """Did the server answer with a page, or with a redirect after a form?"""
        return 200 <= self.status < 400

    def field(self, name: str) -> str | None:
        """The last value of a form field; None if it was not sent."""
        return dict(self.form).get(name)

    def argument(self, name: str) -> str | None:
        """The last value of a query argument; None if it is missing."""
        return dict(self.query).get(name)


def read_log(folder: Path) -> tuple[Request, ...]:
    """Reads the log of the copy in *folder*, oldest first, without an incomplete last line."""
    path = folder / LOG
    if not path.exists():
        return ()
    complete = path.read_text(encoding="utf-8").rpartition("\n")[0]
    return tuple(Request.model_validate_json(line) for line in json_lines(complete))


def parse_query(environ: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True, errors="replace"))


def parse_form(content_type: str, body: bytes) -> tuple[tuple[str, str], ...]:
    """Parses the fields of an HTML form, in the order sent; empty for other content types."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/x-www-form-urlencoded":
        return tuple(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
    if kind != "multipart/form-data":
        return ()
    head = f"Content-Type: {content_type}\r\n\r\n".encode("latin-1", "replace")
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + body)
    fields: list[tuple[str, str]] = []
    for part in message.iter_parts() if message.is_multipart() else ():
        name = part.get_param("name", header="content-disposition")
        payload = part.get_payload(decode=True)
        if isinstance(name, str) and isinstance(payload, bytes):
            fields.append((name, part.get_filename() or payload.decode("utf-8", "replace")))
    return tuple(fields)
