"""Makes pages and actions of an episode comparable.

*Pages.* Two observations have the same state if `ObservationRecord.state` is equal, which ignores clocks, tokens and
the focus, or `ObservationRecord.digest` in traces without states; or if address and text are equal except for volatile
numbers (:mod:`judges.analysis.numbers`). The latter needs page texts.

*Actions.* Two actions are equal by kind, the element's durable key and the value typed or chosen, never by the number
of an element in an observation. On one state, two clicks are also the same action

* if they led to one other state, by any element, or if both are clicks on links that left the page unchanged: the logo
  and "Home" of a site are one action;
* if their elements differ in numbers alone and the page does not show both: "Topic, 4s" is "Topic, 5s" soon after.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from envs.core.actions import (
    Back,
    Click,
    CloseTab,
    Expand,
    Find,
    FocusTab,
    Forward,
    Goto,
    Hover,
    NewTab,
    Scroll,
    ScrollAt,
    Status,
    Wait,
)
from envs.core.trace import Commit, Intent
from judges.analysis.numbers import PageNumbers, Split, StepEffects, volatile, without_numbers
from judges.analysis.pages import Pages, place, without_origin

Step = tuple[Intent, Commit | None]
"""An action and its result; None if the process died in between."""

OBSERVING: Final = (Find, Expand, Scroll, ScrollAt, Hover, Wait)
"""Actions that only observe a page."""
_IDLE: Final = (Find, Wait)
"""Actions that cannot change a number; scrolling may, because a list shows other rows."""
_ALIKE: Final = 0.9
_BY_ADDRESS: Final = (Goto, Back, Forward, NewTab, CloseTab, FocusTab)
_REFUSED: Final = (
    Status.STALE,
    Status.AMBIGUOUS,
    Status.NO_SUCH_REF,
    Status.COVERED,
    Status.DISABLED,
    Status.NOT_ACTIONABLE,
    Status.BLOCKED,
)
"""Results of actions that did not touch the page."""

Slots = Mapping[tuple[str, str], frozenset[int]]
"""Positions of volatile numbers, by place and letters of a page."""


class Action(NamedTuple):
    """Equal for equal actions on the same element."""

    text: str
    """Kind and values as JSON, without the number of an element and without this machine's origin."""
    frame: str
    role: str
    name: str
    element: object
    """The ordinal among elements of the same name; without a key, the number of the element."""


PlacedAction = tuple[Action, str]
"""An action and the place of its page."""


@dataclass(frozen=True, slots=True)
class History:
    """The steps of one episode, each number once."""

    steps: Sequence[Step]
    states: Sequence[str]
    """The state of each step's page."""
    acts: Sequence[Action]
    """Each step's action; the first one taken represents all that are the same on one state."""
    raw: Sequence[Action]
    slots: Slots = field(default_factory=dict[tuple[str, str], frozenset[int]])
    """The volatile numbers, for comparisons with other episodes."""
    pages: Pages | None = None

    def done(self) -> tuple[PlacedAction, ...]:
        """Actions and their places, comparable with other episodes."""
        return tuple((action, place(intent.seen.url)) for action, (intent, _) in zip(self.raw, self.steps, strict=True))

    def similar(self, step: int, other: int) -> bool:
        """Whether nine of ten lines of both pages are equal, and all their numbers; False without page texts."""
        one, two = (None if self.pages is None else self.pages.text(self.steps[i][0].seen) for i in (step, other))
        if one is None or two is None:
            return False
        mine, theirs = set(one.splitlines()), set(two.splitlines())
        return len(mine & theirs) >= _ALIKE * len(mine | theirs) and self._numbers(step) == self._numbers(other)

    def _numbers(self, step: int) -> Sequence[str]:
        """The numbers of the page, without volatile ones."""
        seen = self.steps[step][0].seen
        split = None if self.pages is None else self.pages.split(seen)
        if split is None:
            return ()
        left_out = self.slots.get((place(seen.url), split.letters), frozenset[int]())
        return [number.text for slot, number in enumerate(split.numbers) if slot not in left_out]

    def same_as(self, step: int, other: int) -> bool:
        """Whether the action at *step* (0-based), on any page, is the same as the one at *other*."""
        names = {
            self.raw[i]
            for i, (state, act) in enumerate(zip(self.states, self.acts, strict=True))
            if (state, act) == (self.states[other], self.acts[other])
        }
        return self.raw[step] in names or self.acts[step] == self.acts[other]


def history_of(steps: Sequence[Step], pages: Pages | None = None) -> History:
    """Builds the history of *steps*, which are in order, each number once. Volatile numbers need *pages*."""
    splits = [None if pages is None else pages.split(intent.seen) for intent, _ in steps]
    raw = [action_of(intent) for intent, _ in steps]
    slots = _slots(steps, splits, raw)
    states = _states(steps, splits, slots)
    return History(steps, states, _acts(steps, states, raw, pages), raw, slots, pages)


def state_of(intent: Intent) -> str:
    """The state of the page on which the action was chosen."""
    return intent.seen.state or intent.seen.digest


def action_of(intent: Intent) -> Action:
    text, target = without_origin(intent.action.model_dump_json(exclude={"ref", "to_ref"})), intent.target
    if target is None:
        return Action(text, "", "", "", ("number", getattr(intent.action, "ref", None)))
    return Action(text, target.frame, target.role, target.name, target.ordinal)


def carried_out(step: Step) -> bool:
    """Whether it acted on a page, or may have: the process died before the result was recorded."""
    intent, commit = step
    return not isinstance(intent.action, OBSERVING) and (commit is None or commit.result.ok)


