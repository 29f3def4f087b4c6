"""Task files: all published ones are parsed completely, and errors are one line with the location."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from envs.core.errors import BadInput
from envs.suites.webarena.files import load_tasks, read_subset, read_tasks, select_tasks
from envs.suites.webarena.raw_format import parse_call
from envs.suites.webarena.sites import Sites
from envs.suites.webarena.task import Address, Call, LastPage, ProgramHtml, RequestSent, Script, StringMatch, Task
from tests.envs.suites.webarena.published import published
from tests.envs.suites.webarena.tasks import raw, request, verified

ALL = Sites.from_environment(
    {
        f"WA_{name}": f"http://{name.lower().replace('_', '-')}.test"
        for name in ("SHOPPING", "SHOPPING_ADMIN", "REDDIT", "GITLAB", "MAP", "WIKIPEDIA")
    }
)


@pytest.mark.parametrize(
    ("name", "count", "checks"),
    [
        ("webarena-lite", 165, {"string_match": 80, "url_match": 39, "program_html": 67}),
        ("webarena", 812, {"string_match": 335, "url_match": 205, "program_html": 411}),
        ("webarena-verified", 812, {"agent_response": 812, "request_sent": 663}),
    ],
)
def test_every_published_task_is_read(name: str, count: int, checks: dict[str, int]) -> None:
    tasks = read_tasks(published(name))
    assert len(tasks) == count
    assert Counter(check.kind for task in tasks for check in task.checks) == checks
    for task in tasks:
        ALL.require(task)
        assert all("__" not in ALL.fill(url) for url in task.start_urls)


def test_the_hard_subset_is_a_part_of_the_verified_tasks() -> None:
    hard = select_tasks(read_tasks(published("webarena-verified")), read_subset(published("subset")))
    assert len(hard) == 258


def test_nothing_that_a_published_task_would_run_is_left_unread() -> None:
    """Every helper is supported, and every locator is an expression on the document."""
    tasks = [*read_tasks(published("webarena-lite")), *read_tasks(published("webarena"))]
    pages = [page for task in tasks for check in task.checks if isinstance(check, ProgramHtml) for page in check.pages]
    assert {page.where.kind for page in pages} == {"last", "address", "call"}
    assert {page.what.kind for page in pages} == {"whole", "script", "call"}
    for page in pages:
        if isinstance(page.what, Script):
            assert page.what.expression.startswith(("document.", "[...document."))
            assert "func:" not in page.what.expression


def test_tasks_that_cannot_be_done_say_why() -> None:
    impossible = [
        check
        for task in read_tasks(published("webarena"))
        for check in task.checks
        if isinstance(check, StringMatch) and check.impossible is not None
    ]
    assert len(impossible) == 36
    assert all(not check.texts.fuzzy for check in impossible)


def test_requests_of_the_verified_tasks_have_the_defaults_of_their_format() -> None:
    checks = {task.id: task.checks for task in read_tasks(published("webarena-verified"))}
    navigated, posted = checks[45][1], checks[400][1]
    assert isinstance(navigated, RequestSent) and isinstance(posted, RequestSent)
    assert (navigated.method, navigated.status, navigated.last_page) == ("GET", 200, True)
    assert (posted.method, posted.status, posted.last_page) == ("POST", 302, False)


def test_the_tasks_whose_requests_go_to_no_site_are_known() -> None:
    """The map's routes, and a form that the benchmark's runner would send: see docs/webarena.md."""
    elsewhere = {
        task.id
        for task in read_tasks(published("webarena-verified"))
        for check in task.checks
        if isinstance(check, RequestSent) and not all(url.lstrip("^").startswith("__") for url in check.urls)
    }
    routes = {97, *range(265, 269), *range(737, 742), 759, 760}
    forms = {*range(528, 531), *range(689, 694)}
    assert elsewhere == routes | forms


def test_a_route_need_not_be_the_page_opened_last() -> None:
    """The map's page requests it; no tab opens it."""
    checks = {task.id: task.checks for task in read_tasks(published("webarena-verified"))}
    route, page = checks[740][1], checks[356][1]
    assert isinstance(route, RequestSent) and isinstance(page, RequestSent)
    assert (route.last_page, page.last_page) == (False, True)


