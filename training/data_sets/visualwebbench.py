"""VisualWebBench (2024): questions on pictures of web pages, in seven subtasks.

As published (`visualwebbench/VisualWebBench`): parquet files `SUBTASK/test-*`, one row a question. Sources: the
features on the data set's page, and `run.py`, `utils/prompts.py` and `utils/eval_utils.py` of its repository.

Grounding (`element_ground`, `action_ground`): which of eight marked elements is meant. `image` shows the marks A to H,
`raw_image` the page without them; `options` are the boxes of the marked elements, left, top, right and bottom;
`answer` is the place of the right one, from 0; `elem_desc` (element grounding) or `instruction` (action grounding) says
what is meant; `image_size` is the size of the page's picture. The sources do not state the units of `options`: numbers
from 0 to 1 are taken for shares of the picture, others for pixels of it. `--ask choice` asks for a letter, as the
benchmark does, in words of Mira; `element` and `goal` ask for a point on the page without marks, which the repository
scores by whether the box holds it (`eval_element_point_ground`).

Texts (`--ask text`): `web_caption` and `heading_ocr` have a text as `answer`; `webqa` a `question` and a list of
answers; `element_ocr` a text and the `bbox` of a red rectangle, in shares of the picture; `action_prediction` the
`bbox` of what is clicked, `options`, which are texts, and the place of the right one as `answer`. Metrics are the
benchmark's: ROUGE-L of captions and OCR, the F1 of distinct words for questions, accuracy for action prediction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from string import ascii_uppercase
from typing import Final, Literal

from envs.core.errors import BadInput
from training.data_sets.items import Choices, Corners, Exclusion, Item, Size, TextQuestion
from training.data_sets.registry import DataSet, check_split
from training.data_sets.rows import Row, rows_in

MARKED: Final[Mapping[str, str]] = {"element_ground": "elem_desc", "action_ground": "instruction"}
"""What a row of each subtask with marked elements is asked by."""
TEXTS: Final[Mapping[str, Literal["caption", "heading", "question", "element text", "result of a click"]]] = {
    "web_caption": "caption",
    "heading_ocr": "heading",
    "webqa": "question",
    "element_ocr": "element text",
    "action_prediction": "result of a click",
}
"""What each subtask on texts asks for."""
SUBTASKS: Final = (*MARKED, *TEXTS)
_RATIO: Final = 1.01
"""The largest coordinate of boxes that are shares of the picture, with room for rounding."""


def read(folder: Path, split: str | None) -> Iterator[Item | Exclusion]:
    """Reads the parquet files of *folder*, or one file. *split* is a subtask. Files of other subtasks are counted."""
    check_split(split, SUBTASKS)
    files = [folder] if folder.suffix == ".parquet" else sorted(folder.glob("**/*.parquet"))
    if not files:
        raise BadInput(f"{folder} holds no *.parquet")
    for path in files:
        for row in rows_in(path):
            subtask = row.text("task_type")
            if subtask not in SUBTASKS or split not in (None, subtask):
                yield Exclusion.SPLIT
                continue
            yield _item(row, subtask, folder) if subtask in MARKED else _text_item(row, subtask, folder)


def _item(row: Row, subtask: str, folder: Path) -> Item | Exclusion:
    if row.values.get("image") is None or row.values.get("raw_image") is None:
        return Exclusion.NO_PICTURE
    marked, plain = row.picture("image", folder), row.picture("raw_image", folder)
    right = _right(row)
    sizes = row.size(marked), row.size(plain)
    on_marked, on_plain = (_boxes(row, size) for size in sizes)
    return Item(
        row.where,
        f"visualwebbench/{row.text('id')}",
        plain,
        sizes[1],
        row.text(MARKED[subtask]),
        on_plain[right],
        choices=Choices(marked, sizes[0], on_marked, right, subtask == "action_ground"),
        platform="web",
        group=subtask,
        episode=row.text("website", ""),
        split="test",
    )


def _text_item(row: Row, subtask: str, folder: Path) -> Item | Exclusion:
    if row.values.get("image") is None:
        return Exclusion.NO_PICTURE
    picture = row.picture("image", folder)
    return Item(
        row.where,
        f"visualwebbench/{row.text('id')}",
        picture,
        row.size(picture),
        row.text("question") if subtask == "webqa" else row.text("elem_desc", ""),
        question=_question(row, subtask),
        platform="web",
        group=subtask,
        episode=row.text("website", ""),
        split="test",
    )


def _question(row: Row, subtask: str) -> TextQuestion:
    kind = TEXTS[subtask]
    if subtask == "webqa":
        return TextQuestion(kind, tuple(_texts(row, "answer")))
    if subtask == "action_prediction":
        return TextQuestion(kind, options=_unlettered(_texts(row, "options")), right=_right(row), box=_shares(row))
    return TextQuestion(kind, (row.text("answer"),), box=_shares(row) if subtask == "element_ocr" else None)


def _texts(row: Row, key: str) -> list[str]:
    return [Row({key: text}, row.where).text(key) for text in row.items(key)]


def _unlettered(options: list[str]) -> tuple[str, ...]:
    """*options* without their letters, if all begin with theirs, such as `A. `."""
    lettered = [option.lstrip("( ").startswith((f"{own}.", f"{own})", f"{own}:")) for own, option in _named(options)]
    return tuple(option.lstrip("( ")[2:].strip() for option in options) if all(lettered) else tuple(options)


def _named(options: list[str]) -> list[tuple[str, str]]:
    return list(zip(ascii_uppercase, options, strict=False))


def _shares(row: Row) -> Corners:
    left, top, right, bottom = row.numbers("bbox", 4)
    if max(right, bottom) > _RATIO:
        wide, high = row.numbers("image_size", 2)
        left, top, right, bottom = left / wide, top / high, right / wide, bottom / high
    return left, top, right, bottom


def _right(row: Row) -> int:
    """The place of the right one of 'options'."""
    right, count = row.number("answer"), len(row.items("options"))
    if not (right.is_integer() and 0 <= right < count):
        raise row.bad(f"'answer' must be the index of one of {count} 'options', from 0, not {right:g}")
    return int(right)


def _boxes(row: Row, size: Size) -> tuple[Corners, ...]:
    """The boxes of 'options' in pixels of a picture of *size*."""
    options = [Row({"options": box}, row.where).numbers("options", 4) for box in row.items("options")]
    if max(edge for box in options for edge in box) <= _RATIO:
        across, down = size
    else:
        wide, high = row.numbers("image_size", 2)
        across, down = size[0] / wide, size[1] / high
    return tuple((left * across, top * down, right * across, bottom * down) for left, top, right, bottom in options)


DATA_SET: Final = DataSet(read, "parquet files of its subtasks' folders", ("choice", "element", "goal", "text"))
