"""The two languages in which a policy writes actions (MiRA paper, App. A.4); both produce `envs.core.actions`.

Guarantees: any text parses to an action or raises :class:`ParseError` with a one-line message for the model. The output
of `show` parses back to the same action. Text is never evaluated. A parsed action may still be impossible on the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from envs.core.action_languages.base import BadAction, Parsed, ParseError
from envs.core.action_languages.form_language import Language
from envs.core.action_languages.ids import DESCRIBING_IDS, IDS
from envs.core.action_languages.program import DESCRIBING_PROGRAM, PROGRAM

LANGUAGES: Final[Mapping[Literal["program", "id"], Language]] = {"program": PROGRAM, "id": IDS}
DESCRIBING: Final[Mapping[Literal["program", "id"], Language]] = {"program": DESCRIBING_PROGRAM, "id": DESCRIBING_IDS}
"""The same languages for a policy that describes controls in words, see :mod:`envs.core.grounding`."""


def language(name: Literal["program", "id"]) -> Language:
    """The action language of that name."""
    return LANGUAGES[name]


__all__ = ["DESCRIBING", "IDS", "LANGUAGES", "PROGRAM", "BadAction", "Language", "ParseError", "Parsed", "language"]
