"""Complete episodes in Chromium through the suite, from the login to the score, also after a kill."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from envs.browser.chromium import Chromium
from envs.core.action_languages import IDS, PROGRAM, Language
from envs.core.actions import Goto, Status, Stop
from envs.core.errors import BadInput, ResetFailed
from envs.core.tasks import Score, TaskRef
from envs.suites.webarena.accounts import Accounts
from envs.suites.webarena.environment import NOT_ACHIEVABLE_HINT, WebArenaEnvironment
from envs.suites.webarena.evaluators import JudgeFailed
from envs.suites.webarena.raw_format import RawTask
from envs.suites.webarena.suite import WebArenaSuite
from tests.envs.browser.browsing import click, type_text
from tests.envs.browser.processes import belonging, kill
from tests.envs.contract import check_environment
from tests.envs.suites.webarena.conftest import QUICK, TASK, Start
from tests.envs.suites.webarena.places import Places, Reply, Server
from tests.envs.suites.webarena.tasks import page, raw, request, response, verified

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

Doing = Callable[[WebArenaEnvironment], Awaitable[object]]


async def nothing(environment: WebArenaEnvironment) -> None:
    """The agent stops immediately."""


async def buy(environment: WebArenaEnvironment) -> None:
    await click(environment.session, "Buy")


async def open_tea(environment: WebArenaEnvironment) -> None:
    await click(environment.session, "Tea")


async def post(environment: WebArenaEnvironment) -> None:
    await type_text(environment.session, "Title", "Console & more")
    await type_text(environment.session, "Body", "which one?")
    await click(environment.session, "Post")


async def note(environment: WebArenaEnvironment) -> None:
    await click(environment.session, "Note")


DONE = json.dumps({"task_type": "MUTATE", "status": "SUCCESS", "retrieved_data": None})
SEEN = json.dumps({"task_type": "NAVIGATE", "status": "SUCCESS", "retrieved_data": None})
JSON_ANSWER = json.dumps({"task_type": "RETRIEVE", "status": "SUCCESS", "retrieved_data": ["2"]})

ANSWER = raw(answers={"must_include": ["2"]})
ADDRESS = raw(reference_url="__SHOPPING__/tea.html?size=2")
PAGE = raw(
    sites=["reddit"],
    start_url="__REDDIT__/f/books",
    reference_url="__REDDIT__/f/books/1",
    program_html=[
        page(
            "func:reddit_get_post_url('__last_url__')",
            "document.querySelector('.submission__inner').outerText",
            must_include=["console & more", "which one?"],
        )
    ],
)
BOUGHT = verified(
    response(),
    request(
        "__SHOPPING__/checkout/cart/add",
        http_method="POST",
        response_status=302,
        post_data={"product": "22490", "qty": "1"},
        headers={"referer": "__SHOPPING__/"},
        response_cookies={"mage-messages": "^tea has been added$"},
    ),
    request("__SHOPPING__/checkout/success"),
)
NOTED = verified(
    response(),
    request(
        "__SHOPPING__/rest/totals",
        http_method="POST",
        post_data={"$.note.note": "lgtm"},
        response_content={"items_qty": 1, "$.items[0].name": "tea"},
    ),
)
OPENED = verified(response(task_type="navigate"), request("__SHOPPING__/tea.html", query_params={"size": ["2"]},
                                                          ignored_query_params=["from"]))  # fmt: skip
IN_A_WINDOW = OPENED | {"start_urls": ["__SHOPPING__/contact"]}
TWO = verified(response([2], task_type="retrieve", schema={"type": "array", "items": {"type": "number"}}))

ENDINGS: dict[str, tuple[dict[str, Any], Doing, str | None, str]] = {
    "answer": (ANSWER, nothing, "There are 2.", "success"),
    "other_answer": (ANSWER, nothing, "There are 12.", "failure"),
    "address": (ADDRESS, open_tea, None, "success"),
    "other_address": (ADDRESS, nothing, "I opened it", "failure"),
    "page": (PAGE, post, None, "success"),
    "other_page": (PAGE, nothing, "posted!", "failure"),
    "sent": (BOUGHT, buy, DONE, "success"),
    "not_sent": (BOUGHT, nothing, DONE, "failure"),
    "sent_but_answered_wrongly": (BOUGHT, buy, SEEN, "failure"),
    "json_sent": (NOTED, note, DONE, "success"),
    "json_not_sent": (NOTED, buy, DONE, "failure"),
    "opened": (OPENED, open_tea, SEEN, "success"),
    "opened_in_a_window": (IN_A_WINDOW, open_tea, SEEN, "success"),
    "not_opened": (OPENED, nothing, SEEN, "failure"),
    "typed_answer": (TWO, nothing, JSON_ANSWER, "success"),
    "typed_answer_in_words": (TWO, nothing, "2", "failure"),
}


async def _score(environment: WebArenaEnvironment, answer: str | None = None) -> Score:
    score = await environment.score(answer)
    assert score is not None
    return score


@pytest.mark.parametrize(("entry", "doing", "answer", "status"), ENDINGS.values(), ids=ENDINGS.keys())
async def test_an_episode_ends(start: Start, entry: Any, doing: Doing, answer: str | None, status: str) -> None:
    environment = await start(entry)
    await doing(environment)
    assert not await environment.done()
    score = await _score(environment, answer)
    assert (score.status, score.reward) == (status, float(status == "success")), score.evidence
    assert score.evidence


async def test_the_start_of_a_task(start: Start, places: Places) -> None:
    entry = raw(
        sites=["shopping", "reddit"],
        start_url="__SHOPPING__/tea.html |AND| __REDDIT__/f/books",
        intent="Compare\n both",
    )
    environment = await start(entry, reset=False, environ={})
    begun = await environment.reset(TASK)
    assert begun.instruction == f"Compare both {NOT_ACHIEVABLE_HINT}"
    assert (begun.category, begun.milestones) == ("multi", ())
    tabs = (await environment.observe()).tabs
    assert [tab.url for tab in tabs] == [f"{places.shop.url}/tea.html", f"{places.forum.url}/f/books"]
    assert places.shop.received[-1].user.startswith("emma.lopez")
    assert places.forum.received[-1].user == "MarvelsGrantMan136"


@pytest.mark.parametrize(
    ("language", "reply"),
    [
        (PROGRAM, '# Note: there is no such review\nexit(message="N/A")'),
        (IDS, "# Note: there is no such review\nstop [N/A]"),
    ],
)
async def test_an_agent_that_follows_the_hint_passes_an_impossible_task(
    start: Start, language: Language, reply: str
) -> None:
    environment = await start(raw(answers={"exact_match": "N/A"}), reset=False)
    instruction = (await environment.reset(TASK)).instruction
    assert "answer exactly N/A and nothing else" in instruction and "(# Note: the reason)" in instruction
    parsed = language.parse(reply)
    assert isinstance(parsed.action, Stop)
    assert parsed.notes == ("Note: there is no such review",)
    assert (await _score(environment, parsed.action.answer)).status == "success"
    assert (await _score(environment, "N/A: there is no such review")).status == "failure"


async def test_the_form_of_the_answer_is_part_of_a_typed_task(start: Start) -> None:
    environment = await start(TWO, reset=False)
    assert '"retrieved_data": a list of what was asked for' in (await environment.reset(TASK)).instruction


STRICT: dict[str, tuple[dict[str, Any], str | None, str, str]] = {
    "full_stop": (raw(answers={"exact_match": "Yes"}), "Yes.", "failure", "success"),
    "part_of_a_number": (raw(answers={"must_include": ["22"]}), "There are 122.", "success", "failure"),
    "code": (
        raw(program_html=[page("__SHOPPING__/late", "", must_include=["setTimeout"])]), None, "success", "failure"
    ),
    "null": (
        raw(program_html=[page("__SHOPPING__/late", "document.body.getAttribute('x')", exact_match="None")]),
        None,
        "success",
        "failure",
    ),
    "boolean": (
        raw(program_html=[page("__SHOPPING__/late", "document.body.hidden", exact_match="False")]),
        None,
        "success",
        "success",
    ),
    "list": (
        raw(program_html=[page("__SHOPPING__/late", "[...document.scripts].map(s => s.type)", exact_match="['']")]),
        None,
        "success",
        "failure",
    ),
    "meaning_of_a_page": (raw(program_html=[page("last", "", fuzzy_match=["tins"])]), None, "failure", "broken"),
    "unlisted": (raw(answers={"must_include": "yjlou"}), "yjlou", "failure", "success"),
    "typed": (TWO, json.dumps({"task_type": "RETRIEVE", "status": "SUCCESS", "retrieved_data": [["2", "3"]]}),
              "success", "failure"),
}  # fmt: skip


@pytest.mark.parametrize(("entry", "answer", "theirs", "ours"), STRICT.values(), ids=STRICT.keys())
async def test_strict_original_scores_by_the_benchmarks_rules(
    start: Start, entry: Any, answer: str | None, theirs: str, ours: str
) -> None:
    for strict, status in ((True, theirs), (False, ours)):
        score = await _score(await start(entry, strict_original=strict), answer)
        assert (score.status, score.evidence.startswith("by the original's rules: ")) == (status, strict), (
            score.evidence
        )


@pytest.mark.parametrize("site", ["shopping", "shopping_admin", "reddit", "gitlab"])
async def test_each_site_is_logged_in_to(start: Start, places: Places, site: str) -> None:
    environment = await start(raw(sites=[site], start_url=f"__{site.upper()}__/"), environ={})
    server = {"shopping": places.shop, "shopping_admin": places.admin, "reddit": places.forum, "gitlab": places.code}[
        site
    ]
    assert environment.session.url == f"{server.url}/"
    assert server.received[-1].user


async def test_a_login_that_is_refused_says_what_to_set_and_not_the_password(start: Start) -> None:
    environ = {"WA_SHOPPING_PASSWORD": "correct-horse-battery"}
    with pytest.raises(ResetFailed, match="WA_SHOPPING_USERNAME and WA_SHOPPING_PASSWORD, or WA_AUTH") as caught:
        await start(raw(), environ=environ)
    assert "horse" not in str(caught.value)


async def test_stored_states_take_the_place_of_logins(start: Start, places: Places, tmp_path: Path) -> None:
    places.shop.received.clear()
    await start(raw())
    assert {(instruction.method, instruction.user[:4]) for instruction in places.shop.received} == {("GET", "emma")}
    (tmp_path / "auth" / "reddit_state.json").unlink()
    with pytest.raises(BadInput, match=r"reddit_state\.json: No such file"):
        await start(raw(sites=["shopping", "reddit"]))
    (tmp_path / "auth" / "shopping_state.json").write_text("{}")
    with pytest.raises(BadInput, match=r"shopping_state\.json is not a storage state"):
        await start(raw())
    with pytest.raises(BadInput, match="is not a folder of storage states"):
        Accounts.from_environment({"WA_AUTH": str(tmp_path / "gone")})


async def test_only_the_sites_are_accessible(start: Start, places: Places) -> None:
    environment = await start(raw())
    assert (await environment.execute(Goto(url="http://elsewhere.example/"))).status is Status.BLOCKED
    assert (await environment.execute(Goto(url=f"{places.forum.url}/f/books"))).status is Status.OK


ROUTE = verified(
    response(task_type="navigate"),
    request("^.*/route/v1/.*/-73.99,40.75;-79.94,40.44.*$", ignored_query_params_patterns=[".*"]),
)


async def test_the_routing_server_of_the_map_is_accessible_if_allowed(start: Start) -> None:
    """Its address belongs to no site, so the run must allow it; otherwise the finding names the option."""
    routing = Server(lambda _: Reply("{}", kind="application/json", headers={"Access-Control-Allow-Origin": "*"}))
    ask = f"fetch('{routing.url}/osrm/routed-car/route/v1/driving/-73.99,40.75;-79.94,40.44?steps=true').catch(() => 0)"
    statuses: dict[bool, Score] = {}
    for allowed in (False, True):
        environment = await start(ROUTE, allow=(routing.url,) if allowed else ())
        await environment.session.page.evaluate(ask)
        statuses[allowed] = await _score(environment, SEEN)
    routing.close()
    assert statuses[True].status == "success", statuses[True].evidence
    assert statuses[False].status == "failure"
    assert f"not allowed: {routing.url} (--allow {routing.url})" in statuses[False].evidence
    assert len(routing.received) == 1


async def test_a_rule_that_is_none_is_refused_before_anything_is_played(start: Start) -> None:
    with pytest.raises(BadInput, match="origin rule 'http://h/path'"):
        await start(raw(), allow=("http://h/path",))


async def test_a_killed_episode_keeps_its_requests_and_sends_nothing_again(
    start: Start, places: Places, tmp_path: Path
) -> None:
    first = await start(BOUGHT, environ={})
    await buy(first)
    await first.save_state(tmp_path / "state")
    await first.close()
    second = await start(BOUGHT, reset=False)
    begun = await second.restore_state(TASK, tmp_path / "state", ())
    assert begun.instruction.startswith("Do it.")
    assert second.session.url == f"{places.shop.url}/checkout/success"
    score = await _score(second, DONE)
    assert score.status == "success", score.evidence
    assert places.orders == ["22490"]
    assert "Password.123" not in (tmp_path / "state" / "requests.json").read_text()


async def test_a_browser_that_died_before_the_score_is_started_again(places: Places, tmp_path: Path) -> None:
    task = RawTask.model_validate(ADDRESS).task()
    accounts = Accounts.from_environment({"WA_AUTH": str(places.store_logins(tmp_path / "auth"))})
    async with Chromium.launch() as chromium:
        suite = WebArenaSuite(chromium, tmp_path, QUICK, tasks=[task], sites=places.sites, accounts=accounts)
        environment = await suite.environment()
        await environment.reset(TASK)
        await open_tea(environment)
        await environment.save_state(tmp_path / "state")
        kill(belonging(str(chromium.home)))
        assert (await environment.execute(Goto(url=places.shop.url))).status in (Status.CRASHED, Status.FAILED)
        score = await _score(environment)
        await environment.close()
    assert score.status == "success", score.evidence


async def test_without_evidence_an_episode_is_broken_and_not_failed(start: Start, places: Places) -> None:
    environment = await start(raw(answers={"fuzzy_match": ["seven minutes"]}))
    assert (await _score(environment, "7 min")).status == "broken"

    async def unreadable(question: str, reference: str, answer: str) -> bool:
        raise JudgeFailed("the judge said something odd")

    environment = await start(raw(answers={"fuzzy_match": ["seven minutes"]}), judge=unreadable)
    score = await _score(environment, "7 min")
    assert (score.status, score.reward) == ("broken", 0.0)
    assert "something odd" in score.evidence
    environment = await start(raw(program_html=[page("__SHOPPING__/broken", "", must_include=["x"])]))
    assert (await _score(environment)).status == "broken"


async def test_the_contract_of_environments_holds(start: Start, tmp_path: Path) -> None:
    environment = await start(raw(reference_url="__SHOPPING__/tea.html"), reset=False)
    await check_environment(environment, TASK, tmp_path / "state", [Goto(url=f"{(await _shop(environment))}/tea.html")])


async def _shop(environment: WebArenaEnvironment) -> str:
    await environment.reset(TASK)
    return environment.session.url.rstrip("/")


async def test_the_suite_lists_its_tasks_and_says_what_is_missing(
    guarded: Chromium, places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in places.environ:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(BadInput, match="webarena-lite needs your copies of its sites: set WA_SHOPPING, "):
        WebArenaSuite(guarded, tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("WA_SHOPPING", places.shop.url)
    with pytest.raises(BadInput, match="run `mira data get webarena-lite`"):
        WebArenaSuite(guarded, tmp_path)


async def test_an_unknown_task_and_a_missing_site_are_one_line(start: Start) -> None:
    environment = await start(raw(sites=["map"], start_url="__MAP__"), reset=False)
    with pytest.raises(BadInput, match="task 7 uses map: set WA_MAP"):
        await environment.reset(TASK)
    with pytest.raises(BadInput, match="has no task '8'"):
        await environment.reset(TaskRef(suite="webarena", name="8"))
    with pytest.raises(ResetFailed, match="call reset first"):
        await environment.observe()
