"""What the Gemini model families take: thinking budgets or levels, a temperature, a resolution of pictures.

The first row of :data:`FAMILIES` that matches a model's name applies. Names in no row, which are `-latest` names and
models that came later, are treated like the newest families (:data:`NEWEST`).

From Gemini 3 on, Google advises against any temperature but the default of 1, and models from 3.5 Flash-Lite on refuse
one; so none is sent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from google.genai.types import MediaResolution, ThinkingConfig, ThinkingLevel

from models.base import Budget, ChatRequest, Effort

DYNAMIC: Final = -1
"""The budget with which the model chooses how long it thinks."""
DEFAULT_ROOM: Final = 16_384
"""Tokens added to the limit for thinking if the model chooses how long it thinks."""

_LOW_TOKENS: Final = 1_024
"""The largest budget that becomes the level `low`."""
_MEDIUM_TOKENS: Final = 8_192
"""The largest budget that becomes the level `medium`, where there is one; a larger budget, or one that has no level of
its own, becomes the next higher level."""


@dataclass(frozen=True, slots=True)
class Budgets:
    """Thinking is set in tokens."""

    least: int
    most: int
    can_stop: bool
    """0 turns thinking off; else 0 becomes `least`."""
    thinks_unasked: bool = True
    """Whether the model thinks if no budget is sent."""


@dataclass(frozen=True, slots=True)
class Levels:
    """Thinking is set by levels and cannot be turned off."""

    levels: tuple[ThinkingLevel, ...]
    """From the lowest. Empty: the models choose, and none is sent."""


@dataclass(frozen=True, slots=True)
class Family:
    pattern: str
    """Matches at the beginning of a model's name."""
    thinking: Budgets | Levels | None
    """None: the models do not think, and refuse a budget."""
    own_temperature: bool = False
    """The models keep their temperature of 1: none is sent."""
    resolution: MediaResolution | None = None
    """Sent with pictures; None leaves the default."""
    certain: bool = True
    """False: it is a guess, and what the server refuses is left out."""

    def plain(self) -> Family:
        """The family after the server refused what was sent as a guess."""
        return replace(self, thinking=Levels(()), resolution=None, certain=True)

    def thinks_at(self, budget: Budget | None) -> bool:
        """Whether the models think with *budget*; None sends none."""
        match self.thinking:
            case None:
                return False
            case Levels():
                return budget != 0
            case Budgets(_, _, can_stop, thinks_unasked):
                return thinks_unasked if budget is None else budget != 0 or not can_stop

    def budget(self, tokens: Budget | None) -> int | None:
        """The budget to send; None if none is sent."""
        if tokens is None or not isinstance(self.thinking, Budgets):
            return None
        if tokens == "auto":
            return DYNAMIC
        if tokens <= 0 and self.thinking.can_stop:
            return 0
        return min(max(tokens, self.thinking.least), self.thinking.most)

    def level(self, tokens: Budget | None, effort: Effort | None = None) -> ThinkingLevel | None:
        """The level of *effort*, or else of *tokens*: the lowest that the models have from it on, or their highest.
        None if none is sent, which is the dynamic mode."""
        levels = self.thinking.levels if isinstance(self.thinking, Levels) else ()
        wanted = _level_of_tokens(tokens) if effort is None else _LEVEL_OF_EFFORT[effort]
        if wanted is None or not levels:
            return None
        lowest = _ORDER.index(wanted)
        return next((level for level in levels if _ORDER.index(level) >= lowest), levels[-1])

    def thinking_config(self, request: ChatRequest) -> ThinkingConfig | None:
        budget, level = self.budget(request.thinking_tokens), self.level(request.thinking_tokens, request.effort)
        if budget is None and level is None:
            return None
        return ThinkingConfig(thinking_budget=budget, thinking_level=level)

    def room(self, request: ChatRequest) -> int:
        """Tokens to add to the limit, because the server counts thinking against it."""
        if self.thinking is None:
            return 0
        budget = self.budget(request.thinking_tokens)
        if budget not in (None, DYNAMIC):
            return budget
        asked = request.thinking_tokens if isinstance(request.thinking_tokens, int) else 0
        return max(DEFAULT_ROOM, asked)


_ORDER: Final = (
    ThinkingLevel.MINIMAL,
    ThinkingLevel.LOW,
    ThinkingLevel.MEDIUM,
    ThinkingLevel.HIGH,
    ThinkingLevel.XHIGH,
)
_LEVEL_OF_EFFORT: Final[Mapping[Effort, ThinkingLevel]] = {
    "none": ThinkingLevel.MINIMAL,
    "minimal": ThinkingLevel.MINIMAL,
    "low": ThinkingLevel.LOW,
    "medium": ThinkingLevel.MEDIUM,
    "high": ThinkingLevel.HIGH,
    "xhigh": ThinkingLevel.XHIGH,
    "max": ThinkingLevel.XHIGH,
}
_TWO: Final = Levels((ThinkingLevel.LOW, ThinkingLevel.HIGH))
_THREE: Final = Levels((ThinkingLevel.LOW, ThinkingLevel.MEDIUM, ThinkingLevel.HIGH))
_FOUR: Final = Levels((ThinkingLevel.MINIMAL, *_THREE.levels))
_HIGHER: Final = Levels((*_THREE.levels, ThinkingLevel.XHIGH))
_SHARP: Final = MediaResolution.MEDIA_RESOLUTION_HIGH


def _third(pattern: str, levels: Levels, *, certain: bool = True) -> Family:
    """A family of Gemini 3 or later."""
    return Family(pattern, levels, own_temperature=True, resolution=_SHARP, certain=certain)


FAMILIES: Final = (
    Family(r"gemini-(?:1\.|2\.0)", None),
    Family(r"gemini-2\.5-flash-lite", Budgets(512, 24_576, can_stop=True, thinks_unasked=False)),
    Family(r"gemini-2\.5-flash", Budgets(1, 24_576, can_stop=True)),
    Family(r"gemini-2\.5", Budgets(128, 32_768, can_stop=False)),
    _third(r"gemini-3-pro", _TWO),
    _third(r"gemini-3\.\d+-pro", _THREE),
    _third(r"gemini-3(?:\.[0-6])?-flash", _FOUR),
    _third(r"gemini-3\.\d+-flash", _THREE),
    _third(r"gemini-4-hydrogen", _HIGHER),
    _third(r"gemini-[34]", _THREE),
)
NEWEST: Final = _third(r"gemini", _THREE, certain=False)
OTHER: Final = Family(r"", None)
"""A model of another name, e.g. `gemma-3-27b-it`, which the same server has."""


def family_of(model: str) -> Family:
    """The family of *model*, with or without `models/` before its name."""
    name = model.removeprefix("models/")
    return next(family for family in (*FAMILIES, NEWEST, OTHER) if re.match(family.pattern, name))


def _level_of_tokens(tokens: Budget | None) -> ThinkingLevel | None:
    if tokens is None or tokens == "auto":
        return None
    if tokens <= 0:
        return ThinkingLevel.MINIMAL
    if tokens <= _LOW_TOKENS:
        return ThinkingLevel.LOW
    return ThinkingLevel.MEDIUM if tokens <= _MEDIUM_TOKENS else ThinkingLevel.HIGH
