"""Generates synthetic pages in the observation's grammar with their actions, to train finding and copying.

A 4-million-parameter model learns to copy a word that it never saw only if nearly every word that it sees is new.
Real tasks draw from short word lists, so these pages come first: no browser, thousands a second, most names invented.
Each family below is a general skill (click what is named, fill what is asked, tick a list, look behind tabs, read a
table, go by position), worded and laid out in several ways; none holds a page of a benchmark.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from training.embedded.words import WordBag


@dataclass(frozen=True, slots=True)
class Example:
    """One step: the compact prompt and the action as the program language prints it."""

    task: str
    prompt: str
    answer: str


@dataclass
class Sketch:
    """A page under construction; controls are numbered in document order, as the observer does it."""

    rng: random.Random
    words: WordBag
    lines: list[str] = field(default_factory=list)
    refs: int = 0
    done: list[str] = field(default_factory=list)
    """History lines shown, oldest first."""
    next: str = ""
    at: str = ""
    """Path of a page that is shown in part."""

    def text(self, line: str) -> None:
        self.lines.append(line)

    def control(self, role: str, name: str, *, value: str = "", states: str = "", joined: bool = False) -> int:
        """Adds a control on a line of its own, or at the end of the last line; returns its number."""
        self.refs += 1
        shown = f'[{self.refs}] {role} "{name}"'
        shown += f' = "{value}"' if value else ""
        shown += f" {states}" if states else ""
        if joined and self.lines and self.lines[-1].startswith("["):
            self.lines[-1] += "  " + shown
        else:
            self.lines.append(shown)
        return self.refs

    def lorem(self, count: int) -> list[str]:
        """Running text as the benchmark writes it: lower-case words, some sentences and commas."""
        rng, words, start = self.rng, list[str](), True
        for i in range(count):
            word = self.words.filler_word()
            word = word.capitalize() if start else word.lower()
            start = rng.random() < 0.2 or i == count - 1
            words.append(word + ("." if start else "," if rng.random() < 0.12 else ""))
        return words

    def maybe(self, step: str) -> str:
        """Returns the milestone half of the time: the policy must work with planners `reference` and `none`."""
        return step if self.rng.random() < 0.5 else ""

    def prompt(self, goal: str) -> str:
        lines = [f"Goal: {goal}"]
        if self.next:
            lines.append(f"Next: {self.next}")
        if self.at:
            lines += [*(f"Done: {line}" for line in self.done), f"At: {self.at}"]
        else:
            lines += [f"Done: {line}" for line in self.done[-3:]]
        return "\n".join([*lines, "Page:", *self.lines])


def click_answer(ref: int) -> str:
    return f'do(action="Click", element="{ref}")'


def type_answer(ref: int, text: str) -> str:
    return f'do(action="Type", argument="{text}", element="{ref}")'


def select_answer(ref: int, option: str) -> str:
    return f'do(action="Select Dropdown Option", argument="{option}", element="{ref}")'


Family = Callable[[Sketch], tuple[str, str]]
"""Draws a page into the sketch and returns goal and answer."""

ORDINALS = ("1st", "2nd", "3rd", "4th", "5th", "6th")
CLICKABLE = ("button", "link", "clickable", "generic", "tab", "menuitem", "radio", "checkbox", "option", "treeitem")


def click_named(page: Sketch) -> tuple[str, str]:
    """One of several controls is named in the goal; the others are alike."""
    rng, words = page.rng, page.words
    role, joined = rng.choice(CLICKABLE), rng.random() < 0.4
    names = words.distinct(rng.randint(2, 9))
    wanted = rng.choice(names)
    refs: dict[str, int] = {}
    for name in names:
        if rng.random() < 0.35:
            page.text(words.sentence(rng.randint(1, 12)))
        refs[name] = page.control(role if rng.random() < 0.8 else rng.choice(CLICKABLE), name, joined=joined)
    goal = rng.choice(
        (
            'Click on the "{}" button.',
            'Click on the link "{}".',
            "Click button {}.",
            'Click the button in the dialog box labeled "{}".',
            'Press "{}".',
            "Open {}",
            "Select {}",
            'Find and click on the item labeled "{}".',
            'Navigate to the folder or file named "{}".',
            "Click on {}.",
        )
    ).format(wanted)
    page.next = rng.choice(("", f'"{wanted}" is clicked', f"Click {wanted}"))
    return goal, click_answer(refs[wanted])


def click_in_turn(page: Sketch) -> tuple[str, str]:
    """Two clicks in order; the page does not change, so the history decides."""
    rng = page.rng
    names = page.words.distinct(rng.randint(2, 5))
    first, second = rng.sample(names, 2)
    refs = {name: page.control("button", name, joined=rng.random() < 0.5) for name in names}
    second_now = rng.random() < 0.5
    if second_now:
        page.done.append(f'click button "{first}"')
    page.next = rng.choice(("", f"{second if second_now else first} is clicked"))
    goal = rng.choice(("Click button {}, then click button {}.", 'Press "{}" and after that "{}".'))
    return goal.format(first, second), click_answer(refs[second if second_now else first])


def fill_one(page: Sketch) -> tuple[str, str]:
    """A text goes into the only field, then a button is pressed."""
    rng, words = page.rng, page.words
    text, button = words.text(), rng.choice(("Submit", "Submit", "Search", "OK", words.name()))
    state = rng.choice(("empty", "empty", "filled", "wrong"))
    value = {"empty": "", "filled": text, "wrong": words.text()}[state]
    label = rng.choice(("", words.name(), "Name"))
    if label and rng.random() < 0.5:
        page.text(label + rng.choice(("", ":")))
        label = ""
    above = page.control("button", words.name()) if rng.random() < 0.15 else 0
    box = page.control(rng.choice(("textbox", "textbox", "textarea", "searchbox")), label, value=value)
    send = page.control("button", button, joined=rng.random() < 0.4)
    del above
    if state == "filled" and rng.random() < 0.8:
        page.done.append(f'type "{text}" into textbox "{label}"')
    goal = rng.choice(
        (
            'Enter "{0}" into the text field and press {1}.',
            'Type "{0}" in the text input and press {1}.',
            'Use the textbox to enter "{0}" and press "{1}".',
            "Enter {0} and hit {1}.",
        )
    ).format(text, button)
    page.next = rng.choice(("", f'"{text}" is entered' if state != "filled" else f"{button} is pressed"))
    return goal, click_answer(send) if state == "filled" else type_answer(box, text)


def log_in(page: Sketch) -> tuple[str, str]:
    """Two texts into two fields; the password's value is never shown, so the history tells."""
    rng, words = page.rng, page.words
    user, password = words.text(), words.code()
    stage = rng.randint(0, 2)
    named = rng.random() < 0.4
    labels = rng.choice((("Username", "Password"), ("User name", "Password"), ("Name", "Pass")))
    if not named:
        page.text(labels[0])
    first = page.control("textbox", labels[0] if named else "", value=user if stage else "")
    if not named:
        page.text(labels[1])
    second = page.control("textbox", labels[1] if named else "", states="password")
    button = page.control("button", rng.choice(("Login", "Log in", "Submit")))
    if stage >= 1:
        page.done.append(f'type "{user}" into textbox "{labels[0] if named else ""}"')
    if stage == 2:
        page.done.append(f'type "{password}" into textbox "{labels[1] if named else ""}"')
    page.next = rng.choice(("", ("Username is typed", "Password is typed", "Login is pressed")[stage]))
    goal = rng.choice(
        (
            'Enter the username "{}" and the password "{}" into the text fields and press login.',
            'Log in as "{}" with password "{}".',
        )
    ).format(user, password)
    return goal, (type_answer(first, user), type_answer(second, password), click_answer(button))[stage]


