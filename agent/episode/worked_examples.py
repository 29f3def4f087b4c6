"""The worked example of a short prompt: chosen by the goal and the controls of the page, with numbers of its own.

The numbers are higher than every number of the shown page, so a model that copies one names no control. They depend on
the goal and, by steps of a hundred, on the size of the page: prompts of one episode begin alike.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from zlib import crc32

from agent.profiles.profile import Example, Profile, Variant
from envs.core.actions import Action, ActionResult, Status
from envs.core.observation import Element, ElementKey, Observation
from envs.core.past_actions import PastAction

_STEP: Final = 100
_TEXTS: Final = ("text", "option", "answer")
"""Fields of actions with a text of the task or the page."""
_CONTROL: Final = re.compile(r'\[(\d+)\] ([a-z]+) "([^"]*)"')


@dataclass(frozen=True, slots=True)
class WorkedStep:
    """One turn of an example: what is shown, and the answer."""

    goal: str
    observation: Observation
    history: tuple[PastAction, ...]
    milestone: str
    """The milestone to work on; empty for none."""
    thought: str
    action: Action

    @property
    def target(self) -> Element | None:
        """The control that the action is for."""
        ref = getattr(self.action, "ref", None)
        return next((element for element in self.observation.elements if element.ref == ref), None)


def worked_example(profile: Profile, goal: str, observation: Observation) -> tuple[WorkedStep, ...]:
    """The steps of the example that *profile* shows beside *goal* and *observation*; none if it has none."""
    if not profile.examples:
        return ()
    chosen = example_for(profile.examples, goal, observation)
    draw = crc32(goal.encode("utf-8", "replace"))
    variant = chosen.variants[draw % len(chosen.variants)]
    most = max(step.controls for step in variant.steps)
    return _on_its_pages(variant, example_numbers(most, draw, observation))


def copied_text(profile: Profile, goal: str, observation: Observation, action: Action, *known: str) -> str:
    """The text of the shown example that *action* types, chooses or answers with, although it is neither in *goal* nor
    on the page nor in *known*; empty if there is none. Small models copy it.

    The action has it whole, as the example's page or goal does, or among other words, as an action of the example. A
    number alone is no copy: it may be computed."""
    seen = "\n".join((goal, observation.text, *known))
    for value in _texts(action):
        for step in worked_example(profile, goal, observation):
            shown = f"{step.goal}\n{step.observation.text}"
            if any(map(str.isalpha, value)) and _has(shown, value) and not _has(seen, value):
                return value
            copied = (text for text in _texts(step.action) if _has(value, text) and not _has(seen, text))
            if (text := next(copied, None)) is not None:
                return text
    return ""


def _texts(action: Action) -> list[str]:
    """What *action* types, chooses and answers with."""
    values = (getattr(action, name, None) for name in _TEXTS)
    return [value for value in values if isinstance(value, str) and value]


def _has(text: str, words: str) -> bool:
    """Whether *text* has *words* as whole words, in any case."""
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text, re.IGNORECASE) is not None


def example_for(examples: tuple[Example, ...], goal: str, observation: Observation) -> Example:
    """The first example with a role on the page and a word in *goal*; else the first with a role; else the last."""
    roles = {element.key.role for element in observation.elements}
    words = set(re.findall(r"[a-z]+|\?", goal.lower()))
    fitting = [one for one in examples if roles.intersection(one.roles) or not one.roles]
    named = [one for one in fitting if words.intersection(one.words)]
    return next(iter((*named, *(one for one in fitting if one.roles))), examples[-1])


def example_numbers(count: int, draw: int, observation: Observation) -> tuple[int, ...]:
    """*count* numbers in a row, of which the page of *observation* has none."""
    most = max(
        (len(observation.elements), observation.controls_total, *(element.ref for element in observation.elements))
    )
    first = _STEP * (1 + most // _STEP) + 1 + draw // 7 % (_STEP - 20)
    return tuple(range(first, first + count))


def _on_its_pages(variant: Variant, numbers: tuple[int, ...]) -> tuple[WorkedStep, ...]:
    steps: list[WorkedStep] = []
    history: tuple[PastAction, ...] = ()
    for step in variant.steps:
        page, action = step.numbered(numbers)
        text = "\n".join(page)
        elements = tuple(_element(*found) for found in _CONTROL.findall(text))
        observation = Observation("", "", text, elements, (), "0" * 16, (1280, 720), (0, 0), len(elements))
        steps.append(WorkedStep(variant.goal, observation, history, step.milestone, step.thought, action))
        keys = {element.ref: element.key for element in elements}
        target = keys.get(getattr(action, "ref", -1))
        history = (*history, PastAction(action, target, ActionResult(status=Status.OK), changed=True))
    return tuple(steps)


def _element(number: str, role: str, name: str) -> Element:
    key = ElementKey("", role, name, 0, "00000000")
    return Element(int(number), key, "div", (), None, (), None, shown=True)
