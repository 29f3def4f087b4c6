"""Pairs of a task's check and what an agent might have left, made from the reference answers by mutation.

    python -m benchmarks.webarena.pairs FOLDER -o pairs.jsonl

FOLDER holds the task files (`mira data get webarena-lite`, `webarena`, `webarena-verified`, copied together). The
same seed gives the same pairs.
"""

from __future__ import annotations

import argparse
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.webarena import mutations, samples

Json = Any
Row = dict[str, Json]

FILES = {
    "lite": "test_webarena_lite.raw.json",
    "webarena": "webarena_812.raw.json",
    "verified": "webarena-verified.json",
}
CHOICES = 4
"""So many alternatives of a reference are tried."""
PER_CHECK = 60
"""So many pairs of one check at most, and twice as many of a typed answer."""


def rows(suite: str, tasks: list[Json], seed: int) -> Iterator[Row]:
    pool = _other_answers(tasks)
    for task in tasks:
        random = Random(f"{seed}-{suite}-{task['task_id']}")
        made = verified_rows(task, random, pool) if suite == "verified" else raw_rows(task, random, pool)
        for row in made:
            yield {"suite": suite, "task": task["task_id"], **row}


def raw_rows(task: Json, random: Random, pool: list[str]) -> Iterator[Row]:
    """Of one task of WebArena or WebArena-Lite."""
    check = task["eval"]
    if "string_match" in check["eval_types"]:
        parts = _parts(check["reference_answers"])
        answers = [*mutations.answers(parts, random), *random.sample(pool, min(8, len(pool)))]
        for answer in _some(answers, random):
            yield {"kind": "string", "answer": answer}
    if "url_match" in check["eval_types"]:
        for url in _some(_urls(check["reference_url"], random), random):
            yield {"kind": "url", "answer": url}
    for number, target in enumerate(check["program_html"]):
        parts = _parts(target["required_contents"])
        for text in _some(mutations.answers(parts, random), random, PER_CHECK // 3):
            yield {"kind": "html", "page": number, "answer": text}


def reference_rows(suite: str, task: Json) -> Iterator[Row]:
    """What the references of *task* say, as an answer, a page, an address or a session; with all alternatives."""
    for choice in range(CHOICES):
        yield from _verified_references(task, choice) if suite == "verified" else _raw_references(task, choice)


def _raw_references(task: Json, choice: int) -> Iterator[Row]:
    check = task["eval"]
    if "string_match" in check["eval_types"]:
        for glue in (", ", " and ", "\n", ". "):
            yield {"kind": "string", "answer": glue.join(_parts(check["reference_answers"], choice))}
    if "url_match" in check["eval_types"]:
        urls = check["reference_url"].split(" |OR| ")
        yield {"kind": "url", "answer": samples.filled(urls[min(choice, len(urls) - 1)].strip())}
    for number, target in enumerate(check["program_html"]):
        yield {"kind": "html", "page": number, "answer": "\n".join(_parts(target["required_contents"], choice))}


def _verified_references(task: Json, choice: int) -> Iterator[Row]:
    navigates = task["eval"][0]["expected"]["task_type"] == "navigate"
    for number, check in enumerate(task["eval"]):
        expected = check["expected"]
        if check["evaluator"] == "AgentResponseEvaluator":
            data = expected.get("retrieved_data")
            data = samples.answer(data, check["results_schema"], choice) if data else None
            response = {
                "task_type": expected["task_type"].upper(),
                "status": expected["status"],
                "retrieved_data": data,
            }
            yield {"kind": "response", "check": number, "answer": json.dumps(response)}
        elif not check.get("should_not_exist"):
            made = samples.request(expected, navigation=navigates, choice=choice)
            if expected.get("post_data") and not expected.get("http_method"):
                made["method"] = "POST"  # nobody sends data by GET
            yield {"kind": "request", "check": number, "answer": [made]}


def _parts(answers: Json, choice: int = 0) -> list[str]:
    parts: list[str] = []
    for value in answers.values():
        parts += [value] if isinstance(value, str) else value
    alternatives = (part.split(" |OR| ") for part in parts)
    return [samples.filled(some[min(choice, len(some) - 1)]) for some in alternatives]


def _urls(reference: str, random: Random) -> list[str]:
    found: list[str] = []
    for one in reference.split(" |OR| "):
        url = samples.filled(one.strip())
        found += [url, f"{url}/", f"{url}/more", f"{url}x", url.upper(), f"{url}?a=b", f"{url}&page=2", f"{url}#top"]
        found += [url.partition("?")[0], url.rstrip("/"), f"{url.partition('?')[0]}?{url.partition('?')[2][::-1]}"]
        found += [
            f"http://evil.test/?{url}",
            f"http://evil.test/{url.removeprefix('http://')}",
            url[:-1],
            url.replace("%20", "+"),
        ]
        found += [url.replace("7770", "9999"), url.replace("127.0.0.1", "localhost"), f"{url}?{url.partition('?')[2]}"]
        found += [url.replace("?", "/?"), url.replace("https", "http"), url.replace("+", "%20"), url.replace("=", "=x")]
        if "&" in url:
            head, _, query = url.partition("?")
            pieces = query.split("&")
            random.shuffle(pieces)
            found += [f"{head}?{'&'.join(pieces)}", f"{head}?{pieces[0]}"]
    return found


def verified_rows(task: Json, random: Random, pool: list[str]) -> Iterator[Row]:
    """Of one task of WebArena-Verified."""
    navigates = task["eval"][0]["expected"]["task_type"] == "navigate"
    for number, check in enumerate(task["eval"]):
        if check["evaluator"] == "AgentResponseEvaluator":
            for response in _some(responses(check, random, pool), random, 2 * PER_CHECK):
                yield {"kind": "response", "check": number, "answer": response}
        else:
            for sent in _some(requests(check, random, navigates=navigates), random, PER_CHECK // 2):
                yield {"kind": "request", "check": number, "answer": sent}


def responses(check: Json, random: Random, pool: list[str]) -> list[str]:
    """Whole answers, as text."""
    expected = check["expected"]
    schema = check["results_schema"]
    data = expected.get("retrieved_data")
    base = samples.answer(data, schema) if data else []
    right = {"task_type": expected["task_type"].upper(), "status": expected["status"], "error_details": None}
    answers = [json.dumps(right | {"retrieved_data": base or None})]
    if expected["task_type"] == "retrieve":
        variants = list(_data(base, schema.get("items") or {}, random))
        random.shuffle(variants)
        answers += [json.dumps(right | {"retrieved_data": one}) for one in variants]
        answers += [json.dumps(right | {"retrieved_data": [other]}) for other in random.sample(pool, min(3, len(pool)))]
    envelopes = [
        answers[0].replace('"', "'"),
        f"```json\n{answers[0]}\n```",
        f"```\n{answers[0]}```",
        f"Done. {answers[0]}",
        answers[0][:-1],
    ]
    envelopes += [
        "",
        "{}",
        "null",
        "[]",
        f"[{answers[0]}]",
        json.dumps(answers[0]),
        f"Here:\n```json\n{answers[0]}\n```\nBye",
    ]
    changes = [
        {"task_type": "mutate"},
        {"task_type": "RETRIEVE "},
        {"status": "success"},
        {"status": "NOT_FOUND_ERROR"},
    ]
    changes += [
        {"status": "SUCCESS."},
        {"status": ""},
        {"status": None},
        {"retrieved_data": None},
        {"retrieved_data": []},
    ]
    changes += [
        {"retrieved_data": [None]},
        {"retrieved_data": "x"},
        {"task_type": None},
        {"extra": 1},
        {"retrieved_data": {}},
    ]
    envelopes += [json.dumps(right | {"retrieved_data": base or None} | change) for change in changes]
    legacy = {"performed_operation": right["task_type"], "status": right["status"], "retrieved_data": base or None}
    envelopes += [json.dumps(legacy), json.dumps({k: v for k, v in right.items() if k != "retrieved_data"})]
    random.shuffle(envelopes)
    return [*answers, *envelopes[: 8 if len(answers) > 30 else 30]]


def _data(base: Json, items: Json, random: Random) -> Iterator[Json]:
    """The list of data with one thing changed."""
    yield from (
        [],
        base[:-1],
        base[1:],
        [*base, *base[:1]],
        list(reversed(base)),
        json.dumps(base),
        [base],
        base[0] if base else 0,
    )
    yield from ([*base, None], [json.dumps(one) for one in base], {str(n): one for n, one in enumerate(base)})
    for n, item in enumerate(base):
        if n >= 3:
            break
        for changed in _item(item, items, random):
            yield [*base[:n], changed, *base[n + 1 :]]


def _item(item: Json, schema: Json, random: Random) -> Iterator[Json]:
    kind = schema.get("format") or schema.get("type") or "string"
    if kind != "coordinates" and isinstance(item, dict):
        for name, value in item.items():
            inner = schema.get("properties", {}).get(name, {})
            if isinstance(value, list):
                yield from (
                    {**item, name: list(reversed(value))},
                    {**item, name: value[:-1]},
                    {**item, name: json.dumps(value)},
                )
                for changed in mutations.leaf(value[0], "string", random):
                    yield {**item, name: [changed, *value[1:]]}
            else:
                variants = (
                    _item(value, inner, random)
                    if isinstance(value, dict)
                    else mutations.leaf(value, inner.get("format") or inner.get("type") or "string", random)
                )
                yield from ({**item, name: changed} for changed in variants)
            yield {key: one for key, one in item.items() if key != name}
        yield item | {"more": 1}
        yield json.dumps(item)
        yield list(item.values())
        yield {key.upper(): one for key, one in item.items()}
        return
    yield from mutations.leaf(item, kind, random)


def requests(check: Json, random: Random, *, navigates: bool) -> list[Json]:
    """Whole sessions: lists of requests."""
    expected = check["expected"]
    right = samples.request(expected, navigation=navigates)
    other = right | {"url": samples.SITES["SHOPPING"] + "/elsewhere", "method": "GET", "post_data": None}
    found: list[Json] = [[right], [], [other], [right, other], [other, right], [right, right]]
    found += [
        [right, right | {"status": 500}],
        [right | {"status": 500}, right],
        [right | {"navigation": not right["navigation"]}],
    ]
    url = right["url"]
    urls = [
        url.upper(),
        url.replace("127.0.0.1:", "127.0.0.1:1"),
        f"{url}/",
        f"{url}#x",
        url.rstrip("/"),
        f"{url}x",
        url[:-1],
    ]
    head, mark, query = url.partition("?")
    urls += [
        f"{head.swapcase()}{mark}{query}",
        f"{head}{mark}{query.upper()}",
        f"{head}?{query}&more=1",
        head,
        f"{head}/?{query}",
    ]
    urls += [
        f"{head}?{query.replace('%20', '+')}",
        f"{head}?{'&'.join(reversed(query.split('&')))}",
        url.replace("-", "%2D"),
    ]
    urls += [
        f"{head}?page=2&sort=asc{mark and '&'}{query}",
        f"{head}?{query}&_=123",
        url.replace("127.0.0.1", "localhost"),
    ]
    urls += [
        f"{head}?{query.replace('=', '=x', 1)}",
        f"{head}?{query.replace('&', '&a=&', 1)}",
        f"{head}?{query}&empty=",
    ]
    if not isinstance(expected["url"], str):
        urls += [samples.filled(samples.plain(one)) for one in expected["url"]]
    found += [[right | {"url": one}] for one in urls]
    found += [[right | {"status": status}] for status in (200, 302, 404, -1)]
    found += [[right | {"method": method}] for method in ("GET", "POST", "put", "DELETE")]
    found += [
        [right | change]
        for part in ("headers", "post_data", "content", "cookies")
        for change in _parts_changed(right, part, random)
    ]
    referers = (url, samples.SITES["GITLAB"], "", f"{right['headers'].get('referer', url)}&x=1")
    found += [[right | {"headers": right["headers"] | {"referer": one}}] for one in referers]
    return found


def _parts_changed(right: Json, part: str, random: Random) -> list[Json]:
    whole = right[part]
    if not whole:
        return [{part: {"more": "1"}}]
    found: list[Json] = [{part: None if part in ("post_data", "content") else {}}, {part: whole | {"more": "1"}}]
    for name, value in whole.items():
        left = {key: one for key, one in whole.items() if key != name}
        found += [{part: left}, {part: left | {name.swapcase(): value}}, {part: left | {f"{name} ": value}}]
        if isinstance(value, str):
            found += [{part: whole | {name: one}} for one in random.sample(mutations.texts(value, random), 6)]
        elif isinstance(value, dict | list):
            found += [{part: whole | {name: json.dumps(value)}}, {part: whole | {name: _deeper(value)}}]
        else:
            found += [{part: whole | {name: one}} for one in (str(value), f"{value}.0", value + 1, [value])]
    if part != "post_data":
        found = [change for change in found if part == "content" or _all_text(change[part])]
    if part == "headers":  # the recorder writes their names in lower case
        found = [change for change in found if all(name.islower() for name in change[part])]
    return found


def _deeper(value: Json) -> Json:
    changed = copy.deepcopy(value)
    if isinstance(changed, list):
        return [*changed, *changed[:1]]
    name = next(iter(changed), "x")
    changed[name] = (
        f"{changed.get(name)}!" if not isinstance(changed.get(name), dict | list) else _deeper(changed[name])
    )
    return changed


def _all_text(values: Json) -> bool:
    return all(isinstance(value, str) for value in values.values())


def _other_answers(tasks: list[Json]) -> list[str]:
    """References of all tasks, as wrong answers to each other."""
    found: list[str] = []
    for task in tasks:
        if isinstance(task["eval"], dict):
            found += _parts(task["eval"]["reference_answers"] or {})
        else:
            data = task["eval"][0]["expected"].get("retrieved_data") or []
            found += [one for one in data if isinstance(one, str)]
    return sorted(set(found))


def _some(values: list[Json], random: Random, most: int = PER_CHECK) -> list[Json]:
    """Distinct ones, the first always among them."""
    seen = list({json.dumps(value): value for value in values}.values())
    return seen if len(seen) <= most else [seen[0], *random.sample(seen[1:], most - 1)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    number = 0
    with given.out.open("w", encoding="utf-8") as out:
        for suite, name in FILES.items():
            for row in rows(suite, json.loads((given.folder / name).read_text(encoding="utf-8")), given.seed):
                out.write(json.dumps(row) + "\n")
                number += 1
    print(f"{number} pairs")


if __name__ == "__main__":
    main()
