"""A small shop on 127.0.0.1 for the examples. It needs no network and counts the orders that it receives."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import parse_qs

LAPTOPS = {"Aspen 13": 899, "Birch 13": 749, "Cedar 15": 1249}
ROWS = "".join(f"<tr><td>{name}</td><td>{price} EUR</td></tr>" for name, price in LAPTOPS.items())
FRONT = f"""<!doctype html><title>Laptops</title><h1>Laptops</h1><table>{ROWS}</table>
<form method=post action=/order>
<label>Name <input name=name></label>
<label>Model <select name=model>{"".join(f"<option>{name}</option>" for name in LAPTOPS)}</select></label>
<button>Order</button></form>"""
WAITLIST = """<!doctype html><title>Waiting list</title>
<form method=post action=/join><input name=name><button>Submit</button></form>"""


class LocalShop:
    """Serves the shop inside a `with` block.

    `/` takes orders, `/waitlist` takes names. `orders` and `waiting` hold what the server received.
    """

    def __init__(self) -> None:
        self.orders: list[tuple[str, str]] = []
        """Name and model of each order."""
        self.waiting: list[str] = []
        shop = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(WAITLIST if self.path == "/waitlist" else FRONT)

            def do_POST(self) -> None:
                form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                name = form.get("name", [""])[0]
                if self.path == "/join":
                    shop.waiting.append(name)
                else:
                    shop.orders.append((name, form.get("model", [""])[0]))
                self._answer("<!doctype html><title>Thank you</title><h1>Thank you</h1>")

            def _answer(self, html: str) -> None:
                body = html.encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Requests are not printed."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
