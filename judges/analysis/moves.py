"""An episode as a way: the steps that did something, without what made no difference.

A step becomes one *move*, or two where it typed and pressed Enter. Left out: looking (scroll, find, expand, hover,
wait), actions that were not carried out, and values that were typed over later on the same page.

A *detour* is a run of moves after which the page was again what it had been, where nothing can remain of them on a
server: no form was submitted. It belongs to the way, for what leads back to the start after much was done is no detour
but how an episode went astray; between two points of a way it makes no difference.
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
from judges.analysis.history import LOOKING, Done, History, Slots, Step, seconds_of
from judges.analysis.pages import Pages, place

_SPACE: Final = re.compile(r"\s+")
_COUNTED: Final = re.compile(r"\s*[(\[]\s*\d+\s*[)\]]$")
"""`Inbox (3)`: a count behind a name is no part of it."""
TOGGLES: Final = ("checkbox", "radio", "switch", "option", "menuitemcheckbox", "menuitemradio")
FIELDS: Final = ("textbox", "searchbox", "combobox", "spinbutton", "listbox")
_SUBMITTERS: Final = ("button", "clickable")
_SEARCH: Final = re.compile(r"search|query|\bfind\b|filter", re.IGNORECASE)


class Kind(Enum):
    GO = auto()
    """The address changed."""
    SET = auto()
    """A field was given a value."""
    DO = auto()
    """Anything else that was done to a page."""
    STOP = auto()


@dataclass(frozen=True, slots=True)
class Target:
    """An element without the number and the digest that it had."""

    frame: str
    role: str
    name: str
    """Casefolded, white space folded, without a count at its end."""
    ordinal: int


@dataclass(frozen=True, slots=True)
class Page:
    """A page before or after a move."""

    place: str
    state: str
    """Tells pages of one episode apart; empty where the page was not seen (after the last step)."""
    seen: ObservationRecord | None
    at: float = 0.0
    """When it was seen, in seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Move:
    step: int
    kind: Kind
    verb: str
    """Kind of the action: `click`, `type`, `goto` …"""
    target: Target | None
    value: str
    """What was typed, chosen, pressed, opened or answered, folded as names are; empty where there is no such thing."""
    before: Page
    after: Page
    said: str
    """For people and models: the action in words."""
    point: tuple[float, float] | None = None

    @property
    def changed(self) -> bool:
        """It made a visible difference, or none can be known of (the last step)."""
        return not self.after.state or self.after.state != self.before.state

    @property
    def search(self) -> bool:
        """It fills in a field that looks for things: other words may mean the same."""
        target = self.target
        return (
            self.kind is Kind.SET
            and target is not None
            and (target.role == "searchbox" or _SEARCH.search(target.name) is not None)
        )

    @property
    def submits(self) -> bool:
        """Something may remain of it on a server: a new address that no query made, reached by a button or a key."""
        by_button = self.target is None or self.target.role in (*_SUBMITTERS, *FIELDS)
        return (
            self.kind is Kind.GO
            and self.verb in ("click", "press", "type", "click_at", "answer_dialog")
            and (by_button and "?" not in self.after.place)
        )

    @property
    def fills(self) -> bool:
        """Fills in a form without leaving the page: such moves may come in any order."""
        toggles = self.kind is Kind.DO and self.target is not None and self.target.role in TOGGLES
        return self.kind is Kind.SET or toggles


@dataclass(frozen=True, slots=True)
class Reference:
    """A success, ready to be compared with."""

    episode_id: str
    moves: tuple[Move, ...]
    pages: Pages
    slots: Slots
    """Its volatile numbers."""
    done: tuple[Done, ...]
    """Every step of it, as it was taken."""
    numbers: tuple[int, ...]
    """The numbers of its steps."""

    def between(self, after: int, until: int) -> Sequence[Done]:
        """What it did after its step *after*, up to its step *until*."""
        return [one for number, one in zip(self.numbers, self.done, strict=True) if after < number <= until]


