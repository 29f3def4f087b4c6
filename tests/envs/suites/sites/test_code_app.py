"""The code site as a server: lasting logins, resets below pooled connections, no requests to other hosts."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import AsyncIterator
from http.cookies import SimpleCookie
from urllib.parse import urlencode

import pytest
import pytest_asyncio

from tests.timing import HANG_S

pytest.importorskip("trac")

from envs.suites.sites.apps.base import LOGINS
from envs.suites.sites.copies import SiteCopy, database_digest, start_copy

pytestmark = pytest.mark.asyncio(loop_scope="module")
MASTER = "3b2b0a556b7eb48aa034edc8259a854b9fdf6fc7"
"""Hash of the newest commit. It depends on authors, dates and contents of the whole history."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SiteCopy]:
    copy = await start_copy("code", tmp_path_factory.mktemp("code") / "copy")
    yield copy
    await copy.close()


@pytest_asyncio.fixture(loop_scope="module")
async def site(served: SiteCopy) -> SiteCopy:
    await served.reset()
    return served


class Visitor:
    """A minimal HTTP client with cookies."""

    def __init__(self, site: SiteCopy, persona: str = "") -> None:
        self._address = site.address
        known = json.loads((site.golden / LOGINS).read_text(encoding="utf-8"))
        self.cookies: dict[str, str] = dict(known[persona]) if persona else {"trac_form_token": "t"}

    def get(self, path: str) -> tuple[int, str]:
        return self._ask("GET", path, None)

    def post(self, path: str, **fields: str) -> tuple[int, str]:
        form = {"__FORM_TOKEN": self.cookies["trac_form_token"], **fields}
        return self._ask("POST", path, urlencode(form))

    def _ask(self, method: str, path: str, body: str | None) -> tuple[int, str]:
        connection = http.client.HTTPConnection(*self._address, timeout=HANG_S)
        headers = {"Host": "code.test", "Cookie": "; ".join(f"{k}={v}" for k, v in self.cookies.items())}
        if body is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        for header in answer.headers.get_all("Set-Cookie") or []:
            for name, morsel in SimpleCookie(header).items():
                self.cookies[name] = morsel.value
        text = answer.read().decode()
        connection.close()
        return answer.status, text


def new_ticket(visitor: Visitor, summary: str) -> int:
    fields = {"field_summary": summary, "field_type": "task", "field_component": "cache", "field_status": "new"}
    status, _ = visitor.post("/newticket", submit="Create ticket", action="create", **fields)
    return status


async def test_the_history_is_the_same_at_every_build(site: SiteCopy) -> None:
    reference = site.golden / "fixed" / "tidemark.git" / "refs" / "heads" / "master"
    assert reference.read_text(encoding="ascii").strip() == MASTER


@pytest.mark.parametrize(("persona", "name"), [("developer", "Noor Haddad"), ("admin", "Ilse Brandt")])
async def test_golden_logins_are_live(site: SiteCopy, persona: str, name: str) -> None:
    status, page = Visitor(site, persona).get("/")
    assert status == 200
    assert "logged in as" in page and name in page
    assert ('href="/admin"' in page) == (persona == "admin")


async def test_whoever_signs_out_can_sign_in_again(site: SiteCopy) -> None:
    visitor = Visitor(site, "developer")
    visitor.post("/logout")
    assert "logged in as" not in visitor.get("/")[1]
    _, refused = visitor.post("/login", user="noor", password="wrong")
    assert "Invalid user name or password" in refused
    status, _ = visitor.post("/login", user="noor", password="noor-tides")
    assert status == 303
    assert "logged in as" in visitor.get("/")[1]
    await site.reset()
    assert "logged in as" in Visitor(site, "developer").get("/")[1], "the golden login outlives a sign-out"


async def test_a_reset_is_seen_below_pooled_connections(site: SiteCopy) -> None:
    before = database_digest(site.database)
    visitor = Visitor(site, "developer")
    for _ in range(6):
        visitor.get("/report/1")
    assert new_ticket(visitor, "Soon forgotten") == 303
    assert "Soon forgotten" in visitor.get("/ticket/201")[1]
    assert database_digest(site.database) != before
    await site.reset()
    assert database_digest(site.database) == before
    for _ in range(6):
        assert visitor.get("/ticket/201")[0] == 404
        assert "Soon forgotten" not in visitor.get("/report/1")[1]
    assert new_ticket(visitor, "Numbered as at first") == 303
    assert "Numbered as at first" in visitor.get("/ticket/201")[1]


async def test_a_reset_empties_caches_and_settings(site: SiteCopy) -> None:
    visitor = Visitor(site, "admin")
    assert visitor.post("/admin/ticket/milestones", name="Midsummer", add="Add")[0] == 303
    assert visitor.post("/admin/general/basics", name="Renamed", apply="Apply changes")[0] == 303
    page = visitor.get("/newticket")[1]
    assert "Midsummer" in page and "Renamed" in page
    await site.reset()
    page = visitor.get("/newticket")[1]
    assert "Midsummer" not in page and "Renamed" not in page and "Tidemark" in page


async def test_another_token_is_refused(site: SiteCopy) -> None:
    visitor = Visitor(site, "developer")
    assert visitor.post("/newticket", __FORM_TOKEN="forged", field_summary="x", submit="Create ticket")[0] == 400


@pytest.mark.parametrize("path", ["/", "/ticket/6", "/newticket", "/browser", "/timeline", "/wiki/Team?action=edit"])
async def test_pages_load_nothing_from_elsewhere(site: SiteCopy, path: str) -> None:
    status, page = Visitor(site, "admin").get(path)
    assert status == 200
    loaded = re.findall(r'<(?:script|img|iframe|link rel="(?:stylesheet|icon)")[^>]+(?:src|href)="([^"]+)"', page)
    assert loaded
    assert [url for url in loaded if not url.startswith("/")] == []


async def test_the_branch_that_opens_is_master(site: SiteCopy) -> None:
    _, page = Visitor(site).get("/browser")
    assert "docs: start a glossary" in page
    assert MASTER[:7] in page
