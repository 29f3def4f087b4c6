"""WSGI middleware of every site: writes the request log, and holds requests back while the state is restored."""

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
"""Answered by the server's own threads without the application: a hanging server does not answer it."""
STATIC = ("/static/", "/media/", "/chrome/", "/favicon")
"""Paths that say nothing of what a user did."""
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)
_DATABASE = ("disk is full", "disk I/O error", "malformed", "readonly database", "unable to open")


class Gate:
    """Lets requests pass until it is shut; shutting waits for those inside."""

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
        """Raises TimeoutError if requests stay inside for QUIET_S."""
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
    """Wraps *application*; its log is `requests.jsonl` in *folder*."""

    def __init__(self, application: WSGIApplication, folder: Path) -> None:
        self.gate = Gate()
        self._application = application
        self._path = folder / LOG
        self._lock = threading.Lock()
        self._number = 0
        self.server_error = ""
        """Why the log is not complete: the disk did not take a line of it."""
        self.clear()

    def clear(self) -> None:
        """Raises OSError where the disk does not take it."""
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
                return _whole(self._application(environ, start_response))
            return self._recorded(environ, start_response)

    def _recorded(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        with self._lock:
            number, self._number = self._number, self._number + 1
        form = _take_form(environ)
        answered: list[tuple[int, str]] = []
        written: list[bytes] = []
        """By WSGI's old `write`: kept until the log has its line, so that nobody sees an answer that is not logged."""

        def noting(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            location = next((value for name, value in headers if name.lower() == "location"), "")
            answered.append((int(status[:3]), location))
            start_response(status, headers, *rest)
            return written.append

        server_error = ""
        try:
            body = _whole(self._application(environ, noting))
            return [*written, *body]
        except (OSError, sqlite3.Error) as error:
            server_error = _trouble(error)
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
                    server_error=server_error or (self._disk_trouble() if status >= 500 else ""),
                )
            )

    def _write(self, request: Request) -> None:
        line = request.model_dump_json() + "\n"
        try:
            with self._lock, self._path.open("a", encoding="utf-8") as file:
                file.write(line)
        except OSError as error:
            self.server_error = str(error)

    def _disk_trouble(self) -> str:
        """An application turns its own failures into a page: after a 5xx, the disk is asked directly."""
        probe = self._path.with_name(f"probe-{time.monotonic_ns()}")
        try:
            probe.write_bytes(b"\0" * 65_536)
        except OSError as error:
            return _trouble(error)
        finally:
            probe.unlink(missing_ok=True)
        return ""


def _whole(body: Iterable[bytes]) -> list[bytes]:
    """The complete answer, made while the gate counts the request as inside."""
    try:
        return list(body)
    finally:
        close = getattr(body, "close", None)
        if close is not None:
            close()


def _take_form(environ: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Reads the body for the log and puts it back for the application."""
    length = int(environ.get("CONTENT_LENGTH") or 0)
    if not 0 < length <= FORM_BYTES:
        return ()
    body = environ["wsgi.input"].read(length)
    environ["wsgi.input"] = io.BytesIO(body)
    return parse_form(environ.get("CONTENT_TYPE", ""), body)


def _text(path: str) -> str:
    """PATH_INFO as text: WSGI hands over bytes in the clothes of Latin-1."""
    return path.encode("latin-1", "replace").decode("utf-8", "replace")


def _trouble(error: OSError | sqlite3.Error) -> str:
    told = str(error)
    disk = isinstance(error, OSError) and error.errno in _DISK
    database = isinstance(error, sqlite3.Error) and any(word in told for word in _DATABASE)
    return told if disk or database else ""
