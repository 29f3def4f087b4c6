"""Own tasks in every form of the published ones, for the verdicts recorded in `tests/data/webarena`.

`python -m benchmarks.webarena.own FOLDER` writes them as the task files that `benchmarks/webarena` reads.
"""

from __future__ import annotations

from typing import Any

from tests.envs.suites.webarena.tasks import page, raw, request, response, verified

Entry = dict[str, Any]
SITES_OF_OWN = {"sites": ["shopping", "shopping_admin", "reddit", "gitlab", "map"]}
TEXT = "document.querySelector('.note').outerText"


def lite() -> list[Entry]:
    return [
        raw(task_id=0, answers={"must_include": "ann_lee"}),
        raw(task_id=1, program_html=[page("last", TEXT, fuzzy_match=["a refund", "180"])]),
        raw(task_id=2, answers={"must_include": ["7 |OR| 9"]}),
        raw(task_id=3, answers={"exact_match": "N/A"}),
    ]


def webarena() -> list[Entry]:
    answers: list[Entry] = [
        {"must_include": ["2"]},
        {"must_include": ["0"]},
        {"must_include": ["40.451", "-79.933"]},
        {"must_include": ["1.46", "85"]},
        {"must_include": ["914"]},
        {"must_include": ["1,603.69"]},
        {"must_include": ["Oak Tea House", "3716", "Elm Avenue"]},
        {"must_include": ["Joust Bag", "Tea & Biscuits"]},
        {"must_include": ["06516"]},
        {"exact_match": "Yes"},
        {"exact_match": "3 canceled orders"},
        {"fuzzy_match": ["7 min", "16 min"]},
        {"fuzzy_match": "N/A"},
        {"must_include": ["Acadia"], "fuzzy_match": ["457 km"]},
    ]
    urls = [
        "__SHOPPING__/tea.html",
        "__GITLAB__/-/issues/?label_name%5B%5D=BUG&state=opened",
        "__SHOPPING__/a?x=1 |OR| __SHOPPING__/b?x=2",
        "__MAP__/search?query=tea+house",
    ]
    pages = [
        page("last", TEXT, must_include=["Oak Tea House", "12.99 |OR| 13"]),
        page("__REDDIT__/f/books", "", exact_match="Wonderful journey"),
        page("last", TEXT, must_include=["__REDDIT__/f/books/7", "1,200"]),
        page("last", TEXT, exact_match="5"),
    ]
    entries = [raw(task_id=n, answers=entry, note="there is no such shop") for n, entry in enumerate(answers)]
    entries += [raw(task_id=len(entries) + n, reference_url=entry) for n, entry in enumerate(urls)]
    return [*entries, *(raw(task_id=len(entries) + n, program_html=[entry]) for n, entry in enumerate(pages))]


def items(**properties: Any) -> Entry:
    if set(properties) <= {"type", "format"}:
        return {"type": "array", "items": properties}
    shapes = {name: {"type": "string", **shape} for name, shape in properties.items()}
    return {"type": "array", "items": {"type": "object", "properties": shapes}}


def retrieve(data: list[Any] | None, schema: Entry, **more: Any) -> Entry:
    return response(data, task_type="retrieve", schema=schema, **more)


def answered() -> list[Entry]:
    """Typed answers."""
    text, number = items(type="string"), items(type="number")
    entries = [
        retrieve(["Oak Tea House™", "Inés León"], text),
        retrieve([["Anne Smith", "Anne"], "Joust-Bag Blue"], text),
        retrieve([r"^#?\s*0*170$"], text),
        retrieve(["???"], text),
        retrieve(["__GITLAB__/a/b"], text),
        retrieve([6], number),
        retrieve([1200, 15], number),
        retrieve([36.39], items(type="number", format="currency")),
        retrieve([1603.69], items(type="number", format="currency")),
        retrieve([0], items(type="number", format="currency")),
        retrieve(["1hr 44min"], items(type="string", format="duration")),
        retrieve(["01:33:00"], items(type="string", format="duration")),
        retrieve(["914km"], items(type="string", format="distance")),
        retrieve(["January 16, 2023"], items(type="string", format="date")),
        retrieve(["03/11/2023"], items(type="string", format="date")),
        retrieve(["September"], items(type="string", format="month")),
        retrieve([True], items(type="boolean")),
        retrieve([{"latitude": "40.4424191", "longitude": "-79.9397388"}], items(format="coordinates")),
        retrieve(["Oak Coffee & Tea"], items(type="string", format="location-name")),
        retrieve(["git@__SSH_HOST__:ann/tea-House.git"], items(type="string", format="url")),
        retrieve(
            [{"name": "Oak Tea House", "count": 2, "total": 45.5}],
            items(name={}, count={"type": "number"}, total={"type": "number", "format": "currency"}),
        ),
        retrieve(
            [{"names": ["Green tea", "Black tea"], "min": 1.5}],
            items(names={"type": "array", "items": {"type": "string"}}, min={"type": "number", "format": "currency"}),
        ),
        retrieve(["first", "second"], text, ordered=True),
        retrieve(None, {"type": "null"}, status="NOT_FOUND_ERROR"),
        response(None, task_type="navigate"),
    ]
    unset = retrieve(None, items(type="number"), status="NOT_FOUND_ERROR")
    del unset["expected"]["retrieved_data"]
    return [*entries, unset]


