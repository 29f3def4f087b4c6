"""The CMS as a server: pages in all states, image renditions, complete resets."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

pytest.importorskip("wagtail")

from envs.suites.sites.apps.base import FILES
from envs.suites.sites.copies import SiteCopy, database_digest, start_copy
from envs.suites.sites.evidence import Database
from tests.envs.suites.sites.django_visitor import Visitor, loaded

pytestmark = pytest.mark.asyncio(loop_scope="module")
CONTACT = "/admin/settings/website/contactdetails/"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SiteCopy]:
    copy = await start_copy("cms", tmp_path_factory.mktemp("cms") / "copy")
    yield copy
    await copy.close()


@pytest_asyncio.fixture(loop_scope="module")
async def site(served: SiteCopy) -> SiteCopy:
    await served.reset()
    return served


async def test_the_golden_login_is_live(site: SiteCopy) -> None:
    assert "Nora" in Visitor(site, "editor").get("/admin/").text
    assert Visitor(site).get("/admin/").status == 302
    assert Visitor(site, "editor").get("/admin/users/").status == 302, "an editor manages no accounts"


async def test_it_answers_under_any_name(site: SiteCopy) -> None:
    by_number = Visitor(site, host=f"{site.address[0]}:{site.address[1]}").get("/news/")
    assert by_number.status == 200
    assert by_number.text == Visitor(site).get("/news/").text
    assert 'href="http' not in by_number.text, "links do not name the host"


async def test_pages_are_in_every_state(site: SiteCopy) -> None:
    rows = Database(site.database).rows(
        "SELECT title, live, has_unpublished_changes, go_live_at IS NOT NULL FROM wagtailcore_page WHERE depth = 4"
    )
    states = {state for _, *rest in rows for state in [tuple(rest)]}
    assert {(1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 1, 1)} <= states
    news = Visitor(site).get("/news/").text
    assert "The lift is working again" in news
    assert "The bell rings again" not in news, "a draft"
    assert Visitor(site).get("/news/the-bell-rings-again/").status == 404
    assert Database(site.database).value("SELECT count(*) FROM wagtailcore_workflowstate") == 3


async def test_search_and_redirects(site: SiteCopy) -> None:
    results = Visitor(site).get("/search/?query=lamps").text
    assert "Night of the lamps" in results and "New lamps for the Chart Room" in results
    assert "Nothing was found" in Visitor(site).get("/search/?query=ghosts").text, "a page that is not live"
    moved = Visitor(site).get("/boats")
    assert (moved.status, moved.headers["Location"]) == (301, "/collection/")


async def test_looking_at_everything_writes_no_file(site: SiteCopy) -> None:
    folder = site.database.parent / FILES
    before = sorted(path.name for path in folder.rglob("*"))
    paths = Database(site.database).rows("SELECT substr(url_path, 6) FROM wagtailcore_page WHERE live AND depth > 1")
    assert [path for (path,) in paths if Visitor(site).get(path).status != 200] == []
    assert Visitor(site, "editor").get("/admin/images/").status == 200
    assert sorted(path.name for path in folder.rglob("*")) == before
    assert any(name.endswith(".jpg") for name in before)


async def test_a_reset_brings_everything_back(site: SiteCopy) -> None:
    before = database_digest(site.database)
    visitor = Visitor(site, "editor")
    page, details = (
        Database(site.database).value("SELECT id FROM wagtailcore_page WHERE slug = 'tickets'"),
        Database(site.database).value("SELECT site_id FROM website_contactdetails"),
    )
    contact = {"email": "a@b.test", "address": "Elsewhere 1", "opening_hours": "never"}
    assert visitor.post(f"{CONTACT}{details}/", telephone="12345", **contact).status == 302
    assert visitor.post(f"/admin/pages/{page}/unpublish/").status == 302
    assert "Elsewhere 1" in visitor.get("/").text
    assert visitor.get("/visit/tickets/").status == 404
    await site.reset()
    assert database_digest(site.database) == before
    assert "Elsewhere 1" not in visitor.get("/").text
    assert visitor.get("/visit/tickets/").status == 200


@pytest.mark.parametrize(
    "path", ["/", "/news/the-lift-is-working-again/", "/admin/", "/admin/pages/", "/admin/images/"]
)
async def test_pages_load_nothing_from_elsewhere(site: SiteCopy, path: str) -> None:
    page = Visitor(site, "editor").get(path)
    assert page.status == 200
    urls = loaded(page.text)
    assert urls and [url for url in urls if not url.startswith(("/", "data:"))] == []
    assert "gravatar" not in page.text and "releases.wagtail" not in page.text
