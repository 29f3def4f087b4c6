"""Failures on real pages in Chromium, and the analysis in their traces."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agent.config import parse_config
from agent.episode.policy import ScriptedPolicy, Turn
from agent.inspection.analyze import Analyses, survey
from agent.run.runner import run_open, run_suite
from envs.core.action_languages import language
from envs.core.actions import Action, Back, Click, Find, Scroll
from envs.core.tasks import TaskSelection
from envs.core.trace import Failure
from envs.core.trace_store import BlobStore, read_trace
from judges.analysis import Analysis, Analyzer, Case, Pages, explain
from tests.conftest import Site

pytestmark = pytest.mark.browser

PROFILE = """<title>Shop</title><a href="/home">Home</a> <a href="/profile">Ada</a>
<h1>Ada</h1><p>Requests: <b id="n"></b></p>
<script>
  const seen = Number(sessionStorage.seen || 4);
  sessionStorage.seen = seen + 1;
  document.querySelector("#n").textContent = seen;
</script>"""
"""A page that counts its views."""
HOME = '<title>Shop</title><a href="/home">Home</a> <a href="/profile">Ada</a><h1>Welcome</h1>'
ORDER = """<title>Order</title><p>Guests</p><p id="n">1</p><button onclick="n.textContent = ++guests">More</button>
<a href="#" onclick="n.textContent = ++guests; return false">Another</a><script>let guests = 1</script>"""


def click(name: str) -> Callable[[Turn], Action]:
    def act(turn: Turn) -> Action:
        return Click(ref=next(one.ref for one in turn.view.observation.elements if one.key.name == name))

    return act


def do(action: Action) -> Callable[[Turn], Action]:
    return lambda _: action


async def played(url: str, folder: Path, *acts: Callable[[Turn], Action]) -> Failure:
    """Why it would have failed, had somebody judged it."""
    policy = ScriptedPolicy(lambda turn: acts[turn.step - 1](turn), language("program"))
    values = {"policy": "scripted", "planner": "none", "judge": "none", "limits": {"max_steps": len(acts)}}
    run = await run_open(parse_config(values, "test"), "Find the price list", url, folder, policy=policy)
    trace = read_trace(run.folder / run.episodes[0].trace)
    assert trace.footer is not None and trace.footer.ended_by == "max_steps"
    return explain(Case(trace.steps, "max_steps", "failure", pages=Pages(BlobStore(run.folder / "blobs"))))


@pytest.mark.parametrize(
    ("seed", "max_steps"), [(0, 12), (0, 8), (1, 9)], ids=["month_reached", "half_the_way", "another_month"]
)
async def test_a_date_picker_that_is_turned_is_not_stuck(seed: int, max_steps: int, tmp_path: Path):
    """The solver's own way, cut by the limit: by the run's own word, and with the whole way to compare with."""
    for name, most in (("cut", max_steps), ("whole", 40)):
        values = {"policy": "oracle", "planner": "reference", "limits": {"max_steps": most}}
        await run_suite(
            parse_config(values, "test"), TaskSelection("miniwob", ("choose-date",), (seed,)), tmp_path / name
        )
    surveyed = survey([tmp_path / "cut"], [tmp_path / "whole"])
    (analysis,) = [one async for one in Analyses(surveyed, Analyzer())]
    assert isinstance(analysis, Analysis) and analysis.references == 1
    footer = surveyed.failed[0].read().footer
    assert footer is not None and footer.failure is not None
    for failure in (footer.failure, analysis.failure):
        assert (failure.category, failure.key_step, failure.cut_short) == ("other", max_steps, True)
        assert "the limit of steps ended it" in failure.reason and "while progress was being made" in failure.reason


async def test_the_same_profile_link_in_seven_of_ten_steps_is_a_loop(tmp_path: Path, site: Site):
    site.pages |= {"/home": HOME, "/profile": PROFILE}
    again, down, find = click("Ada"), do(Scroll(direction="down")), do(Find(text="price"))
    failure = await played(
        site.url("/home"), tmp_path, again, again, again, down, again, again, find, again, again, down
    )
    assert (failure.category, failure.key_step) == ("stuck_midway", 1)
    assert "click on link 'Ada' was repeated 7 times" in failure.reason


async def test_two_pages_in_turn_are_a_loop_though_one_counts(tmp_path: Path, site: Site):
    site.pages |= {"/home": HOME, "/profile": PROFILE}
    failure = await played(
        site.url("/home"), tmp_path, *[click("Ada"), click("Home"), click("Ada"), do(Back())] * 2, click("Ada")
    )
    assert (failure.category, failure.key_step) == ("stuck_midway", 1)
    assert "click on link 'Ada'" in failure.reason and "click on link 'Home'" in failure.reason


@pytest.mark.parametrize("name", ["More", "Another"])
async def test_a_number_that_clicks_count_is_no_loop(name: str, tmp_path: Path, site: Site):
    site.pages["/order"] = ORDER
    failure = await played(site.url("/order"), tmp_path, *[click(name)] * 6)
    assert (failure.category, failure.key_step, failure.cut_short) == ("other", 6, True)


async def test_two_links_to_the_page_that_is_shown_are_one_action(tmp_path: Path, site: Site):
    site.pages["/home"] = HOME.replace('<a href="/home">', '<a href="/home">Acme</a> <a href="/home">')
    names = ("Home", "Acme", "Acme", "Home", "Acme", "Home", "Home")
    failure = await played(site.url("/home"), tmp_path, *map(click, names))
    assert (failure.category, failure.key_step) == ("stuck_midway", 1)
    assert failure.loop is not None and failure.loop.repetitions == 7
    assert "click on link 'Home' or click on link 'Acme'" in failure.reason
