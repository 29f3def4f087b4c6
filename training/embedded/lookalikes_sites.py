"""Generates synthetic pages in the layouts of web applications: menus, searches, lists, records, forms, and when to
stop.

The pages of the sites' training templates are few, and a policy that has seen only those learns where their links are.
These have menus, labels and titles that never repeat: what is left to learn is how a milestone names what to click, how
long titles are copied, which field comes next, what a record answers, and that a change that the page confirms is the
end. No page or wording of a template that is held out is among them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from agent.episode.prompts import COMPACT_HISTORY, FOCUS_HISTORY
from training.embedded.synthetic import Example, Family, Sketch, click_answer, select_answer, type_answer
from training.embedded.words import WordBag

LONG_LINES = 24
"""A page of more lines may be shown folded, as the observer shows long ones."""
SAVE = ("Save", "Save", "Submit", "Publish", "Update", "Add", "Create", "Submit changes", "Confirm", "Send", "Apply")
ASIDE = ("Cancel", "Preview", "Delete", "Reset", "Back", "Save draft")
MONTHS = ("January", "March", "May", "August", "October")
CHANGED = ("updated", "created", "saved", "added", "changed", "published", "removed")


def search_answer(ref: int, text: str) -> str:
    return f'do(action="Search", argument="{text}", element="{ref}")'


@dataclass
class Site:
    """One page of an application, with new control names on each page."""

    page: Sketch
    kept: set[int] = field(default_factory=set[int])
    """Lines that folding leaves."""

    @property
    def rng(self) -> random.Random:
        return self.page.rng

    @property
    def words(self) -> WordBag:
        return self.page.words

    def plain(self) -> str:
        """A real word."""
        return self.rng.choice(self.words.known).lower()

    def title(self, least: int = 2, most: int = 7) -> str:
        """The name of a product, a topic or a ticket."""
        rng, words = self.rng, self.words
        chosen = [self.plain() if rng.random() < 0.75 else words.word() for _ in range(rng.randint(least, most))]
        if rng.random() < 0.4:
            chosen = [word.capitalize() for word in chosen]
        if len(chosen) > 2 and rng.random() < 0.2:
            chosen[rng.randrange(1, len(chosen) - 1)] += rng.choice((":", ",", "'s"))
        text = " ".join(chosen)
        return text[0].upper() + text[1:] + rng.choice(("", "", "", "?"))

    def titles(self, count: int) -> list[str]:
        """Different ones; some share their beginning."""
        found: list[str] = []
        while len(found) < count:
            one = self.title()
            if found and self.rng.random() < 0.3:
                one = found[-1].rsplit(" ", 1)[0] + " " + self.words.word()
            if one not in found:
                found.append(one)
        return found

    def label(self) -> str:
        """Of a field, a menu's entry or a property: real words, capitalised."""
        chosen = [self.plain() for _ in range(self.rng.choice((1, 1, 2, 2, 3)))]
        text = " ".join(chosen)
        return text.title() if self.rng.random() < 0.4 else text.capitalize()

    def labels(self, count: int) -> list[str]:
        found: dict[str, None] = {}
        while len(found) < count:
            found.setdefault(self.label())
        return list(found)

    def value(self) -> str:
        """A value beside a label or in a field."""
        rng, words = self.rng, self.words
        match rng.randrange(6):
            case 0:
                return str(rng.randint(1, 20_000))
            case 1:
                return f"{rng.randint(1, 28)} {rng.choice(MONTHS)} {rng.randint(2019, 2027)}"
            case 2:
                return f"{words.pseudo_word().capitalize()} {words.pseudo_word().capitalize()}"
            case 3:
                return f"{rng.choice(('£', '', ''))}{rng.randint(1, 99)}.{rng.randint(0, 99):02d}"
            case 4:
                return self.title(2, 5)
            case _:
                return words.text()

    def menu(self, names: Sequence[str] = ()) -> dict[str, int]:
        """The head of the page, with *names* among its links; returns their numbers."""
        rng, page = self.rng, self.page
        found: dict[str, int] = {}
        others = [one for one in self.labels(rng.randint(2, 7)) if one not in names]
        for name in self.shuffled([*names, *others]):
            role = "link" if name in names or rng.random() < 0.75 else "button"
            ref = page.control(role, name, states=rng.choice(("", "", "collapsed")) if role == "button" else "")
            if name in names:
                found[name] = ref
                self.keep()
        return found

    def text(self, least: int = 0, most: int = 4) -> None:
        for _ in range(self.rng.randint(least, most)):
            self.page.text(self.words.sentence(self.rng.randint(1, 9)))

    def aside(self, most: int = 8) -> None:
        """Adds distracting links."""
        for name in self.labels(self.rng.randint(0, most)):
            self.page.control("link", name)
            if self.rng.random() < 0.2:
                self.page.text(str(self.rng.randint(1, 400)))

    def keep(self) -> None:
        """The last line matters."""
        self.kept.add(len(self.page.lines) - 1)

    def done(self, *lines: str) -> None:
        self.page.done += lines

    def asks(self, *milestones: str) -> None:
        self.page.next = self.page.maybe(self.rng.choice(milestones))

    def shuffled(self, names: Sequence[str]) -> list[str]:
        return self.rng.sample(names, len(names))


