"""The prompt of a step: the task, what was done before, and the actions that may be answered.

A place is asked for with :class:`models.vision.grounding.GroundingPrompt`, as in play.
"""

from __future__ import annotations

from collections.abc import Mapping
from string import ascii_uppercase
from typing import Final, LiteralString

from models.prompting.prompt_text import NOTHING, PromptText, joined, number, on_one_line, words
from models.prompting.thought_request import THOUGHT_REQUEST
from models.vision.coordinates import CoordinateSpace, Size
from models.vision.grounding import SUBJECT_CHARS, THINK, UNITS, resolution_sentence
from training.data_sets.items import Item

ACTIONS: Final[tuple[tuple[LiteralString, LiteralString], ...]] = (
    ('do(action="Click At", x=X, y=Y)', "also Double Click At"),
    ('do(action="Right Click At", x=X, y=Y)', "on a touch screen: a long press"),
    ('do(action="Type", argument="text", element="0")', "into the field that has the focus"),
    ('do(action="Select Dropdown Option", argument="label", element="0")', "in the list that has the focus"),
    ('do(action="Scroll Down")', "shows what is below; also Scroll Up, Scroll Left, Scroll Right"),
    ('do(action="Press Key", argument="Control+C")', "on a phone also GoHome and AppSwitch"),
    ('do(action="Press Enter")', ""),
    ('do(action="Goto", argument="app:NAME")', "opens an app"),
    ("go_backward()", ""),
    ('do(action="Wait")', ""),
    ("exit()", "the task is done"),
    ('exit(message="N/A")', "the task cannot be done"),
)
"""How each action is written, with a remark. Letters stand for numbers, which small models would repeat."""
PLACED: Final[tuple[LiteralString, LiteralString]] = (
    "# Element: X, Y",
    "the place of the field or list, on a line before Type and Select Dropdown Option",
)
"""The line that names the place of a step without a point, for data sets that score the element of every step."""
_MARKED: Final = "Elements on the screenshot are marked with letters. "
_DESCRIBED: Final = "Which of them is this: "
_CLICKED: Final = "Which of them is to be clicked for this task: "
_LETTER: Final = "\nAnswer with one uppercase letter and nothing else."
_IN_RECTANGLE: Final = "The screenshot has a red rectangle"
_ASKED_TEXTS: Final[Mapping[str, tuple[LiteralString, LiteralString]]] = {
    "caption": (
        "What is the description of this web page that its meta element gives to search engines?",
        "\nAnswer with the description and nothing else.",
    ),
    "heading": ("What is the main heading of this web page?", "\nAnswer with its text as it stands and nothing else."),
    "question": ("", "\nAnswer in as few words as possible."),
    "element text": (" Which text is in it?", "\nAnswer with the text as it stands and nothing else."),
    "result of a click": (" Which of these describes the page that a click on the element in it opens?", _LETTER),
}
"""By kind of question, its words and what it asks for. A question of the data set has its own words."""
_OPTION_CHARS: Final = 600
HISTORY: Final = 8
"""The most earlier actions that are shown."""
_ACTION_CHARS: Final = 300


def choice_prompt(item: Item, *, think: bool = False) -> PromptText:
    """Asks for the letter of a marked element: the one that is described, or the one to click for a goal."""
    assert item.choices is not None, "only items with marks have a letter"
    asked = words(_CLICKED if item.choices.click else _DESCRIBED) + on_one_line(item.task, SUBJECT_CHARS)
    return joined("", (words(_MARKED), asked, words(_LETTER), words(THINK) if think else NOTHING))


def text_prompt(item: Item, *, think: bool = False) -> PromptText:
    """Asks for a text, or for the letter of one of several texts, in words of Mira."""
    question = item.question
    assert question is not None, "only questions on texts have a text"
    asked, form = _ASKED_TEXTS[question.kind]
    parts = [words(asked) if asked else on_one_line(item.task, SUBJECT_CHARS)]
    if question.box is not None:
        left, top, right, bottom = (number(round(1000 * edge)) for edge in question.box)
        place = (words(", from "), left, words(", "), top, words(" to "), right, words(", "), bottom)
        parts = [words(_IN_RECTANGLE), *place, words(" in thousandths of its width and height."), *parts]
    for letter, option in zip(ascii_uppercase, question.options, strict=False):
        parts += [words("\n"), on_one_line(f"{letter}. {option}", _OPTION_CHARS)]
    return joined("", (*parts, words(form), words(THINK) if think else NOTHING))


def step_prompt(
    item: Item, *, space: CoordinateSpace, low: bool = False, think: bool = False, resolution: Size | None = None
) -> PromptText:
    """Asks for the next action of *item*. *low*: with the instruction of this step, where the data set has one;
    *resolution*: the size of the screenshot, if it is stated."""
    step = item.step
    assert step is not None, "only steps have a next action"
    lines = [words("Task: ") + on_one_line(item.task, SUBJECT_CHARS)]
    if low and step.instruction:
        lines.append(words("This step: ") + on_one_line(step.instruction, SUBJECT_CHARS))
    for count, done in enumerate(step.history[-HISTORY:], max(1, len(step.history) - HISTORY + 1)):
        lines.append(joined("", (words("Done, "), number(count), words(": "), on_one_line(done, _ACTION_CHARS))))
    if resolution is not None:
        lines.append(resolution_sentence(resolution))
    asked = (words("Answer with the next action on the screenshot, x and y "), words(UNITS[space]), words(":"))
    offered = (*ACTIONS, *((PLACED,) if item.elements else ()))
    lines += [joined("", asked), *(_action(written, remark) for written, remark in offered)]
    return joined("\n", (*lines, *((words(THOUGHT_REQUEST),) if think else ())))


def _action(written: LiteralString, remark: LiteralString) -> PromptText:
    return words(written) + (words("   ") + words(remark) if remark else NOTHING)