def _changed(task: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    copy = json.loads(json.dumps(task))
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    at = copy
    for part in way:
        at = at[part]
    at[last] = value
    return copy


PAGE = {"url": "last", "locator": "", "required_contents": {"must_include": ["x"]}}
BROKEN = {
    "unknown_field": (_changed(raw(), "colour", "red"), "task 7: unknown key 'colour'"),
    "unknown_check": (_changed(raw(), "eval.eval_types", ["telepathy"]), "task 7: key 'eval.eval_types.0': Input"),
    "no_check": (_changed(raw(), "eval.eval_types", []), "task 7: key 'eval.eval_types': "),
    "nothing_to_compare": (_changed(raw(), "eval.eval_types", ["url_match"]), "url_match is listed, but its reference"),
    "unknown_site": (_changed(raw(), "sites", ["facebook"]), "task 7: key 'sites.0': Input should be"),
    "other_note": (_changed(raw(), "eval.url_note", "EXACT"), "task 7: key 'eval.url_note': "),
    "python": (
        _changed(raw(program_html=[PAGE]), "eval.program_html.0.url", "func:__import__('os').system('id')"),
        "task 7: key 'eval.program_html.0': .* is none of the known helpers",
    ),
    "python_argument": (
        _changed(raw(program_html=[PAGE]), "eval.program_html.0.url", "func:reddit_get_post_url(open('x'))"),
        "reddit_get_post_url takes",
    ),
    "no_address": (
        _changed(raw(program_html=[PAGE]), "eval.program_html.0.url", "func:shopping_get_sku_latest_review_author('B')"),  # noqa: E501
        "gives no address",
    ),
    "locator": (
        _changed(raw(program_html=[PAGE]), "eval.program_html.0.locator", "fetch('http://evil.test')"),
        "is neither empty, a func: nor an expression on the document",
    ),
    "no_content": (
        _changed(raw(program_html=[PAGE]), "eval.program_html.0.required_contents", {}),
        "no content is required",
    ),
    "verified_pattern": (verified(request("^([$")), "is not a regular expression"),
    "verified_evaluator": (_changed(verified(), "eval.0.evaluator", "Other"), "task 7: key 'eval.0': "),
    "verified_format": (
        _changed(verified(), "eval.0.results_schema", {"type": "array", "items": {"format": "colour"}}),
        "results_schema.items.format",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("entry", "says"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_task_is_one_line_with_file_task_and_field(tmp_path: Path, entry: Any, says: str) -> None:
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps([entry]))
    with pytest.raises(BadInput, match=says) as caught:
        read_tasks(path)
    assert str(caught.value).startswith(f"{path}: task 7: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{}", "not a list of tasks"),
        ("[]", "not a list of tasks"),
        ("[1]", "entry 0 is not a task"),
        ("[", "is not JSON"),
        (json.dumps([raw(), raw()]), "task 7 appears twice"),
    ],
)
def test_a_broken_file_is_one_line(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "tasks.json"
    path.write_text(text)
    with pytest.raises(BadInput, match=says):
        read_tasks(path)


def test_without_the_data_the_line_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="run `mira data get webarena-verified`"):
        load_tasks("webarena-verified-hard", tmp_path)


def test_a_subset_of_unknown_tasks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="tasks that do not exist: 8"):
        select_tasks((parsed(raw()),), (7, 8))


def parsed(entry: dict[str, Any]) -> Task:
    from envs.suites.webarena.raw_format import RawTask

    return RawTask.model_validate(entry).task()


def test_several_tabs_and_alternatives_are_split() -> None:
    task = parsed(
        raw(start_url="__SHOPPING__/a |AND| __SHOPPING__/b", reference_url="__SHOPPING__/a |OR| __SHOPPING__/b")
    )
    assert task.start_urls == ("__SHOPPING__/a", "__SHOPPING__/b")
    assert [check.urls for check in task.checks if check.kind == "url_match"] == [("__SHOPPING__/a", "__SHOPPING__/b")]


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("func:reddit_get_post_url('__last_url__')", Call(name="reddit_get_post_url", argument="__last_url__")),
        ("func:shopping_get_latest_order_url()", Call(name="shopping_get_latest_order_url")),
        (
            "func:gitlab_get_project_memeber_role(__page__, 'ann')",
            Call(name="gitlab_get_project_memeber_role", argument="ann"),
        ),
    ],
)
def test_helpers_are_read_as_names_and_arguments(text: str, call: Call) -> None:
    assert parse_call(text) == call


def test_pages_are_typed() -> None:
    pages = [
        PAGE,
        {**PAGE, "url": "__REDDIT__/f/x"},
        {**PAGE, "locator": "document.title", "prep_actions": ["document.x()"]},
    ]
    [check] = [check for check in parsed(raw(program_html=pages)).checks if isinstance(check, ProgramHtml)]
    assert [type(page.where) for page in check.pages] == [LastPage, Address, LastPage]
    assert check.pages[2].what == Script(expression="document.title", prepare=("document.x()",))


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        ({"WA_SHOPPING": "shop.example"}, "WA_SHOPPING='shop.example' is not an http or https address"),
        ({"WA_MAP": "file:///etc"}, "WA_MAP="),
    ],
)
def test_a_wrong_address_is_one_line(environ: dict[str, str], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        Sites.from_environment(environ)


def test_a_missing_variable_is_named_with_the_sites_of_the_task() -> None:
    sites = Sites.from_environment({"WA_SHOPPING": "http://127.0.0.1:1/"})
    with pytest.raises(BadInput, match=r"task 7 uses shopping, reddit: set WA_REDDIT"):
        sites.require(parsed(raw(sites=["shopping", "reddit"])))
    with pytest.raises(BadInput, match=r"the task contains __REDDIT__, but WA_REDDIT is not set"):
        sites.fill("__REDDIT__/f/books")
    assert sites.fill("__SHOPPING__/a") == "http://127.0.0.1:1/a"


def test_the_longer_name_is_filled_first() -> None:
    sites = Sites.from_environment({"WA_SHOPPING": "http://h:7770", "WA_SHOPPING_ADMIN": "HTTP://H:7780/admin/"})
    assert sites.fill("__SHOPPING_ADMIN__/x __SHOPPING__/y") == "http://h:7780/admin/x http://h:7770/y"
    assert sites.neutral("http://h:7780/admin/x http://h:7770/y http://h:77701/z") == (
        "__SHOPPING_ADMIN__/x __SHOPPING__/y http://h:77701/z"
    )
