"""Reads WebArena's result folders: `render_ID.html` per task, and a log with the results.

The format is that of web-arena-x/webarena (`browser_env/helper_functions.py`, `run.py`): a `<pre>` with the task's
configuration, then per step an address, the accessibility tree, and the policy's prediction. Its text is not escaped,
so it is split at its own markers and never parsed as HTML.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from envs.core.actions import (
    Action,
    Back,
    Click,
    CloseTab,
    FocusTab,
    Forward,
    Goto,
    Hover,
    NewTab,
    Press,
    Scroll,
    Stop,
    Type,
    Wait,
)
from envs.core.errors import BadInput
from envs.core.tasks import TaskRef
from envs.core.trace import Outcome
from envs.importing.episodes import ForeignEpisode, ForeignStep, Nodes, ended_by
from envs.importing.files import inside, read_text

_CONFIG: Final = re.compile(r"<pre>(?P<lines>task_id: .*?)</pre>", re.DOTALL)
_PAGE: Final = "<h2>New Page</h2>"
_URL: Final = re.compile(r"<h3 class='url'><a href=(?P<url>.*?)>URL: ", re.DOTALL)
_TREE: Final = re.compile(r"<div class='state_obv'><pre>(?P<text>.*?)</pre><div>", re.DOTALL)
_RAW: Final = re.compile(r"<div class='raw_parsed_prediction'[^>]*><pre>(?P<text>.*?)</pre></div>", re.DOTALL)
_PARSED: Final = re.compile(r"<div class='parsed_action'[^>]*><pre>(?P<text>.*?)</pre></div>", re.DOTALL)
_TITLE: Final = re.compile(r"^\s*Tab \d+ \(current\): (?P<title>.*)$", re.MULTILINE)
_RESULT: Final = re.compile(r"\[Result\] \((?P<verdict>PASS|FAIL)\) \S*?(?P<id>\d+)\.json")
_BROKEN: Final = re.compile(r"\[(?:Unhandled|OpenAI) Error\]")
_CONFIG_FILE: Final = re.compile(r"\[Config file\]: \S*?(?P<id>\d+)\.json")
_EARLY: Final = "Early stop: "
_VERB: Final = re.compile(r"^\s*(?P<verb>\w+)(?P<rest>.*)$", re.DOTALL)
_ARGUMENT: Final = re.compile(r"\[(.*?)\](?=\s*(?:\[|where\b|$))", re.DOTALL)


def read_webarena(folder: Path) -> Iterator[ForeignEpisode]:
    """The episodes of a result folder, in order of their task ids. Raises BadInput if it contains none."""
    pages = sorted(folder.glob("render_*.html"), key=lambda path: (len(path.name), path.name))
    if not pages:
        raise BadInput(f"{str(folder)!r} holds no render_*.html: give the result folder of a WebArena run")
    verdicts = _verdicts(folder)
    for page in pages:
        yield _episode(page, verdicts)


def _verdicts(folder: Path) -> Mapping[str, Outcome]:
    """The outcomes by task id. A task with an unhandled error in its part of the log is broken."""
    outcomes: dict[str, Outcome] = {}
    for log in sorted((*folder.glob("*.txt"), *folder.glob("*.log"), *folder.glob("log_files/*.log"))):
        task = ""
        for line in read_text(inside(folder, log)).splitlines():
            if (config := _CONFIG_FILE.search(line)) is not None:
                task = config["id"]
            elif (result := _RESULT.search(line)) is not None:
                outcomes[result["id"]] = "success" if result["verdict"] == "PASS" else "failure"
            elif task and _BROKEN.search(line):
                outcomes[task] = "broken"
    return outcomes


def _episode(page: Path, verdicts: Mapping[str, Outcome]) -> ForeignEpisode:
    text = read_text(page)
    config = _CONFIG.search(text)
    if config is None:
        raise BadInput(f"{page}: no task configuration: this is not a page rendered by WebArena")
    settings: dict[str, str] = {}
    for line in config["lines"].splitlines():
        name, _, value = line.partition(": ")
        settings.setdefault(name, value)
    task_id = settings["task_id"].strip()
    steps, problems = _steps(text[config.end() :].split(_PAGE)[1:])
    outcome = verdicts.get(task_id, "unjudged")
    last = steps[-1].action if steps else None
    early = isinstance(last, Stop) and (last.answer or "").startswith(_EARLY)
    if early and isinstance(last, Stop):
        problems.append((last.answer or "").lower())
        steps = steps[:-1]
    return ForeignEpisode(
        source="webarena",
        task=TaskRef(suite="webarena", name=task_id),
        instruction=settings.get("intent", "").strip(),
        category=_category(settings.get("sites", "")),
        policy="webarena log",
        outcome=outcome,
        ended_by="max_steps" if early else ended_by(last, broken=outcome == "broken"),
        evidence=f"the log says {'PASS' if outcome == 'success' else 'FAIL'}",
        steps=tuple(steps),
        answer=last.answer if isinstance(last, Stop) and not early else None,
        error="the log holds an unhandled error" if outcome == "broken" else None,
        problems=tuple(problems),
    )


def _category(sites: str) -> str:
    try:
        names = ast.literal_eval(sites)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return "open"
    return " + ".join(str(name) for name in names) if isinstance(names, list) else "open"


def _steps(parts: list[str]) -> tuple[list[ForeignStep], list[str]]:
    steps: list[ForeignStep] = []
    problems: list[str] = []
    for number, part in enumerate(parts, 1):
        tree, parsed = _TREE.search(part), _PARSED.search(part)
        if tree is None or parsed is None:
            problems.append(f"page {number} of the log is cut off or in another format; left out")
            continue
        raw, url, title = _RAW.search(part), _URL.search(part), _TITLE.search(tree["text"])
        prediction = raw["text"] if raw is not None else parsed["text"]
        nodes = Nodes.of(tree["text"])
        action, foreign_id = parse_action(parsed["text"], prediction, nodes)
        if action is None:
            problems.append(f"page {number}: {parsed['text'].strip()!r:.120} is not an action; recorded as waiting")
        steps.append(
            ForeignStep(
                url=url["url"].strip() if url else "",
                title=title["title"].strip() if title else "",
                text=tree["text"],
                action=action or Wait(),
                raw=prediction,
                target=nodes.rows.get(foreign_id),
            )
        )
    return steps, problems


def parse_action(parsed: str, raw: str, nodes: Nodes) -> tuple[Action | None, str]:
    """Parses an action. Returns it (None if invalid) and the id of the element that it names."""
    match = _VERB.match(parsed)
    if match is None:
        return None, ""
    verb, arguments = match["verb"].lower(), _ARGUMENT.findall(match["rest"].strip())
    first = arguments[0].strip() if arguments else ""
    match verb:
        case "click":
            return Click(ref=nodes.ref(first)), first
        case "hover":
            return Hover(ref=nodes.ref(first)), first
        case "type":
            text = arguments[1] if len(arguments) > 1 else ""
            enter = re.search(r"\[[01]\]\s*(?:```|$)", raw.strip())
            return Type(ref=nodes.ref(first), text=text.strip(), enter=enter is None or "[1]" in enter.group()), first
        case "scroll":
            return Scroll(direction="up" if "up" in parsed.lower() else "down"), ""
        case "press":
            return Press(keys=first), ""
        case "goto":
            return Goto(url=first), ""
        case "stop":
            return Stop(answer=first or None), ""
        case _:
            return _browser_action(verb, first), ""


def _browser_action(verb: str, argument: str) -> Action | None:
    match verb:
        case "go_back":
            return Back()
        case "go_forward":
            return Forward()
        case "new_tab":
            return NewTab()
        case "close_tab" | "page_close":
            return CloseTab()
        case "tab_focus" | "page_focus":
            return FocusTab(index=int(argument)) if argument.isdigit() else None
        case _:
            return None
