"""The two languages in which a policy writes actions (MiRA paper, App. A.4), both for the one set of
`envs.core.actions`.

Promised: any text parses to an action or raises :class:`ParseError` with one line for the model; what `show` prints
parses back to the same action; nothing is ever evaluated. Not promised: that the action makes sense on the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from envs.core.action_languages.base import BadAction, Language, Parsed, ParseError
from envs.core.action_languages.ids import IDS
from envs.core.action_languages.program import PROGRAM

LANGUAGES: Final[Mapping[Literal["program", "id"], Language]] = {"program": PROGRAM, "id": IDS}


def language(name: Literal["program", "id"]) -> Language:
    return LANGUAGES[name]


__all__ = ["IDS", "LANGUAGES", "PROGRAM", "BadAction", "Language", "ParseError", "Parsed", "language"]
