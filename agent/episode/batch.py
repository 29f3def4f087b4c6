"""Several actions of one answer: what may be batched, and when the rest of a batch is dropped.

The first action is executed like that of any other turn. Before each further one the page is observed, and the action
is sent only if the one before it was carried out and the page is still the one that the policy planned for. Else the
rest is dropped, and the policy is asked again with the page as it is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from envs.core.action_languages import Parsed
from envs.core.actions import FORM_FILLING, Action, ActionResult, Click, Reason, Select, Type
from envs.core.observation import TEXT_ROLES, Element, Observation
from envs.core.trace import BatchPlace
from envs.observer.page_state import page_state

_CHOICES: Final = frozenset(
    {"checkbox", "radio", "switch", "option", "menuitemcheckbox", "menuitemradio", "textbox", "searchbox", "spinbutton"}
)
"""Roles whose click chooses a value or sets the focus, as filling in a form does."""
_CONTROL = re.compile(r'(?<!\\)\[(\d+)\] ([^\s"]+)(?: (?:= )?"(?:[^"\\]|\\.)*"| [^\s"|]+)*')
"""A control in the page's text, with its name, value, states and options; two spaces or a `|` follow it."""
_TOGGLED: Final = frozenset({"checked", "mixed", "selected", "expanded", "collapsed"})
_MOST_GONE: Final = 0.5
"""Share of the controls that may go without counting as another view."""
_NEAREST: Final = 3
"""Controls that are tried as the one that was used, the nearest numbers first."""
_ROWS_AROUND: Final = 2
"""Lines above and below a control that tell it from others of the same name."""


class BatchStop(StrEnum):
    """Why the rest of a batch was dropped. The value completes "was not done, because …"."""

    FAILED = "the action before failed"
    NO_EFFECT = "the action before changed nothing"
    DIALOG = "a dialog opened"
    TAB = "a tab was opened, closed or brought to the front"
    DOWNLOAD = "a download began"
    REQUEST = "a request of the page was refused or held for approval"
    ADDRESS = "the address changed"
    DOCUMENT = "another document was loaded"
    CONTROLS = "a control that was to be used is gone, has another name or state, or is not unique"
    WORDS = "other parts of the page changed, and this click may depend on them"
    APPROVAL = "it needs approval: choose it on the page as it is now"


@dataclass(frozen=True, slots=True)
class Batch:
    """The actions of one answer that are left. Element numbers are those of *observation*."""

    left: tuple[Parsed, ...]
    place: int
    """1-based place of the action that is executed now."""
    size: int
    observation: Observation
    """The observation that the current action is executed on."""
    acted: Action
    """The current action."""
    cut: int = 0
    """Actions of the answer beyond those that may be batched; they are never done."""
    changed: bool = False
    """The page changed elsewhere than in the controls that were used since the answer was given."""

    @property
    def where(self) -> BatchPlace:
        return BatchPlace(place=self.place, size=self.size)


def doable(first: Action, then: Sequence[Parsed], most: int) -> tuple[Action, ...]:
    """The actions of an answer that may be done without another one, at most *most*: those that fill in a form, then
    one of any kind."""
    actions = (first, *(parsed.action for parsed in then))
    followed = next((i for i, action in enumerate(actions) if not isinstance(action, FORM_FILLING)), len(actions))
    return actions[: min(followed + 1, most)]


def batch_of(first: Action, then: Sequence[Parsed], observation: Observation, most: int) -> Batch | None:
    """The batch of an answer, at most *most* actions; None where the answer has only one."""
    if not then:
        return None
    size = len(doable(first, then, most))
    return Batch(tuple(then[: size - 1]), 1, size, observation, first, cut=1 + len(then) - size)


def advanced(
    batch: Batch, result: ActionResult, now: Observation, *, refused_news: bool
) -> tuple[Batch, Parsed] | BatchStop:
    """The batch after its next action was taken, and that action with the numbers of *now*; else why it stops.

    *result*: of the current action. *refused_news*: an origin was refused that is not in a prompt yet.
    """
    if stop := _by_result(result, refused_news) or _by_frame(batch.observation, now):
        return stop
    if result.reason is Reason.NO_EFFECT and _should_act(batch.acted, batch.observation):
        return BatchStop.NO_EFFECT
    match = _match(batch.observation, now, batch.acted, batch.left)
    if match is None:
        return BatchStop.CONTROLS
    left = tuple(replace(parsed, action=_renumbered(parsed.action, match.same)) for parsed in batch.left)
    changed = batch.changed or match.moved or _changed_elsewhere(batch.observation, now, match.same, batch.acted)
    following = left[0]
    if changed and _may_depend(following.action, now):
        return BatchStop.WORDS
    return replace(
        batch, left=left[1:], place=batch.place + 1, observation=now, acted=following.action, changed=changed
    ), following


