"""Reads experiment folders of BrowserGym and AgentLab: `step_N.pkl.gz`, `summary_info.json`, `exp_args.pkl`.

A folder with `step_0.pkl.gz` is one episode; a study is a folder of episodes, at any depth. Step N contains the
observation and the action chosen on it; its reward belongs to the previous action. Action strings (`click('a51')`) are
parsed as Python literals and never run.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

from envs.core.actions import (
    Action,
    Back,
    Click,
    ClickAt,
    CloseTab,
    Drag,
    FocusTab,
    Forward,
    Goto,
    Hover,
    NewTab,
    Press,
    Scroll,
    Select,
    Status,
    Stop,
    Type,
    Upload,
    Wait,
)
from envs.core.errors import BadInput
from envs.core.tasks import TaskRef
from envs.core.trace import Outcome
from envs.importing.episodes import ForeignEpisode, ForeignStep, Nodes, ended_by
from envs.importing.files import LARGEST_PICTURE_BYTES, inside, read_regular
from envs.importing.inert_pickle import Blank, read_pickle

_FIRST: Final = "step_0.pkl.gz"
_FULL_REWARD: Final = 1.0
_PNG: Final = b"\x89PNG\r\n\x1a\n"


def read_agentlab(folder: Path) -> Iterator[ForeignEpisode]:
    """The episodes below *folder*, sorted by path. Raises BadInput if there are none, or for a damaged file."""
    firsts = sorted(folder.rglob(_FIRST))
    if not firsts:
        raise BadInput(f"{str(folder)!r} holds no {_FIRST}: give an AgentLab study or a BrowserGym experiment folder")
    for first in firsts:
        yield _episode(inside(folder, first).parent)


def _episode(folder: Path) -> ForeignEpisode:
    infos = [read_pickle(path) for path in _step_files(folder)]
    summary = _summary(folder)
    task, seed, policy = _identity(folder)
    problems: list[str] = []
    steps = _until_stop(
        [step for number in range(len(infos)) for step in _steps(folder, number, infos, problems)], problems
    )
    outcome, error = _outcome(summary)
    last = steps[-1].action if steps else None
    first = infos[0] if infos else None
    return ForeignEpisode(
        source="agentlab",
        task=TaskRef(suite="browsergym", name=task, seed=seed),
        instruction=_goal(_observation(first), folder),
        category="open",
        policy=policy,
        outcome=outcome,
        ended_by="environment"
        if summary.get("terminated") and not isinstance(last, Stop)
        else ended_by(last, broken=outcome == "broken"),
        evidence=f"cumulative reward {summary.get('cum_reward', 'unknown')}",
        steps=tuple(steps),
        answer=last.answer if isinstance(last, Stop) else None,
        reward=_number(summary.get("cum_reward")),
        error=error,
        problems=tuple(problems),
    )


def _until_stop(steps: list[ForeignStep], problems: list[str]) -> list[ForeignStep]:
    """Makes the last message the stop action and earlier ones waits: a message ends Mira's episode, but not a chat."""
    while len(steps) > 1 and isinstance(steps[-1].action, Stop) and isinstance(steps[-2].action, Stop):
        steps = steps[:-1]
    for number, step in enumerate(steps[:-1], 1):
        if isinstance(step.action, Stop):
            problems.append(f"step {number}: a message in the middle of the episode; recorded as waiting")
            steps[number - 1] = replace(step, action=Wait(), status=Status.OK)
    return steps


def _step_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("step_*.pkl.gz"), key=lambda path: (len(path.name), path.name))


def _summary(folder: Path) -> Mapping[str, Any]:
    path = folder / "summary_info.json"
    try:
        value = json.loads(read_regular(path))
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}: cannot be read: {error}") from None
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _outcome(summary: Mapping[str, Any]) -> tuple[Outcome, str | None]:
    """Full reward is success. An error of the harness is `broken`, not a failure of the policy."""
    if summary.get("err_msg"):
        return "broken", " ".join(str(summary["err_msg"]).split())[:1000]
    reward = _number(summary.get("cum_reward"))
    if reward is None:
        return "unjudged", None
    return ("success" if reward >= _FULL_REWARD else "failure"), None


def _identity(folder: Path) -> tuple[str, int, str]:
    """Task, seed and model, as far as the experiment's arguments contain them."""
    path = folder / "exp_args.pkl"
    arguments = read_pickle(path) if path.exists() else None
    environment, agent = _get(arguments, "env_args"), _get(arguments, "agent_args")
    task = _get(environment, "task_name")
    seed = _get(environment, "task_seed")
    model = _get(_get(agent, "chat_model_args"), "model_name") or _get(agent, "agent_name")
    return (
        task if isinstance(task, str) else folder.name,
        seed if isinstance(seed, int) else 0,
        model if isinstance(model, str) else "agentlab log",
    )


def _steps(folder: Path, number: int, infos: Sequence[Any], problems: list[str]) -> Iterator[ForeignStep]:
    """The actions of one step, usually one; none after the end of the episode."""
    info = infos[number]
    observation, raw = _observation(info), _get(info, "action")
    if not isinstance(raw, str):
        return
    text, tabs = _text(observation), _listed(_get(observation, "open_pages_titles"))
    nodes = Nodes.of(text)
    active = _first_int(_get(observation, "active_page_index"))
    following = infos[number + 1] if number + 1 < len(infos) else None
    after, took = _get(_observation(following), "last_action_error"), _get(_get(following, "stats"), "step_elapsed")
    calls = _calls(raw)
    if not calls:
        problems.append(f"step {number}: {raw!r:.120} is not a call; recorded as waiting")
    for position, call in enumerate(calls or [None]):
        action, foreign_id = (Wait(), "") if call is None else _action(call, nodes)
        if action is None:
            problems.append(f"step {number}: {raw!r:.120} has an unknown call; recorded as waiting")
        error = str(after) if after and position == len(calls) - 1 else ""
        yield ForeignStep(
            url=str(_get(observation, "url") or ""),
            title=str(tabs[active]) if active < len(tabs) else "",
            text=text,
            action=action or Wait(),
            raw=raw,
            target=nodes.rows.get(foreign_id),
            status=Status.FAILED if error else Status.STOPPED if isinstance(action, Stop) else Status.OK,
            message=" ".join(error.split())[:500],
            screenshot=_picture(folder / f"screenshot_step_{number}.png"),
            seconds=round(_number(took) or 0.0, 3) if position == 0 else 0.0,
        )


