"""Serves one copy of one site: `python -m envs.suites.sites.serving NAME COPY GOLDEN [--detached]`.

It listens on a free loopback port and writes `server.json` into the copy. It ends when its standard input closes, so it
never outlives the process that started it, even if that process is killed. With `--detached` it serves until a `stop`
command.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import socketserver
import sqlite3
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import time_machine
from waitress.server import create_server

from envs.core.atomic_write import write_atomically
from envs.suites.sites.apps.base import DATABASE, FILES, SiteApp
from envs.suites.sites.clock import NOW
from envs.suites.sites.control import SERVER, Reply, ServerInfo
from envs.suites.sites.kinds import KINDS, SiteName
from envs.suites.sites.recorder import Recorder

THREADS = 4
BUSY_S = 5.0
STDIN = 0
SOCKET_BYTES = 100
"""Longest path of a Unix socket that all systems accept."""


class HostCheck:
    """Answers requests only if their Host header is the site's own name or this server's loopback address.

    Any other Host indicates DNS rebinding: a foreign origin whose name resolves to loopback. *host* ends in `.test`,
    which no public server resolves (RFC 6761).
    """

    def __init__(self, application: Any, host: str) -> None:
        self._application = application
        self._hosts = frozenset((host,))

    def allow_port(self, port: int) -> None:
        """Also answers requests to this loopback port."""
        self._hosts |= {f"127.0.0.1:{port}", f"localhost:{port}"}

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        if environ.get("HTTP_HOST", "").lower() in self._hosts:
            return self._application(environ, start_response)
        start_response("421 Misdirected Request", [("Content-Type", "text/plain; charset=utf-8")])
        return [b"this server answers on its own loopback address only\n"]


class Clock:
    """The clock of this process. `set` starts it at `NOW`."""

    def __init__(self) -> None:
        self._travel: Any = None

    def set(self) -> None:
        if self._travel is not None:
            self._travel.stop()
        self._travel = time_machine.travel(NOW, tick=True)
        self._travel.start()


def load(name: str) -> SiteApp:
    """Imports and returns the application of a site."""
    return cast(SiteApp, importlib.import_module(f"envs.suites.sites.apps.{name}").SITE)


class Served:
    """One application over one copy. `reset` restores its golden state."""

    def __init__(self, name: str, copy: Path, golden: Path) -> None:
        self._copy = copy
        self._golden = golden
        self._clock = Clock()
        self._clock.set()
        self._site = load(name)
        self.recorder = Recorder(self._site.application(copy), copy)

    def reset(self) -> None:
        """Restores database, files, log, caches and clock. No request is answered meanwhile."""
        with self.recorder.gate.shut():
            restore_database(self._golden / DATABASE, self._copy / DATABASE)
            restore_files(self._golden / FILES, self._copy / FILES)
            self._site.clear_caches()
            self._clock.set()
            self.recorder.clear()


def restore_database(golden: Path, live: Path) -> None:
    """Copies the golden database pages into the live file. Open connections of the application stay valid."""
    if not golden.exists():
        return
    with (
        closing(sqlite3.connect(f"file:{golden}?mode=ro&immutable=1", uri=True)) as source,
        closing(sqlite3.connect(live, timeout=BUSY_S)) as target,
    ):
        target.execute("PRAGMA synchronous=OFF")
        source.backup(target)


def restore_files(golden: Path, live: Path) -> None:
    """Makes the tree *live* equal to *golden*. Files with equal size and time are not copied."""
    if not golden.exists():
        return
    sources = {path.relative_to(golden): path for path in golden.rglob("*")}
    for path in sorted(live.rglob("*"), reverse=True):
        if path.relative_to(live) not in sources:
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    for name, source in sorted(sources.items()):
        target = live / name
        if source.is_dir():
            target.mkdir(exist_ok=True)
        elif not target.exists() or _stamp(target) != _stamp(source):
            shutil.copy2(source, target)


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


class _Control(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True

    def __init__(self, path: str, served: Served) -> None:
        self.served = served
        super().__init__(path, _CommandHandler)


class _CommandHandler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        command = json.loads(self.rfile.readline() or b"{}").get("do")
        began = time.perf_counter()
        served = cast(_Control, self.server).served
        problem = served.recorder.server_error
        if command == "reset":
            try:
                served.reset()
                problem = ""
            except (OSError, sqlite3.Error, TimeoutError) as error:
                problem = f"{type(error).__name__}: {error}"
        reply = Reply(ok=not problem, problem=problem, seconds=round(time.perf_counter() - began, 4))
        self.wfile.write(reply.model_dump_json().encode() + b"\n")
        self.wfile.flush()
        if command == "stop":
            os._exit(0)


def _end_with_input() -> None:
    os.read(STDIN, 1)  # not `sys.stdin`, whose lock would block the exit of the interpreter
    os._exit(0)


def _socket_path(copy: Path) -> Path:
    """The socket's path: in the copy, or in a temporary folder if that path is too long for a socket."""
    path = copy / "control"
    path = path if len(str(path).encode()) < SOCKET_BYTES else Path(tempfile.mkdtemp(prefix="mira-site-")) / "control"
    path.unlink(missing_ok=True)
    return path


def main(arguments: list[str]) -> None:
    name, copy, golden = arguments[0], Path(arguments[1]), Path(arguments[2])
    if "--detached" not in arguments:
        threading.Thread(target=_end_with_input, daemon=True).start()
    served = Served(name, copy, golden)
    application = HostCheck(served.recorder, KINDS[cast(SiteName, name)].host)
    server = create_server(
        application, host="127.0.0.1", port=0, threads=THREADS, clear_untrusted_proxy_headers=True, ident=None
    )
    socket = _socket_path(copy)
    control = _Control(str(socket), served)
    threading.Thread(target=control.serve_forever, daemon=True).start()
    port = int(cast(Any, server).effective_port)
    application.allow_port(port)
    info = ServerInfo(name=name, pid=os.getpid(), port=port, socket=str(socket))
    write_atomically(copy / SERVER, info.model_dump_json(), sync=False)
    cast(Any, server).run()


if __name__ == "__main__":
    main(sys.argv[1:])
