"""The code site's tasks: instances agree with the golden state."""

from __future__ import annotations

import re

import pytest
import pytest_asyncio

pytest.importorskip("trac")

from envs.suites.sites.changes import Inserted
from envs.suites.sites.golden import build_golden
from envs.suites.sites.tasks.code.admin import microseconds
from envs.suites.sites.tasks.code.repository import commits_of_files, day_of
from envs.suites.sites.tasks.code.wiki import FACTS, Addition, AppendToPage
from envs.suites.sites.templates import GoldenStates

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def golden() -> GoldenStates:
    return GoldenStates({"code": await build_golden("code")})


@pytest.mark.parametrize("fact", FACTS, ids=[fact.question for fact in FACTS])
async def test_the_wiki_says_every_fact_once(golden: GoldenStates, fact: object) -> None:
    assert isinstance(fact, type(FACTS[0]))
    text = golden.database("code").value("SELECT text FROM wiki WHERE name = ?", fact.page)
    plain = re.sub(r" *\|\| *", " | ", text)
    assert re.findall(fact.source, plain) == [fact.truth]


async def test_summaries_name_one_ticket(golden: GoldenStates) -> None:
    rows = golden.database("code").rows("SELECT lower(summary), count(*) FROM ticket GROUP BY 1 HAVING count(*) > 1")
    assert rows == ()


async def test_files_and_their_first_days(golden: GoldenStates) -> None:
    commits = commits_of_files(golden)
    assert day_of(commits["tidemark/units.py"][0][0]) == "2025-01-20"
    assert commits["tidemark/netcdf.py"][0][2].strip() == "netcdf: add read_netcdf"
    assert "tidemark/themes.py" not in commits, "of a branch that was not merged"


async def test_times_are_of_the_afternoon() -> None:
    assert microseconds("2026-04-17") == 1_776_445_200_000_000


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("= A =\nOne.\n\nLast.\n", True),
        ("= A =\r\nOne.\r\nLast.", True),
        ("= A =\nOne.\nLast. Last.", False),
        ("= A =\nLast.\nOne.", False),
        ("Last.", False),
        ("= A =\nOne.\nLast.\nLast.", False),
    ],
)
async def test_a_line_is_added_at_the_end_and_nothing_else(text: str, right: bool) -> None:
    (row,) = AppendToPage().outcome(Addition("A", "Last.", "= A =\nOne.\n")).changes["code"]
    assert isinstance(row, Inserted)
    test = row.values["text"]
    assert callable(test)
    assert test(text) is right
