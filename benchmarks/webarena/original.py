"""The verdicts of the benchmarks' own evaluators, run unchanged in an environment of their own.

    python -m venv theirs && theirs/bin/pip install webarena-verified==1.2.3 nltk beartype==0.12.0
    theirs/bin/pip download --no-deps libwebarena==0.0.5 && unzip libwebarena-*.whl -d libwebarena
    theirs/bin/python benchmarks/webarena/original.py pairs.jsonl FOLDER --libwebarena libwebarena -o original.jsonl

It imports nothing of Mira. libwebarena's browser and model modules are replaced by empty ones: its evaluators are
given texts and addresses, not pages. NLTK needs its `punkt_tab` data. A verdict is true, false, `judge` (a model
would be asked) or `error` (the evaluator raised).
"""

# The packages of the other environment are not installed beside Mira.
# pyright: reportMissingImports=false

from __future__ import annotations

import argparse
import importlib
import json
import logging
import sys
import tempfile
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

sys.path.insert(0, str(Path(__file__).parent))

import samples

FILES = {
    "lite": "test_webarena_lite.raw.json",
    "webarena": "webarena_812.raw.json",
    "verified": "webarena-verified.json",
}
ENVIRONMENTS = {f"__{name}__": url for name, url in samples.SITES.items()}


def _module(name: str, **members: Any) -> None:
    made = types.ModuleType(name)
    made.__dict__.update(members)
    made.__path__ = []  # a package, so that what is inside can be imported
    sys.modules[name] = made


def _no_sleep(_: float) -> None: ...


def load_libwebarena(folder: Path) -> Any:
    """Its module of evaluators."""
    importlib.import_module("beartype")  # it is needed

    class Page: ...

    class Session: ...

    _module("playwright")
    _module("playwright.sync_api", CDPSession=Session, Page=Page)
    _module(
        "webarena",
    )
    sys.modules["webarena"].__path__ = [str(folder / "webarena")]
    _module("webarena.browser_env")
    _module("webarena.browser_env.actions", Action=dict[str, Any])
    _module("webarena.browser_env.utils", StateInfo=dict[str, Any])
    sites = {
        name: samples.SITES[name] for name in ("GITLAB", "MAP", "REDDIT", "SHOPPING", "SHOPPING_ADMIN", "WIKIPEDIA")
    }
    _module("webarena.browser_env.env_config", ACCOUNTS={}, **sites)
    _module("webarena.llms")
    _module("webarena.llms.providers")
    _module("webarena.llms.providers.openai_utils", generate_from_openai_chat_completion=None)
    evaluators = importlib.import_module("webarena.evaluation_harness.evaluators")
    evaluators.time.sleep = _no_sleep
    return evaluators


def _constant(value: Any) -> Callable[..., Any]:
    """A function that returns *value* for any arguments."""

    def function(*_: Any, **__: Any) -> Any:
        return value

    return function


class Raw:
    """WebArena's and WebArena-Lite's."""

    def __init__(self, evaluators: Any) -> None:
        self.evaluators = evaluators
        self.folder = Path(tempfile.mkdtemp())

    def verdict(self, task: Any, row: Any) -> Any:
        task = json.loads(samples.filled(json.dumps(task)))
        if row["kind"] == "html":
            task["eval"]["program_html"] = [dict(task["eval"]["program_html"][row["page"]], url="last")]
        path = self.folder / f"{row['suite']}-{row['task']}-{row['kind']}-{row.get('page', 0)}.json"
        if not path.exists():
            path.write_text(json.dumps(task))
        trajectory = [{}, {"answer": row["answer"]}]
        page = self.evaluators.PseudoPage(_Shown(row["answer"]), row["answer"] if row["kind"] == "url" else "http://x/")
        kind = {"string": "StringEvaluator", "url": "URLEvaluator", "html": "HTMLContentEvaluator"}[row["kind"]]
        if kind == "HTMLContentEvaluator":
            locator = task["eval"]["program_html"][0]["locator"]
            if locator.startswith("func:"):
                answer = _constant(row["answer"])
                self.evaluators.gitlab_get_project_memeber_role = answer
                self.evaluators.shopping_get_sku_latest_review_author = answer
                self.evaluators.shopping_get_sku_latest_review_rating = answer
        try:
            agreed, refused = (self._scored(kind, judgement, trajectory, path, page) for judgement in (1.0, 0.0))
        except Exception:  # noqa: BLE001  whatever it raises ends its harness
            return "error"
        return agreed if agreed == refused else "judge"

    def _scored(self, kind: str, judgement: float, trajectory: Any, path: Path, page: Any) -> bool:
        """Where every question to the model is answered by *judgement*."""
        self.evaluators.llm_fuzzy_match = self.evaluators.llm_ua_match = _constant(judgement)
        return getattr(self.evaluators, kind)()(trajectory, path, page, None) == 1.0


