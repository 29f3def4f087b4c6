"""The AutoRater's prompt and the schema of its answer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, Literal, cast

from pydantic import BaseModel, ConfigDict, create_model, model_validator

from envs.observer.action_log import action_log
from envs.observer.page_text import plain_page_text
from judges.base import Progress
from judges.evidence import LOG_CHARS
from models.base import Image, Message
from models.prompting.fence import FENCE_RULE
from models.prompting.prompt_text import PromptText, fenced, fenced_lines, joined, message, number, words

SYSTEM: Final = f"""\
You check the progress of an agent in a web browser: which milestones of its plan are achieved, whether the current \
one is complete, and which should come next.

Rules
- A milestone that was planned, begun or tried is not achieved. Achieved ones stay achieved.
- "yes" needs proof: quotes copied exactly from the page or the log, each from one place, a few words to one line. \
Mostly one is enough; a milestone with several parts (all of, each of, a list) needs one for every part.
- An absence is proven by the complete list in which it would stand: quote its filter with its count, its rows or its \
message that nothing was found. A list with a line that begins with "…" is not complete.
- "unsure": the proof may be there but needs a closer look.
- {FENCE_RULE}

Answer with one JSON object: "milestones" (each to judge by its key, with "quotes", [] without proof, and "answer": \
yes, no or unsure), "current_complete" (true or false), "next_milestone" (key, "" if all are achieved), "reason" (one \
sentence)."""


class MilestoneAnswer(BaseModel):
    """The answer for one open milestone. The quotes come first, so that the model searches before it decides."""

    model_config = ConfigDict(extra="forbid")

    quotes: list[str]
    """All of them together are the proof."""
    answer: Literal["yes", "no", "unsure"]

    @model_validator(mode="before")
    @classmethod
    def _one_quote(cls, values: Any) -> Any:
        """Answers that were written for older versions have a single `quote`."""
        if not isinstance(values, dict) or "quote" not in values or "quotes" in values:
            return values  # pyright: ignore[reportUnknownVariableType]
        fields = cast(dict[str, Any], values)
        return {name: value for name, value in fields.items() if name != "quote"} | {"quotes": [fields["quote"]]}


class MilestoneAnswers(BaseModel):
    """Base; a subclass has one :class:`MilestoneAnswer` for each milestone asked about, in a field `mN`."""

    model_config = ConfigDict(extra="forbid")


class Reflection(BaseModel):
    """The three answers of the MiRA paper, Fig. 5."""

    model_config = ConfigDict(extra="forbid")

    milestones: MilestoneAnswers
    current_complete: bool
    next_milestone: str
    reason: str

    def answer(self, index: int) -> MilestoneAnswer:
        """The answer for the milestone with 0-based *index*, which must be in the schema."""
        return getattr(self.milestones, key(index))


def key(index: int) -> str:
    """The name of the milestone with 0-based *index* in prompt and answer, independent of its id."""
    return f"m{index + 1}"


@lru_cache(maxsize=256)
def reflection_schema(places: tuple[int, ...]) -> type[Reflection]:
    """The schema with exactly one answer for each of the milestones *places* (0-based)."""
    fields: dict[str, Any] = {key(index): (MilestoneAnswer, ...) for index in places}
    answers = create_model("RequestedAnswers", __base__=MilestoneAnswers, **fields)
    return create_model("RequestedReflection", __base__=Reflection, milestones=(answers, ...))


def render(progress: Progress, places: Sequence[int]) -> tuple[Message, ...]:
    """The messages that ask about the open milestones *places* (0-based). Rules first, then what changes least."""
    observation = progress.observation
    current = next(index for index, achieved in enumerate(progress.z) if not achieved)
    to_judge = joined(", ", map(_key, places))
    question = (
        words("Milestones to judge: "),
        to_judge,
        words(". Current: "),
        _key(current),
        words("."),
    )
    parts = [
        fenced("task", progress.instruction),
        _plan(progress),
        fenced("log", action_log(progress.history, LOG_CHARS)),
        fenced("page", plain_page_text(observation)),
        joined("", question),
    ]
    images = () if observation.screenshot is None else (Image(observation.screenshot),)
    return message("system", words(SYSTEM)), message("user", joined("\n\n", parts), images)


def _plan(progress: Progress) -> PromptText:
    """The status of milestones is outside the fence, so that no milestone's text can change it."""
    achieved = [_key(index) for index, is_achieved in enumerate(progress.z) if is_achieved]
    texts = fenced_lines(
        "plan", (f"{key(index)}: {milestone.text}" for index, milestone in enumerate(progress.milestones))
    )
    return joined("", (words("Achieved: "), joined(", ", achieved) if achieved else words("none"), words("\n"), texts))


def _key(index: int) -> PromptText:
    return words("m") + number(index + 1)
