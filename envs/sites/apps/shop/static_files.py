"""Serves the packages' static files and the shop's pictures, without Django's request machinery.

Every episode starts with an empty browser cache, so a page brings about ten of these requests with it.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.contrib.staticfiles import finders

from envs.sites.apps.base import FILES, StartResponse, WSGIApplication

STATIC = "/static/"
MEDIA = "/media/"
KEPT_FILES = 256
"""Static files held in memory: about 40 are ever asked for, 2 MB together."""


def with_static_files(application: WSGIApplication, copy: Path) -> WSGIApplication:
    """*application*, with `/static/` (kept in memory) and `/media/` (read from *copy* each time) answered here."""
    media = (copy / FILES).resolve()

    def serve(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        path: str = environ["PATH_INFO"]
        if path.startswith(STATIC):
            body, life = _static(path.removeprefix(STATIC)), "max-age=86400"
        elif path.startswith(MEDIA):
            body, life = _inside(media, path.removeprefix(MEDIA)), "no-cache"
        else:
            return application(environ, start_response)
        if body is None:
            start_response("404 Not Found", [("Content-Type", "text/plain"), ("Content-Length", "0")])
            return [b""]
        kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
        headers = [("Content-Type", kind), ("Content-Length", str(len(body))), ("Cache-Control", life)]
        start_response("200 OK", headers)
        return [b"" if environ["REQUEST_METHOD"] == "HEAD" else body]

    return serve


@lru_cache(KEPT_FILES)
def _static(name: str) -> bytes | None:
    found = finders.find(name)
    return Path(found).read_bytes() if isinstance(found, str) and Path(found).is_file() else None


def _inside(folder: Path, name: str) -> bytes | None:
    """The file *name* of *folder*; None if there is none or it lies outside."""
    path = (folder / name).resolve()
    return path.read_bytes() if path.is_relative_to(folder) and path.is_file() else None
