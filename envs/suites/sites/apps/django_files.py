"""WSGI middleware that serves static and uploaded files of a Django site."""

from __future__ import annotations

import mimetypes
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from django.contrib.staticfiles import finders
from django.core.exceptions import SuspiciousFileOperation
from django.utils._os import safe_join

from envs.suites.sites.apps.base import StartResponse, WSGIApplication

STATIC = "/static/"
MEDIA = "/media/"
A_DAY_S = 86_400


class FileMiddleware:
    """Serves `/static/` from the installed applications and `/media/` from *media*, the rest from *application*.

    Browsers may cache static files for a day. They may not cache uploads, since a reset replaces them.
    """

    def __init__(self, application: WSGIApplication, media: Path) -> None:
        self._application = application
        self._media = media
        self._static_paths: dict[str, Path | None] = {}

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        path = str(environ.get("PATH_INFO", "")).encode("latin-1").decode("utf-8", "replace")
        if path.startswith(STATIC):
            return _answer(self._static(path.removeprefix(STATIC)), f"max-age={A_DAY_S}", environ, start_response)
        if path.startswith(MEDIA):
            return _answer(_inside(self._media, path.removeprefix(MEDIA)), "no-cache", environ, start_response)
        return self._application(environ, start_response)

    def _static(self, name: str) -> Path | None:
        if name not in self._static_paths:
            try:
                path = finders.find(name)
            except SuspiciousFileOperation:
                path = None
            self._static_paths[name] = Path(str(path)) if path else None
        return self._static_paths[name]


def _inside(root: Path, name: str) -> Path | None:
    try:
        return Path(safe_join(root, name))
    except SuspiciousFileOperation:
        return None


def _answer(path: Path | None, caching: str, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
    if environ.get("REQUEST_METHOD") not in {"GET", "HEAD"}:
        start_response("405 Method Not Allowed", [("Allow", "GET, HEAD"), ("Content-Length", "0")])
        return [b""]
    if path is None or not path.is_file():
        missing = f"There is no file {quote(str(environ.get('PATH_INFO', '')))}\n".encode()
        start_response("404 Not Found", [("Content-Type", "text/plain"), ("Content-Length", str(len(missing)))])
        return [missing]
    content = path.read_bytes()
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    headers = [("Content-Type", kind), ("Content-Length", str(len(content))), ("Cache-Control", caching)]
    start_response("200 OK", headers)
    return [b"" if environ["REQUEST_METHOD"] == "HEAD" else content]
