"""AutoRater with a small general model: one milestone at a time, from numbered lines, after worked examples.

The answer says what the page shows before it decides. It names the line that proves the milestone, which is the
evidence, so that nothing has to be copied. Measured with Qwen2.5-Coder-1.5B beside the prompt of large models:
docs/results/planning.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from envs.core.observation import Observation
from envs.observer.page_focus import focused_lines, interest
from envs.observer.page_lines import CUT, without_cues, without_refs
from envs.observer.page_text import LOG_LINE_CHARS, short_head, within_site
from judges.base import Progress
from judges.evidence import Rejection, keeps_address, lacks_value, normalised, shows_unchanged_control
from judges.stepwise_autorater import Claim, StepwiseAutoRater
from models.asking import ask
from models.base import ChatRequest, Message
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
    on_one_line,
    words,
)

PAGE_CHARS: Final = 1_500
"""Length of the page text in the prompt."""
LINE_CHARS: Final = 300
"""Longest milestone or line."""
HISTORY: Final = 4
"""Latest actions shown."""
_ADDRESS: Final = "Address: "
SEEN_CHARS: Final = 120
MAX_TOKENS: Final = 160

_SYSTEM: Final = f"""\
You check whether an agent in a web browser has reached a milestone of its task. You see what it did and the page as \
it is now, in numbered lines.

Say in a few words what the lines show about the milestone, then whether it is reached, and the number of the line \
that shows it (0 if it is not reached). What could still be done is not reached: a button that can be pressed was not \
pressed, an empty field was not filled.

{FENCE_RULE}

Answer with one JSON object: {{"seen": "a few words", "reached": true or false, "line": number}}"""


class LineAnswer(BaseModel):
    """The answer for one milestone. What the lines show comes first, so that the model looks before it decides."""

    model_config = ConfigDict(extra="forbid")

    seen: str = Field(max_length=SEEN_CHARS)
    reached: bool
    line: int = Field(ge=0)
    """Number of the line that shows it; 0 if none does."""


class _Example(NamedTuple):
    done: str
    page: tuple[str, ...]
    milestone: str
    answer: LineAnswer


_FORM: Final = ('textbox "City" = "Lima"', 'textbox "Street"', 'button "Save"')
_EXAMPLES: Final = (
    _Example(
        'type "Lima" into textbox "City"',
        _FORM,
        'The city is "Lima"',
        LineAnswer(seen='City holds "Lima"', reached=True, line=2),
    ),
    _Example(
        'type "Lima" into textbox "City"',
        _FORM,
        "The address is saved",
        LineAnswer(seen="the button Save was not pressed", reached=False, line=0),
    ),
    _Example(
        'click button "Save"',
        ("Your address was saved.", 'link "Home"'),
        "The address is saved",
        LineAnswer(seen="it says that the address was saved", reached=True, line=2),
    ),
)


class Question(NamedTuple):
    """What is asked about one milestone."""

    messages: tuple[Message, ...]
    lines: tuple[str, ...]
    """The numbered lines of the last message; the first one has the number 1."""
    actions: int
    """How many of them are actions; the others are of the page."""


def render(progress: Progress, index: int) -> Question:
    """The question about the milestone with 0-based *index*; equal arguments give equal messages."""
    turns: list[Message] = []
    for example in _EXAMPLES:
        question = _question([example.done], example.page, example.milestone)
        turns += [message("user", question), Message("assistant", example.answer.model_dump_json())]
    done, page = _lines(progress, index)
    asked = _question(done, page, progress.milestones[index].text)
    return Question((message("system", words(_SYSTEM)), *turns, message("user", asked)), (*done, *page), len(done))


def _question(done: Sequence[str], page: Sequence[str], milestone: str) -> PromptText:
    numbered = [f"{place}. {line}" for place, line in enumerate((*done, *page), 1)]
    actions = fenced_lines("actions", numbered[: len(done)]) if done else words("nothing")
    return joined(
        "\n",
        (
            words("What was done"),
            actions,
            words("The page now"),
            fenced_lines("page", numbered[len(done) :]),
            words("Milestone"),
            fenced("plan", on_one_line(milestone, LINE_CHARS).text),
            words("Is it reached?"),
        ),
    )


def _lines(progress: Progress, index: int) -> tuple[list[str], list[str]]:
    """The latest actions and the lines of the page, without the numbers of controls, which numbered lines replace."""
    done = [cut(folded(line), LINE_CHARS) for line in log_lines(progress.history[-HISTORY:], LOG_LINE_CHARS)]
    observation = progress.observation
    terms = interest((progress.milestones[index].text, 1.0), (progress.instruction, 0.4))
    text = without_refs(without_cues(visible(observation.text)))
    shown = (*focused_lines(text, terms, PAGE_CHARS), *short_head(observation))
    page = [cut(normalised(line), LINE_CHARS) for line in shown]
    return done, [line for line in (*page, _address_line(observation)) if line]


def _address_line(observation: Observation) -> str:
    """The last line that the model is shown. A page may have lines that begin like it."""
    return cut(normalised(_ADDRESS + within_site(observation.url)), LINE_CHARS)


class ShortAutoRater(StepwiseAutoRater):
    """Asks a small general *model*. It gets no thinking tokens: what it sees is part of the answer."""

    async def claim(self, progress: Progress, index: int) -> Claim:
        question = render(progress, index)
        lines = question.lines
        request = ChatRequest(messages=question.messages, max_tokens=MAX_TOKENS, deadline_s=self.settings.deadline_s)
        answered = await ask(self.model, request, LineAnswer)
        answer = answered.answer
        if not answer.reached:
            return Claim(None, answered.reply)
        line = lines[answer.line - 1] if 1 <= answer.line <= len(lines) else ""
        if line == _address_line(progress.observation) and keeps_address(progress):
            return Claim(_evidence(line), answered.reply, "quote is an address that did not change")
        named = _evidence(line)
        return Claim(named, answered.reply, _refused(progress, index, answer.line, question.actions, named))


def _refused(progress: Progress, index: int, line: int, actions: int, named: str) -> Rejection | None:
    """Why *named*, the 1-based *line* of which the first *actions* are actions, does not prove the milestone."""
    if not named:
        return "no quote"
    if lacks_value(progress.milestones[index].text, named):
        return "quote lacks the milestone's value"
    if line > actions:
        return "quote shows a control that did not change" if shows_unchanged_control(progress, named) else None
    result = progress.history[-HISTORY:][line - 1].result
    return "quote is an action that failed" if result is not None and not result.ok else None


def _evidence(line: str) -> str:
    """The longest part of *line* that is on the page as it stands: a line may have been cut in several places."""
    return max((part.strip() for part in line.removeprefix(_ADDRESS).split(CUT)), key=len)
