"""The log of actions for small models: each action as the language writes it, so that its form can be continued.

The number of an action is that which its control has on the page shown now. A control that is not there has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from envs.core.action_languages import Language
from envs.core.action_place import ActionPlace
from envs.core.actions import Action, ActionResult, Status
from envs.core.observation import ElementKey, Observation
from envs.core.past_actions import NO_SUCH_NUMBER, UNCHANGED, UNKNOWN, PastAction
from models.prompting.prompt_text import cut

GONE: Final = "<gone>"
"""Stands for the number of a control that is not on the page; no language parses it as one."""
DONE: Final = "done"
LINE_CHARS: Final = 400
_NO_NUMBER: Final = 987_654_321
"""Written for a control without a number and then replaced; no page has so many controls."""


def past_lines(history: Sequence[PastAction], language: Language, observation: Observation, most: int) -> list[str]:
    """The latest *most* actions with their results, oldest first; the ones before are counted. The lines are data."""
    left_out = max(0, len(history) - most) if most else 0
    numbers = {element.key: element.ref for element in observation.elements if element.shown}
    lines = [f"({left_out} earlier actions)"] if left_out else []
    for place, past in enumerate(history[left_out:], left_out + 1):
        lines.append(cut(f"{place}. {_written(past, language, numbers)}{_named(past)}: {_result(past)}", LINE_CHARS))
    return lines


def _written(past: PastAction, language: Language, numbers: dict[ElementKey, int]) -> str:
    here = _NO_NUMBER if past.target is None else numbers.get(past.target, _NO_NUMBER)
    text = language.show(_renumbered(past.action, here))
    # With its quotes, so that what is copied from here is no number.
    return text.replace(f'"{_NO_NUMBER}"', GONE).replace(str(_NO_NUMBER), GONE)


def _renumbered(action: Action, number: int) -> Action:
    fields = {"ref": number, "to_ref": _NO_NUMBER}
    held = {name: value for name, value in fields.items() if getattr(action, name, None) is not None}
    return action.model_copy(update=held) if held else action


def _named(past: PastAction) -> str:
    """The control in words, with its place where its name is empty or not unique."""
    if past.target is None:
        return ""
    place = past.place or ActionPlace()
    onto = f"onto {place.onto}" if place.onto else ""
    words = (past.target.role, f'"{past.target.name}"', place.where, onto)
    return f"   ({' '.join(filter(None, words))})"


def _result(past: PastAction) -> str:
    match past.result:
        case None:
            return UNKNOWN
        case ActionResult(ok=True):
            return f"{DONE}, but {UNCHANGED}" if past.changed is False else DONE
        case ActionResult(status=Status.NO_SUCH_REF):
            return f"failed, {NO_SUCH_NUMBER}"
        case result:
            return f"failed, {result.message or result.status.value}"
