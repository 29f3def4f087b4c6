"""WSGI middleware of every site. It writes the request log and delays requests while a reset restores the state."""

from __future__ import annotations

import errno
import io
import sqlite3
import threading
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from envs.suites.sites.apps.base import StartResponse, WSGIApplication
from envs.suites.sites.requests import FORM_BYTES, LOG, Request, parse_form, parse_query

QUIET_S = 5.0
"""Longest wait for requests in flight before a reset."""
ALIVE = "/__alive__"
"""Path for health checks. The server's threads answer it without the application; a hanging server does not."""
STATIC = ("/static/", "/media/", "/chrome/", "/favicon")
"""Paths that are not logged: they show no user action."""
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)
_DATABASE = ("disk is full", "disk I/O error", "malformed", "readonly database", "unable to open")


class Gate:
    """Lets requests pass while it is open. Shutting it waits for the requests in flight."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._shut = False

    @contextmanager
    def passing(self) -> Generator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._shut)
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    @contextmanager
    def shut(self) -> Generator[None]:
        """Shuts the gate. Raises TimeoutError if requests are still in flight after QUIET_S."""
        with self._changed:
            self._shut = True
            quiet = self._changed.wait_for(lambda: self._inside == 0, QUIET_S)
        try:
            if not quiet:
                raise TimeoutError(f"{self._inside} requests have not ended within {QUIET_S:g} s")
            yield
        finally:
            with self._changed:
                self._shut = False
                self._changed.notify_all()


class Recorder:
    """Wraps *application* and logs its requests in `requests.jsonl` in *folder*."""

    def __init__(self, application: WSGIApplication, folder: Path) -> None:
        self.gate = Gate()
        self._application = application
        self._path = folder / LOG
        self._lock = threading.Lock()
        self._number = 0
        self.server_error = ""
        """Why the log is incomplete (the disk refused a line); empty if it is complete."""
        self.clear()

    def clear(self) -> None:
        """Empties the log. Raises OSError if the disk refuses it."""
        with self._lock:
            self._number = 0
            self._path.write_bytes(b"")
            self.server_error = ""

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        if environ.get("PATH_INFO") == ALIVE:
            start_response("204 No Content", [])
            return []
        with self.gate.passing():
            if environ.get("PATH_INFO", "").startswith(STATIC):
                return _read_all(self._application(environ, start_response))
            return self._recorded(environ, start_response)

    def _recorded(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        with self._lock:
            number, self._number = self._number, self._number + 1
        form = _take_form(environ)
        answered: list[tuple[int, str]] = []
        written: list[bytes] = []
        """Parts sent with WSGI's `write`. They are kept until the request is logged, so that no unlogged answer is
        visible."""

        def record_start(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            location = next((value for name, value in headers if name.lower() == "location"), "")
            answered.append((int(status[:3]), location))
            start_response(status, headers, *rest)
            return written.append

        server_error = ""
        try:
            body = _read_all(self._application(environ, record_start))
            return [*written, *body]
        except (OSError, sqlite3.Error) as error:
            server_error = _server_error(error)
            raise
        finally:
            status, location = answered[-1] if answered else (500, "")
            self._write(
                Request(
                    number=number,
                    method=environ["REQUEST_METHOD"],
                    path=_text(environ.get("PATH_INFO", "/")),
                    query=parse_query(environ),
                    form=form,
                    status=status,
                    location=location,
                    server_error=server_error or (self._disk_error() if status >= 500 else ""),
                )
            )

    def _write(self, request: Request) -> None:
        line = request.model_dump_json() + "\n"
        try:
            with self._lock, self._path.open("a", encoding="utf-8") as file:
                file.write(line)
        except OSError as error:
            self.server_error = str(error)

    def _disk_error(self) -> str:
        """Tests the disk after a 5xx, since an application hides its own failures behind an error page."""
        probe = self._path.with_name(f"probe-{time.monotonic_ns()}")
        try:
            probe.write_bytes(b"\0" * 65_536)
        except OSError as error:
            return _server_error(error)
        finally:
            probe.unlink(missing_ok=True)
        return ""


def _read_all(body: Iterable[bytes]) -> list[bytes]:
    """Reads the complete answer while the gate still counts the request as in flight."""
    try:
        return list(body)
    finally:
        close = getattr(body, "close", None)
        if close is not None:
            close()


def _take_form(environ: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Reads the request body for the log and restores it for the application."""
    length = int(environ.get("CONTENT_LENGTH") or 0)
    if not 0 < length <= FORM_BYTES:
        return ()
    body = environ["wsgi.input"].read(length)
    environ["wsgi.input"] = io.BytesIO(body)
    return parse_form(environ.get("CONTENT_TYPE", ""), body)


def _text(path: str) -> str:
    """PATH_INFO as text. WSGI passes its bytes decoded as Latin-1."""
    return path.encode("latin-1", "replace").decode("utf-8", "replace")


def _server_error(error: OSError | sqlite3.Error) -> str:
    """The message of an error of disk or database; empty for other errors."""
    message = str(error)
    disk = isinstance(error, OSError) and error.errno in _DISK
    database = isinstance(error, sqlite3.Error) and any(text in message for text in _DATABASE)
    return message if disk or database else ""
