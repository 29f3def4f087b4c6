"""A small web shop that counts its orders, and helpers for scripted runs."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from agent.config import RunConfig, parse_config
from agent.episode.policy import Script, ScriptedPolicy
from envs.core.action_languages import PROGRAM

FORM = """<!doctype html><title>Shop</title><h1>Shop</h1>
<form method=post action=/buy><input name=who aria-label=Name><button>Buy</button></form><a href=/about>About</a>"""
TICKING = "<!doctype html><title>Clock</title><p id=p>0</p><script>setInterval(() => p.textContent++, 300)</script>"
"""A page on which `wait` ends at the next tick: where nothing happens, it takes all of `SettleSettings.max_s`."""


class Shop:
    """`/` is an order form, `/buy` takes orders, `/about` is a page, `/file` is a download. `orders` lists the
    received orders."""

    def __init__(self) -> None:
        self.orders: list[str] = []
        self.front = FORM
        self.slow_order = threading.Event()
        """While cleared, orders are accepted but not answered."""
        self.slow_order.set()
        self.order_came = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(outer.page(self.path))

            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                body = self.rfile.read(length)
                if len(body) < length:  # the browser was killed while it sent the order
                    self.close_connection = True
                    return
                outer.orders.append(body.decode())
                outer.order_came.set()
                outer.slow_order.wait(30)
                self._answer("<title>Thanks</title><p>Thank you</p>")

            def _answer(self, html: str) -> None:
                body = html.encode("utf-8", "surrogatepass")
                try:
                    self.send_response(200)
                    self.send_header("Content-Type", "text/html; charset=utf-8")
                    self.send_header("Content-Length", str(len(body)))
                    if self.path == "/file":
                        self.send_header("Content-Disposition", "attachment; filename=prices.csv")
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    self.close_connection = True  # the browser was killed while it waited

            def log_message(self, format: str, *args: object) -> None:
                """Keeps the test output quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def page(self, path: str) -> str:
        """The HTML of *path*, which has its query."""
        return self.front if path == "/" else "<title>About</title><p>About us</p>"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/"

    def close(self) -> None:
        self.slow_order.set()
        self._server.shutdown()
        self._server.server_close()


def scripted(script: Script) -> ScriptedPolicy:
    return ScriptedPolicy(script, PROGRAM)


def config(**values: Any) -> RunConfig:
    """A configuration for tests: scripted policy, no fsync."""
    return parse_config({"policy": "scripted", "fsync": False, **values})