class _Shown:
    """A page that shows one text, whatever is asked of it."""

    def __init__(self, text: str) -> None:
        self.text = text

    def content(self) -> str:
        return self.text

    def evaluate(self, _: str) -> str:
        return self.text


class Verified:
    """WebArena-Verified's."""

    def __init__(self) -> None:
        from webarena_verified.core.evaluation.evaluators import EVALUATOR_REGISTRY
        from webarena_verified.types.config import WebArenaVerifiedConfig

        self.registry = EVALUATOR_REGISTRY
        self.config = WebArenaVerifiedConfig(
            environments={name: {"urls": [url]} for name, url in ENVIRONMENTS.items()}  # type: ignore[arg-type]
        )
        self.tasks: dict[int, Any] = {}

    def verdict(self, task: Any, row: Any) -> Any:
        from webarena_verified.types.eval import TaskEvalContext
        from webarena_verified.types.task import WebArenaVerifiedTask
        from webarena_verified.types.tracing import NetworkTrace

        if task["task_id"] not in self.tasks:
            self.tasks[task["task_id"]] = WebArenaVerifiedTask.model_validate(task)
        read = self.tasks[task["task_id"]]
        sent = [_har(one) for one in row["answer"]] if row["kind"] == "request" else []
        trace = NetworkTrace.from_content(sent or [_har({"method": "GET", "url": "http://x/", "status": 200})])
        if not sent:
            trace = NetworkTrace.model_construct(is_playwright=False, src_file=Path("x"), events=())
        response = row["answer"] if row["kind"] == "response" else None
        context = TaskEvalContext(task=read, agent_response_raw=response, network_trace=trace, config=self.config)
        check = read.eval[row["check"]]
        result = self.registry[check.evaluator]().evaluate(context=context, config=check)
        return "error" if str(result.status) == "error" else result.score == 1.0


def _har(sent: Any) -> Any:
    """One entry of a HAR file."""
    headers = dict(sent.get("headers") or {})
    if sent.get("navigation"):
        headers |= {"accept": "text/html"}
    request: Any = {
        "method": sent["method"],
        "url": sent["url"],
        "headers": [{"name": k, "value": v} for k, v in headers.items()],
    }
    if sent.get("post_data") is not None:
        request["postData"] = _encoded(sent["post_data"])
    content = sent.get("content")
    shown = {} if content is None else {"mimeType": "application/json", "text": json.dumps(content)}
    cookies = [{"name": name, "value": quote(value)} for name, value in (sent.get("cookies") or {}).items()]
    return {
        "request": request,
        "response": {"status": sent["status"], "redirectURL": "", "content": shown, "cookies": cookies, "headers": []},
    }


def _encoded(data: dict[str, Any]) -> dict[str, str]:
    if all(isinstance(value, str) for value in data.values()):
        return {"mimeType": "application/x-www-form-urlencoded", "text": urlencode(data)}
    return {"mimeType": "application/json", "text": json.dumps(data)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--libwebarena", type=Path, required=True)
    parser.add_argument("-o", "--out", type=Path, required=True)
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    raw, verified = Raw(load_libwebarena(given.libwebarena)), Verified()
    tasks = {
        (suite, task["task_id"]): task
        for suite, name in FILES.items()
        for task in json.loads((given.folder / name).read_text(encoding="utf-8"))
    }
    with given.pairs.open(encoding="utf-8") as rows, given.out.open("w", encoding="utf-8") as out:
        for line in rows:
            row = json.loads(line)
            evaluator = verified if row["suite"] == "verified" else raw
            verdict = evaluator.verdict(tasks[row["suite"], row["task"]], row)
            out.write(json.dumps(verdict) + "\n")


if __name__ == "__main__":
    main()
