"""Asks the questions of examples in the form that a recipe trains on, so that one file of examples serves all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from envs.core.record import Record
from models.prompting.thought_request import with_thought_request, without_thought_request
from models.vision.coordinates import Size
from models.vision.grounding import AnswerShape, GroundingPrompt, restated, states_resolution
from training.grpo.examples import Example
from training.grpo.rewards import PointTarget, StepTarget


class PromptSettings(Record):
    """The form of questions. Coordinates stay in the units that a question asks for."""

    think: bool = True
    """Ask for a thought before the answer."""
    answer: AnswerShape = AnswerShape.POINT
    """What questions for a place ask for: `point`, `box`, or `json_box`."""
    resolution: bool = False
    """State the size of the screenshot in training."""
    resolution_held_out: bool = False
    """State it after training: in the questions of held-out examples (GuirlVG, Table 7), and in those of
    `mira eval grounding` and of runs, for which the checkpoint declares it."""


def ask_as(
    examples: Sequence[Example],
    prompt: PromptSettings | None,
    size_of: Callable[[Example], Size],
    *,
    held_out: bool = False,
) -> tuple[tuple[Example, ...], int]:
    """Returns (*examples* in the form of *prompt*, the number of questions that could not be put in it).

    A prompt that states a resolution states *size_of* its example, the size of the image whose coordinates are
    rewarded (:meth:`training.grpo.frames.AnswerFrames.size`). With *prompt*, questions for a place are those of
    :class:`models.vision.grounding.GroundingPrompt`, and prompts for a step get or lose the line that asks for a
    thought. Puzzles stay as they are.
    """
    examples = tuple(_restated(example, size_of) for example in examples)
    if prompt is None:
        return examples, 0
    resolution = prompt.resolution_held_out if held_out else prompt.resolution
    form = GroundingPrompt(prompt.think, resolution, prompt.answer)
    asked = [_asked(example, form, size_of) for example in examples]
    return tuple(new or old for new, old in zip(asked, examples, strict=True)), asked.count(None)


def _restated(example: Example, size_of: Callable[[Example], Size]) -> Example:
    _, text = example.messages[-1]
    if example.image is None or not states_resolution(text):
        return example
    return _with_text(example, restated(text, size_of(example)))


def _asked(example: Example, form: GroundingPrompt, size_of: Callable[[Example], Size]) -> Example | None:
    _, text = example.messages[-1]
    match example.target:
        case PointTarget():
            new = form.reworded(text, size_of(example))
        case StepTarget():
            new = with_thought_request(text) if form.think else without_thought_request(text)
        case _:
            new = text
    return None if new is None else _with_text(example, new)


def _with_text(example: Example, text: str) -> Example:
    *before, (role, _) = example.messages
    return example.model_copy(update={"messages": (*before, (role, text))})