def search(page: Sketch) -> tuple[str, str]:
    """Something that the goal quotes is looked for: the way to the search, the search, its button, its result."""
    site, rng = Site(page), page.rng
    wanted, *others = site.titles(rng.randint(3, 7))
    stage = rng.choice(("enter", "type", "type", "press", "result", "result", "result"))
    thing = site.label().lower()
    has_button = stage == "press" or (stage != "enter" and rng.random() < 0.4)
    menu = site.menu(("Search",) if stage == "enter" else ())
    box = button = target = 0
    role = "textbox" if has_button else "searchbox"
    label = rng.choice(("Search", "Search:", "Search", site.label(), ""))
    if stage != "enter":
        typed = wanted if stage == "press" or (stage == "result" and rng.random() < 0.7) else ""
        box = page.control(role, label, value=typed)
        site.keep()
        button = page.control("button", rng.choice(("Search", "Go", "Find"))) if has_button else 0
        site.keep()
    site.aside()
    if stage == "result" or rng.random() < 0.5:
        page.text("# " + rng.choice((f"Results for {wanted}", "Results", site.label())))
        for name in site.shuffled([*others, wanted]) if stage == "result" else others:
            before = rng.choice(("", "", f"#{rng.randint(1, 300)}: "))
            ref = page.control(rng.choice(("link", "link", "link", "clickable")), before + name)
            if name == wanted:
                target = ref
                site.keep()
            site.text(0, 2)
    if stage in ("press", "result"):
        site.done(f'type "{wanted}" into {role} "{label}"' + " and press Enter" * (not has_button))
    if stage == "result" and has_button:
        site.done('click button "Search"')
    site.asks(
        f'"{wanted}" is open' if stage == "result" else f'"{wanted}" is searched for',
        f'The {thing} "{wanted}" is open',
        f'A list with "{wanted}" is open' if stage != "result" else f'The page of "{wanted}" is open',
        f'"{wanted}" is found',
    )
    goal = rng.choice(
        (
            'Open the {1} "{0}".',
            'What is the {2} of "{0}"? Answer with that alone.',
            'Change the {2} of the {1} "{0}" to {3}.',
            'In "{0}", look up the {2}.',
            'Remove "{0}" from the {2}.',
            'Find "{0}" and tell me its {2}.',
            'Add a {2} to "{0}": {3}',
            '"{0}" is in the wrong {1}; move it to {3}.',
        )
    ).format(wanted, thing, site.label().lower(), site.value())
    if stage == "enter":
        return _lesson(site, goal, click_answer(menu["Search"]))
    if stage == "type":
        return _lesson(site, goal, type_answer(box, wanted) if has_button else search_answer(box, wanted))
    return _lesson(site, goal, click_answer(button if stage == "press" else target))


def menu(page: Sketch) -> tuple[str, str]:
    """The milestone names a place, and a link of the menu leads there; or the place stands in what was opened last."""
    site, rng = Site(page), page.rng
    place = site.label()
    target = 0
    if rng.random() < 0.4:
        group = site.label()
        site.menu()
        page.control("button", group, states="expanded focused")
        site.done(f'click button "{group}"')
        for name in site.shuffled([place, *site.labels(rng.randint(1, 5))]):
            ref = page.control("link", name)
            if name == place:
                target = ref
                site.keep()
        site.aside(4)
    else:
        target = site.menu((place,))[place]
    page.text(f"# {site.label()}")
    site.text(0, 5)
    site.aside(12)
    lowered = place.lower()
    page.next = rng.choice(
        (
            f"The {lowered} is open",
            f"The {lowered} are open",
            f"The list of {lowered} is open",
            f"The form for {lowered} is open",
            f"The page {place} is opened",
            f"{place} is listed",
        )
    )
    goal = rng.choice(
        (
            f"How many {lowered} are there? Answer with a number.",
            f"Change the {lowered}: it is now {site.value()}.",
            f'Create a new entry "{site.title()}" under {lowered}.',
            f'Remove "{site.title()}" from {lowered}.',
            f"{site.title()} Use the {lowered}.",
        )
    )
    return _lesson(site, goal, click_answer(target))