def twice(page: Sketch) -> tuple[str, str]:
    """The same secret into two fields."""
    rng = page.rng
    text, stage = page.words.code(), rng.randint(0, 2)
    refs: list[int] = []
    for label in ("Password", "Verify password"):
        page.text(label)
        refs.append(page.control("textbox", "", states="password"))
    button = page.control("button", "Submit")
    page.done += [f'type "{text}" into textbox ""'] * stage
    goal = f'Enter the password "{text}" into both text fields and press submit.'
    return goal, type_answer(refs[stage], text) if stage < 2 else click_answer(button)


def tick(page: Sketch) -> tuple[str, str]:
    """The named boxes are ticked in page order, the others stay empty, then Submit."""
    rng, words = page.rng, page.words
    names = words.distinct(rng.randint(2, 10))
    wanted = rng.sample(names, rng.randint(0 if rng.random() < 0.1 else 1, min(5, len(names))))
    ticked = set(sorted(wanted, key=names.index)[: rng.randint(0, len(wanted))])
    joined = rng.random() < 0.5
    refs = {n: page.control("checkbox", n, states="checked" if n in ticked else "", joined=joined) for n in names}
    submit = page.control("button", "Submit")
    open_ones = [n for n in names if n in wanted and n not in ticked]
    page.done += [f'click checkbox "{n}"' for n in names if n in ticked]
    page.next = rng.choice(
        (
            "",
            f"Exactly the boxes {', '.join(wanted)} are checked" if open_ones else "The form is submitted and accepted",
        )
    )
    goal = f"Select {', '.join(wanted) or 'nothing'} and click Submit."
    return goal, click_answer(refs[open_ones[0]] if open_ones else submit)


