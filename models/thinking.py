"""Thinking budgets (MiRA paper, App. A.2): the allowed values, and what `auto` means for a model.

Policies, planners and judges use this; models map the budget to their server's parameter. `auto` is the provider's
dynamic mode where it has one: then the model decides for each call how long it thinks. For other models it is a number
of tokens, or none for a call whose answer is clear without thinking.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Protocol, get_args, runtime_checkable

from models.base import Budget, ChatModel, Effort

STATIC_BUDGETS: Final = (0, 256, 1024, 4096, 8192, 16384)
"""Thinking tokens of a static budget, as measured in the paper; 0 = no thinking."""

AMBIGUOUS_TOKENS: Final = 8192
"""Tokens of `auto` if the cheap answer is ambiguous: the paper's best static budget (32.5 %, 19 s a step); 16384 was
worse (26 %)."""

EFFORT_TOKENS: Final[Mapping[Effort, int]] = {
    "none": 0,
    "minimal": 256,
    "low": 1024,
    "medium": 8192,
    "high": 16384,
    "xhigh": 16384,
    "max": 16384,
}
"""The static budget in place of an effort, for models that take tokens."""

Thinking = Budget | Effort
"""How much a role's model thinks, in tokens or as an effort."""


_THOUGHTS: Final = re.compile(r"\s*(?:<think(?:ing)?>)?(?:(?!<think(?:ing)?>).)*?</think(?:ing)?>", re.DOTALL)
"""Thoughts at the beginning of an answer; with some templates the opening tag is in the prompt."""


def without_thoughts(text: str) -> str:
    """*text* without leading thoughts, which some servers do not separate from the answer."""
    return _THOUGHTS.sub("", text, count=1) if _THOUGHTS.match(text) else text


def validate_thinking(thinking: Thinking | str) -> Thinking:
    """Returns *thinking* as an effort or as a budget. Raises ValueError, which names the allowed values."""
    for word in get_args(Effort):
        if thinking == word:
            return word
    try:
        return validate_budget(thinking)
    except ValueError as error:
        raise ValueError(f"{error}, or an effort: {', '.join(get_args(Effort))}") from None


def budget_in_tokens(thinking: Thinking) -> Budget:
    """The budget of *thinking*: that of an effort is in :data:`EFFORT_TOKENS`."""
    return EFFORT_TOKENS[thinking] if isinstance(thinking, str) and thinking != "auto" else thinking


def effort_of(thinking: Thinking | None) -> Effort | None:
    """The effort that *thinking* names; None if it is a budget."""
    return thinking if isinstance(thinking, str) and thinking != "auto" else None


def asks_to_think(thinking: Thinking | None) -> bool:
    """Whether *thinking* asks for thoughts that a model may be unable to have: a number of tokens, or an effort."""
    return thinking not in (None, "auto", 0, "none")


def validate_budget(budget: Budget | str) -> Budget:
    """Returns *budget* as `auto` or one of :data:`STATIC_BUDGETS`; digits in a string count as a number.

    Raises ValueError, which names the allowed values.
    """
    if budget == "auto":
        return "auto"
    tokens = int(budget) if isinstance(budget, str) and budget.isascii() and budget.isdigit() else budget
    if isinstance(tokens, int) and not isinstance(tokens, bool) and tokens in STATIC_BUDGETS:
        return tokens
    allowed = ", ".join(map(str, STATIC_BUDGETS))
    raise ValueError(f"thinking budget {budget!r} is not one of: auto, {allowed}")


def thinking_tokens(budget: Budget, *, ambiguous: bool) -> int:
    """Thinking tokens for one call: a static budget always, `auto` only if the call is *ambiguous*."""
    if budget == "auto":
        return AMBIGUOUS_TOKENS if ambiguous else 0
    return budget


@runtime_checkable
class ThinkingModel(Protocol):
    """A chat model that says how it thinks."""

    @property
    def dynamic_thinking(self) -> bool:
        """The provider has a mode in which the model chooses how long it thinks: `auto`."""
        ...

    def thinks_at(self, budget: Budget | None) -> bool:
        """Whether the model thinks before it answers with this budget; None is the model's default."""
        ...


def has_dynamic_mode(model: ChatModel) -> bool:
    """Whether `auto` is a mode of the model's provider."""
    return isinstance(model, ThinkingModel) and model.dynamic_thinking


def thinks(model: ChatModel, budget: Budget | None) -> bool:
    """Whether *model* is known to think by itself with this budget; None is the model's default."""
    return isinstance(model, ThinkingModel) and model.thinks_at(budget)


def budget_of(model: ChatModel, budget: Budget) -> Budget:
    """The budget to request for one call: `auto` only of a model with a dynamic mode, else a number of tokens."""
    return budget if budget != "auto" or has_dynamic_mode(model) else thinking_tokens(budget, ambiguous=True)


def dynamic_tokens(budget: Budget | None) -> int | None:
    """*budget* in tokens, for a server without a dynamic mode."""
    return AMBIGUOUS_TOKENS if budget == "auto" else budget
