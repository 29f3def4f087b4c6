"""Lists the controls with the numbers nearest to an unknown ref, for a message to the model."""

from __future__ import annotations

from collections.abc import Sequence

from envs.core.actions import Action, ActionResult, Status
from envs.core.control_labels import control_label
from envs.core.observation import Element

LISTED = 5
NO_SUCH_NUMBER = "no control of the page has this number"
"""The message about an unknown ref. It omits the number, because small models copy numbers."""


def nearest_controls(elements: Sequence[Element], ref: int | None = None) -> str:
    """Lists at most LISTED shown controls with the numbers nearest to *ref* (without *ref*: the first ones), in page
    order: `[1] textbox "tt", [2] button "Submit", and 3 more`. Empty if the page shows none.
    """
    shown = [element for element in elements if element.shown]
    by_distance = sorted(shown, key=lambda element: element.ref if ref is None else abs(element.ref - ref))[:LISTED]
    names = [
        f"[{element.ref}] {control_label(element)}" for element in sorted(by_distance, key=lambda element: element.ref)
    ]
    more = len(shown) - len(names)
    return ", ".join([*names, *([f"and {more} more"] if more else [])])


def with_nearest_controls(result: ActionResult, action: Action, elements: Sequence[Element]) -> ActionResult:
    """Adds the nearest of *elements* to the message of a *result* whose action named an unknown ref."""
    if result.status is not Status.NO_SUCH_REF:
        return result
    numbers = [value for name, value in action if name in ("ref", "to_ref") and isinstance(value, int)]
    missed = next((number for number in numbers if not 0 < number <= len(elements)), None)
    controls = nearest_controls(elements, missed)
    return result.model_copy(update={"message": f"{result.message}; nearest are {controls}"}) if controls else result