def choose_one(page: Sketch) -> tuple[str, str]:
    """One radio button, or one option of a drop-down, then Submit."""
    rng, words = page.rng, page.words
    names = words.distinct(rng.randint(2, 9))
    wanted, done = rng.choice(names), rng.random() < 0.35
    if rng.random() < 0.4:
        refs = {n: page.control("radio", n, states="checked" if done and n == wanted else "") for n in names}
        submit = page.control("button", "Submit")
        return f"Select {wanted} and click Submit.", click_answer(submit if done else refs[wanted])
    options = " ".join(f'"{name}"' for name in names)
    box = page.control("combobox", "", value=wanted if done else names[0], states=f"options: {options}")
    submit = page.control("button", "Submit", joined=rng.random() < 0.5)
    where = rng.choice(("from the list", "from the dropdown", "from the scroll list"))
    if not done and names[0] == wanted:
        done = True
    if done and rng.random() < 0.7:
        page.done.append(f'select "{wanted}" in combobox ""')
    page.next = rng.choice(("", "The form is submitted and accepted" if done else f"The option {wanted} is chosen"))
    goal = f"{rng.choice(('Select', 'Choose'))} {wanted} {where} and click Submit."
    return goal, click_answer(submit) if done else select_answer(box, wanted)


def behind_tabs(page: Sketch) -> tuple[str, str]:
    """The wanted link is on the open tab or section, or the one after it is opened."""
    rng, words = page.rng, page.words
    wanted = words.word()
    count, found = rng.randint(2, 6), rng.random() < 0.45
    at = rng.randint(0, count - 1) if found else rng.randint(-1, count - 2)
    state = rng.choice(("selected", "expanded"))
    tabs: list[int] = []
    target = 0
    below = state == "selected"
    for i in range(count):
        name = f"Tab #{i + 1}" if below else f"Section #{i + 1}" if rng.random() < 0.7 else words.name()
        tabs.append(page.control("tab", name, states=state if i == at else "", joined=below))
        if not below and i == at:
            target = _links(page, wanted if found else None) or target
    if below:
        target = _links(page, wanted if found else None)
    goal = rng.choice(
        (
            'Switch between the tabs to find and click on the link "{}".',
            'Expand the sections below, to find and click on the link "{}".',
        )
    ).format(wanted)
    return goal, click_answer(target if found else tabs[at + 1])


def _links(page: Sketch, wanted: str | None) -> int:
    """A paragraph with some of its words as links; returns the number of the wanted one, 0 without."""
    others = [name for name in page.words.distinct(page.rng.randint(1, 5), single=True) if name != wanted]
    names = [*others, *([wanted] if wanted else [])]
    page.rng.shuffle(names)
    target = 0
    for name in names:
        page.text(page.words.sentence(page.rng.randint(1, 6)))
        ref = page.control(page.rng.choice(("link", "clickable", "generic")), name)
        target = ref if name == wanted else target
    return target


def by_position(page: Sketch) -> tuple[str, str]:
    """The goal counts fields or results instead of naming them."""
    rng, words = page.rng, page.words
    count = rng.randint(2, 6)
    at = rng.randrange(count)
    before = rng.randint(0, 2)
    for name in words.distinct(before):
        page.control("button", name)
    role = rng.choice(("textbox", "link", "checkbox", "radio"))
    names = words.distinct(count) if role == "link" else [""] * count
    refs = [page.control(role, name, joined=rng.random() < 0.3) for name in names]
    page.control("button", "Submit") if rng.random() < 0.5 else None
    noun = {"textbox": "input textbox", "link": "search result", "checkbox": "checkbox", "radio": "radio button"}[role]
    return f"{rng.choice(('Click the', 'Focus into the', 'Check the'))} {ORDINALS[at]} {noun}.", click_answer(refs[at])


