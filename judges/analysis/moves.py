"""Reduces an episode to its path: the *moves* that had an effect.

A step becomes one move, or two if it typed and pressed Enter. Left out: observing (scroll, find, expand, hover, wait),
actions that were not carried out, and values that were replaced later on the same page.

A *detour* is a run of moves that returns to the same page without an effect on a server: no form was submitted. It
stays in the path, because a return to the start after many steps may be where an episode went wrong. Comparisons
between two points of a path ignore it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from envs.core.actions import (
    Action,
    AnswerDialog,
    Back,
    Click,
    ClickAt,
    CloseTab,
    FocusTab,
    Forward,
    Goto,
    NewTab,
    Press,
    Select,
    Stop,
    Type,
    Upload,
)
from envs.core.trace import ElementKeyRecord, Intent, ObservationRecord
from envs.observer.page_state import steady_text
from judges.analysis.history import OBSERVING, History, PlacedAction, Slots, Step, seconds_of
from judges.analysis.pages import Pages, place

_SPACE: Final = re.compile(r"\s+")
_COUNTED: Final = re.compile(r"\s*[(\[]\s*\d+\s*[)\]]$")
"""`Inbox (3)`: the count after a name is not part of it."""
TOGGLES: Final = ("checkbox", "radio", "switch", "option", "menuitemcheckbox", "menuitemradio")
FIELDS: Final = ("textbox", "searchbox", "combobox", "spinbutton", "listbox")
_SUBMITTERS: Final = ("button", "clickable")
_SEARCH: Final = re.compile(r"search|query|\bfind\b|filter", re.IGNORECASE)


class Kind(Enum):
    GO = auto()
    """The address changed."""
    SET = auto()
    """A field got a value."""
    DO = auto()
    """Any other action on a page."""
    STOP = auto()


@dataclass(frozen=True, slots=True)
class Target:
    """An element, without its number and digest."""

    frame: str
    role: str
    name: str
    """Casefolded, white space folded, without a final count."""
    ordinal: int


@dataclass(frozen=True, slots=True)
class Page:
    """A page before or after a move."""

    place: str
    state: str
    """Distinguishes pages of one episode; empty if the page was not observed (after the last step)."""
    seen: ObservationRecord | None
    at: float = 0.0
    """Time of the observation, in seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Move:
    step: int
    kind: Kind
    verb: str
    """Kind of the action: `click`, `type`, `goto` …"""
    target: Target | None
    value: str
    """The text, option, key, address or answer, folded like names; empty if there is none."""
    before: Page
    after: Page
    text: str
    """The action in words, for people and models."""
    point: tuple[float, float] | None = None

    @property
    def changed(self) -> bool:
        """Whether it had a visible effect; True if that is unknown (the last step)."""
        return not self.after.state or self.after.state != self.before.state

    @property
    def search(self) -> bool:
        """Whether it fills in a search field, where other words may be equivalent."""
        target = self.target
        return (
            self.kind is Kind.SET
            and target is not None
            and (target.role == "searchbox" or _SEARCH.search(target.name) is not None)
        )

    @property
    def submits(self) -> bool:
        """Whether it may have an effect on a server: a new address without a query, reached by a button or a key."""
        by_button = self.target is None or self.target.role in (*_SUBMITTERS, *FIELDS)
        return (
            self.kind is Kind.GO
            and self.verb in ("click", "press", "type", "click_at", "answer_dialog")
            and (by_button and "?" not in self.after.place)
        )

    @property
    def fills(self) -> bool:
        """Whether it fills in a form without leaving the page; the order of such moves is free."""
        toggles = self.kind is Kind.DO and self.target is not None and self.target.role in TOGGLES
        return self.kind is Kind.SET or toggles


@dataclass(frozen=True, slots=True)
class Reference:
    """A success, prepared for comparison."""

    episode_id: str
    moves: tuple[Move, ...]
    pages: Pages
    slots: Slots
    """Its volatile numbers."""
    done: tuple[PlacedAction, ...]
    """All its actions with their places."""
    numbers: tuple[int, ...]
    """Its step numbers."""

    def between(self, after: int, until: int) -> Sequence[PlacedAction]:
        """Its actions after step *after*, up to step *until*."""
        return [action for number, action in zip(self.numbers, self.done, strict=True) if after < number <= until]


def fold(text: str) -> str:
    """*text* in the form for comparison: casefolded, single blanks, without clocks."""
    return _SPACE.sub(" ", steady_text(text)).strip().casefold()


def moves_of(history: History) -> tuple[Move, ...]:
    """The moves of all steps that were carried out, in order."""
    moves: list[Move] = []
    for i, (intent, commit) in enumerate(history.steps):
        if isinstance(intent.action, OBSERVING) or (commit is not None and not commit.result.ok):
            continue
        moves += _moves(intent, _page(history, i), _after(history, i))
    return tuple(moves)


