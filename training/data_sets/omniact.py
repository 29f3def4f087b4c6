"""OmniACT (2024): tasks on desktop applications and web pages, each with a PyAutoGUI script for one screenshot.

As published: `train.json`, `val.json` and `test.json`, an object of rows with the relative paths `task`, `image` and
`box`. A task file is the line `Task: …`, a line `Output Script:`, and the script; a box file is an object of elements
with `top_left` and `bottom_right` in pixels. A click names the centre of its element. Sources: UGround's
`offline_evaluation/OmniACT/eval_action.py`, `gpt_plan.py` and `sample.py`, which also says that some rows of web
pages name `screen_1.png` and `screen_1.json` where the files are `screen1.png` and `screen1_boxes.json`.

The screenshot is the same for all lines of a script; each line is a step, with the lines before it as its history.
The script is parsed, never run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from envs.core.actions import Action, Press
from envs.core.errors import BadInput
from training.data_sets import items
from training.data_sets.items import Corners, Exclusion, Item, Size, Step
from training.data_sets.registry import DataSet, check_split
from training.data_sets.rows import Row, read_json, read_text, row_of
from training.grpo.examples import Split

FILES: Final[Mapping[str, Split]] = {"train": "train", "val": "validation", "test": "test"}
_LINE: Final = re.compile(r"^\s*pyautogui\.(\w+\(.*\))\s*$", re.MULTILINE)
_SCREEN: Final = re.compile(r"screen_(\d+)\.(png|json)$")
_POINTER: Final = frozenset({"moveTo", "dragTo", "move", "drag"})
_KEYS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("ctrl", "ctrlleft", "ctrlright"), "Control"),
    **dict.fromkeys(("command", "cmd", "win", "winleft", "winright"), "Meta"),
    **dict.fromkeys(("alt", "option", "altleft", "altright"), "Alt"),
    **dict.fromkeys(("shift", "shiftleft", "shiftright"), "Shift"),
    **dict.fromkeys(("enter", "return", "\n"), "Enter"),
    **dict.fromkeys(("esc", "escape"), "Escape"),
    **{name: f"Arrow{name.title()}" for name in ("up", "down", "left", "right")},
    **dict.fromkeys(("pgup", "pageup"), "PageUp"),
    **dict.fromkeys(("pgdn", "pagedown"), "PageDown"),
    **dict.fromkeys(("del", "delete"), "Delete"),
    "backspace": "Backspace",
    "end": "End",
    "home": "Home",
    "space": "Space",
    "tab": "Tab",
}
Boxes = list[Corners]


def read(folder: Path, split: str | None) -> Iterator[Item | Exclusion]:
    """Reads the tasks of *folder*."""
    check_split(split, tuple(FILES))
    files = [name for name in FILES if (folder / f"{name}.json").is_file()]
    if not files:
        raise BadInput(f"{folder} holds no train.json, val.json or test.json")
    for name in files:
        tasks = row_of(read_json(folder / f"{name}.json"), f"{name}.json")
        for key, value in tasks.values.items():
            if split in (None, name):
                yield from _task(
                    row_of(value, f"{name}.json row {key!r}"), folder, f"omniact/{name}/{key}", FILES[name]
                )
            else:
                yield Exclusion.SPLIT


def _task(row: Row, folder: Path, name: str, split: Split) -> Iterator[Item | Exclusion]:
    text = read_text(folder / row.text("task"))
    first = text.strip().partition("\n")[0]
    lines = _LINE.findall(text)
    if not first.startswith("Task:") or not lines:
        raise row.bad(f"{row.text('task')} is not a task with a script")
    picture, boxes = _file(row, "image", folder), _boxes(row, _file(row, "box", folder))
    size = row.size(picture)
    platform = "web" if "web" in Path(row.text("task")).parts else "desktop"
    history: list[str] = []
    for number, line in enumerate(lines):
        found = _action(line, boxes, size)
        if isinstance(found, Exclusion):
            yield found
            continue
        action, box = found
        yield Item(
            row.where,
            f"{name}/{number}",
            picture,
            size,
            first.removeprefix("Task:").strip(),
            box,
            Step(action, "", tuple(history)),
            platform=platform,
            episode=name,
            split=split,
        )
        history.append(items.in_words(action))


def _file(row: Row, key: str, folder: Path) -> Path:
    name = row.text(key)
    if (folder / name).is_file():
        return folder / name
    ending = r"screen\1.png" if key == "image" else r"screen\1_boxes.json"
    return Row({key: _SCREEN.sub(ending, name)}, row.where).file(key, folder)


def _boxes(row: Row, path: Path) -> Boxes:
    elements = row_of(read_json(path), f"{row.where}, {path.name}")
    return [_corners(elements.inner(key)) for key in elements.values]


def _corners(element: Row) -> Corners:
    left, top = element.numbers("top_left", 2)
    right, bottom = element.numbers("bottom_right", 2)
    return left, top, right, bottom


def _action(line: str, boxes: Boxes, size: Size) -> tuple[Action, Corners | None] | Exclusion:
    name, values = _call(line)
    if name in _POINTER:
        return Exclusion.POINTER
    match name, values:
        case (("click" | "leftClick" | "rightClick" | "doubleClick"), [int() | float() as x, int() | float() as y, *_]):
            changes = {"rightClick": {"button": "right"}, "doubleClick": {"count": 2}}.get(name, {})
            action = items.click(x, y).model_copy(update=changes)
            centred = [box for box in boxes if (box[0] + box[2]) / 2 == x and (box[1] + box[3]) / 2 == y]
            box = items.smallest_around(x, y, centred or boxes)
            return action, box or items.around(x, y, size)
        case (("write" | "typewrite"), [str() as text, *_]):
            return items.typed(text), None
        case "press", [str() as key, *_]:
            return Press(keys=_key(key)), None
        case "hotkey", [str(), *_]:
            return Press(keys="+".join(_key(str(value)) for value in values)), None
        case (("scroll" | "vscroll"), [int() | float() as amount, *_]):
            return items.scroll("up" if amount > 0 else "down"), None
        case "hscroll", [int() | float() as amount, *_]:
            return items.scroll("right" if amount > 0 else "left"), None
        case _:
            return Exclusion.NO_ACTION


def _call(line: str) -> tuple[str, list[object]]:
    """Name and arguments of a call; no name if it is none, or has other arguments than plain values."""
    try:
        call = ast.parse(line, mode="eval").body
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            return call.func.id, [ast.literal_eval(value) for value in call.args]
    except (SyntaxError, ValueError):
        pass
    return "", []


def _key(name: str) -> str:
    """The name of a key in Playwright's notation."""
    lower = name.strip().lower()
    if re.fullmatch(r"f\d{1,2}", lower):
        return lower.upper()
    return _KEYS.get(lower, name)


DATA_SET: Final = DataSet(read, "train.json, val.json or test.json and the folders that they name", ("step", "goal"))
