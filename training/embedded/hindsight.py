"""What a run that only looked around teaches: goals that fit the places it came to, put to it in hindsight.

A wandering policy (`--policy wander`) follows links without a goal. Every page that it reached can be one: to open it,
to read a value from it, or to fill one of its fields; and the way there is known, at least from a few pages back. No
task is needed, and none is given away: what is learned is the site, not what the tasks of a held-out template ask of
it. After hindsight experience replay (Andrychowicz et al., 2017) and unsupervised exploration of websites (NNetNav,
Murty et al., 2024), with paths and wordings that are made here instead of by a model.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from agent.prompts import PolicyView, compact_text, history_line
from agent.wandering import WANDER
from envs.actions import Action, ActionResult, Click, Select, Status, Stop, Type
from envs.languages import PROGRAM
from envs.observation import ElementKey, Observation
from envs.tasks import Milestone, TaskRef
from envs.trace_store import BlobStore, Trace
from training.data.views import policy_views
from training.embedded.lesson import Lesson

GOALS = 2
"""For each page that was reached."""
FARTHEST = 3
"""Links from where a goal is put to the page that it is about, at most."""
OPEN = (
    "Open {page}.",
    'Open the page "{page}".',
    "Go to {page}.",
    "Show me {page} and leave it open.",
    'I want to see "{page}".',
    "Take me to {page}.",
)
READ = (
    'What is the {label} of "{page}"? Answer with it alone.',
    "Tell me the {label} of {page}.",
    'Look up {label} on the page "{page}".',
    "{page}: what does it say for {label}?",
    "I need the {label} of {page}; answer with nothing else.",
)
FILL = (
    'Set {label} of {page} to "{value}".',
    'Change the {label} of "{page}" to {value}.',
    "On {page}, {label} is to be {value}.",
    'Put "{value}" into {label} of "{page}" and save it.',
)
_CONTROL = re.compile(r'\[(\d+)\] (\w+) "([^"\n]+)"( = "[^"\n]*")?')
_OPTIONS = re.compile(r'\[(\d+)\] combobox "([^"\n]+)"(?: = "([^"\n]*)")?[^\n\[]*? options: ((?:"[^"\n]*" ?)+)')
_RECORD = re.compile(r"^([^|\[\n\"]{2,30}) \| ([^|\[\n\"]{1,60})$", re.MULTILINE)
_SAVES = re.compile(r"^(save|submit|update|create|publish|add|send)", re.IGNORECASE)
_DONE = ActionResult(status=Status.OK)
_LONGEST = 60


@dataclass(frozen=True)
class _Stop:
    """One page of a walk, and the link that was followed from it."""

    view: PolicyView
    followed: tuple[str, str]
    """(role, name)."""

    @property
    def page(self) -> Observation:
        return self.view.observation

    @property
    def place(self) -> str:
        parts = urlsplit(self.page.url)
        return f"{parts.netloc}{parts.path}"

    @property
    def name(self) -> str:
        """Its first heading, else the beginning of its title."""
        heading = re.search(r"^# ([^\n\[\]\"]+)$", self.page.text, re.MULTILINE)
        return (heading[1] if heading else re.split(r" [|-] ", self.page.title)[0]).strip()

    def ref(self, role: str, name: str, *, alike: bool = False) -> int | None:
        """The number of the only such control, or of the first where several are *alike*; None where there is none."""
        found = [int(ref) for ref, is_, called, _ in _CONTROL.findall(self.page.text) if (is_, called) == (role, name)]
        return found[0] if len(found) == 1 or (found and alike) else None


def wandered(files: Sequence[tuple[Trace, BlobStore]], seed: int = 0) -> Iterator[Lesson]:
    """Lessons of the kind `wander` from the *files* of a wandering policy; the same ones each time."""
    walks = [(trace, _walk(trace, blobs)) for trace, blobs in files if trace.header.config.get("policy") == WANDER]
    places: defaultdict[str, set[str]] = defaultdict(set)
    for _, walk in walks:
        for stop in walk:
            places[stop.name].add(stop.place)
    for trace, walk in walks:
        rng = random.Random(f"hindsight {seed} {trace.header.episode_id}")
        for at in range(1, len(walk)):
            stop = walk[at]
            if stop.place != walk[at - 1].place and len(places[stop.name]) == 1 and 1 < len(stop.name) <= _LONGEST:
                for _ in range(GOALS):
                    yield from _about(rng, trace.header.task, walk, at)


def _walk(trace: Trace, blobs: BlobStore) -> list[_Stop]:
    """The pages in their order; a walk ends where something else than a link or a button was used."""
    found: list[_Stop] = []
    for intent, view in policy_views(trace, blobs):
        target = intent.target
        if not isinstance(intent.action, Click) or target is None:
            break
        found.append(_Stop(view, (target.role, target.name)))
    return found


def _about(rng: random.Random, task: TaskRef, walk: Sequence[_Stop], at: int) -> Iterator[Lesson]:
    """Goals that the page *at* answers, from a few pages before it."""
    page = walk[at].name
    first = next((k for k in range(at - 1, -1, -1) if at - k > FARTHEST or walk[k].place == walk[at].place), -1) + 1
    start = rng.randint(first, at - 1)
    kind = rng.random()
    records = _records(walk[at].page.text)
    fields = _fields(rng, walk[at])
    if kind < 0.35 and records:
        label, value = rng.choice(records)
        goal = rng.choice(READ).format(label=label, page=page)
        ends: list[_Turn] = [_Turn(walk[at], Stop(answer=value), None, f"The {label} is found")]
    elif kind < 0.75 and fields:
        label, value, ends = rng.choice(fields)
        goal = rng.choice(FILL).format(label=label, page=page, value=value)
    else:
        goal = rng.choice(OPEN).format(page=page)
        ends = [_Turn(walk[at], Stop(), None, "")]
    way = _way(walk, start, at, page)
    if way is not None:
        yield from _lessons(task, goal, [*way, *ends])


@dataclass(frozen=True)
class _Turn:
    stop: _Stop
    action: Action
    target: ElementKey | None
    next: str
    """The milestone; empty where none is left."""


def _key(role: str, name: str) -> ElementKey:
    """As much of it as a line of the history tells."""
    return ElementKey(frame="", role=role, name=name, ordinal=0, digest="")


def _way(walk: Sequence[_Stop], start: int, end: int, page: str) -> list[_Turn] | None:
    """From *start* to *end*, without what a link of an earlier page makes needless; None where a link of it is one of
    several of its name."""
    turns: list[_Turn] = []
    at = start
    while at < end:
        ways = {k: ref for k in range(at, end) if (ref := _through(walk[at], walk[k], page)) is not None}
        if not ways:
            return None
        onward = max(ways)
        turns.append(_Turn(walk[at], Click(ref=ways[onward]), _key(*walk[onward].followed), f'"{page}" is open'))
        at = onward + 1
    return turns


def _through(here: _Stop, stop: _Stop, page: str) -> int | None:
    """What was followed from *stop*, where it is shown *here*; links that are called as the page itself lead there."""
    role, name = stop.followed
    return here.ref(role, name, alike=name == page)


def _lessons(task: TaskRef, goal: str, turns: Sequence[_Turn]) -> Iterator[Lesson]:
    history: list[str] = []
    for turn in turns:
        milestones = (Milestone(id="m1", text=turn.next),) if turn.next else ()
        view = replace(
            turn.stop.view,
            instruction=goal,
            milestones=milestones,
            z=(False,) * len(milestones),
            next_milestone=0 if milestones else None,
            history=tuple(history),
            problems=(),
            last=None,
        )
        bare = compact_text(replace(view, next_milestone=None))
        ref = getattr(turn.action, "ref", None)
        prompts = (compact_text(view), bare) if milestones else (bare,)
        if ref is None or all(f"[{ref}] " in prompt for prompt in prompts):
            site = urlsplit(turn.stop.page.url).netloc
            yield Lesson("wander", task, prompts, PROGRAM.show(turn.action), group=f"{WANDER} {site}")
        history.append(history_line(turn.action, turn.target, _DONE))


def _records(text: str) -> list[tuple[str, str]]:
    """(label, value) of the lines of a page that hold one of each, where the label is there once."""
    found = _RECORD.findall(text)
    labels = [label for label, _ in found]
    return [(label.strip(" :"), value) for label, value in found if labels.count(label) == 1]


def _fields(rng: random.Random, stop: _Stop) -> list[tuple[str, str, list[_Turn]]]:
    """(label, value, what is done) of the fields of a form that can be saved: filled in, then saved."""
    text = stop.page.text
    found: list[tuple[str, str, list[_Turn]]] = []
    for field in _CONTROL.finditer(text):
        ref, role, name, had = field.groups(default="")
        if role not in ("textbox", "spinbutton") or "search" in name.lower() or stop.ref(role, name) is None:
            continue
        value = str(rng.randint(2, 99)) if role == "spinbutton" or re.search(r"\d", had) else _value(rng, text)
        shown = text[: field.start()] + f'[{ref}] {role} "{name}" = "{value}"' + text[field.end() :]
        if ends := _filled(stop, shown, Type(ref=int(ref), text=value), _key(role, name), value):
            found.append((_label(name), value, ends))
    for field in _OPTIONS.finditer(text):
        ref, name, had, options = field.groups(default="")
        others = [one for one in re.findall(r'"([^"]*)"', options) if one != had and re.search(r"\w", one)]
        if not others or stop.ref("combobox", name) is None:
            continue
        value = rng.choice(others)
        shown = text.replace(f'[{ref}] combobox "{name}" = "{had}"', f'[{ref}] combobox "{name}" = "{value}"')
        if ends := _filled(stop, shown, Select(ref=int(ref), option=value), _key("combobox", name), value):
            found.append((_label(name), value, ends))
    return found


def _filled(stop: _Stop, text: str, action: Action, field: ElementKey, value: str) -> list[_Turn]:
    """The two turns: the field, and then, on the page as it shows *text*, the next button that saves; none without."""
    after = replace(stop, view=replace(stop.view, observation=replace(stop.page, text=text)))
    below = text.partition(f'{field.role} "{field.name}" = "{value}"')[2]
    saves = [name for _, role, name, _ in _CONTROL.findall(below) if role == "button" and _SAVES.match(name)]
    if not saves or (ref := after.ref("button", saves[0])) is None:
        return []
    return [
        _Turn(stop, action, field, f"{_label(field.name)} is {value}"),
        _Turn(after, Click(ref=ref), _key("button", saves[0]), "It is saved"),
    ]


def _label(name: str) -> str:
    return name.strip(" :*")


def _value(rng: random.Random, text: str) -> str:
    """Some words in a row of what the page says or a control is called; the augmentation renames most of them."""
    told = [line for line in text.splitlines() if "[" not in line] + re.findall(r'\] \w+ "([^"\n]+)"', text)
    words = re.findall(r"[A-Za-z][\w'-]+", rng.choice(told)) if told else []
    begin = rng.randrange(len(words)) if words else 0
    return " ".join(words[begin : begin + rng.choice((1, 2, 2, 3, 4))]) or "none"