def cut_words(cut: int) -> str:
    """Tells the policy that its answer had *cut* actions too many; empty for none."""
    if not cut:
        return ""
    not_done = "action of your answer was" if cut == 1 else f"{cut} actions of your answer were"
    return f"the last {not_done} not done: it had more than may be done at once"


def dropped_words(stop: BatchStop, batch: Batch) -> str:
    """Tells the policy which actions of its answer were not done, and why. Text of this program only."""
    count = batch.size + batch.cut - batch.place
    if count == 1:
        return f"the last action of your answer was not done, because {stop.value}"
    return f"the last {count} actions of your answer were not done; for the first of them: {stop.value}"


def _by_result(result: ActionResult, refused_news: bool) -> BatchStop | None:
    if not result.ok:
        return BatchStop.FAILED
    if result.dialogs:
        return BatchStop.DIALOG
    if result.new_tabs:
        return BatchStop.TAB
    if result.downloads or result.unapproved_downloads:
        return BatchStop.DOWNLOAD
    if result.held_requests or refused_news:
        return BatchStop.REQUEST
    return None


def _should_act(action: Action, observation: Observation) -> bool:
    """Whether the action is expected to change the page. A field may hold the text or option already, or have the
    focus."""
    element = observation.element(_ref(action))
    return isinstance(action, Click) and (element is None or element.key.role not in TEXT_ROLES)


def _by_frame(before: Observation, now: Observation) -> BatchStop | None:
    """Compares all but the content of the page."""
    if now.dialog is not None:
        return BatchStop.DIALOG
    if [(tab.index, tab.active) for tab in before.tabs] != [(tab.index, tab.active) for tab in now.tabs]:
        return BatchStop.TAB
    if before.url != now.url:
        return BatchStop.ADDRESS
    return BatchStop.DOCUMENT if before.document != now.document else None


@dataclass(frozen=True, slots=True)
class _Match:
    """Which controls of the page now are those of the page before."""

    same: dict[int, Element]
    """By their number before: every control, or those to be used next where others came or went."""
    moved: bool = False
    """Other controls came or went."""


def _match(before: Observation, now: Observation, acted: Action, left: Sequence[Parsed]) -> _Match | None:
    """Finds the controls that are to be used next; None where one is gone, has another name or state, or may be another
    one of its kind."""
    used = before.element(_ref(acted))
    next_refs = {ref for parsed in left if (ref := _ref(parsed.action))}
    if used is None:
        return None
    found = _in_order(before, now, used, next_refs) or _by_name(before, now, used, next_refs)
    if found is None or not all(_as_planned(parsed.action, before, found.same) for parsed in left):
        return None
    return found


def _in_order(before: Observation, now: Observation, used: Element, next_refs: set[int]) -> _Match | None:
    """Pairs the controls of both pages in their order, where they are the same.

    The control that was used may have another name, and buttons in its own line may come and go (to clear a field, to
    show a password). Of controls with the same name those to be used next must stand between the same words, because
    rows may have changed places.
    """
    buttons = _buttons_beside(before, used)
    candidates = [element for element in now.elements if _kind(element) == _kind(used)]
    for candidate in sorted(candidates, key=lambda element: abs(element.ref - used.ref))[:_NEAREST]:
        new_buttons = _buttons_beside(now, candidate)
        gone = {ref for ref, button in buttons.items() if button not in new_buttons.values()} - next_refs
        come = {ref for ref, button in new_buttons.items() if button not in buttons.values()}
        old = [element for element in before.elements if element.ref not in gone]
        new = [element for element in now.elements if element.ref not in come]
        same = _paired(old, new, used, candidate)
        if same is not None and all(_stands_as_before(before, now, ref, same) for ref in next_refs):
            return _Match(same)
    return None


def _paired(
    old: Sequence[Element], new: Sequence[Element], used: Element, candidate: Element
) -> dict[int, Element] | None:
    if len(old) != len(new):
        return None
    for before, now in zip(old, new, strict=True):
        if (before.ref == used.ref) != (now.ref == candidate.ref):
            return None
        if _kind(before) != _kind(now) or (before.ref != used.ref and before.key.name != now.key.name):
            return None
    return {before.ref: now for before, now in zip(old, new, strict=True)}