def seconds_of(intent: Intent) -> float:
    """The time of the decision in seconds since the epoch; 0 if the trace has none."""
    try:
        return datetime.fromisoformat(intent.at).timestamp()
    except ValueError:
        return 0.0


def _slots(steps: Sequence[Step], splits: Sequence[Split | None], raw: Sequence[Action]) -> Slots:
    observations: dict[tuple[str, str], list[PageNumbers]] = {}
    for i, ((intent, _), one) in enumerate(zip(steps, splits, strict=True)):
        if one is not None:
            key = place(intent.seen.url), one.letters
            observations.setdefault(key, []).append(PageNumbers(i, seconds_of(intent), one.numbers))
    effects = _step_effects(steps, raw)
    by_page = {key: volatile(many, effects) for key, many in observations.items()}
    return {key: slots for key, slots in by_page.items() if slots}


def _step_effects(steps: Sequence[Step], raw: Sequence[Action]) -> StepEffects:
    idle = [isinstance(i.action, _IDLE) or (c is not None and c.result.status in _REFUSED) for i, c in steps]
    navigations = _navigations(steps, raw)
    harmless = [
        quiet or navigates or isinstance(step[0].action, OBSERVING)
        for quiet, navigates, step in zip(idle, navigations, steps, strict=True)
    ]
    return StepEffects(idle, navigations, harmless, raw, timed=len({seconds_of(intent) for intent, _ in steps}) > 1)


def _navigations(steps: Sequence[Step], acts: Sequence[Action]) -> list[bool]:
    """Which steps only navigated: to another address, or to the same one by an action that leads there from others."""
    places = [place(intent.seen.url) for intent, _ in steps]
    after = [*places[1:], *([""] if steps else [])]
    may = [after[i] != "" and _is_navigation(step) and carried_out(step) for i, step in enumerate(steps)]
    leads = {(acts[i], after[i]) for i in range(len(steps)) if may[i] and places[i] != after[i]}
    return [
        one and (here != there or (act, there) in leads or isinstance(step[0].action, Goto))
        for one, here, there, act, step in zip(may, places, after, acts, steps, strict=True)
    ]


def _is_navigation(step: Step) -> bool:
    """Whether the step, if it leads to an address, sends nothing."""
    intent = step[0]
    return isinstance(intent.action, _BY_ADDRESS) or (_is_click(intent) and _is_link(intent))


def _is_click(intent: Intent) -> bool:
    action = intent.action
    return isinstance(action, Click) and (action.button, action.count) == ("left", 1) and intent.target is not None


def _is_link(intent: Intent) -> bool:
    return intent.target is not None and intent.target.role == "link"


def _states(steps: Sequence[Step], splits: Sequence[Split | None], slots: Slots) -> list[str]:
    """The state of each step, named by its first observation."""
    known: dict[object, str] = {}
    states: list[str] = []
    for (intent, _), one in zip(steps, splits, strict=True):
        state, where = state_of(intent), place(intent.seen.url)
        shown = (where, one.without(slots.get((where, one.letters), frozenset()))) if one is not None else None
        name = known.get(state) or (known.get(shown) if shown is not None else None) or state
        known.setdefault(state, name)
        if shown is not None:
            known.setdefault(shown, name)
        states.append(name)
    return states


@dataclass(slots=True)
class _KnownAction:
    """An action taken on a state, and the states it led to."""

    first: int
    action: Action
    links: bool
    """It is a click on a link."""
    clicks: bool
    led_to: set[str]


def _acts(steps: Sequence[Step], states: Sequence[str], raw: Sequence[Action], pages: Pages | None) -> Sequence[Action]:
    """Replaces each action by the first one that is the same on its state."""
    by_state: dict[str, dict[Action, _KnownAction]] = {}
    for i, state in enumerate(states):
        known = by_state.setdefault(state, {})
        one = known.setdefault(raw[i], _KnownAction(i, raw[i], _is_link(steps[i][0]), _is_click(steps[i][0]), set()))
        if i + 1 < len(steps) and carried_out(steps[i]):
            one.led_to.add(states[i + 1])
    first = {state: _first_of(state, known.values(), steps, pages) for state, known in by_state.items()}
    return [first[state][action] for state, action in zip(states, raw, strict=True)]


def _first_of(
    state: str, actions: Iterable[_KnownAction], steps: Sequence[Step], pages: Pages | None
) -> Mapping[Action, Action]:
    groups: list[list[_KnownAction]] = []
    for one in actions:
        same = next((group for group in groups if any(_same(state, one, other, steps, pages) for other in group)), None)
        groups.append([one]) if same is None else same.append(one)
    return {one.action: group[0].action for group in groups for one in group}


def _same(state: str, one: _KnownAction, other: _KnownAction, steps: Sequence[Step], pages: Pages | None) -> bool:
    if one.clicks and other.clicks:
        shared = one.led_to & other.led_to
        if shared - {state} or (shared and one.links and other.links):
            return True
    return _renumbered(one, other, steps, pages)


def _renumbered(one: _KnownAction, other: _KnownAction, steps: Sequence[Step], pages: Pages | None) -> bool:
    """Whether both act on one element whose name has a changed number: neither page shows both names."""
    mine, theirs = one.action, other.action
    if not mine.name or mine._replace(name="") != theirs._replace(name="") or pages is None:
        return False
    if without_numbers(mine.name) != without_numbers(theirs.name):
        return False
    texts = [(pages.text(steps[known.first][0].seen), name) for known, name in ((one, theirs.name), (other, mine.name))]
    return all(text is not None and f'"{name}"' not in text for text, name in texts)
