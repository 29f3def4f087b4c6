"""The evaluators that need no page: answers, addresses, typed responses, requests."""

from __future__ import annotations

import json
from typing import Any, cast, get_args

import pytest

from envs.suites.webarena.accounts import Account
from envs.suites.webarena.evaluators import Evidence, JudgeFailed, evaluate, no_judge
from envs.suites.webarena.evaluators.helpers import post_url
from envs.suites.webarena.jsonpath import find
from envs.suites.webarena.pages import Pages
from envs.suites.webarena.raw_format import RawTask
from envs.suites.webarena.request_log import SentRequest, form_fields, multipart_fields
from envs.suites.webarena.sites import Sites
from envs.suites.webarena.task import Format
from envs.suites.webarena.urls import ParsedUrl
from envs.suites.webarena.verified_format import VerifiedTask
from tests.envs.suites.webarena.tasks import raw, request, response, verified

SHOP, FORUM, CODE = "http://127.0.0.1:7770", "http://127.0.0.1:9999", "http://127.0.0.1:8023"
SITES = Sites.from_environment({"WA_SHOPPING": SHOP, "WA_REDDIT": FORUM, "WA_GITLAB": CODE})


def evidence(
    answer: str | None = None, *, url: str = SHOP, sent: tuple[SentRequest, ...] = (), judge: Any = no_judge
) -> Evidence:
    """The evidence of an episode without pages."""
    admin = Account("admin", "admin1234")
    return Evidence("How many?", answer, url, cast(Pages, None), sent, SITES, SITES.origins(), admin, judge)


async def met(entry: dict[str, Any], record: Evidence, number: int = -1) -> bool:
    task = (VerifiedTask if "start_urls" in entry else RawTask).model_validate(entry).task()
    return (await evaluate(task.checks[number], record)).met


@pytest.mark.parametrize(
    ("answers", "answer", "right"),
    [
        ({"must_include": ["2"]}, "There are 2 tins left.", True),
        ({"must_include": ["2"]}, "There are 12 tins left.", False),
        ({"must_include": "yjlou"}, "Only yjlou has access", True),
        ({"must_include": ["0"]}, "$0.00", True),
        ({"must_include": ["65 |OR| 3"]}, "It has 3", True),
        ({"must_include": ["65 |OR| 3"]}, "It has 653", False),
        ({"must_include": ["Cancelled", "Joust Bag"]}, "the JOUST&nbsp;bag was canceled", True),
        ({"must_include": ["Joust Bag", "Tea Pot"]}, "Joust Bag", False),
        ({"exact_match": "Yes"}, '"yes."', True),
        ({"exact_match": "Yes"}, "Yes, but no", False),
        ({"must_include": ["2"]}, None, False),
        ({"must_include": [""]}, "  ", False),
        ({"must_include": ["http://www.reddit.com/f/books/1"]}, f"It is {FORUM}/f/books/1", True),
        ({"must_include": ["http://www.reddit.com/f/books/1"]}, f"It is {SHOP}/f/books/1", False),
        ({"fuzzy_match": "N/A"}, "N/A", True),
        ({"fuzzy_match": "N/A"}, "“n/a.”", True),
        ({"fuzzy_match": ["7 min"]}, "7 min", True),
    ],
)
async def test_string_match_without_a_judge(answers: Any, answer: str | None, right: bool) -> None:
    assert await met(raw(answers=answers), evidence(answer)) is right


async def test_fuzzy_match_asks_the_judge_for_each_reference() -> None:
    questions: list[tuple[str, str, str]] = []

    async def judge(question: str, reference: str, answer: str) -> bool:
        questions.append((question, reference, answer))
        return reference != "walking: 16min"

    entry = raw(answers={"fuzzy_match": ["driving: 2min", "walking: 16min"]})
    assert await met(entry, evidence("2 by car, 17 on foot", judge=judge)) is False
    assert [reference for _, reference, _ in questions] == ["driving: 2min", "walking: 16min"]
    assert {(question, answer) for question, _, answer in questions} == {("How many?", "2 by car, 17 on foot")}


async def test_a_reason_for_an_impossible_task_is_compared_by_the_judge() -> None:
    async def judge(question: str, reference: str, answer: str) -> bool:
        assert reference == "The task cannot be done: there is no such shop"
        return "no shop" in answer

    entry = raw(answers={"fuzzy_match": "N/A"}, note="there is no such shop")
    assert await met(entry, evidence("There is no shop of that name", judge=judge)) is True
    assert await met(entry, evidence("It costs $5", judge=judge)) is False


