"""The rationale of an answer: what the policy writes before its first action.

    # Thought: the name is filled in, the city is still empty
    do(action="Type", argument="Oslo", element="NUMBER")

Prose counts like a `# Thought:` comment. `# Element:` and `# Note:` comments, code fences and the words that introduce
an action do not belong to it.
"""

from __future__ import annotations

import re

_LINES = re.MULTILINE | re.IGNORECASE
_COMMENT = re.compile(r"^[ \t]*#[ \t]*(?:Element[ \t]*:|(?:Forget[ \t]+)?Note\b)[^\n]*$", _LINES)
_LABEL = re.compile(r"^[ \t]*(?:#+[ \t]*)?(?:\*\*)?(?:Thought|Rationale|Reasoning)s?(?:\*\*)?[ \t]*:(?:\*\*)?", _LINES)
_INTRODUCTION = re.compile(
    r"in\s+summary,?\s+the\s+next\s+actions?\s+i\s+will\s+perform\s+(?:is|are)\s*:?"
    r"|^[ \t]*(?:next[ \t]+)?actions?[ \t]*:?[ \t]*$|```[A-Za-z]*",
    _LINES,
)


def rationale_in(before: str) -> str:
    """The rationale in the text *before* an action, on one line; empty without one."""
    for pattern in (_COMMENT, _LABEL, _INTRODUCTION):
        before = pattern.sub(" ", before)
    return " ".join(before.replace("`", " ").split())
