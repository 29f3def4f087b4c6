"""The forum's tasks: instances agree with the golden state, and some are verified in Chromium."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

pytest.importorskip("spirit")

from envs.browser.chromium import Chromium
from envs.core.tasks import TaskRef
from envs.suites.sites.environment import SitesEnvironment
from envs.suites.sites.golden import build_golden
from envs.suites.sites.proof import prove
from envs.suites.sites.suite import SitesSuite
from envs.suites.sites.tasks.forum.impossible import MISSING, VoteClosed
from envs.suites.sites.tasks.forum.reading import Authored, CommentsOfMember, Counted, MostLiked, Polled, PollEnd
from envs.suites.sites.tasks.forum.shared import COMMENT, comments_on, full_date
from envs.suites.sites.tasks.forum.writing import single_comments
from envs.suites.sites.templates import GoldenStates, draw_candidates

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def golden() -> GoldenStates:
    return GoldenStates({"forum": await build_golden("forum")})


async def test_counts_and_likes_are_those_of_the_comments(golden: GoldenStates) -> None:
    forum = golden.database("forum")
    for p in draw_candidates(CommentsOfMember(), golden)[::10]:
        assert isinstance(p, Counted)
        count = (
            f"SELECT count(*) FROM {COMMENT} c JOIN auth_user u ON u.id = c.user_id WHERE topic_id = ? AND username = ?"
        )
        assert forum.value(count, p.topic, p.member) == p.count
    for p in draw_candidates(MostLiked(), golden)[::10]:
        assert isinstance(p, Authored)
        rows = forum.rows(
            f"SELECT u.username, likes_count FROM {COMMENT} c JOIN auth_user u ON u.id = user_id WHERE topic_id = ?",
            p.topic,
        )
        most = max(likes for _, likes in rows)
        assert [name for name, likes in rows if likes == most] == [p.author]


async def test_the_ends_of_a_poll_are_clear(golden: GoldenStates) -> None:
    sql = (
        "SELECT h.description, h.vote_count FROM spirit_comment_poll_commentpollchoice h"
        " JOIN spirit_comment_poll_commentpoll p ON p.id = h.poll_id WHERE p.title = ?"
    )
    for p in draw_candidates(PollEnd(), golden):
        assert isinstance(p, Polled)
        votes = dict(golden.database("forum").rows(sql, p.poll))
        extreme = (max if p.end == "most" else min)(votes.values())
        assert [option for option, count in votes.items() if count == extreme] == [p.option]


async def test_what_cannot_be_done_cannot_be_done(golden: GoldenStates) -> None:
    forum = golden.database("forum")
    titles = {title for (title,) in forum.rows("SELECT title FROM spirit_category_category")}
    assert not titles & set(MISSING)
    closed = "SELECT p.close_at < '2026-03-16' FROM spirit_comment_poll_commentpoll p WHERE p.title = ?"
    assert all(forum.value(closed, p.poll) == 1 for p in draw_candidates(VoteClosed(), golden))


async def test_a_comment_that_is_named_by_its_author_is_the_only_one(golden: GoldenStates) -> None:
    named = [(p.topic, p.author) for p in single_comments(golden)]
    assert len(set(named)) == len(named)


PAGE = """[4] link "robin_hale"
[6] link "Pets"
# Tabby cat won't sleep
B
[7] link "bruno_jansen Original Poster"
13 Mar
like (99) is what I say.
[10] link "like (2)"
R
[19] link "robin_hale"
15 Mar
Twice.
(3)
[22] link "edit"
"""


async def test_comments_are_read_off_a_page() -> None:
    assert comments_on(PAGE) == [("bruno_jansen", 2), ("robin_hale", 3)]


@pytest.mark.parametrize(("shown", "full"), [("4 May '25", "4 May 2025"), ("13 Mar", "13 Mar 2026")])
async def test_short_dates(shown: str, full: str) -> None:
    assert full_date(shown) == full


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def environment(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SitesEnvironment]:
    folder: Path = tmp_path_factory.mktemp("forum-tasks")
    async with Chromium.launch() as chromium, SitesSuite(chromium, folder) as suite:
        created = await suite.environment()
        yield created
        await created.close()


@pytest.mark.browser
@pytest.mark.parametrize("name", ["forum-like", "forum-move-topic"])
async def test_the_oracle_and_nobody_else(environment: SitesEnvironment, name: str) -> None:
    proof = await prove(environment, TaskRef(suite="sites", name=name), random_agent=False)
    assert proof.problems == ()
    assert proof.mutants >= 5
