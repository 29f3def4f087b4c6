"""The rationale of an answer: what the policy writes before its first action.

    # Thought: the name is filled in, the city is still empty
    do(action="Type", argument="Oslo", element="NUMBER")

Prose counts like a `# Thought:` comment. `# Element:` and `# Note:` comments, code fences and the words that introduce an
action do not belong to it.
"""

from __future__ import annotations

import re

_COMMENT = re.compile(r"^[ \t]*#[ \t]*(?:Element|Note)[ \t]*:[^\n]*$", re.MULTILINE | re.IGNORECASE)
_MARK = re.compile(r"^[ \t]*(?:#+[ \t]*)?(?:\*\*)?(?:Thought|Rationale|Reasoning)s?(?:\*\*)?[ \t]*:", re.MULTILINE | re.IGNORECASE)
_INTRODUCTION = re.compile(
    r"in\s+summary,?\s+the\s+next\s+actions?\s+i\s+will\s+perform\s+(?:is|are)\s*:?|^[ \t]*(?:next[ \t]+)?actions?[ \t]*:?[ \t]*$"
    r"|```[A-Za-z]*",
    re.MULTILINE | re.IGNORECASE,
)


def rationale_in(before: str) -> str:
    """The rationale in the text *before* an action, on one line; empty without one."""
    for pattern in (_COMMENT, _MARK, _INTRODUCTION):
        before = pattern.sub(" ", before)
    return " ".join(before.replace("`", " ").split())