def form(page: Sketch) -> tuple[str, str]:
    """Fields get what the goal gives for their labels, in page order; then the button, and at last nothing is left."""
    site, rng = Site(page), page.rng
    labels = site.labels(rng.randint(1, 4))
    values = {label: site.value() for label in labels}
    choices = {label: [site.value() for _ in range(rng.randint(2, 5))] for label in labels if rng.random() < 0.2}
    values |= {label: rng.choice(offered) for label, offered in choices.items()}
    colon, editing = rng.choice(("", "", ":")), rng.random() < 0.5
    stage, button = rng.randint(0, len(labels) + 1), rng.choice(SAVE)
    thing = site.label().lower()
    site.menu()
    page.text(f"# {rng.choice(('Edit', 'Add', 'New', 'Change'))} {thing}")
    if stage > len(labels):
        site.done(*(_filled(label, values, choices, colon) for label in labels), f'click button "{button}"')
        return _finished(site, thing, labels, values)
    refs: dict[str, int] = {}
    for label in sorted([*labels, *site.labels(rng.randint(0, 6))], key=lambda one: (one not in labels, rng.random())):
        if label in refs:
            continue
        if label not in labels:  # stands between the others
            page.control("textbox", label + colon, value=site.value() if editing and rng.random() < 0.6 else "")
            continue
        done = labels.index(label) < stage
        shown = values[label] if done else site.value() if editing else ""
        need = rng.choice(("", "", "required"))
        if offered := choices.get(label):
            listed = "options: " + " ".join(f'"{one}"' for one in offered)
            shown = values[label] if done else next(one for one in offered if one != values[label] or len(offered) == 1)
            refs[label] = page.control("combobox", label + colon, value=shown, states=listed)
        else:
            refs[label] = page.control("textbox", label + colon, value=shown, states=need)
        site.keep()
    for name in site.shuffled([button, *rng.sample(ASIDE, rng.randint(0, 2))]):
        ref = page.control("button", name, joined=rng.random() < 0.3)
        if name == button:
            refs[button] = ref
            site.keep()
    site.aside(3)
    site.done(*(_filled(label, values, choices, colon) for label in labels[:stage]))
    verb = rng.choice(("stored", "saved", "sent", "created"))
    site.asks(f"The new {thing} is {verb}", f"The {thing} is {verb}", f"There is a {thing} {values[labels[0]]}")
    goal = _order(site, thing, labels, values)
    if stage == len(labels):
        return _lesson(site, goal, click_answer(refs[button]))
    label = labels[stage]
    made = select_answer if label in choices else type_answer
    return _lesson(site, goal, made(refs[label], values[label]))


def _filled(label: str, values: dict[str, str], choices: dict[str, list[str]], colon: str) -> str:
    if label in choices:
        return f'select "{values[label]}" in combobox "{label}{colon}"'
    return f'type "{values[label]}" into textbox "{label}{colon}"'


def _order(site: Site, thing: str, labels: Sequence[str], values: dict[str, str]) -> str:
    parts = [f"{label.lower()} {values[label]}" for label in site.shuffled(labels)]
    listed = ", ".join(parts)
    return site.rng.choice(
        (
            f"Add a new {thing}: {listed}.",
            f"Create a {thing} with the {' and the '.join(parts)}.",
            f"Change the {thing}: it has the {listed} now.",
            f"Set {' and '.join(parts)} of the {thing}.",
            f"We need a {thing} with {listed}. Save it.",
        )
    )


def _finished(site: Site, thing: str, labels: Sequence[str], values: dict[str, str]) -> tuple[str, str]:
    """What was asked has been done, and the page says so."""
    page, rng = site.page, site.rng
    verb = rng.choice(CHANGED)
    page.text(
        rng.choice(
            (f"The {thing} was {verb}.", f"{values[labels[0]]} {verb}", f"{thing.capitalize()} {verb} successfully")
        )
    )
    site.keep()
    for label in labels:
        page.text(f"{label} | {values[label]}")
    site.aside()
    site.text(0, 4)
    return _lesson(site, _order(site, thing, labels, values), "exit()")