def _typed(**formats: str) -> Entry:
    return {
        "type": "object",
        "properties": {name: {"type": "string", "format": kind} for name, kind in formats.items()},
    }


def sent() -> list[Entry]:
    """Requests."""
    post: Entry = {"http_method": "POST", "response_status": 302}
    return [
        request("__REDDIT__/user/Ann/edit", **post, post_data={"bio[text]": "I cried"}),
        request("__GITLAB__/a/notes?target_id=9", http_method="POST", post_data={"$.note.note": "^.*@bob.*$"}),
        request("__GITLAB__/a/b/-/issues/7.json", http_method="PUT", post_data={"$.issue.assignee_ids": [23]}),
        request(
            "__GITLAB__/a/b/-/issues/8.json",
            http_method="PUT",
            post_data={"$.issue.assignee_ids": [23]},
            post_data_schema={
                "type": "object",
                "properties": {"$.issue.assignee_ids": {"type": "array", "items": {"type": "number"}}},
            },
        ),
        request("^__GITLAB__/api/v4/projects/\\d+/members$", http_method="POST", response_status=201),
        request("__REDDIT__/f/books/{{post_id}}/-/comment", **post, post_data={"reply_{{post_id}}[text]": "Fine"}),
        request("__SHOPPING__/add/", **post, post_data={"product": "7", "qty": None}),
        request(["__REDDIT__/submit", "__REDDIT__/submit/books"], **post, post_data={"title": ["One", "Two"]}),
        request(
            "__SHOPPING_ADMIN__/reports/filter",
            query_params={"from": ["05/1/2021"], "kind": ["sales"]},
            query_params_schema={
                "type": "object",
                "properties": {
                    "from": {"type": "array", "items": {"type": "string", "format": "date"}},
                    "kind": {"type": "array", "items": {"type": "string"}},
                },
            },
            decode_base64_query=True,
            ignored_query_params_patterns=["^page$"],
        ),
        request("__GITLAB__/mrs", query_params={"state": ["^(opened|)$"], "user": ["Ann"]}),
        request("__GITLAB__/star", http_method="POST", headers={"referer": "__GITLAB__/a/-/issues/?label=help wanted"}),
        request("^.*/route/v1/.*/-73.99,40.75;-79.94,40.44.*$", headers={"Cookie": "^.*engine=bicycle.*$"}),
        request("__SHOPPING__/totals", response_content={"items_qty": 1, "$.items[0].name": "Tea"}),
        request("__SHOPPING__/add", http_method="POST", response_cookies={"messages": "^.*tea.* has been added.*$"}),
        request("__SHOPPING__/contact/post", http_method="POST", should_not_exist=True),
        request("__SHOPPING__/save", post_data={"from": "02/1/2023"}, response_status=302),
        request("__GITLAB__/members", **post, post_data={"ids": "5,278"}, post_data_schema=_typed(ids="string_list")),
        request(
            "__GITLAB__/commits",
            **post,
            post_data={"text": "# Tea\n\n* [one](__REDDIT__/f/tea)"},
            post_data_schema=_typed(text="markdown"),
        ),
    ]


def verified_tasks() -> list[Entry]:
    entries = [verified(entry, task_id=n) for n, entry in enumerate(answered())]
    for check in sent():
        done = response(None)
        entries.append(verified(done, check, task_id=len(entries)))
    entries.append(
        verified(response(None, task_type="navigate"), request("__SHOPPING__/tea.html"), task_id=len(entries))
    )
    return [task | SITES_OF_OWN for task in entries]


FILES: dict[str, list[Entry]] = {
    "test_webarena_lite.raw.json": lite(),
    "webarena_812.raw.json": webarena(),
    "webarena-verified.json": verified_tasks(),
}
"""Task files by the names that `benchmarks/webarena` reads."""
