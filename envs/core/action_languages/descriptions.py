"""Reads what a policy writes in place of the number of a control, where a grounder finds it on a screenshot."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from envs.core.action_languages.base import Fault
from envs.core.action_languages.forms import Value
from envs.core.grounding import CONTROL_FIELDS, UNGROUNDED, Description

DESCRIPTION_CHARS: Final = 300
"""Longest description."""
_NUMBER: Final = re.compile(r"\[\s*\d+\s*\]")


def read_description(text: str, name: str) -> str:
    """Returns *text* on one line. Raises :class:`Fault`, which names the slot as *name*."""
    words = " ".join(text.split())
    if not words:
        raise Fault(f"{name} is empty: describe the control in words")
    if _NUMBER.fullmatch(words):
        raise Fault(f"{name} must describe the control in words, because controls have no numbers here")
    if len(words) > DESCRIPTION_CHARS:
        raise Fault(f"{name} has more than {DESCRIPTION_CHARS} characters: describe the control in fewer words")
    return words


def with_placeholders(values: Mapping[str, Value]) -> tuple[dict[str, Value], tuple[Description, ...]]:
    """Splits the *values* of an action's fields: UNGROUNDED in place of each description, and the descriptions."""
    described = tuple(Description(name, words) for name in CONTROL_FIELDS if isinstance(words := values.get(name), str))
    return {**values, **{each.field: UNGROUNDED for each in described}}, described
