"""The CMS tasks: instances agree with the golden state, and one is verified in Chromium."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

pytest.importorskip("wagtail")

from envs.browser.chromium import Chromium
from envs.core.tasks import TaskRef
from envs.suites.sites.changes import Change, mismatch
from envs.suites.sites.environment import SitesEnvironment
from envs.suites.sites.golden import build_golden
from envs.suites.sites.proof import prove
from envs.suites.sites.suite import SitesSuite
from envs.suites.sites.tasks.cms.editing import EditEvent, PublishDraft, below
from envs.suites.sites.tasks.cms.impossible import UNKNOWN
from envs.suites.sites.tasks.cms.reading import FACTS, AboutVisit, CompareEvents, events
from envs.suites.sites.tasks.cms.shared import EVENT, PAGE, pages
from envs.suites.sites.templates import GoldenStates, draw_candidates

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def golden() -> GoldenStates:
    return GoldenStates({"cms": await build_golden("cms")})


async def test_no_fact_of_the_list_is_left_out(golden: GoldenStates) -> None:
    assert len(draw_candidates(AboutVisit(), golden)) == len(FACTS)


async def test_one_of_three_events_is_clearly_ahead(golden: GoldenStates) -> None:
    facts = {row.title: events(golden)[row.page] for row in pages(golden, "s.title = 'Events'")}
    for p in draw_candidates(CompareEvents(), golden):
        values = {title: float(facts[title][p.column]) for title in (p.one, p.two, p.three)}
        assert [title for title, value in values.items() if value == max(values.values())] == [p.best]


async def test_titles_name_one_page(golden: GoldenStates) -> None:
    rows = golden.database("cms").rows(f"SELECT title FROM {PAGE}")
    assert len({title for (title,) in rows}) == len(rows)
    assert not {title for (title,) in rows} & set(UNKNOWN)


def change(table: str, key: int, before: dict[str, Any], after: dict[str, Any]) -> Change:
    return Change(table, "update", (key,), before, after)


async def test_a_draft_of_the_change_is_not_the_change(golden: GoldenStates) -> None:
    p = next(instance for instance in draw_candidates(EditEvent(), golden) if instance.column == "seats")
    outcome = EditEvent().outcome(p)
    row = {"page_ptr_id": p.page, "seats": 5, "place": "Courtyard"}
    done = change(EVENT, p.page, row, row | {"seats": int(p.new)})
    page = {"id": p.page, "title": p.title, "latest_revision_id": 1, "has_unpublished_changes": 0}
    saved = change(PAGE, p.page, page, page | {"latest_revision_id": 2})
    as_draft = change(PAGE, p.page, page, page | {"latest_revision_id": 2, "has_unpublished_changes": 1})
    assert mismatch((done, saved), outcome.changes["cms"], outcome.allowed["cms"]) == ""
    assert "missing change" in mismatch((saved,), outcome.changes["cms"], outcome.allowed["cms"])
    assert "unexpected change" in mismatch((done, as_draft), outcome.changes["cms"], outcome.allowed["cms"])


@pytest.mark.parametrize(
    ("path", "right"),
    [("/home/news/a-b/", True), ("/home/news/", False), ("/home/news/a/b/", False), ("/home/x/a/", False)],
)
async def test_a_new_page_is_just_below_its_section(path: str, right: bool) -> None:
    assert below("/home/news/")(path) is right


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def environment(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SitesEnvironment]:
    folder: Path = tmp_path_factory.mktemp("cms-tasks")
    async with Chromium.launch() as chromium, SitesSuite(chromium, folder) as suite:
        created = await suite.environment()
        yield created
        await created.close()


@pytest.mark.browser
async def test_the_oracle_and_nobody_else(environment: SitesEnvironment) -> None:
    proof = await prove(environment, TaskRef(suite="sites", name=PublishDraft.name), random_agent=False)
    assert proof.problems == ()
    assert proof.mutants >= 5