async def test_without_a_judge_a_comparison_by_meaning_is_no_verdict() -> None:
    with pytest.raises(JudgeFailed, match="name a model as judge"):
        await met(raw(answers={"fuzzy_match": ["7 min"]}), evidence("seven minutes"))


async def test_the_judge_is_not_asked_where_the_rest_already_failed() -> None:
    entry = raw(answers={"must_include": ["Acadia"], "fuzzy_match": ["10h 33min"]})
    assert await met(entry, evidence("Yosemite, 10 hours")) is False


@pytest.mark.parametrize(
    ("reference", "url", "right"),
    [
        ("__SHOPPING__/f/books", f"{SHOP}/f/books", True),
        ("__SHOPPING__/f/books", f"{SHOP}/f/books/?sort=new#top", True),
        ("__SHOPPING__/f/books", f"{SHOP}/f/books/new", True),
        ("__SHOPPING__/f/books", f"{SHOP}/f/bookshelf", False),
        ("__SHOPPING__/f/books", f"{CODE}/f/books", False),
        ("__SHOPPING__/f/books", f"http://evil.test/?{SHOP}/f/books", False),
        ("__SHOPPING__/?q=usb+wifi", f"{SHOP}/?q=usb%20wifi&page=2", True),
        ("__SHOPPING__/?q=usb+wifi", f"{SHOP}/?q=usb", False),
        ("__GITLAB__/-/issues/?label_name%5B%5D=BUG", f"{CODE}/-/issues?label_name[]=BUG&state=opened", True),
        ("__REDDIT__/f/a |OR| __REDDIT__/f/b", f"{FORUM}/f/b", True),
        ("__SHOPPING__/a?x=1 |OR| __SHOPPING__/b?x=2", f"{SHOP}/a?x=2", False),
    ],
)
async def test_url_match(reference: str, url: str, right: bool) -> None:
    assert await met(raw(reference_url=reference), evidence(url=url)) is right


RETRIEVE: dict[str, Any] = {
    "task_type": "retrieve",
    "schema": {"type": "array", "items": {"type": "number", "format": "currency"}},
}


def _answer(**fields: Any) -> str:
    return json.dumps({"task_type": "RETRIEVE", "status": "SUCCESS", "retrieved_data": None, **fields})


@pytest.mark.parametrize(
    ("entry", "answer", "right"),
    [
        (response([36.39], **RETRIEVE), _answer(retrieved_data=["$36.39"]), True),
        (response([36.39], **RETRIEVE), f"```json\n{_answer(retrieved_data=[36.39])}\n```", True),
        (response([36.39], **RETRIEVE), _answer(retrieved_data=36.39), True),
        (response([36.39], **RETRIEVE), _answer(retrieved_data=[36.39, 1]), False),
        (response([36.39], **RETRIEVE), _answer(retrieved_data=[]), False),
        (response([36.39], **RETRIEVE), _answer(task_type="navigate", retrieved_data=[36.39]), False),
        (response([36.39], **RETRIEVE), "36.39", False),
        (response([36.39], **RETRIEVE), "[36.39]", False),
        (response([36.39], **RETRIEVE), None, False),
        (response([0], **RETRIEVE), _answer(retrieved_data=["$0.00"]), True),
        (response([36.39], **RETRIEVE), _answer(status="SUCCESS.", retrieved_data=[36.39]), True),
        (response([36.39], **RETRIEVE), _answer(retrieved_data=[[36.39, 40]]), False),
        (response(None, task_type="retrieve", status="NOT_FOUND_ERROR"), _answer(status="not_found_error"), True),
        (response(None, task_type="retrieve", status="NOT_FOUND_ERROR"), _answer(), False),
        (response(None, task_type="retrieve", status="NOT_FOUND_ERROR"), _answer(status="NOT_FOUND_ERROR", retrieved_data=[1]), False),  # noqa: E501
        (response(None), _answer(task_type="mutate", retrieved_data=["noise"]), True),
        (response(None), _answer(performed_operation="mutate", task_type="mutate"), True),
    ],
)  # fmt: skip
async def test_agent_response(entry: dict[str, Any], answer: str | None, right: bool) -> None:
    assert await met(verified(entry), evidence(answer)) is right


