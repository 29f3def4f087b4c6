"""The forum as a server: lasting logins, a search over live rows, complete resets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

pytest.importorskip("spirit")

from envs.suites.sites.copies import SiteCopy, database_digest, start_copy
from envs.suites.sites.evidence import Database
from tests.envs.suites.sites.django_visitor import Visitor, loaded

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SiteCopy]:
    copy = await start_copy("forum", tmp_path_factory.mktemp("forum") / "copy")
    yield copy
    await copy.close()


@pytest_asyncio.fixture(loop_scope="module")
async def site(served: SiteCopy) -> SiteCopy:
    await served.reset()
    return served


def value_of(site: SiteCopy, sql: str) -> Any:
    return Database(site.database).value(sql)


def open_topic(site: SiteCopy) -> int:
    return int(value_of(site, "SELECT id FROM spirit_topic_topic WHERE category_id > 1 AND NOT is_closed ORDER BY id"))


@pytest.mark.parametrize(("persona", "name"), [("member", "robin_hale"), ("moderator", "sam_ellery")])
async def test_golden_logins_are_live(site: SiteCopy, persona: str, name: str) -> None:
    visitor = Visitor(site, persona)
    assert name in visitor.get("/").text
    assert visitor.get("/st/admin/").status == (200 if persona == "moderator" else 403)
    assert name not in Visitor(site).get("/").text


async def test_what_the_golden_state_holds(site: SiteCopy) -> None:
    topics = "SELECT count(*) FROM spirit_topic_topic WHERE category_id > 1"
    assert value_of(site, topics) == 310
    assert value_of(site, topics.replace("*", "DISTINCT title")) == 310, "no two topics have one title"
    assert value_of(site, "SELECT count(*) FROM spirit_comment_comment") > 1900
    counted = "SELECT count(*) FROM spirit_comment_comment c WHERE c.topic_id = t.id"
    assert value_of(site, f"SELECT count(*) FROM spirit_topic_topic t WHERE comment_count <> ({counted})") == 0
    liked = "SELECT count(*) FROM spirit_comment_like_commentlike l WHERE l.comment_id = c.id"
    assert value_of(site, f"SELECT count(*) FROM spirit_comment_comment c WHERE likes_count <> ({liked})") == 0
    assert value_of(site, "SELECT count(*) FROM spirit_comment_comment WHERE date > '2026-03-16 10:00:00'") == 0


async def test_the_search_knows_what_was_just_written_and_forgets_it(site: SiteCopy) -> None:
    visitor, topic = Visitor(site, "member"), open_topic(site)
    assert "There are no search results" in visitor.get("/search/?q=rhinoceros").text
    assert visitor.post(f"/comment/{topic}/publish/", comment="A rhinoceros, honestly.").status == 302
    assert f"/topic/{topic}/" in visitor.get("/search/?q=honestly RHINOCEROS").text
    await site.reset()
    assert "There are no search results" in visitor.get("/search/?q=rhinoceros").text


async def test_the_search_keeps_private_topics_private(site: SiteCopy) -> None:
    assert "There are no search results" in Visitor(site, "member").get("/search/?q=boathouse noon").text


async def test_the_search_narrows_by_category(site: SiteCopy) -> None:
    category = value_of(site, "SELECT id FROM spirit_category_category WHERE title = 'Pets'")
    text = Visitor(site, "member").get(f"/search/?q=the&category={category}").text
    assert "Pets" in text and ">Cooking<" not in text.split("</header>")[-1]


async def test_a_reset_brings_everything_back(site: SiteCopy) -> None:
    before = database_digest(site.database)
    visitor, topic = Visitor(site, "moderator"), open_topic(site)
    settings = {"site_description": "x", "template_footer": "", "comments_per_page": "5", "topics_per_page": "5"}
    assert visitor.post("/st/admin/config/", site_name="Renamed", **settings).status == 302
    assert visitor.post(f"/comment/{topic}/publish/", comment="Soon forgotten.").status == 302
    assert "Renamed" in visitor.get("/").text
    assert database_digest(site.database) != before
    await site.reset()
    assert database_digest(site.database) == before
    page = visitor.get("/").text
    assert "Renamed" not in page and "Quayside" in page


async def test_nobody_is_slowed_down(site: SiteCopy) -> None:
    visitor, topic = Visitor(site, "member"), open_topic(site)
    for number in range(8):
        assert visitor.post(f"/comment/{topic}/publish/", comment=f"Number {number}").status == 302
    assert value_of(site, "SELECT count(*) FROM spirit_comment_comment WHERE comment LIKE 'Number _'") == 8


@pytest.mark.parametrize("path", ["/", "/topic/publish/", "/user/", "/search/?q=the", "/topic/private/", "/st/admin/"])
async def test_pages_load_nothing_from_elsewhere(site: SiteCopy, path: str) -> None:
    page = Visitor(site, "moderator").get(path)
    assert page.status == 200
    urls = loaded(page.text)
    assert urls and [url for url in urls if not url.startswith("/")] == []
    assert all(Visitor(site).get(url).status == 200 for url in urls)


@pytest.mark.parametrize(
    "path", ["/media/../db.sqlite3", "/media/%2e%2e/db.sqlite3", "/static/../site.py", "/media/", "/static/nothing.css"]
)
async def test_only_its_files_are_served(site: SiteCopy, path: str) -> None:
    assert Visitor(site).get(path).status == 404


async def test_cookies_outlast_an_episode(site: SiteCopy) -> None:
    cookies = Visitor(site).get("/user/login/").headers.get_all("Set-Cookie") or []
    assert cookies
    assert all("Max-Age=31536000" in cookie and "Domain" not in cookie for cookie in cookies), cookies