def _by_name(before: Observation, now: Observation, used: Element, next_refs: set[int]) -> _Match | None:
    """Finds the controls to be used next by their names where other controls came or went, as suggestions or a calendar
    do. Each must be the only one of its kind and name, the used one must still be there, and most of the page."""
    old, new = (Counter((_kind(each), each.key.name) for each in observation.elements) for observation in (before, now))
    if sum((old - new).values()) > _MOST_GONE * len(before.elements):
        return None
    if not any(_kind(each) == _kind(used) for each in now.elements):
        return None
    named = {(_kind(each), each.key.name): each for each in now.elements}
    same: dict[int, Element] = {}
    for ref in next_refs:
        element = before.element(ref)
        key = None if element is None else (_kind(element), element.key.name)
        if key is None or old[key] != 1 or new[key] != 1:
            return None
        same[ref] = named[key]
    return _Match(same, moved=True)


def _kind(element: Element) -> tuple[str, str, str]:
    return element.key.frame, element.key.role, element.key.digest


def _buttons_beside(observation: Observation, used: Element) -> dict[int, tuple[str, str]]:
    """The buttons in the line of the *used* text field, by number: digest and name."""
    if used.key.role not in TEXT_ROLES:
        return {}
    for line in observation.text.split("\n"):
        roles = _roles_in(line)
        if used.ref in roles:
            return {
                each.ref: (each.key.digest, each.key.name)
                for each in observation.elements
                if roles.get(each.ref) == "button"
            }
    return {}


def _roles_in(line: str) -> dict[int, str]:
    """The controls of a line of the page's text: their roles by number."""
    return {int(found[1]): found[2] for found in _CONTROL.finditer(line)}


def _stands_as_before(before: Observation, now: Observation, ref: int, same: dict[int, Element]) -> bool:
    element, new = before.element(ref), same.get(ref)
    if element is None or new is None:
        return False
    alike = [each for each in before.elements if (each.key.role, each.key.name) == (element.key.role, element.key.name)]
    return len(alike) == 1 or _words_around(before, ref) == _words_around(now, new.ref)


def _words_around(observation: Observation, ref: int) -> list[str]:
    lines = observation.text.split("\n")
    place = next((i for i, line in enumerate(lines) if ref in _roles_in(line)), None)
    if place is None:
        return []
    around = lines[max(0, place - _ROWS_AROUND) : place + _ROWS_AROUND + 1]
    return [" ".join(_CONTROL.sub("", line).split()) for line in around]


def _as_planned(action: Action, before: Observation, same: dict[int, Element]) -> bool:
    """Whether the control of *action* is shown with the same name, and in the state that the action builds on."""
    ref = _ref(action)
    old, new = before.element(ref), same.get(ref)
    if not ref:
        return True
    if old is None or new is None or old.key.name != new.key.name or (old.shown and not new.shown):
        return False
    if isinstance(action, Click):  # a click on what another action has checked or opened would undo that
        return _TOGGLED.intersection(old.states) == _TOGGLED.intersection(new.states)
    return not isinstance(action, Type) or action.clear or old.value == new.value


def _changed_elsewhere(before: Observation, now: Observation, same: dict[int, Element], acted: Action) -> bool:
    """Whether words of the page, or the values of other controls, are not as before; clocks do not count."""
    if _words_state(before) != _words_state(now):
        return True
    used = _ref(acted)
    return any(
        element.value != same[element.ref].value
        for element in before.elements
        if element.ref != used and element.ref in same
    )


def _words_state(observation: Observation) -> str:
    lines = (" ".join(_CONTROL.sub("", line).split()) for line in observation.text.split("\n"))
    return page_state(observation.url, "\n".join(filter(None, lines)))


def _may_depend(action: Action, observation: Observation) -> bool:
    """Whether an action other than filling in may depend on what changed: a total, a warning, a suggestion."""
    if isinstance(action, Type):
        return action.enter
    if isinstance(action, Select):
        return False
    element = observation.element(_ref(action))
    return not (isinstance(action, Click) and element is not None and element.key.role in _CHOICES)


def _renumbered(action: Action, same: dict[int, Element]) -> Action:
    named = {name: value for name, value in action if name in ("ref", "to_ref") and isinstance(value, int)}
    numbers = {name: same[value].ref for name, value in named.items() if value in same}
    return action.model_copy(update=numbers) if numbers else action


def _ref(action: Action) -> int:
    """The number that the action names; 0 where it names none."""
    ref = getattr(action, "ref", None)
    return ref if isinstance(ref, int) else 0
