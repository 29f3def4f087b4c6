"""AndroidControl (Google, 2024): episodes on Android, with an instruction for the episode and one for each step.

As published (`gresearch/android_control`): TFRecord files compressed with gzip, one tf.Example an episode, and
`splits.json` with the episode ids of train, validation and test. Fields and actions: `android_control/README.md` of
google-research, and UGround's `offline_evaluation/AndroidControl/extract_raw.py`. Accessibility trees are
`AndroidAccessibilityForest` messages of android_env; the smallest visible node around a point is its element. A step
shows the screenshot before its action, so the last screenshot of an episode has none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, cast, get_args

from envs.core.actions import Action
from envs.core.errors import BadInput
from training.data_sets import items
from training.data_sets.items import Corners, Direction, Exclusion, Item, Step
from training.data_sets.protobuf import DamagedMessage, fields, messages, signed
from training.data_sets.registry import DataSet, check_split
from training.data_sets.rows import Row, read_json, row_of
from training.data_sets.tfrecord import Feature, read_examples
from training.grpo.examples import Split

SPLITS: Final[Mapping[str, Split]] = {"train": "train", "validation": "validation", "test": "test"}
_WINDOWS, _TREE, _NODES, _BOUNDS, _VISIBLE = 1, 11, 1, 2, 23
"""Field numbers of android_env's `a11y` messages."""


def read(folder: Path, split: str | None) -> Iterator[Item | Exclusion]:
    """Reads the TFRecord files `android_control*` of *folder*, or one file. Episodes without an entry in `splits.json`
    have no split."""
    check_split(split, tuple(SPLITS))
    home = folder if folder.is_dir() else folder.parent
    files = sorted(home.glob("android_control*")) if folder.is_dir() else [folder]
    files = [path for path in files if path.suffix != ".json"]
    if not files:
        raise BadInput(f"{folder} holds no TFRecord files android_control*")
    split_of = _splits(home)
    if split is not None and not split_of:
        raise BadInput(f"--split needs the file {home / 'splits.json'}")
    for path in files:
        for number, example in enumerate(read_examples(path), 1):
            where = f"{path.name} record {number}"
            episode = _numbers(example, "episode_id", where)[0]
            if split not in (None, split_of.get(episode)):
                yield Exclusion.SPLIT
                continue
            yield from _episode(example, episode, split_of.get(episode), where)


def _episode(example: Mapping[str, Feature], episode: int, split: Split | None, where: str) -> Iterator[Item]:
    goal = _texts(example, "goal", where)[0]
    instructions = _texts(example, "step_instructions", where)
    pictures = _bytes(example, "screenshots", where)
    trees = _bytes(example, "accessibility_trees", where)
    actions = _texts(example, "actions", where)
    if len(pictures) <= len(actions) or len(instructions) != len(actions):
        raise BadInput(
            f"{where}: {len(actions)} actions need as many 'step_instructions' and one more of 'screenshots', not "
            f"{len(instructions)} and {len(pictures)}"
        )
    history: list[str] = []
    for number, (text, instruction) in enumerate(zip(actions, instructions, strict=True)):
        here = f"{where}, step {number}"
        row, picture = _json_row(text, here), pictures[number]
        size = row.size(picture)
        action, box = _action(row), None
        if "x" in row.values:
            x, y = row.number("x"), row.number("y")
            nodes = _boxes(trees[number], here) if number < len(trees) else []
            box = items.smallest_around(x, y, nodes) or items.around(x, y, size)
        yield Item(
            here,
            f"android-control/{episode}/{number}",
            picture,
            size,
            goal,
            box,
            Step(action, instruction, tuple(history)),
            platform="android",
            episode=str(episode),
            split=split,
        )
        history.append(instruction)


def _action(row: Row) -> Action:
    match row.text("action_type"):
        case "click":
            return items.click(row.number("x"), row.number("y"))
        case "long_press":
            return items.long_press(row.number("x"), row.number("y"))
        case "scroll":
            direction = row.text("direction")
            if direction not in get_args(Direction):
                raise row.bad(f"'direction' must be up, down, left or right, not {direction!r}")
            return items.scroll(cast("Direction", direction))
        case "open_app":
            return items.open_app(row.text("app_name"))
        case "input_text":
            return items.typed(row.text("text"))
        case "type":
            return items.typed(row.text("text")).model_copy(update={"enter": True})
        case "navigate_home":
            return items.HOME
        case "navigate_back":
            return items.BACK
        case "wait":
            return items.WAIT
        case other:
            raise row.bad(f"'action_type' {other!r} is not known")


def _boxes(forest: bytes, where: str) -> list[Corners]:
    """The boxes of the visible nodes of an accessibility forest, in pixels of the screen."""
    found: list[Corners] = []
    try:
        for window in messages(forest, _WINDOWS):
            for tree in messages(window, _TREE):
                for node in messages(tree, _NODES):
                    parts = dict(fields(node))
                    bounds = parts.get(_BOUNDS)
                    if parts.get(_VISIBLE) and isinstance(bounds, bytes):
                        found.append(_rect(bounds))
    except DamagedMessage as error:
        raise BadInput(f"{where}: the accessibility tree cannot be read: {error}") from None
    return found


def _rect(data: bytes) -> Corners:
    sides = {number: signed(value) for number, value in fields(data) if isinstance(value, int)}
    left, top, right, bottom = (float(sides.get(number, 0)) for number in (1, 2, 3, 4))
    return left, top, right, bottom


def _splits(home: Path) -> dict[int, Split]:
    path = home / "splits.json"
    if not path.is_file():
        return {}
    row = row_of(read_json(path), path.name)
    return {int(row.finite(name, one)): split for name, split in SPLITS.items() for one in row.items(name)}


def _json_row(text: str, where: str) -> Row:
    try:
        return row_of(json.loads(text), where)
    except ValueError:
        raise BadInput(f"{where}: the action is not valid JSON") from None


def _texts(example: Mapping[str, Feature], key: str, where: str) -> Sequence[str]:
    return [value.decode("utf-8", "replace") for value in _bytes(example, key, where)]


def _bytes(example: Mapping[str, Feature], key: str, where: str) -> Sequence[bytes]:
    values = [value for value in example.get(key, ()) if isinstance(value, bytes)]
    if not values and key in ("goal", "screenshots"):
        raise BadInput(f"{where} has no {key!r}")
    return values


def _numbers(example: Mapping[str, Feature], key: str, where: str) -> Sequence[int]:
    values = [value for value in example.get(key, ()) if isinstance(value, int)]
    if not values:
        raise BadInput(f"{where} has no {key!r}")
    return values


DATA_SET: Final = DataSet(read, "TFRecord files android_control* and splits.json", ("step", "goal"))
