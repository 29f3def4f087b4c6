"""A committed action with its result, and its line in a log of actions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from envs.core.action_place import ActionPlace
from envs.core.actions import (
    Action,
    ActionResult,
    ClickAt,
    Drag,
    DragAt,
    Press,
    ScrollAt,
    Select,
    Status,
    Type,
    Upload,
    UseTool,
)
from envs.core.observation import ElementKey

NO_SUCH_NUMBER: Final = "no control had this number"
UNKNOWN: Final = "unknown whether it happened"
UNCHANGED: Final = "nothing changed on the page"
_CLOSED_FIELDS: Final = frozenset({"kind", "button", "direction"})
"""Fields of actions whose values are words of a closed set."""


@dataclass(frozen=True, slots=True)
class PageName:
    """The page that an action was chosen on."""

    url: str
    title: str


@dataclass(frozen=True, slots=True)
class PastAction:
    """One committed action of an episode."""

    action: Action
    target: ElementKey | None
    """The element that `action.ref` named when it was chosen; None if it named none."""
    result: ActionResult | None = None
    """None where it is not known whether the action happened."""
    place: ActionPlace | None = None
    """What the element's role and name do not say; None where they say all, and in older traces."""
    page: PageName | None = None
    changed: bool | None = None
    """Whether the page changed by it; None: not known, or it failed or is not meant to change a page."""
    described: tuple[str, ...] = ()
    """The words by which the policy described its controls, where a grounder found them."""
    notes: tuple[str, ...] = ()
    """Remarks on how the action was chosen, for people; policies of models have none."""

    @property
    def carried_out(self) -> bool:
        """Whether the result says that the action was carried out as asked."""
        return self.result is not None and self.result.ok

    def log_line(self) -> str:
        """The action and its result without numbers of elements, which mean nothing on the next page.

        For example `click button "Save"`, `type "bob" into textbox "Name": stale, the element is gone`. Texts of pages
        and models stand in it as they are; a prompt folds them. Small models are trained on exactly these words.
        """
        return self._with_result(describe(self.action, self.target))

    def full_line(self) -> str:
        """:meth:`full_words`, the result and whether the page changed, for models that are not trained on
        :meth:`log_line`."""
        line = self._with_result(self.full_words())
        return f"{line}: {UNCHANGED}" if self.changed is False else line

    def full_words(self) -> str:
        """The action with its place: `click button "delete" in row "Invoice 17"`, `click at 312,80 (link "Home")`."""
        place = self.place or ActionPlace()
        done = _at_point(self.action, place) or describe(self.action, self.target, place)
        return " ".join((done, *(f"(described as {_in_quotes(words)})" for words in self.described)))

    def _with_result(self, done: str) -> str:
        match self.result:
            case None:
                return f"{done.rstrip()}: {UNKNOWN}"
            case ActionResult(ok=True):
                return done
            case ActionResult(status=Status.NO_SUCH_REF):  # the numbers in its message were those of an earlier page
                return f"{done}: {Status.NO_SUCH_REF.value}, {NO_SUCH_NUMBER}"
            case result:
                return f"{done}: {result.status.value}{', ' + result.message if result.message else ''}"

    def with_texts(self, change: Callable[[str], str]) -> PastAction:
        """The same action with *change* applied to every free text that its log line shows."""
        texts = {
            name: change(value) for name, value in self.action if isinstance(value, str) and name not in _CLOSED_FIELDS
        }
        target, result, place, page = self.target, self.result, self.place, self.page
        return PastAction(
            self.action.model_copy(update=texts),
            None if target is None else replace(target, role=change(target.role), name=change(target.name)),
            None if result is None else result.model_copy(update={"message": change(result.message)}),
            None if place is None else place.with_texts(change),
            None if page is None else PageName(change(page.url), change(page.title)),
            self.changed,
            tuple(map(change, self.described)),
            tuple(map(change, self.notes)),
        )


def describe(action: Action, target: ElementKey | None, place: ActionPlace | None = None) -> str:
    """The action with its element's role and name, as log lines begin; with *place*, also where the element is."""
    where = f"{target.role} {_in_quotes(target.name)}" if target is not None else ""
    if place is not None and place.where:
        where = f"{where} {place.where}".lstrip()
    match action:
        case Type(text=text, enter=enter):
            return f"type {_in_quotes(text)} into {where or 'the page'}{' and press Enter' if enter else ''}"
        case Select(option=option):
            return f"select {_in_quotes(option)} in {where or 'the page'}"
        case Press(keys=keys):
            return f"press {keys}"
        case Upload(path=path):
            return f"upload {_in_quotes(path)} to {where or 'the page'}"
        case Drag():
            onto = f" onto {place.onto}" if place is not None and place.onto else ""
            return f"drag {where}".rstrip() + onto
        case UseTool(tool=tool, input=text):
            return f"use tool {tool} with {_in_quotes(text)}"
        case _:
            arguments = action.model_dump(exclude={"kind", "ref"}, exclude_defaults=True)
            parts = [action.kind, where, *(f"{name}={value}" for name, value in arguments.items())]
            return " ".join(parts).replace("  ", " ").strip()


def _at_point(action: Action, place: ActionPlace) -> str:
    """An action at coordinates with what lies there; empty for other actions."""
    at = f" ({place.at})" if place.at else ""
    match action:
        case ClickAt(x=x, y=y, button=button, count=count):
            extras = [f"button={button}"] * (button != "left") + [f"count={count}"] * (count != 1)
            return " ".join([f"click at {x:g},{y:g}{at}", *extras])
        case ScrollAt(x=x, y=y, dx=dx, dy=dy):
            return f"scroll by {dx:g},{dy:g} at {x:g},{y:g}{at}"
        case DragAt(x=x, y=y, to_x=to_x, to_y=to_y):
            onto = f" ({place.onto})" if place.onto else ""
            return f"drag from {x:g},{y:g}{at} to {to_x:g},{to_y:g}{onto}"
        case _:
            return ""


def _in_quotes(text: str) -> str:
    """*text* in quotes as a page shows names: the text cannot end its quotes."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