def labelled_form(page: Sketch) -> tuple[str, str]:
    """Several fields, each with the text that the goal gives for its label, in page order, then the button."""
    rng, words = page.rng, page.words
    labels = words.distinct(rng.randint(2, 4))
    texts = {label: words.text() for label in labels}
    stage = rng.randint(0, len(labels))
    named = rng.random() < 0.5
    refs: list[int] = []
    for i, label in enumerate(labels):
        if not named:
            page.text(label + rng.choice(("", ":")))
        refs.append(page.control("textbox", label if named else "", value=texts[label] if i < stage else ""))
    button = page.control("button", rng.choice(("Submit", "Search", "Save")))
    shuffled = rng.sample(labels, len(labels))
    goal = (
        f"{rng.choice(('Set', 'Fill in', 'Enter'))} " + ", ".join(f"{n}: {texts[n]}" for n in shuffled) + " and submit."
    )
    page.done += [f'type "{texts[n]}" into textbox "{n if named else ""}"' for n in labels[:stage]]
    return goal, type_answer(refs[stage], texts[labels[stage]]) if stage < len(labels) else click_answer(button)


def from_table(page: Sketch) -> tuple[str, str]:
    """The value stands beside its label in a table or list on the page."""
    rng, words = page.rng, page.words
    labels = words.distinct(rng.randint(2, 7))
    values = {label: words.text() for label in labels}
    wanted, done = rng.choice(labels), rng.random() < 0.3
    separator = rng.choice((" | ", " | ", ": "))
    for label in labels:
        page.text(f"{label}{separator}{values[label]}")
    box = page.control("textbox", "", value=values[wanted] if done else "")
    submit = page.control("button", "Submit", joined=rng.random() < 0.5)
    goal = f"Enter the value of {wanted} into the text field and press Submit."
    return goal, click_answer(submit) if done else type_answer(box, values[wanted])


def copy_value(page: Sketch) -> tuple[str, str]:
    """A text area's value goes into another field."""
    rng, words = page.rng, page.words
    values = [words.sentence(rng.randint(1, 8)) for _ in range(rng.choice((1, 1, 3)))]
    at, done = rng.randrange(len(values)), rng.random() < 0.3
    for value in values:
        page.control(rng.choice(("textbox", "textarea")), "", value=value)
    box = page.control("textbox", "", value=values[at] if done else "")
    submit = page.control("button", "Submit", joined=rng.random() < 0.5)
    which = "in the textarea" if len(values) == 1 else f"from the {ORDINALS[at]} text area below"
    goal = f"Copy the text {which}, paste it into the textbox and press Submit."
    return goal, click_answer(submit) if done else type_answer(box, values[at])


def beside_name(page: Sketch) -> tuple[str, str]:
    """Each block of the page has a heading and the same buttons: the goal names block and button."""
    rng, words = page.rng, page.words
    people, actions = words.distinct(rng.randint(2, 5)), words.distinct(rng.randint(2, 5))
    who, what = rng.choice(people), rng.choice(actions)
    target = 0
    as_control = rng.random() < 0.3
    for person in people:
        page.control("link", person) if as_control else page.text(person)
        if rng.random() < 0.6:
            page.text(words.sentence(rng.randint(2, 10)))
        for action in actions:
            ref = page.control(rng.choice(("button", "clickable")), action, joined=True)
            target = ref if (person, action) == (who, what) else target
    goal = rng.choice(('For the user {0}, click on the "{1}" button.', 'Click "{1}" on the post by {0}.'))
    return goal.format(who, what), click_answer(target)


FAMILIES: tuple[tuple[Family, float], ...] = (
    (click_named, 3.0),
    (click_in_turn, 0.7),
    (fill_one, 2.0),
    (log_in, 1.5),
    (twice, 0.5),
    (tick, 2.0),
    (choose_one, 1.5),
    (behind_tabs, 1.2),
    (by_position, 1.0),
    (labelled_form, 1.2),
    (from_table, 1.2),
    (copy_value, 0.6),
    (beside_name, 1.2),
)


def make_example(rng: random.Random, words: WordBag) -> Example:
    """One example of a family drawn by weight; equal generator states give equal examples."""
    family = rng.choices([f for f, _ in FAMILIES], [w for _, w in FAMILIES])[0]
    page = Sketch(rng, words)
    goal, answer = family(page)
    return Example(family.__name__, page.prompt(goal), answer)


def make_examples(seed: int, count: int, vocabulary: Sequence[str]) -> list[Example]:
    rng = random.Random(seed)
    words = WordBag(rng, vocabulary)
    return [make_example(rng, words) for _ in range(count)]