def record(page: Sketch) -> tuple[str, str]:
    """The goal asks for one property of what is open; the page tells several."""
    site, rng = Site(page), page.rng
    subject = site.title()
    labels = site.labels(rng.randint(2, 8))
    wanted = rng.choice(labels)
    site.menu()
    page.text(f"# {subject}")
    site.keep()
    site.text(0, 2)
    between = rng.choice((" | ", " | ", ": ", ":\n"))
    answer = ""
    for label in labels:
        value = site.value()
        page.lines += f"{label}{between}{value}".split("\n")
        if label == wanted:
            answer = value
            site.keep()
            site.kept.add(len(page.lines) - 2)
        if rng.random() < 0.15:
            page.control("link", site.label())
    site.aside(5)
    site.done(f'type "{subject}" into searchbox "Search" and press Enter', f'click link "{subject}"')
    asked = wanted.lower()
    goal = rng.choice(
        (
            f'What is the {asked} of "{subject}"? Answer with that alone.',
            f'Look up the {asked} of "{subject}" and answer with just that.',
            f'Which {asked} has "{subject}"?',
            f'Tell me the {asked} of "{subject}".',
            f'Find "{subject}". What does the page say about {asked}?',
            f'For which {asked} is "{subject}" planned? Answer with the {asked}.',
        )
    )
    return _lesson(site, goal, f'exit(message="{answer}")')


def row(page: Sketch) -> tuple[str, str]:
    """Each row of a list has the same controls: the goal names row and deed."""
    site, rng = Site(page), page.rng
    names = site.titles(rng.randint(2, 6)) if rng.random() < 0.5 else [site.value() for _ in range(rng.randint(2, 6))]
    wanted = rng.choice(names)
    deeds = rng.sample(("Edit", "Remove", "Delete", "View", "Details", "Moderate", "like", "report"), rng.randint(1, 3))
    deed = rng.choice(deeds)
    site.menu()
    page.text(f"# {site.label()}")
    target = 0
    for name in names:
        page.text(" | ".join([name, *(site.value() for _ in range(rng.randint(0, 2)))]))
        for number, one in enumerate(deeds):
            ref = page.control(rng.choice(("link", "button")), one)
            page.lines[-2:] = [(" | ", "  ")[number > 0].join(page.lines[-2:])]
            if name == wanted and one == deed:
                target = ref
        if name == wanted:
            site.keep()
    site.aside(4)
    site.asks(
        f"The form of {wanted} is open" if deed in ("Edit", "Details") else f'"{wanted}" is chosen',
        f"{deed} was chosen for {wanted}",
    )
    lowered = deed.lower()
    goal = rng.choice(
        (
            f'{deed.capitalize()} "{wanted}".',
            f'Please {lowered} the entry "{wanted}".',
            f"{deed.capitalize()} {wanted}; leave the rest as it is.",
        )
    )
    return _lesson(site, goal, click_answer(target))


def _lesson(site: Site, goal: str, answer: str) -> tuple[str, str]:
    """Goal and answer, after the page was folded if it is long."""
    page, rng = site.page, site.rng
    folded = len(page.lines) > LONG_LINES or rng.random() < 0.15
    if folded:
        page.at = "/" + "/".join(site.words.pseudo_word() for _ in range(rng.randint(0, 3)))
        page.lines = fold(rng, page.lines, site.kept)
    page.done = page.done[-(FOCUS_HISTORY if folded else COMPACT_HISTORY) :]
    return goal, answer


def fold(rng: random.Random, lines: Sequence[str], kept: set[int]) -> list[str]:
    """*lines* with runs of those that are not *kept* counted in their place."""
    shown: list[str] = []
    at = 0
    while at < len(lines):
        run = 0
        if rng.random() < 0.15:
            while run < 12 and at + run < len(lines) and at + run not in kept and rng.random() < 0.85:
                run += 1
        if run:
            shown.append(f"--- {run} more line{'s' if run > 1 else ''}")
        else:
            shown.append(lines[at])
        at += max(run, 1)
    return shown


FAMILIES: tuple[tuple[Family, float], ...] = ((search, 3.0), (menu, 2.0), (form, 3.0), (record, 2.5), (row, 1.5))


def make_site_lookalike(rng: random.Random, words: WordBag) -> Example:
    """One example of a family drawn by weight."""
    family = rng.choices([one for one, _ in FAMILIES], [weight for _, weight in FAMILIES])[0]
    page = Sketch(rng, words)
    goal, answer = family(page)
    return Example(f"site {family.__name__}", page.prompt(goal), answer)
