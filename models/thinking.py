"""Thinking budgets (MiRA paper, App. A.2): the allowed values, and the tokens of `auto` for a call.

Planners and judges use this; models map the number to their server's parameter.
"""

from __future__ import annotations

import re
from typing import Final

from models.base import Budget

STATIC_BUDGETS: Final = (0, 256, 1024, 4096, 8192, 16384)
"""Thinking tokens of a static budget, as measured in the paper; 0 = no thinking."""

AMBIGUOUS_TOKENS: Final = 8192
"""Tokens of `auto` if the cheap answer is ambiguous: the paper's best static budget (32.5 %, 19 s a step); 16384 was
worse (26 %)."""


_THOUGHTS: Final = re.compile(r"\s*(?:<think(?:ing)?>)?(?:(?!<think(?:ing)?>).)*?</think(?:ing)?>", re.DOTALL)
"""Thoughts at the beginning of an answer; with some templates the opening tag is in the prompt."""


def without_thoughts(text: str) -> str:
    """*text* without leading thoughts, which some servers do not separate from the answer."""
    return _THOUGHTS.sub("", text, count=1) if _THOUGHTS.match(text) else text


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
