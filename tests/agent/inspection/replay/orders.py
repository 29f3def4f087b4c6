"""A small site whose markup can be rebuilt under a trace: a table of orders, each with a button that ships it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Rows = list[tuple[int, str]]
ROWS: Rows = [(17, "Bob"), (18, "Ann"), (19, "Bob")]


def plain(rows: Rows) -> str:
    shown = "".join(
        f"<tr><td>{number}<td>{who}<td><form method=post action=/ship/{number}>"
        f"<button id=ship-{place}>Ship</button></form>"
        for place, (number, who) in zip("abcdef", rows, strict=False)
    )
    return f"<h1>Orders</h1><table>{shown}</table><a id=help href=/help>Help centre</a>"


def renamed(rows: Rows) -> str:
    return plain(rows).replace("id=ship-", "id=x-").replace("id=help", "id=support")


def reordered(rows: Rows) -> str:
    return plain(rows[::-1])


def with_banner(rows: Rows) -> str:
    return "<div>New! <a href=/news>News</a> <button>Ship faster</button></div>" + plain(rows)


def wrapped(rows: Rows) -> str:
    return "<main><div><section>" + plain(rows).replace("<button", "<div><span><button") + "</section></div></main>"


def respelled(rows: Rows) -> str:
    return plain(rows).replace("Help centre", "HELP\n   Centre ")


def late(rows: Rows) -> str:
    """The table comes well after the page has settled."""
    return f"<div id=at>Loading…</div><script>setTimeout(() => {{ at.innerHTML = {plain(rows)!r} }}, 1200)</script>"


def all_at_once(rows: Rows) -> str:
    changed = with_banner(rows[::-1]).replace("id=ship-", "id=x-").replace("Help centre", "HELP centre")
    return f"<main><div>{changed}</div></main>"


class Orders:
    """`/` lists the orders as *page* draws them, `/ship/N` takes a POST, everything else is a page of text."""

    def __init__(self) -> None:
        self.page: Callable[[Rows], str] = plain
        self.rows = ROWS
        self.shipped: list[str] = []
        """Numbers of the orders that were shipped, in order."""
        self.moved_to = ""
        """Where `/help` sends its readers; empty: it is a page itself."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path == "/help" and outer.moved_to:
                    self.send_response(302)
                    self.send_header("Location", outer.moved_to)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                self._answer(outer.page(outer.rows) if self.path == "/" else f"<h1>Page</h1><p>{self.path}</p>")

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                outer.shipped.append(self.path.rpartition("/")[2])
                self._answer("<h1>Shipped</h1>")

            def _answer(self, body: str) -> None:
                html = f"<!doctype html><meta charset=utf-8><title>Orders</title>{body}".encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(html)))
                self.end_headers()
                self.wfile.write(html)

            def log_message(self, format: str, *args: object) -> None:
                """Keeps the test output quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