@pytest.mark.parametrize("depth", [50, 500, 975, 985, 5000])
@pytest.mark.parametrize("inside", ["[{}]", '[{{"name": {}}}]'])
@pytest.mark.parametrize("shape", ["string", "coordinates", "string_list"])
async def test_an_answer_of_lists_in_lists_is_refused_without_an_error(depth: int, inside: str, shape: str) -> None:
    data = inside.format("[" * depth + "]" * depth)
    answer = f'{{"task_type": "RETRIEVE", "status": "SUCCESS", "retrieved_data": {data}}}'
    schema = {"type": "array", "items": {"type": "string"} if shape == "string" else {"format": shape}}
    entry = verified(response([{"latitude": "1", "longitude": "2"}], task_type="retrieve", schema=schema))
    check = VerifiedTask.model_validate(entry).task().checks[0]
    for original in (False, True):
        assert not (await evaluate(check, evidence(answer), original=original)).met


@pytest.mark.parametrize("form", get_args(Format))
@pytest.mark.parametrize("text", ["1" * 190_000 + "%", "[" * 190_000, "\n" * 190_000, "1 " * 95_000, "1h" * 95_000])
async def test_a_long_answer_is_judged_in_time(form: str, text: str) -> None:
    answer = json.dumps({"task_type": "RETRIEVE", "status": "SUCCESS", "retrieved_data": [text]})
    expected: Any = {"latitude": "1", "longitude": "2"} if form == "coordinates" else "7"
    schema = {"type": "array", "items": {"format": form}}
    entry = verified(response([expected], task_type="retrieve", schema=schema))
    check = VerifiedTask.model_validate(entry).task().checks[0]
    for original in (False, True):
        assert not (await evaluate(check, evidence(answer), original=original)).met


def sent(url: str, method: str = "POST", status: int = 302, **more: Any) -> SentRequest:
    return SentRequest(method=method, url=url, status=status, **more)


