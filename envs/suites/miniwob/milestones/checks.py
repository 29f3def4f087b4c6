"""Checkers for milestones. Their arguments name the values of the goal that they compare with the page."""

from __future__ import annotations

import re
from collections.abc import Callable

from envs.suites.miniwob.milestones.spec import Checker, Goal, Verdict
from envs.suites.miniwob.state import PageState

TEXTUAL = ("text", "password", "textarea", "search", "date", "time", "input", "number")
MAX_EVIDENCE = 160


def _verdict(achieved: bool, evidence: str) -> Verdict:
    return Verdict(achieved, evidence if len(evidence) <= MAX_EVIDENCE else evidence[: MAX_EVIDENCE - 1] + "…")


def finished(goal: Goal, state: PageState) -> Verdict:
    """Checks that the benchmark ended the episode with full reward."""
    return _verdict(state.won, f"done={state.done} reward={state.reward:g}")


def holds(key: str, *, ident: str | None = None, types: tuple[str, ...] = TEXTUAL, at: int | None = None) -> Checker:
    """Checks that a text field contains the goal's *key*: the field with id *ident*, that at position *at*, or any."""

    def check(goal: Goal, state: PageState) -> Verdict:
        fields = [f for f in state.fields if f.type in types and (ident is None or f.id == ident)]
        if at is not None:
            fields = fields[at : at + 1]
        secret = any(field.type == "password" for field in fields)
        good = any(field.value.strip() == goal[key] for field in fields)
        return _verdict(good, "password compared" if secret else f"fields hold {[f.value for f in fields]!r}")

    return check


def computed(expected: Callable[[Goal, PageState], str | None]) -> Checker:
    """Checks that a text field contains the value that *expected* computes from goal and page."""

    def check(goal: Goal, state: PageState) -> Verdict:
        target = expected(goal, state)
        fields = [f.value for f in state.fields if f.type in TEXTUAL]
        return _verdict(target is not None and target in fields, f"fields hold {fields!r}, wanted {target!r}")

    return check


def listed(text: str) -> frozenset[str]:
    """Splits `a, b, c` into its items; `nothing` is empty."""
    return frozenset[str]() if text == "nothing" else frozenset(text.split(", "))


def some_checked(key: str) -> Checker:
    """Checks that at least one of the goal's listed boxes is checked."""
    return lambda goal, state: _verdict(
        bool(listed(goal[key]) & state.checked()), f"checked {sorted(state.checked())!r}"
    )


def exactly_checked(key: str) -> Checker:
    """Checks that the checked boxes are exactly those listed, and that there is at least one."""
    return lambda goal, state: _verdict(
        state.checked() == listed(goal[key]) != frozenset(), f"checked {sorted(state.checked())!r}"
    )


def some_chosen(key: str) -> Checker:
    """Checks that at least one of the goal's listed options is chosen."""
    return lambda goal, state: _verdict(bool(listed(goal[key]) & state.chosen()), f"chosen {sorted(state.chosen())!r}")


def exactly_chosen(key: str) -> Checker:
    """Checks that the chosen options are exactly those listed."""
    return lambda goal, state: _verdict(state.chosen() == listed(goal[key]), f"chosen {sorted(state.chosen())!r}")


def position(word: str) -> int:
    """`3rd` → 2."""
    return int(re.sub(r"\D", "", word)) - 1


def nth_checked(key: str, kind: str) -> Checker:
    """Checks that the box of type *kind* at the goal's position (`3rd`) is checked."""

    def check(goal: Goal, state: PageState) -> Verdict:
        boxes = [field.checked for field in state.fields if field.type == kind]
        at = position(goal[key])
        return _verdict(at < len(boxes) and boxes[at], f"{kind}: checked {[i + 1 for i, on in enumerate(boxes) if on]}")

    return check


def nth_holds(key: str, value: str) -> Checker:
    """Checks that the text field at the goal's position *key* contains the goal's *value*."""
    return lambda goal, state: holds(value, at=position(goal[key]))(goal, state)


def shows(template: str) -> Checker:
    """Checks that a visible node of the task has exactly this text; `{name}` stands for a value of the goal."""

    def check(goal: Goal, state: PageState) -> Verdict:
        target = re.sub(r"\{(\w+)\}", lambda match: goal[match[1]], template)
        good = target in state.items or (state.done and state.won)
        return _verdict(good, f"{target!r} is {'' if good else 'not '}shown")

    return check


def view(*idents: str) -> Checker:
    """Checks that one of the parts with these ids is visible, or that the episode was won."""
    return lambda goal, state: _verdict(
        state.won or any(ident in state.parts for ident in idents), f"visible parts {list(state.parts)!r}"
    )


def opened(goal: Goal, state: PageState) -> Verdict:
    """Checks that a section, tab or menu is open."""
    return _verdict(bool(state.open) or state.won, f"open: {list(state.open)!r}")
