"""A shop, a forum and a code host on loopback, with pages in the form that WebArena's checks expect.

They are three servers (three origins) with one state. Accounts are the published ones. `posts`, `orders` and
`biography` contain the agent's changes, so that tests can compare them with the checks' results.
"""

from __future__ import annotations

import html
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote, urlsplit

from envs.suites.webarena.accounts import PUBLISHED_ACCOUNTS
from envs.suites.webarena.sites import Sites
from envs.suites.webarena.task import Site


class ReceivedRequest(NamedTuple):
    method: str
    path: str
    query: dict[str, list[str]]
    form: dict[str, list[str]]
    user: str
    """The user of the cookie; empty without login."""


@dataclass(frozen=True, slots=True)
class Reply:
    body: str = ""
    status: int = 200
    kind: str = "text/html; charset=utf-8"
    headers: dict[str, str] = field(default_factory=dict)


def go(to: str, **headers: str) -> Reply:
    return Reply(status=302, headers={"Location": to, **headers})


def page(body: str) -> Reply:
    return Reply(f"<!doctype html><meta charset=utf-8><title>Place</title>{body}")


def data(value: Any) -> Reply:
    return Reply(json.dumps(value), kind="application/json")


class Server:
    """A server for one origin."""

    def __init__(self, answer: Callable[[ReceivedRequest], Reply]) -> None:
        self.received: list[ReceivedRequest] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(b"")

            def do_POST(self) -> None:
                self._answer(self.rfile.read(int(self.headers.get("Content-Length", 0))))

            def _answer(self, body: bytes) -> None:
                parts = urlsplit(self.path)
                kind = self.headers.get("Content-Type", "")
                form = parse_qs(body.decode(), keep_blank_values=True) if "urlencoded" in kind else {}
                user = self.headers.get("Cookie", "").partition(f"{outer.cookie}=")[2].partition(";")[0]
                request = ReceivedRequest(self.command, parts.path, parse_qs(parts.query), form, user)
                outer.received.append(request)
                reply = answer(request)
                self.send_response(reply.status)
                for name, value in ({"Content-Type": reply.kind} | reply.headers).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(reply.body.encode())

            def log_message(self, format: str, *args: object) -> None:
                """Keeps the test output quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def cookie(self) -> str:
        """The cookie's name. Ports share cookies, so each server has its own."""
        return f"user{self._server.server_port}"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


_FORM = "<form method=post>{}</form>"
_LABELLED = (
    "<label>{} <input name=user></label><label>{} <input name=password type=password></label><button>{}</button>"
)
LOGINS: dict[Site, str] = {
    "shopping": _FORM.format(_LABELLED.format("Email", "Password", "Sign In")),
    "reddit": _FORM.format(_LABELLED.format("Username", "Password", "Log in")),
    "shopping_admin": _FORM.format(
        "<input name=user placeholder='user name'><input name=password type=password placeholder=password>"
        "<button>Sign in</button>"
    ),
    "gitlab": _FORM.format(
        "<input name=user data-testid=username-field><input name=password type=password data-testid=password-field>"
        "<button data-testid=sign-in-button>Sign in</button>"
    ),
}

SHOP = """<h1>Shop</h1><p>Welcome, {user}</p><p>2 tins left, $0.00 shipping</p>
<a href=/tea.html?size=2&from=home>Tea</a> <a href=/contact>Contact</a> <a href=/wishlist>Wishlist</a>
<form method=post action=/checkout/cart/add><input type=hidden name=product value=22490>
<label>Qty <input name=qty value=1></label><button>Buy</button></form>
<button onclick="fetch('/rest/totals', {{method: 'POST', headers: {{'Content-Type': 'application/json'}},
  body: JSON.stringify({{note: {{note: 'lgtm'}}}})}}).then(() => document.title = 'Noted')">Note</button>
<script>document.querySelector = () => ({{outerText: 'forged', value: 'forged'}})</script>"""

CONTACT = """<textarea title="What’s on your mind?" aria-label=Mind></textarea>
<div id=panel hidden></div><button class=collapsible onclick="panel.textContent = 'by_percent'">More</button>
<a href=/tea.html?size=2&from=home target=_blank>Tea</a>"""

LATE = "<div id=slot></div><script>setTimeout(() => slot.innerHTML = '<b class=late>drawn late</b>', 150)</script>"

MEMBERS = """<table><tr><td data-label=Account><span class=gl-avatar-labeled-sublabel>@ann</span></td>
<td class=col-max-role><span>Guest</span></td></tr><tr><td data-label=Account>
<span class=gl-avatar-labeled-sublabel>@bob</span></td>
<td class=col-max-role><span>Maintainer</span></td></tr></table>"""


