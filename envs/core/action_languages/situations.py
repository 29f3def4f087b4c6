"""Actions that only some pages permit. A prompt lists them where the page does, and all others at every turn.

The list of the others is equal at every turn, so a provider's cache holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from envs.core import actions as act
from envs.core.action_languages.choices import PageChoices
from envs.core.action_languages.form_language import Language
from envs.core.record import Record

SITUATIONS: Final[Mapping[type[Record], Callable[[PageChoices], bool]]] = {
    act.Select: lambda choices: choices.has_lists,
    act.Find: lambda choices: choices.shortened,
    act.Expand: lambda choices: bool(choices.groups),
    act.FocusTab: lambda choices: bool(choices.tabs),
    act.CloseTab: lambda choices: bool(choices.tabs),
    act.AnswerDialog: lambda choices: choices.dialog,
}
"""Whether the choices of a page permit an action."""


_OF_A_RUN: Final = (act.Upload, act.UseTool)
"""Actions that need something of the run: files, or tools."""


def standing_reference(language: Language) -> str:
    """The reference of the actions that every page permits, without those that only some runs permit."""
    lines = language.lines(lambda form: form.action not in SITUATIONS and form.action not in _OF_A_RUN)
    return "\n".join((language.introduction, *lines))


def upload_reference(language: Language) -> str:
    """The reference of uploads, for runs that have files: a control that is no file field may ask for one too."""
    return "\n".join(language.lines(lambda form: form.action is act.Upload))


def tool_reference(language: Language) -> str:
    """The reference of the call of a tool, for runs that have tools."""
    return "\n".join(language.lines(lambda form: form.action is act.UseTool))


def possible_reference(language: Language, choices: PageChoices) -> str:
    """The reference of the other actions that the page with *choices* permits; empty if there are none."""
    return "\n".join(language.lines(lambda form: SITUATIONS.get(form.action, _never)(choices)))


def _never(choices: PageChoices) -> bool:
    return False