BIO = request(
    "__REDDIT__/user/Ann/edit", http_method="POST", response_status=302, post_data={"bio[text]": "I am a robot"}
)
NOTE = request(
    "__GITLAB__/a/notes?target_id=9",
    http_method="POST",
    post_data={"$.note.note": "^.*@bob.*$", "$.note.type": "Issue"},
)
FORMS: dict[str, tuple[dict[str, Any], tuple[SentRequest, ...], bool]] = {
    "right": (BIO, (sent(f"{FORUM}/user/Ann/edit", post_data={"bio[text]": "I am a Robot ", "_token": "x"}),), True),
    "other_value": (BIO, (sent(f"{FORUM}/user/Ann/edit", post_data={"bio[text]": "I am no robot"}),), False),
    "other_method": (BIO, (sent(f"{FORUM}/user/Ann/edit", "GET"),), False),
    "refused": (BIO, (sent(f"{FORUM}/user/Ann/edit", status=422, post_data={"bio[text]": "I am a robot"}),), False),
    "other_site": (BIO, (sent(f"{SHOP}/user/Ann/edit", post_data={"bio[text]": "I am a robot"}),), False),
    "never": (BIO, (), False),
    "undone_later": (
        BIO,
        (
            sent(f"{FORUM}/user/Ann/edit", post_data={"bio[text]": "I am a robot"}),
            sent(f"{FORUM}/user/Ann/edit", post_data={"bio[text]": "oops"}),
        ),
        False,
    ),
    "any_of_them": (
        {**BIO, "last_event_only": False},
        (
            sent(f"{FORUM}/user/Ann/edit", post_data={"bio[text]": "I am a robot"}),
            sent(f"{FORUM}/user/Ann/edit", post_data={"bio[text]": "oops"}),
        ),
        True,
    ),
    "json": (
        NOTE,
        (sent(f"{CODE}/a/notes?target_id=9", status=200, post_data={"note": {"note": "hi @bob", "type": "Issue"}}),),
        True,
    ),
    "json_elsewhere": (
        NOTE,
        (sent(f"{CODE}/a/notes?target_id=8", status=200, post_data={"note": {"note": "hi @bob", "type": "Issue"}}),),
        False,
    ),
    "pattern": (
        request("^__GITLAB__/api/v4/projects/\\d+/members$", http_method="POST", response_status=201),
        (sent(f"{CODE}/api/v4/projects/188/members", status=201),),
        True,
    ),
    "pattern_in_another_case": (
        request("^__GITLAB__/api/v4/projects/\\d+/members$", http_method="POST", response_status=201),
        (sent(f"{CODE}/API/V4/Projects/188/members", status=201),),
        False,
    ),
    "address_in_another_case": (
        request("__GITLAB__/api/v4/members", http_method="POST", response_status=201),
        (sent(f"{CODE}/API/V4/Members", status=201),),
        True,
    ),
    "query_in_another_case": (
        request("__SHOPPING__/search/", query_params={"q": ["usb wifi"]}),
        (sent(f"{SHOP}/search?q=USB+WiFi", "GET", 200),),
        True,
    ),
    "value_with_a_full_stop": (
        BIO,
        (sent(f"{FORUM}/user/Ann/edit", post_data={"bio[text]": "“I am a robot.”"}),),
        True,
    ),
    "pattern_of_another_host": (
        request("^__GITLAB__/api/.*$", http_method="POST", response_status=201),
        (sent("http://127x0x0x1:8023/api/v4", status=201),),
        False,
    ),
    "number_not_known_before": (
        request(
            "__REDDIT__/f/books/{{post_id}}/-/comment",
            http_method="POST",
            post_data={"reply_{{post_id}}[comment]": "Wonderful"},
            response_status=302,
        ),
        (sent(f"{FORUM}/f/books/61/-/comment", post_data={"reply_61[comment]": "wonderful"}),),
        True,
    ),
    "key_pattern": (
        request("__REDDIT__/x", http_method="POST", post_data={"$.^file_path|name$": "MIT"}, response_status=302),
        (sent(f"{FORUM}/x", post_data={"file_path": "MIT"}),),
        True,
    ),
    "null_is_absent": (
        request("__SHOPPING__/add", http_method="POST", post_data={"qty": None, "product": "7"}, response_status=302),
        (sent(f"{SHOP}/add", post_data={"product": "7"}),),
        True,
    ),
    "null_is_not_there": (
        request("__SHOPPING__/add", http_method="POST", post_data={"qty": None}, response_status=302),
        (sent(f"{SHOP}/add", post_data={"qty": "3"}),),
        False,
    ),
    "query": (
        request("__SHOPPING__/search/", query_params={"q": ["usb wifi"]}),
        (sent(f"{SHOP}/search?q=usb+wifi", "GET", 200),),
        True,
    ),
    "query_with_more": (
        request("__SHOPPING__/search/", query_params={"q": ["usb wifi"]}),
        (sent(f"{SHOP}/search?q=usb+wifi&p=2", "GET", 200),),
        False,
    ),
    "query_with_more_that_is_ignored": (
        request("__SHOPPING__/search/", query_params={"q": ["usb wifi"]}, ignored_query_params_patterns=["^p$"]),
        (sent(f"{SHOP}/search?q=usb+wifi&p=2", "GET", 200),),
        True,
    ),
    "query_pattern_and_empty": (
        request("__GITLAB__/mrs", query_params={"state": ["^(opened|)$"]}),
        (sent(f"{CODE}/mrs", "GET", 200),),
        True,
    ),
    "query_by_value": (
        request(
            "__SHOPPING__/report",
            query_params={"from": ["05/1/2021"]},
            query_params_schema={"properties": {"from": {"type": "array", "items": {"format": "date"}}}},
        ),
        (sent(f"{SHOP}/report?from=05%2F01%2F2021", "GET", 200),),
        True,
    ),
    "query_in_the_path": (
        request("__SHOPPING__/report/", query_params={"to": ["x"]}, decode_base64_query=True),
        (sent(f"{SHOP}/report/dG89eA==/", "GET", 200),),
        True,
    ),
    "referer": (
        request("__GITLAB__/star", http_method="POST", headers={"referer": "__GITLAB__/a/-/issues/?label=help wanted"}),
        (sent(f"{CODE}/star", status=200, headers={"referer": f"{CODE}/a/-/issues?label=help%20wanted"}),),
        True,
    ),
    "other_referer": (
        request("__GITLAB__/star", http_method="POST", headers={"referer": "__GITLAB__/a/-/issues"}),
        (sent(f"{CODE}/star", status=200, headers={"referer": f"{CODE}/b"}),),
        False,
    ),
    "cookie": (
        request("__SHOPPING__/", headers={"Cookie": "^.*engine=bicycle.*$"}),
        (sent(f"{SHOP}/", "GET", 200, headers={"cookie": "a=1; engine=bicycle"}),),
        True,
    ),
    "answer": (
        request("__SHOPPING__/totals", response_content={"items_qty": 1, "$.items[0].name": "Tea"}),
        (sent(f"{SHOP}/totals", "GET", 200, content={"items_qty": 1, "items": [{"name": "tea"}]}),),
        True,
    ),
    "other_answer": (
        request("__SHOPPING__/totals", response_content={"items_qty": 1}),
        (sent(f"{SHOP}/totals", "GET", 200, content={"items_qty": 2}),),
        False,
    ),
    "answer_cookies": (
        request("__SHOPPING__/add", http_method="POST", response_cookies={"messages": "^.*tea.* has been added.*$"}),
        (sent(f"{SHOP}/add", status=200, cookies={"messages": "Tea has been added"}),),
        True,
    ),
    "no_answer": (
        request("^http://.*/dummy_bin$", http_method="POST", response_status=-1),
        (sent("http://x.test/dummy_bin", status=-1),),
        True,
    ),
    "forbidden": (request("__SHOPPING__/contact/post", http_method="POST", should_not_exist=True), (), True),
    "forbidden_but_made": (
        request("__SHOPPING__/contact/post", http_method="POST", should_not_exist=True),
        (sent(f"{SHOP}/contact/post", status=500),),
        False,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("entry", "requests", "right"), FORMS.values(), ids=FORMS.keys())
async def test_request_sent(entry: dict[str, Any], requests: tuple[SentRequest, ...], right: bool) -> None:
    assert await met(verified(response(), entry), evidence(sent=requests)) is right


@pytest.mark.parametrize(
    ("opened", "right"),
    [(("/a", "/goal"), True), (("/goal", "/a"), False), (("/goal",), True), ((), False)],
)
async def test_a_task_to_navigate_counts_the_page_opened_last(opened: tuple[str, ...], right: bool) -> None:
    pages = tuple(sent(SHOP + path, "GET", 200, navigation=True) for path in opened)
    script = sent(f"{SHOP}/goal", "GET", 200)
    entry = verified(response(task_type="navigate"), request("__SHOPPING__/goal"))
    assert await met(entry, evidence(sent=(*pages, script))) is right


@pytest.mark.parametrize(
    ("url", "post"),
    [
        (f"{FORUM}/f/books/7/a-title", f"{FORUM}/f/books/7/"),
        (f"{FORUM}/f/books/7/a-title/comment/9?x=1", f"{FORUM}/f/books/7/"),
        (f"{FORUM}/f/books", f"{FORUM}/f/books"),
        (f"{FORUM}/submit", f"{FORUM}/submit"),
    ],
)
def test_the_address_of_a_post(url: str, post: str) -> None:
    assert post_url(url) == post


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("$.a.b", 1),
        ("$.list[1].b", 3),
        ("$['text'].x", "inside"),
        ("$['matrix'][?(@.new == 1)].name", ["two", "three"]),
        ("$.a.c", None),
        ("$.list[9].b", None),
    ],
)
def test_paths(path: str, value: Any) -> None:
    matrix = json.dumps([{"new": 0, "name": "one"}, {"new": 1, "name": "two"}, {"new": 1, "name": "three"}])
    data = {"a": {"b": 1}, "list": [{"b": 2}, {"b": 3}], "text": '{"x": "inside"}', "matrix": matrix}
    assert find(data, path) == value


def test_a_path_of_another_form_is_refused() -> None:
    with pytest.raises(ValueError, match="not a supported path"):
        find({}, "$..a")


def test_forms_are_read() -> None:
    assert form_fields("a%5Bb%5D=1+2&c=&a%5Bb%5D=3") == {"a[b]": "1 2", "c": ""}
    body = b'--X\r\nContent-Disposition: form-data; name="a[b]"\r\n\r\n1 \xc3\xa9\r\n--X\r\n'
    body += (
        b'Content-Disposition: form-data; name="f"; filename="x.txt"\r\nContent-Type: text/plain\r\n\r\nhi\r\n--X--\r\n'
    )
    assert multipart_fields("multipart/form-data; boundary=X", body) == {"a[b]": "1 é", "f": "hi"}


def test_queries_hidden_in_a_path_are_found() -> None:
    url = ParsedUrl.parse(f"{SHOP}/report/filter/dG89eCZmcm9tPXk=/")
    assert url.unpacked().query == {"to": ["x"], "from": ["y"]}
    assert url.unpacked().path == ("report", "filter")
    assert ParsedUrl.parse(f"{SHOP}/catalog/product").unpacked().path == ("catalog", "product")
