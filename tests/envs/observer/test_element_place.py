"""An action is described by more than role and name where these do not tell its element apart."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.async_api import Page

import envs.observer.element_place
from envs.core.action_place import ActionPlace
from envs.core.actions import Action, Click, ClickAt, Drag, DragAt, Goto, ScrollAt, Type, Wait
from envs.core.observation import Box, Element, ElementKey, Observation
from envs.core.past_actions import PastAction
from envs.core.settings import ObserveSettings
from envs.observer.element_place import NEAR, TEXT_CHARS, action_place
from envs.observer.observer import Observer
from envs.observer.page_lines import Piece, pieces
from tests.past_actions import OK

ICON = "<button class=i><svg width=9 height=9></svg></button>"
VARIANTS = f"""<title>Variants</title>
<button>Only one</button>
<h2>Invoices</h2>
<table><tr><th>No</th><th>Name</th><th></th></tr>
<tr><td>17</td><td>Ana Gonzalez</td><td>paid</td><td><button>delete</button> <button>edit</button></td></tr>
<tr><td>18</td><td>Ana Gonzalez</td><td>paid</td><td><button>delete</button> <button>edit</button></td></tr>
<tr><td>19</td><td>{"Very long name " * 20}</td><td>paid</td><td><button>delete</button></td></tr></table>
<h2>Blue mug</h2><p>12 €</p><button>Add</button>
<h2>Red mug</h2><p>8 €</p><button>Add</button>
<h2>Cards</h2>
<div><div>Alpha</div><div>in stock</div><div><button>Buy</button></div></div>
<div><div>Beta</div><div>in stock</div><div><button>Buy</button></div></div>
<h2>List</h2>
<ul><li>Milk <a href=#m>remove</a><li>Bread "fresh" <a href=#b>remove</a></ul>
<h2>Inline</h2><p>One <button>+</button> Two <button>+</button></p>
<h2>After</h2><p><button>?</button> Apples <button>?</button> Pears</p>
<h2>Bare</h2><button>Same</button><br><button>Same</button><br><button>Same</button>
<h2>Fields</h2><div>First <input aria-label=Qty value=1></div><div>Second <input aria-label=Qty value=2></div>
<h2>Blocks</h2><div><div>A-1</div><div>Ana</div><div>paid</div><div>2 parts</div><div>today</div>
<button>Ship</button></div>
<div><div>A-2</div><div>Ben</div><div>paid</div><div>2 parts</div><div>today</div><button>Ship</button></div>
<h2>Questions</h2><p>Do you smoke?</p>
<label><input type=radio name=a>Yes</label><label><input type=radio name=a>No</label>
<p>Do you drink?</p><label><input type=radio name=b>Yes</label><label><input type=radio name=b>No</label>
<h2>Two icons</h2><table><tr><td>Red</td><td>{ICON}{ICON}</td></tr><tr><td>Blue</td><td>{ICON}{ICON}</td></tr></table>
<h2>Icon</h2><p>Trash {ICON}</p>
"""
EXPECTED = {
    ("Only one", 0): "",
    ("delete", 0): 'in row "17 · Ana Gonzalez"',
    ("delete", 1): 'in row "18 · Ana Gonzalez"',
    ("edit", 1): 'in row "18"',
    ("Add", 0): 'under "Blue mug"',
    ("Add", 1): 'under "Red mug"',
    ("Buy", 0): 'after "Alpha · in stock", before "Beta"',
    ("Buy", 1): 'after "Beta · in stock"',
    ("remove", 0): 'beside "Milk"',
    ("remove", 1): 'beside "Bread \\"fresh\\""',
    ("+", 0): 'beside "One"',
    ("+", 1): 'beside "Two"',
    ("?", 0): 'beside "Apples"',
    ("?", 1): 'beside "Pears"',
    ("Same", 1): "(2 of 3)",
    ("Qty", 0): 'beside "First"',
    ("Qty", 1): 'beside "Second"',
    ("Ship", 0): 'after "A-1 · Ana · paid · 2 parts · today", before "A-2"',
    ("Ship", 1): 'after "A-2 · Ben · paid · 2 parts · today"',
    ("Yes", 1): 'after "Do you drink?"',
    ("", 1): 'in row "Red" (2 of 2)',
    ("", 2): 'in row "Blue" (1 of 2)',
    ("", 4): 'beside "Trash"',
}


def named(observation: Observation, name: str, place: int) -> Element:
    return [element for element in observation.elements if element.key.name == name][place]


def where(observation: Observation, ref: int) -> str:
    place = action_place(Click(ref=ref), observation, str)
    return "" if place is None else place.where


@pytest.mark.browser
async def test_where_an_element_of_a_real_page_is(page: Page) -> None:
    await page.set_content(VARIANTS)
    observation = await Observer(page, ObserveSettings(timeout_s=30)).observe()
    found = {at: where(observation, named(observation, *at).ref) for at in EXPECTED}
    assert found == EXPECTED


def element(ref: int, role: str, name: str, box: Box | None = None) -> Element:
    return Element(ref, ElementKey("", role, name, 0, "0" * 8), "b", (), None, (), box, True)


def page_of(text: str, *elements: Element) -> Observation:
    return Observation("http://a/", "", text, elements, (), "0" * 16, (800, 600), (0, 0), len(elements))


ROW_18 = 'clickable "delete" in row "18 · Ben ***"'
ROWS = page_of(
    '17 | Ana | [1] clickable "delete"\n18 | Ben s3cret | [2] clickable "delete"\n--- frame 1 "Pay \\"now\\"" http://p/\n'
    '[3] button "Go"\n--- end frame 1\n[4] button "Go"\n[5] listitem "Done"',
    *(element(n, "clickable", "delete", Box(0, 20.0 * n, 100, 20)) for n in (1, 2)),
    element(3, "button", "Go"),
    element(4, "button", "Go"),
    element(5, "listitem", "Done", Box(0, 0, 800, 600)),
)


@pytest.mark.parametrize(
    ("action", "line"),
    [
        (Click(ref=1), 'click clickable "delete" in row "17 · Ana"'),
        (Click(ref=3), 'click button "Go" in frame "Pay \\"now\\""'),
        (Click(ref=4), 'click button "Go" before "Done"'),
        (Click(ref=5), 'click listitem "Done"'),
        (Type(ref=2, text="x"), 'type "x" into clickable "delete" in row "18 · Ben ***"'),
        (Drag(ref=1, to_ref=5), 'drag clickable "delete" in row "17 · Ana" onto listitem "Done"'),
        (ClickAt(x=12.5, y=45), f"click at 12.5,45 ({ROW_18})"),
        (ClickAt(x=12, y=45, button="right", count=2), f"click at 12,45 ({ROW_18}) button=right count=2"),
        (ClickAt(x=900, y=45), "click at 900,45"),
        (ScrollAt(x=1, y=500, dx=0, dy=100), 'scroll by 0,100 at 1,500 (listitem "Done")'),
        (DragAt(x=1, y=45, to_x=300, to_y=300), f'drag from 1,45 ({ROW_18}) to 300,300 (listitem "Done")'),
        (Click(ref=99), "click"),
        (Goto(url="http://b/"), "goto url=http://b/"),
        (Wait(), "wait"),
    ],
)  # fmt: skip
def test_an_action_says_what_was_meant(action: Action, line: str) -> None:
    ref = getattr(action, "ref", None)
    target = ROWS.element(ref) if isinstance(ref, int) else None
    place = action_place(action, ROWS, lambda text: text.replace("s3cret", "***"))
    past = PastAction(action, target.key if target is not None else None, OK, place)
    assert past.full_line() == line
    assert past.log_line() == replace(past, place=None).log_line(), "small models are trained on these words"


def table(rows: int, name: str = "Order {n} | Ana") -> Observation:
    lines = [f'{name.format(n=n)} | [{n}] button "Open"' for n in range(1, rows + 1)]
    return page_of("\n".join(lines), *(element(n, "button", "Open") for n in range(1, rows + 1)))


def test_rows_of_a_long_table_are_distinguished() -> None:
    assert where(table(2_000), 100) == 'in row "Order 100"'
    twice = table(2_000)
    text = twice.text.replace("Order 1999 ", "Order 100 ")
    assert where(replace(twice, text=text), 100) == "(100 of 2000)", "another row far away has the same words"


def test_the_work_grows_with_the_page_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are parsed for the nearest elements of the same name, not for all of them."""
    read: list[str] = []

    def counted(line: str) -> list[Piece]:
        read.append(line)
        return pieces(line)

    monkeypatch.setattr(envs.observer.element_place, "pieces", counted)
    where(table(1_000), 500)
    assert 0 < len(read) <= 3 * (2 * NEAR + 1)


def test_a_hidden_element_has_its_place_and_long_texts_are_bounded() -> None:
    many = [element(n, "button", "Open") for n in range(1, 400)]
    assert where(page_of('[1] button "Open"', *many), 300) == "(300 of 399)"
    two = page_of(f'{"x" * 500} | [1] button "Open"\n{"y" * 500} | [2] button "Open"', *many[:2])
    assert len(where(two, 1)) == TEXT_CHARS + len('in row ""')


def test_no_part_of_a_secret_is_left_by_the_cut() -> None:
    secret = "s3cret" * 20
    two = page_of(
        f'{secret} | [1] button "Open"\nb | [2] button "Open"', *(element(n, "button", "Open") for n in (1, 2))
    )
    place = action_place(Click(ref=1), two, lambda text: text.replace(secret, "<secret>KEY</secret>"))
    assert place == ActionPlace(where='in row "<secret>KEY</secret>"')
