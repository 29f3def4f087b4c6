"""Planner with a small general model: a short request after two worked examples, up to K milestones.

Milestones are states, as the examples show: the policy acts so that the state holds, and the AutoRater looks
for it on the page. A plan may have fewer milestones than K, because a small model that must give four pads its plan.

The task follows the page: after a page of rows a 1.5B model planned to click each row. Prompts quote with “ ”, because
a straight quote that the model does not escape ends the JSON text, and the milestone (docs/results/planning.md).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar, Final, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, create_model, field_validator, model_validator

from envs.observer.page_focus import focused_lines, interest
from envs.observer.page_lines import without_cues, without_refs
from envs.observer.page_text import LOG_LINE_CHARS, short_head
from models.asking import ask
from models.base import ChatModel, ChatRequest, Message
from models.prompting.fence import FENCE_RULE
from models.prompting.invisible_characters import visible
from models.prompting.prompt_text import (
    PromptText,
    cut,
    fenced,
    fenced_lines,
    folded,
    joined,
    log_lines,
    message,
    number,
    on_one_line,
    words,
)
from planners.base import Plan, Situation
from planners.model_planner import PlannerSettings, check_new, cleaned, comparable, numbered
from planners.prompts import CAUSE_TEXT

PAGE_CHARS: Final = 1_500
"""Length of the page text in the prompt."""
TASK_CHARS: Final = 1_000
LINE_CHARS: Final = 300
HISTORY: Final = 4
"""Latest actions shown for a re-plan."""
_QUOTED: Final = re.compile(r'"([^"]*)"')
_STRAIGHT: Final = str.maketrans("“”", '""')

_SYSTEM: Final = f"""\
You plan for an agent that clicks and types in a web browser. Split its task into milestones.

Rules
- A milestone is a state on the way that the page can show: what is open, filled in, chosen or confirmed.
- Give them in the order in which they are reached, each as one short sentence. Use the names and values of the task.
- Give no more than the task needs. The last one holds only when the whole task is done.
- {FENCE_RULE}

Answer with one JSON object: "milestones", a list of texts."""


class _Example(NamedTuple):
    task: str
    page: tuple[str, ...]
    milestones: tuple[str, ...]


_EXAMPLES: Final = (
    _Example(
        "Log in as “ines” with the password “k2” and open the orders.",
        ("textbox “User”", "textbox “Password”", "button “Log in”"),
        ("User holds “ines”", "Password is filled in", "ines is logged in", "The orders are open"),
    ),
    _Example(
        "Put the shirt into the cart in size Large.",
        ("link “Home”", "Shirt 12 EUR", "combobox “Size” = “Small”", "button “Add to cart”"),
        ("Size is “Large”", "The shirt is in the cart"),
    ),
)


class MilestoneList(BaseModel):
    """The answer. Milestones that are empty, too long or repeated are an error; a subclass bounds their number.

    A longer list is cut and not asked for again: a 1.5B model answers "at most 4 items" with that text as a milestone.
    """

    model_config = ConfigDict(extra="forbid")

    most: ClassVar[int | None] = None
    taken: ClassVar[frozenset[str]] = frozenset()
    """Texts of the anchors, as :func:`planners.model_planner.comparable` text."""

    milestones: list[str] = Field(min_length=1)

    @field_validator("milestones", mode="before")
    @classmethod
    def _no_more_than_asked_for(cls, milestones: Any) -> Any:
        return milestones[: cls.most] if isinstance(milestones, list) else milestones  # pyright: ignore[reportUnknownVariableType]

    @model_validator(mode="after")
    def _each_is_new(self) -> MilestoneList:
        numbered_texts = {f"milestone {place}": cleaned(text) for place, text in enumerate(self.milestones, 1)}
        check_new(numbered_texts, self.taken)
        return self


@lru_cache(maxsize=32)
def answer_schema(most: int, taken: frozenset[str] = frozenset()) -> type[MilestoneList]:
    """The schema of at most *most* milestones; equal arguments give the same class."""
    schema = create_model(
        f"UpTo{most}", __base__=MilestoneList, milestones=(list[str], Field(..., min_length=1, max_length=most))
    )
    schema.taken, schema.most = taken, most
    return schema


def render(situation: Situation, most: int) -> tuple[Message, ...]:
    """The messages that ask for at most *most* milestones; equal arguments give equal messages."""
    turns: list[Message] = []
    for example in _EXAMPLES:
        asked = _question(example.task, example.page, [], most)
        answer = MilestoneList(milestones=list(example.milestones)).model_dump_json()
        turns += [message("user", asked), Message("assistant", answer)]
    observation = situation.observation
    text = without_refs(without_cues(visible(observation.text)))
    shown = focused_lines(text, interest((situation.instruction, 1.0)), PAGE_CHARS)
    page = [_in_curly_quotes(line) for line in (*short_head(observation), *shown)]
    question = _question(_in_curly_quotes(situation.instruction), page, _past(situation), most)
    return message("system", words(_SYSTEM)), *turns, message("user", question)


def _question(task: str, page: Sequence[str], past: Sequence[PromptText], most: int) -> PromptText:
    asked = joined("", (words("Give at most "), number(most), words(" milestones of this task.")))
    parts = (
        words("The page"),
        fenced_lines("page", page),
        *past,
        words("Task"),
        fenced("task", on_one_line(task, TASK_CHARS).text),
        asked,
    )
    return joined("\n", parts)


def _in_curly_quotes(text: str) -> str:
    """*text* with “ ” around what was in straight quotes."""
    return _QUOTED.sub(r"“\1”", text)


def _past(situation: Situation) -> list[PromptText]:
    """What was done, what stopped it and what is achieved; nothing for a first plan."""
    if situation.cause == "initial" and not situation.anchors:
        return []
    log = map(_in_curly_quotes, log_lines(situation.history[-HISTORY:], LOG_LINE_CHARS))
    done = [cut(folded(line), LINE_CHARS) for line in log]
    parts = [words("What was done last\n") + fenced_lines("actions", done)] if done else []
    parts.append(words("The plan is changed. ") + words(CAUSE_TEXT[situation.cause]))
    if situation.anchors:
        reached = (cut(folded(_in_curly_quotes(anchor.text)), LINE_CHARS) for anchor in situation.anchors)
        parts.append(words("Reached already; plan only what is left\n") + fenced_lines("achieved", reached))
    return parts


class ShortPlanner:
    """Plans up to `k` milestones with a small general *model*.

    Anchors and ids are kept as by :class:`planners.model_planner.ModelPlanner`, and errors are the same. No pictures
    are sent, and the model gets no thinking tokens: of *settings* only `k` and `deadline_s` are used.
    """

    def __init__(self, model: ChatModel, settings: PlannerSettings | None = None) -> None:
        self.spec = model.spec
        self.settings = settings or PlannerSettings()
        self._model = model

    async def plan(self, situation: Situation) -> Plan:
        """Raises :class:`models.base.ModelError`."""
        most = max(1, self.settings.k - len(situation.anchors))
        request = ChatRequest(
            messages=render(situation, most), max_tokens=100 * most + 50, deadline_s=self.settings.deadline_s
        )
        redo = situation.cause == "milestone_lost"
        taken = frozenset(() if redo else (comparable(anchor.text) for anchor in situation.anchors))
        answered = await ask(self._model, request, answer_schema(most, taken))
        texts = (cleaned(text).translate(_STRAIGHT) for text in answered.answer.milestones)
        new = numbered(situation, tuple(texts))
        return Plan(milestones=situation.anchors + new, reply=answered.reply)