def attempts(step: Step, move: Move) -> bool:
    """Whether *step* attempts *move*, carried out or not."""
    intent = step[0]
    return any(
        (tried.verb, tried.target, tried.value) == (move.verb, move.target, move.value)
        for tried in _moves(intent, move.before, move.after)
    )


def _moves(intent: Intent, before: Page, after: Page) -> Iterator[Move]:
    action, target = intent.action, _target(intent.target)
    if isinstance(action, Type):
        between = after if not action.enter else Page(before.place, "", None)
        text = f"type {action.text!r} into {_element_name(target)}"
        yield Move(intent.step, Kind.SET, "type", target, fold(action.text), before, between, text)
        if not action.enter:
            return
        action, target, before = Press(keys="Enter"), None, Page(before.place, before.state, None)
    kind, value = _kind_and_value(action, before, after)
    point = (action.x, action.y) if isinstance(action, ClickAt) else None
    text = _description(action.kind, target, value)
    yield Move(intent.step, kind, action.kind, target, value, before, after, text, point)


def _kind_and_value(action: Action, before: Page, after: Page) -> tuple[Kind, str]:
    """The kind of the move and its value."""
    kind, value = Kind.GO if after.place != before.place else Kind.DO, ""
    match action:
        case Select():
            kind, value = Kind.SET, fold(action.option)
        case Upload():
            kind, value = Kind.SET, action.path
        case Press():
            value = action.keys.casefold()
        case Goto():
            kind, value = Kind.GO, place(action.url)
        case Back() | Forward() | NewTab() | CloseTab():
            kind = Kind.GO
        case FocusTab():
            kind, value = Kind.GO, str(action.index)
        case AnswerDialog():
            value = f"{action.accept} {fold(action.text)}".strip()
        case Stop():
            kind, value = Kind.STOP, fold(action.answer or "")
        case Click():
            value = "" if (action.button, action.count) == ("left", 1) else f"{action.button} ×{action.count}"
        case ClickAt():
            pass
        case _:
            value = action.model_dump_json(exclude={"ref", "to_ref"})
    return kind, value


def _description(verb: str, target: Target | None, value: str) -> str:
    shown = f" {value!r}" if value else ""
    return f"{verb.replace('_', ' ')}{shown}" + (f" on {_element_name(target)}" if target is not None else "")


def _element_name(target: Target | None) -> str:
    return f"{target.role} {target.name!r}" if target is not None else "an element without a key"


def _target(row: ElementKeyRecord | None) -> Target | None:
    if row is None:
        return None
    return Target(row.frame, row.role, _COUNTED.sub("", fold(row.name)), row.ordinal)


def _page(history: History, i: int) -> Page:
    intent = history.steps[i][0]
    return Page(place(intent.seen.url), history.states[i], intent.seen, seconds_of(intent))


def _after(history: History, i: int) -> Page:
    """The page of the next step. After the last step: the page that the same action led to before; else only its
    address is known."""
    steps = history.steps
    if i + 1 < len(steps):
        return _page(history, i + 1)
    intent, commit = steps[i]
    url = commit.result.url if commit is not None and commit.result.url else intent.seen.url
    here = history.states[i], history.acts[i]
    before = (j for j in range(i - 1, -1, -1) if (history.states[j], history.acts[j]) == here)
    led_to = next((_page(history, j + 1) for j in before if _went(steps[j])), None)
    return led_to if led_to is not None and led_to.place == place(url) else Page(place(url), "", None)


def _went(step: Step) -> bool:
    return step[1] is not None and step[1].result.ok


def without_detours(moves: Sequence[Move]) -> list[Move]:
    """*moves*, in order of time, without runs that return to the same page."""
    kept: list[Move] = []
    for move in moves:
        kept.append(move)
        if not move.after.state or not move.changed:
            continue
        back = next((i for i in range(len(kept) - 1) if kept[i].before.state == move.after.state), None)
        if back is not None and not any(_has_effect(move) for move in kept[back:]):
            del kept[back:]
    return kept


def _has_effect(move: Move) -> bool:
    """Whether it may have an effect that returning to an earlier page does not undo."""
    hidden = move.kind is Kind.SET and bool(move.after.state) and not move.changed
    return move.submits or hidden or move.kind is Kind.STOP


def last_values(moves: Sequence[Move]) -> tuple[Move, ...]:
    """Keeps only the last value of each field before the page was left."""
    kept: list[Move] = []
    since: dict[Target, int] = {}
    for move in moves:
        if (
            move.kind is Kind.SET
            and move.target is not None
            and not (move.verb == "select" and move.target.role == "listbox")
        ):
            if move.target in since:
                kept[since[move.target]] = move  # the last value takes the position of the first
                continue
            since[move.target] = len(kept)
        elif move.kind is not Kind.SET:
            since = since if move.fills else {}
        kept.append(move)
    return tuple(kept)
