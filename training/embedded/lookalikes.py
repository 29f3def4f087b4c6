"""Generates synthetic pages in the layouts of MiniWoB++ tasks, with answers, without a browser.

A real demonstration costs a second, one of these a tenth of a millisecond, and the words on them never repeat. Layouts
follow what the observer shows of the real pages; what is asked and how it is solved follow the scripted solvers. The
real demonstrations stay the measure: they are mixed in, and success is only ever counted on real pages.
"""

from __future__ import annotations

import random

from training.embedded import lookalikes_clicking as clicking
from training.embedded import lookalikes_forms as forms
from training.embedded.synthetic import Example, Family, Sketch
from training.embedded.words import WordBag

SHORTENED = 0.1
"""How often the oldest history line is missing, so that the page decides where it can."""

LOOKALIKES: tuple[tuple[Family, float], ...] = (
    (clicking.click_link, 4.0),
    (clicking.sections, 2.5),
    (clicking.tabs, 3.0),
    (clicking.tab, 2.0),
    (clicking.collapsible, 0.6),
    (clicking.click_button, 3.5),
    (clicking.test_buttons, 0.7),
    (clicking.dialog, 1.6),
    (forms.checkboxes, 3.5),
    (forms.option, 2.0),
    (forms.drop_down, 1.2),
    (forms.scroll_list, 1.2),
    (forms.widget, 0.8),
    (forms.enter_text, 2.0),
    (forms.password, 1.0),
    (forms.login, 2.0),
    (forms.focus, 0.6),
    (forms.read_table, 1.2),
    (forms.copy_paste, 0.3),
    (forms.form_sequence, 0.8),
    (forms.enter_date, 0.3),
    (forms.spinner, 0.2),
    (forms.mail, 1.0),
)


def draw(rng: random.Random) -> Family:
    return rng.choices([family for family, _ in LOOKALIKES], [weight for _, weight in LOOKALIKES])[0]


def make_lookalike(rng: random.Random, words: WordBag) -> Example:
    """One example of a family drawn by weight."""
    family = draw(rng)
    page = Sketch(rng, words)
    goal, answer = family(page)
    if page.done and rng.random() < SHORTENED:
        page.done = page.done[1:]
    return Example(family.__name__, page.prompt(goal), answer)
