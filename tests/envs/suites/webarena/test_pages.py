"""`program_html` in Chromium: a right, a wrong and a difficult case for every kind of page check."""

from __future__ import annotations

from typing import Any

import pytest

from envs.core.actions import Click, Goto
from envs.suites.webarena.accounts import PUBLISHED_ACCOUNTS
from envs.suites.webarena.environment import WebArenaEnvironment
from envs.suites.webarena.evaluators import Evidence, JudgeFailed, no_judge
from envs.suites.webarena.evaluators.program_html import program_html
from envs.suites.webarena.pages import CheckBroken, Pages
from envs.suites.webarena.raw_format import RawTask
from envs.suites.webarena.task import ProgramHtml
from tests.envs.browser.browsing import ref_of, type_text
from tests.envs.suites.webarena.conftest import Start
from tests.envs.suites.webarena.places import Places, Reply, Server
from tests.envs.suites.webarena.tasks import page, raw

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

WISHLIST = "document.querySelector('.products-grid.wishlist').outerText"
MIND = "document.querySelector('[title=\"What’s on your mind?\"').value"
POST = "func:reddit_get_post_url('__last_url__')"
BODY = "document.querySelector('.submission__inner').outerText"
MEMBER = "func:gitlab_get_project_memeber_role(__page__, '{}')"
REVIEW = "func:shopping_get_sku_latest_review_{}('{}')"
LATE = "document.querySelector('.late').outerText"
KEPT = "document.querySelector('[data-kept]').getAttribute('data-kept')"

CASES: dict[str, tuple[dict[str, Any], bool]] = {
    "element": (page("__SHOPPING__/wishlist", WISHLIST, must_include=["joust & bag", "Tea Pot"]), True),
    "element_without_it": (page("__SHOPPING__/wishlist", WISHLIST, must_include=["Coffee"]), False),
    "element_alternatives": (page("__SHOPPING__/wishlist", WISHLIST, must_include=["Coffee |OR| Tea"]), True),
    "no_such_element": (page("__SHOPPING__/contact", WISHLIST, must_include=["Tea"]), False),
    "no_such_page": (page("__SHOPPING__/nowhere", WISHLIST, must_include=["Tea"]), False),
    "attribute": (page("__SHOPPING__/wishlist", KEPT, exact_match="yes"), True),
    "attribute_of_another_value": (page("__SHOPPING__/wishlist", KEPT, exact_match="no"), False),
    "null_is_empty": (page("__SHOPPING__/wishlist", "document.body.getAttribute('x')", exact_match="null"), False),
    "number": (page("__SHOPPING__/wishlist", "document.querySelectorAll('i').length", exact_match="1.00"), True),
    "drawn_late": (page("__SHOPPING__/late", LATE, exact_match="drawn late"), True),
    "clicked_open": (
        page(
            "__SHOPPING__/contact",
            "document.querySelector('#panel').textContent",
            prep_actions=["document.querySelector('.collapsible').click()"],
            exact_match="by_percent",
        ),
        True,
    ),
    "prepared_without_effect": (
        page("__SHOPPING__/contact", "document.title", prep_actions=[f"{LATE}.click()"], exact_match="Place"),
        True,
    ),
    "whole_page": (page("__SHOPPING__/wishlist", "", must_include=["Joust & Bag", "Tea Pot"]), True),
    "whole_page_attribute": (page("__SHOPPING__/wishlist", "", must_include=['data-kept="yes"']), True),
    "whole_page_but_code": (page("__SHOPPING__/late", "", must_include=["setTimeout"]), False),
    "forged_by_the_page": (
        page("__SHOPPING__/", "document.querySelector('h1').outerText", exact_match="forged"), False
    ),
    "true_in_spite_of_the_page": (
        page("__SHOPPING__/", "document.querySelector('h1').outerText", exact_match="Shop"), True
    ),
    "as_the_agent": (page("__SHOPPING__/", "", must_include=["Welcome, emma.lopez"]), True),
    "latest_order": (
        page("func:shopping_get_latest_order_url()", "document.querySelector('.order-details-items').outerText",
             must_include=["Tea"]), True
    ),
    "review_author": (page("last", REVIEW.format("author", "B1"), exact_match="Emma"), True),
    "review_rating": (page("last", REVIEW.format("rating", "B1"), must_include=["80"]), True),
    "other_rating": (page("last", REVIEW.format("rating", "B1"), must_include=["8"]), False),
    "no_review": (page("last", REVIEW.format("author", "B2"), exact_match="Emma"), False),
    "member": (page("__GITLAB__/a/b/-/project_members", MEMBER.format("bob"), must_include=["Maintainer"]), True),
    "other_role": (page("__GITLAB__/a/b/-/project_members", MEMBER.format("ann"), must_include=["Maintainer"]), False),
    "no_member": (page("__GITLAB__/a/b/-/project_members", MEMBER.format("eve"), must_include=["Guest"]), False),
}  # fmt: skip


