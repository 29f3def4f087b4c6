"""A minimal HTTP client with cookies for the Django sites."""

from __future__ import annotations

import http.client
import json
import re
from typing import NamedTuple
from urllib.parse import quote, urlencode

from envs.suites.sites.apps.base import LOGINS
from envs.suites.sites.copies import SiteCopy
from tests.timing import HANG_S

TOKEN = "t" * 32
"""Django only requires that the form's token equals the cookie's."""


class Page(NamedTuple):
    status: int
    text: str
    headers: http.client.HTTPMessage


class Visitor:
    """A client with the golden login of a persona."""

    def __init__(self, site: SiteCopy, persona: str = "", *, host: str = "") -> None:
        self._address = site.address
        self._host = host or f"{site.info.name}.test"
        known = json.loads((site.golden / LOGINS).read_text(encoding="utf-8"))
        self._cookies: dict[str, str] = {"csrftoken": TOKEN, **(known[persona] if persona else {})}

    def get(self, path: str) -> Page:
        return self._ask("GET", path, None)

    def post(self, path: str, **fields: str) -> Page:
        return self._ask("POST", path, urlencode({"csrfmiddlewaretoken": TOKEN, **fields}))

    def _ask(self, method: str, path: str, body: str | None) -> Page:
        connection = http.client.HTTPConnection(*self._address, timeout=HANG_S)
        headers = {"Host": self._host, "Cookie": "; ".join(f"{k}={v}" for k, v in self._cookies.items())}
        if body is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        connection.request(method, quote(path, safe="/?=&%"), body, headers)
        answer = connection.getresponse()
        text = answer.read().decode("utf-8", "replace")
        connection.close()
        return Page(answer.status, text, answer.headers)


def loaded(page: str) -> list[str]:
    """The URLs that a browser loads with the page."""
    tags = r'<(?:script|img|iframe|link rel="(?:stylesheet|icon|preload)")[^>]*?(?:src|href)="([^"]+)"'
    return re.findall(tags, page)
