"""Policies that fail on purpose: an oracle that at one step does something wrong, each in a way of its own.

What is wrong, and at which step, is decided here before the page has answered; the analyzer has no part in it. A kind
is a generator that is sent turns and yields actions. The oracle plays until the step `at`, then the generator does.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urljoin

from agent.episode.policy import ActionProposal, Policy, Turn, storable_action
from envs.core.action_languages import Language
from envs.core.actions import Action, Back, Click, Find, Goto, Hover, Scroll, Stop, Type, Wait
from envs.core.observation import Element
from models.base import ModelUnavailable

Category = Literal["stop_at_wrong_page", "stuck_midway", "no_reasonable_attempt", "other"]
Script = Generator[Action, Turn, None]

_FORBIDDEN = re.compile(r"log ?out|sign ?out|delete|remove|github|mailto|django|wagtail docs|trac", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Kind:
    """One way to fail."""

    name: str
    category: Category
    how: str
    script: Callable[[Turn, random.Random], Script]
    begins: Literal["first", "second", "midway", "typing", "end"] = "midway"
    """When the script takes over: at step 1 or 2, at a drawn step from 3 on, where the oracle types, or where it
    stops."""
    key: Literal["here", "before"] = "here"
    """The key step: the one at which the script takes over, or the one before it."""
    goes_on: bool = False
    """After its first action, the oracle plays on."""
    suites: tuple[str, ...] = ("sites", "miniwob")


class Saboteur:
    """Plays each task as its oracle does until its kind takes over. `key_steps` tells afterwards where that was."""

    spec = "saboteur"

    def __init__(self, inner: Policy, language: Language, kinds: Mapping[str, Kind], steps: Mapping[str, int]) -> None:
        """*kinds* by task id; *steps*: what the oracle takes for it, the final stop included."""
        self._inner = inner
        self._language = language
        self._kinds = kinds
        self._steps = steps
        self._scripts: dict[str, Script] = {}
        self._over: set[str] = set()
        self.key_steps: dict[str, int] = {}

    async def propose(self, turn: Turn) -> ActionProposal:
        task, kind = turn.task.id, self._kinds[turn.task.id]
        if task in self._scripts:
            return self._say(self._scripts[task].send(turn))
        if task not in self._over and self._begins(kind, turn):
            return self._take_over(kind, turn)
        proposal = await self._inner.propose(turn)
        if task in self._over or proposal.action is None:
            return proposal
        if (kind.begins == "typing" and isinstance(proposal.action, Type)) or (
            kind.begins == "end" and isinstance(proposal.action, Stop)
        ):
            return self._take_over(kind, turn, proposal.action)
        return proposal

    def _begins(self, kind: Kind, turn: Turn) -> bool:
        match kind.begins:
            case "first":
                return turn.step == 1
            case "second":
                return turn.step == 2
            case "midway":
                last = max(3, self._steps[turn.task.id] - 1)
                return turn.step == random.Random(f"{kind.name} {turn.task.id}").randint(3, last)
            case "typing" | "end":
                return False

    def _take_over(self, kind: Kind, turn: Turn, meant: Action | None = None) -> ActionProposal:
        self.key_steps[turn.task.id] = turn.step - (kind.key == "before")
        rng = random.Random(f"{kind.name} {turn.task.id}")
        if meant is not None and kind.goes_on:
            self._over.add(turn.task.id)
            return self._say(_spoiled(meant))
        if isinstance(meant, Stop) and kind.name == "wrong answer":
            return self._say(_spoiled(meant))
        script = kind.script(turn, rng)
        self._scripts[turn.task.id] = script
        return self._say(next(script))

    def _say(self, action: Action) -> ActionProposal:
        clean = storable_action(action)
        return ActionProposal(clean, self._language.show(clean))


def _spoiled(action: Action) -> Action:
    """The same with another value."""
    match action:
        case Type(text=text):
            return action.model_copy(update={"text": str(int(text) + 1) if text.isdigit() else text[::-1] + " x"})
        case Stop(answer=answer):
            number = re.search(r"\d+", answer or "")
            if number is None:
                return Stop(answer="It is the second one.")
            wrong = str(int(number.group()) + 3)
            return Stop(answer=(answer or "")[: number.start()] + wrong + (answer or "")[number.end() :])
        case _:
            return action


def _ref(turn: Turn, element: Element) -> int | None:
    """Where *element* is now, by role and name."""
    for one in turn.view.observation.elements:
        if one.shown and (one.key.role, one.key.name, one.key.frame) == (
            element.key.role,
            element.key.name,
            element.key.frame,
        ):
            return one.ref
    return None


def _links(turn: Turn, rng: random.Random, *, role: str = "link") -> list[Element]:
    """Links of the page that have nothing to do with the task, in a drawn order."""
    instruction = set(re.findall(r"\w{3,}", turn.view.instruction.lower()))
    found = [
        one
        for one in turn.view.observation.elements
        if one.shown
        and one.key.role == role
        and one.key.name
        and not _FORBIDDEN.search(one.key.name)
        and not instruction & set(re.findall(r"\w{3,}", one.key.name.lower()))
    ]
    rng.shuffle(found)
    return found


def _home(turn: Turn) -> Goto:
    return Goto(url=urljoin(turn.view.observation.url, "/"))


def wander(turn: Turn, rng: random.Random) -> Script:
    """From page to page, never the same link twice."""
    used: set[str] = set()
    while True:
        fresh = [one for one in _links(turn, rng) if one.key.name not in used]
        if fresh:
            used.add(fresh[0].key.name)
            turn = yield Click(ref=fresh[0].ref)
        else:
            turn = yield Back()


def stop_with_nothing(turn: Turn, rng: random.Random) -> Script:
    while True:
        yield Stop(answer="done")


def give_up(turn: Turn, rng: random.Random) -> Script:
    while True:
        yield Stop(answer="N/A: there is no such thing here")


def wrong_link_then_stop(turn: Turn, rng: random.Random) -> Script:
    found = _links(turn, rng) or _links(turn, rng, role="button")
    turn = yield Click(ref=found[0].ref) if found else _home(turn)
    while True:
        turn = yield Stop(answer=turn.view.observation.title or "done")


def wrong_link_twice_then_stop(turn: Turn, rng: random.Random) -> Script:
    away = wander(turn, rng)
    turn = yield next(away)
    turn = yield away.send(turn)
    while True:
        yield Stop(answer="done")


def same_link_again(turn: Turn, rng: random.Random) -> Script:
    found = _links(turn, rng) or _links(turn, rng, role="button") or list(turn.view.observation.elements)
    element = found[0]
    while True:
        ref = _ref(turn, element)
        turn = yield Click(ref=ref) if ref is not None else Wait()


def same_field_again(turn: Turn, rng: random.Random) -> Script:
    fields = [one for one in turn.view.observation.elements if one.key.role in ("textbox", "searchbox") and one.shown]
    if not fields:
        yield from same_link_again(turn, rng)
    while True:
        ref = _ref(turn, fields[0])
        turn = yield Click(ref=ref) if ref is not None else Wait()


def same_search_again(turn: Turn, rng: random.Random) -> Script:
    fields = [one for one in turn.view.observation.elements if one.key.role in ("textbox", "searchbox") and one.shown]
    if not fields:
        yield from down_and_down(turn, rng)
    while True:
        ref = _ref(turn, fields[0])
        turn = yield Type(ref=ref, text="where is it", enter=True) if ref is not None else Back()


def down_and_down(turn: Turn, rng: random.Random) -> Script:
    while True:
        yield Scroll(direction="down")


def there_and_back(turn: Turn, rng: random.Random) -> Script:
    """A link and back, until the link is gone from where it was: then to that page and back."""
    found, here = _links(turn, rng), turn.view.observation.url
    if not found:
        yield from up_and_down(turn, rng)
    while True:
        ref = _ref(turn, found[0])
        turn = yield Click(ref=ref) if ref is not None else Goto(url=here)
        turn = yield Back()


def up_and_down(turn: Turn, rng: random.Random) -> Script:
    while True:
        yield Scroll(direction="down")
        yield Scroll(direction="up")


def round_of_three(turn: Turn, rng: random.Random) -> Script:
    """Three pages again and again, by their addresses."""
    here = turn.view.observation.url
    found = _links(turn, rng)[:2]
    while True:
        for element in found:
            ref = _ref(turn, element)
            turn = yield Click(ref=ref) if ref is not None else Goto(url=here)
        turn = yield Goto(url=here)


def on_and_off(turn: Turn, rng: random.Random) -> Script:
    """Ticks and unticks one box, or opens and closes one section."""
    boxes = [
        one
        for one in turn.view.observation.elements
        if one.shown and (one.key.role in ("checkbox", "tab", "radio") or {"expanded", "collapsed"} & set(one.states))
    ]
    if not boxes:
        yield from same_link_again(turn, rng)
    while True:
        ref = _ref(turn, boxes[0])
        turn = yield Click(ref=ref) if ref is not None else Wait()


def only_observe(turn: Turn, rng: random.Random) -> Script:
    """Only observes: never the same action twice."""
    words = re.findall(r"[A-Za-z]{4,}", turn.view.observation.text)
    rng.shuffle(words)
    number = 0
    while True:
        shown = [one for one in turn.view.observation.elements if one.shown]
        word = words[number % len(words)] if words else "menu"
        choices: list[Action] = [Scroll(direction="down"), Find(text=word), Scroll(direction="up")]
        if shown:
            choices.append(Hover(ref=shown[(7 * number + 3) % len(shown)].ref))
        turn = yield choices[(number * 3 + number // 2) % len(choices)]
        number += 1


def wrong_first_click(turn: Turn, rng: random.Random) -> Script:
    """Presses a button that was not asked for; what it leads to is clicked through."""
    buttons = _links(turn, rng, role="button") or _links(turn, rng)
    turn = yield Click(ref=(buttons or list(turn.view.observation.elements))[0].ref)
    yield from wander(turn, rng)


def other_texts(turn: Turn, rng: random.Random) -> Script:
    """Writes one thing after the other into a field, never the same twice; where there is none, goes astray."""
    fields = [one for one in turn.view.observation.elements if one.key.role in ("textbox", "searchbox") and one.shown]
    if not fields:
        yield from wander(turn, rng)
    words = list(dict.fromkeys(re.findall(r"[a-z]{4,}", turn.view.observation.text.lower())))
    rng.shuffle(words)
    for number in range(1000):
        ref = _ref(turn, fields[0])
        text = f"{words[number % len(words)] if words else 'item'} {number}"
        turn = yield Type(ref=ref, text=text, enter=True) if ref is not None else _home(turn)


def model_breaks(turn: Turn, rng: random.Random) -> Script:
    raise ModelUnavailable("the model server went away")
    yield Wait()  # makes this a generator


def as_meant(turn: Turn, rng: random.Random) -> Script:
    """For kinds that only change one action of the oracle."""
    while True:
        yield Stop(answer="done")


SITES = ("sites",)
MINIWOB = ("miniwob",)
A: Category = "stop_at_wrong_page"
B: Category = "stuck_midway"
C: Category = "no_reasonable_attempt"
D: Category = "other"

KINDS: tuple[Kind, ...] = (
    Kind("stops early", A, "the oracle's way, but it stops before its end", stop_with_nothing, key="before"),
    Kind("gives up early", A, "the oracle's way, then 'cannot be done'", give_up, key="before"),
    Kind("wrong link, then stop", A, "a link that has nothing to do with the task, then a claim", wrong_link_then_stop),
    Kind("two wrong links, then stop", A, "two such links, then a claim", wrong_link_twice_then_stop),
    Kind("wrong answer", A, "the oracle's whole way, another answer", as_meant, "end", "before", suites=SITES),
    Kind("wrong value", A, "the oracle's way with one other text typed", as_meant, "typing", goes_on=True),
    Kind("same link again", B, "one click over and over", same_link_again),
    Kind("same field again", B, "clicks into one field over and over", same_field_again),
    Kind("same search again", B, "the same search over and over", same_search_again, suites=SITES),
    Kind("down and down", B, "scrolls down over and over", down_and_down),
    Kind("there and back", B, "a link and back, over and over", there_and_back, suites=SITES),
    Kind("up and down", B, "scrolls down and up, over and over", up_and_down),
    Kind("round of three", B, "three pages in turn, over and over", round_of_three, suites=SITES),
    Kind("on and off", B, "one box or section on and off", on_and_off),
    Kind("gives up at once", C, "stops at the first step", give_up, "first"),
    Kind("gives up at the second step", C, "one action, then stops", give_up, "second"),
    Kind("never stops", C, "the oracle's whole way, then looks around", only_observe, "end", suites=SITES),
    Kind("only looks", C, "scrolls, hovers, searches the page, and does nothing", only_observe, "first"),
    Kind("distracted", C, "a foreign link as its first action, then from page to page", wander, "first", suites=SITES),
    Kind("first click ends it", C, "a wrong first click ends the task", wrong_first_click, "first", suites=MINIWOB),
    Kind("goes astray", D, "a foreign link in the middle, then from page to page", wander, suites=SITES),
    Kind("other texts", D, "writes one thing after the other into a field", other_texts),
    Kind("model breaks", D, "the model cannot be reached any more", model_breaks, key="before"),
)  # fmt: skip