def check(*pages: dict[str, Any]) -> ProgramHtml:
    [finding] = RawTask.model_validate(raw(program_html=list(pages))).task().checks
    assert isinstance(finding, ProgramHtml)
    return finding


def evidence(environment: WebArenaEnvironment, places: Places, *, judge: Any = no_judge) -> Evidence:
    session = environment.session
    return Evidence(
        intent="Do it",
        answer=None,
        url=session.url,
        pages=Pages(session, wait_s=0.4),
        sent=(),
        sites=places.sites,
        origins=places.sites.origins(),
        admin=PUBLISHED_ACCOUNTS["shopping_admin"],
        judge=judge,
    )


async def test_what_pages_show(start: Start, places: Places) -> None:
    environment = await start(raw())
    wrong: dict[str, str] = {}
    for name, (entry, right) in CASES.items():
        finding = await program_html(check(entry), evidence(environment, places))
        if finding.met is not right:
            wrong[name] = finding.why
    assert wrong == {}
    assert len(environment.session.tabs.all) == 1, "a check closes what it opens"
    assert environment.session.url == f"{places.shop.url}/", "and leaves the agent's page in front"


async def test_the_last_page_is_read_as_it_is(start: Start, places: Places) -> None:
    """Text that was typed and not sent is present, because the page is not reloaded."""
    environment = await start(raw(start_url="__SHOPPING__/contact"))
    await type_text(environment.session, "Mind", "I want a refund of $12.99")
    before = len(places.shop.received)
    for texts, right in ((["refund", "12.99"], True), (["12"], False)):
        finding = await program_html(check(page("last", MIND, must_include=texts)), evidence(environment, places))
        assert finding.met is right, finding.why
    assert len(places.shop.received) == before


async def test_the_post_that_the_agent_stopped_at_is_found_from_its_comment(start: Start, places: Places) -> None:
    places.posts.append(("Harry <Potter>", "a virtual meetup on July 8th"))
    environment = await start(raw(sites=["reddit"], start_url="__REDDIT__/f/books/1/a-title/comment/9"))
    entry = page(POST, BODY, must_include=["Harry <Potter>", "July 8th"])
    assert (await program_html(check(entry), evidence(environment, places))).met

    async def judge(question: str, reference: str, answer: str) -> bool:
        assert question == "Do it"
        return reference in answer

    fuzzy = page(POST, BODY, fuzzy_match=["virtual meetup", "July 9th"])
    assert not (await program_html(check(fuzzy), evidence(environment, places, judge=judge))).met
    with pytest.raises(JudgeFailed):
        await program_html(check(fuzzy), evidence(environment, places))


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (page("__SHOPPING__/broken", "", must_include=["x"]), "/broken answered 503"),
        (page("__SHOPPING__/wishlist", "document.querySelector(", must_include=["x"]), "could not be read"),
        (page("http://127.0.0.1:1/", "", must_include=["x"]), "could not be opened"),
    ],
)
async def test_a_site_that_fails_gives_no_verdict(start: Start, places: Places, entry: Any, says: str) -> None:
    environment = await start(raw())
    with pytest.raises(CheckBroken, match=says) as caught:
        await program_html(check(entry), evidence(environment, places))
    assert "\n" not in str(caught.value)


async def test_a_page_that_never_answers_is_given_up(
    start: Start, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("envs.suites.webarena.pages.OPEN_S", 1.0)
    monkeypatch.setattr("envs.suites.webarena.pages.READ_S", 1.0)
    environment = await start(raw())
    with pytest.raises(CheckBroken):
        await program_html(check(page("__SHOPPING__/busy", "", must_include=["x"])), evidence(environment, places))
    assert environment.session.url == f"{places.shop.url}/"


async def test_what_a_locator_does_cannot_leave_the_sites(start: Start, places: Places) -> None:
    """A task file's expression runs behind the same allowlist proxy as the agent."""
    outside = Server(lambda request: Reply("taken"))
    environment = await start(raw())
    call = f"document.body.appendChild(new Image()).src = '{outside.url}/x'"
    await program_html(check(page("last", call, must_include=["x"])), evidence(environment, places))
    await environment.execute(Goto(url=f"{places.shop.url}/tea.html"))
    with pytest.raises(CheckBroken, match=r"gave no JSON|answered 403"):
        await evidence(environment, places).pages.fetch_json("GET", f"{outside.url}/rest")
    outside.close()
    assert outside.url in environment.session.boundary.blocked
    tunnel = outside.url.replace("http:", "https:")  # the helpers' own calls: what runs in a tunnel is not known
    assert tunnel in environment.session.boundary.blocked
    assert outside.received == []


async def test_an_open_dialog_is_dismissed_first(start: Start, places: Places) -> None:
    environment = await start(raw(program_html=[page("last", "document.title", exact_match="Place")]))
    session = environment.session
    await session.page.evaluate("document.body.innerHTML = '<button onclick=\"confirm(`really?`)\">Ask</button>'")
    await session.execute(Click(ref=ref_of(await session.observe(), "Ask")))
    assert (await session.observe()).dialog is not None
    score = await environment.score(None)
    assert score is not None and score.status == "success", score