@dataclass
class Places:
    """Starts on construction; `close` ends the servers."""

    posts: list[tuple[str, str]] = field(default_factory=list)
    orders: list[str] = field(default_factory=list)
    biography: str = ""

    def __post_init__(self) -> None:
        self.shop, self.forum, self.code = Server(self._shop), Server(self._forum), Server(self._code)
        self.admin = Server(lambda request: self._login(self.admin, request, "shopping_admin"))

    @property
    def environ(self) -> dict[str, str]:
        return {
            "WA_SHOPPING": self.shop.url,
            "WA_REDDIT": self.forum.url,
            "WA_GITLAB": self.code.url,
            "WA_SHOPPING_ADMIN": self.admin.url,
        }

    @property
    def sites(self) -> Sites:
        return Sites.from_environment(self.environ)

    def store_logins(self, folder: Path) -> Path:
        """Storage states for `WA_AUTH`, which are faster than the login forms."""
        folder.mkdir()
        for site, server in self._servers().items():
            user = quote(PUBLISHED_ACCOUNTS[site].username)
            cookie = {"name": server.cookie, "value": user, "domain": "127.0.0.1", "path": "/", "expires": -1}
            cookie |= {"httpOnly": False, "secure": False, "sameSite": "Lax"}
            (folder / f"{site}_state.json").write_text(json.dumps({"cookies": [cookie], "origins": []}))
        return folder

    def _servers(self) -> dict[Site, Server]:
        return {"shopping": self.shop, "reddit": self.forum, "gitlab": self.code, "shopping_admin": self.admin}

    def close(self) -> None:
        for server in self._servers().values():
            server.close()

    def _login(self, server: Server, request: ReceivedRequest, site: Site) -> Reply:
        if request.method == "POST":
            account = PUBLISHED_ACCOUNTS[site]
            if request.form == {"user": [account.username], "password": [account.password]}:
                return go("/", **{"Set-Cookie": f"{server.cookie}={quote(account.username)}; Path=/"})
        if request.user and request.path == "/":
            return page(f"<h1>Dashboard</h1><p>{request.user}</p>")
        return page(LOGINS[site])

    def _shop(self, request: ReceivedRequest) -> Reply:
        match request.path:
            case "/customer/account/login/":
                return self._login(self.shop, request, "shopping")
            case "/":
                return page(SHOP.format(user=request.user or "nobody"))
            case "/tea.html":
                return page("<h1>Tea</h1>")
            case "/contact":
                return page(CONTACT)
            case "/wishlist":
                return page(
                    '<div class="products-grid wishlist">Joust &amp; Bag<br>Tea&nbsp;Pot</div><i data-kept=yes></i>'
                )
            case "/late":
                return page(LATE)
            case "/busy":
                return page("<script>for (;;) {}</script>")
            case "/broken":
                return Reply("sorry", status=503)
            case "/checkout/cart/add" if request.method == "POST":
                self.orders.append(request.form["product"][0])
                return go("/checkout/success", **{"Set-Cookie": "mage-messages=Tea%20has%20been%20added; Path=/"})
            case "/checkout/success":
                return page("<h1>Thank you</h1>")
            case "/rest/totals":
                return data({"items_qty": 1, "items": [{"name": "Tea"}]})
            case _:
                return self._rest(request)

    def _rest(self, request: ReceivedRequest) -> Reply:
        match request.path:
            case "/rest/default/V1/integration/admin/token":
                return data("token-7")
            case "/rest/V1/orders":
                newest = request.query["searchCriteria[sortOrders][0][direction]"] == ["DESC"]
                return data({"items": [{"increment_id": "000000189" if newest else "000000001"}]})
            case "/rest/V1/products/B1/reviews":
                rating = {"rating_name": "Rating", "percent": 80}
                return data([{"nickname": "old", "ratings": []}, {"nickname": "Emma", "ratings": [rating]}])
            case "/rest/V1/products/B2/reviews":
                return data([])
            case "/sales/order/view/order_id/189/":
                return page('<div class="order-details-items ordered">Tea Qty 2</div>')
            case _:
                return Reply("not found", status=404)

    def _forum(self, request: ReceivedRequest) -> Reply:
        if request.path == "/login":
            return self._login(self.forum, request, "reddit")
        if request.path == "/submit" and request.method == "POST":
            self.posts.append((request.form["submission[title]"][0], request.form["submission[body]"][0]))
            return go(f"/f/books/{len(self.posts)}/a-title")
        if request.path == "/f/books":
            return page(
                "<form method=post action=/submit><label>Title <input name=submission[title]></label>"
                "<label>Body <input name=submission[body]></label><button>Post</button></form>"
            )
        number = request.path.split("/")[3] if request.path.startswith("/f/books/") else ""
        if number.isdigit() and 0 < int(number) <= len(self.posts):
            title, body = map(html.escape, self.posts[int(number) - 1])
            comment = f"<a href=/f/books/{number}/a-title/comment/9>Comments</a>"
            return page(f"<div class=submission__inner><h1>{title}</h1><p>{body}</p></div>{comment}")
        return page("<h1>Forum</h1><a href=/f/books>Books</a>")

    def _code(self, request: ReceivedRequest) -> Reply:
        if request.path == "/users/sign_in":
            return self._login(self.code, request, "gitlab")
        return page(MEMBERS if request.path.endswith("/project_members") else "<h1>Code</h1>")