def fold(text: str) -> str:
    """*text* as it is compared: no case, no white space but single blanks, no clocks."""
    return _SPACE.sub(" ", steady_text(text)).strip().casefold()


def moves_of(history: History) -> tuple[Move, ...]:
    """Every move of the steps that were carried out, in order."""
    found: list[Move] = []
    for i, (intent, commit) in enumerate(history.steps):
        if isinstance(intent.action, LOOKING) or (commit is not None and not commit.result.ok):
            continue
        found += _moves(intent, _page(history, i), _after(history, i))
    return tuple(found)


def attempts(step: Step, move: Move) -> bool:
    """Does *step* try what *move* did, carried out or not?"""
    intent = step[0]
    return any(
        (tried.verb, tried.target, tried.value) == (move.verb, move.target, move.value)
        for tried in _moves(intent, move.before, move.after)
    )


def _moves(intent: Intent, before: Page, after: Page) -> Iterator[Move]:
    action, target = intent.action, _target(intent.target)
    if isinstance(action, Type):
        between = after if not action.enter else Page(before.place, "", None)
        said = f"type {action.text!r} into {_called(target)}"
        yield Move(intent.step, Kind.SET, "type", target, fold(action.text), before, between, said)
        if not action.enter:
            return
        action, target, before = Press(keys="Enter"), None, Page(before.place, before.state, None)
    kind, value = _meant(action, before, after)
    point = (action.x, action.y) if isinstance(action, ClickAt) else None
    said = _said(action.kind, target, value)
    yield Move(intent.step, kind, action.kind, target, value, before, after, said, point)


def _meant(action: Action, before: Page, after: Page) -> tuple[Kind, str]:
    """What kind of move it is, and its value."""
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


def _said(verb: str, target: Target | None, value: str) -> str:
    shown = f" {value!r}" if value else ""
    return f"{verb.replace('_', ' ')}{shown}" + (f" on {_called(target)}" if target is not None else "")


def _called(target: Target | None) -> str:
    return f"{target.role} {target.name!r}" if target is not None else "an element without a key"


def _target(row: ElementKeyRecord | None) -> Target | None:
    if row is None:
        return None
    return Target(row.frame, row.role, _COUNTED.sub("", fold(row.name)), row.ordinal)


def _page(history: History, i: int) -> Page:
    intent = history.steps[i][0]
    return Page(place(intent.seen.url), history.states[i], intent.seen, seconds_of(intent))


def _after(history: History, i: int) -> Page:
    """The page that the next step saw. After the last one, where the same action led to from the same page before; else
    only its address is known."""
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
    """*moves*, in order of time, without those after which a page was what it had been before them."""
    kept: list[Move] = []
    for move in moves:
        kept.append(move)
        if not move.after.state or not move.changed:
            continue
        back = next((i for i in range(len(kept) - 1) if kept[i].before.state == move.after.state), None)
        if back is not None and not any(_remains(one) for one in kept[back:]):
            del kept[back:]
    return kept


def _remains(move: Move) -> bool:
    """Going back to an earlier page does not prove that it was undone."""
    hidden = move.kind is Kind.SET and bool(move.after.state) and not move.changed
    return move.submits or hidden or move.kind is Kind.STOP


def last_values(moves: Sequence[Move]) -> tuple[Move, ...]:
    """Of the values that a field was given before the page was left, the last."""
    kept: list[Move] = []
    since: dict[Target, int] = {}
    for move in moves:
        if (
            move.kind is Kind.SET
            and move.target is not None
            and not (move.verb == "select" and move.target.role == "listbox")
        ):
            if move.target in since:
                kept[since[move.target]] = move  # the corrected value stands where the field was first filled in
                continue
            since[move.target] = len(kept)
        elif move.kind is not Kind.SET:
            since = since if move.fills else {}
        kept.append(move)
    return tuple(kept)