def _picture(path: Path) -> bytes | None:
    """Reads a PNG; None if the file does not exist. Raises BadInput for a link or another format."""
    try:
        data = read_regular(path, LARGEST_PICTURE_BYTES)
    except FileNotFoundError:
        return None
    if not data.startswith(_PNG):
        raise BadInput(f"{path}: is not a PNG image")
    return data


def _text(observation: Any) -> str:
    """The accessibility tree as text: AgentLab's text if present, else generated from the tree."""
    ready = _get(observation, "axtree_txt")
    if isinstance(ready, str):
        return ready
    nodes = _listed(_get(_get(observation, "axtree_object"), "nodes"))
    lines = [line for node in nodes if (line := _node_line(node))]
    return "\n".join(lines)


def _node_line(node: Any) -> str:
    role, name = _get(_get(node, "role"), "value"), _get(_get(node, "name"), "value")
    if not isinstance(role, str) or role in ("none", "generic", "InlineTextBox") or not (name or role == "RootWebArea"):
        return ""
    bid = _get(node, "browsergym_id")
    return f"[{bid}] {role} {str(name)!r}" if isinstance(bid, str) else f"{role} {str(name)!r}"


def _goal(observation: Any, folder: Path) -> str:
    """BrowserGym's `goal`, else the texts of its `goal_object`."""
    goal = _get(observation, "goal")
    if isinstance(goal, str) and goal.strip():
        return " ".join(goal.split())
    path = folder / "goal_object.pkl.gz"
    parts = _get(observation, "goal_object") or (read_pickle(path) if path.exists() else None)
    texts = [text for part in _listed(parts) if isinstance(text := _get(part, "text"), str)]
    return " ".join(" ".join(texts).split())


def _calls(text: str) -> list[ast.Call]:
    try:
        body = ast.parse(text.strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the parser raises MemoryError for deep nesting
        return []
    return [node.value for node in body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]


def _action(call: ast.Call, nodes: Nodes) -> tuple[Action | None, str]:
    """The action, None for a call without a counterpart, and the bid that the call names."""
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    try:
        values = [ast.literal_eval(argument) for argument in call.args]
        named = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
    except ValueError:
        return None, ""
    first = str(values[0]) if values else str(named.get("bid", named.get("text", "")))
    second = values[1] if len(values) > 1 else named.get("value", named.get("options", named.get("key_comb", "")))
    on_element = _on_element(name, nodes.ref(first), second, named)
    if on_element is not None:
        return on_element, first
    if name in ("send_msg_to_user", "report_infeasible"):
        return Stop(answer=first if name == "send_msg_to_user" else f"N/A: {first}"), ""
    if name == "drag_and_drop":
        return Drag(ref=nodes.ref(first), to_ref=nodes.ref(str(second))), first
    return _without_element(name, first, values), ""


def _on_element(name: str, ref: int, value: Any, named: Mapping[str | None, Any]) -> Action | None:
    match name:
        case "click":
            button = str(named.get("button", value or "left"))
            return Click(ref=ref, button="right" if button == "right" else "middle" if button == "middle" else "left")
        case "dblclick":
            return Click(ref=ref, count=2)
        case "hover":
            return Hover(ref=ref)
        case "focus":
            return Click(ref=ref)
        case "fill":
            return Type(ref=ref, text=str(value))
        case "clear":
            return Type(ref=ref, text="")
        case "select_option":
            options = _listed(value)
            return Select(ref=ref, option=str(options[0] if options else value))
        case "press":
            return Press(keys=str(value))
        case "upload_file":
            return Upload(ref=ref, path=str(value))
        case _:
            return None


def _without_element(name: str, first: str, values: Sequence[Any]) -> Action | None:
    numbers = [float(value) for value in values if isinstance(value, int | float)]
    match name:
        case "goto":
            return Goto(url=first)
        case "go_back":
            return Back()
        case "go_forward":
            return Forward()
        case "new_tab":
            return NewTab()
        case "tab_close":
            return CloseTab()
        case "tab_focus":
            return FocusTab(index=max(0, int(numbers[0]))) if numbers else None
        case "noop":
            return Wait()
        case "scroll":
            return Scroll(direction="up" if len(numbers) > 1 and numbers[1] < 0 else "down")
        case "keyboard_press":
            return Press(keys=first)
        case "mouse_click" if len(numbers) > 1:
            return ClickAt(x=numbers[0], y=numbers[1])
        case _:
            return None


def _observation(info: Any) -> Any:
    return _get(info, "obs")


def _get(value: Any, name: str) -> Any:
    """An item or attribute of an unpickled value; None if it does not exist."""
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).get(name)
    return value.__dict__.get(name) if isinstance(value, Blank) else None


def _listed(value: Any) -> list[Any]:
    return list(cast("Sequence[Any]", value)) if isinstance(value, list | tuple) else []


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _first_int(value: Any) -> int:
    """The active tab's index; 0 for BrowserGym's array of one number, whose bytes the inert pickle does not read."""
    return value if isinstance(value, int) else 0
