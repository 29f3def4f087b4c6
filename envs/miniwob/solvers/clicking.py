"""Tasks solved by clicking what the instruction names: buttons, links, tabs, sections, dialogs, menus, trees."""

from __future__ import annotations

import re

from envs.actions import Action, Hover
from envs.miniwob.solvers.screen import Screen, Unsolvable, click
from envs.observation import Element

WIDGET_ROLES = {
    "radio": ("radio",),
    "checkbox": ("checkbox",),
    "text": ("textbox",),
    "textarea": ("textbox",),
    "button": ("button",),
}


def click_test(screen: Screen) -> Action:
    return click(screen.one("button"))


def click_button_named(screen: Screen) -> Action:
    """`Click button ONE.`"""
    (name,) = screen.wanted(r"^Click button (\w+)\.$")
    return click(screen.one("button", name=name))


def click_button(screen: Screen) -> Action:
    """`Click on the "okay" button.` (also click-link's and unicode-test's form)"""
    (name,) = screen.wanted(r'"(.*)" button\.$')
    return click(screen.one("button", name=name))


def click_button_sequence(screen: Screen) -> Action:
    """`Click button ONE, then click button TWO.`: the page does not change, so the past decides."""
    first, second = screen.wanted(r"button (\w+), then click button (\w+)\.$")
    return click(screen.one("button", name=second if screen.did("click", first) else first))


def click_link(screen: Screen) -> Action:
    (name,) = screen.wanted(r'link "(.*)"\.?$')
    return click(screen.one(name=name))


def click_dialog(screen: Screen) -> Action:
    return click(screen.one("button", name="Close"))


def click_dialog_2(screen: Screen) -> Action:
    (name,) = screen.wanted(r'labeled "(.*)"\.$')
    return click(screen.one("button", name="Close" if name == "x" else name))


def click_tab(screen: Screen) -> Action:
    (name,) = screen.wanted(r"^Click on (Tab #\d+)\.$")
    return click(screen.one("tab", name=name))


def click_tab_2(screen: Screen) -> Action:
    """Clicks the link if this tab shows it, else opens the next tab to the right."""
    (name,) = screen.wanted(r'link "(.*)"\.$')
    targets = [element for element in screen.all(name=name) if element.key.role != "tab"]
    if targets:
        return click(targets[0])
    tabs = screen.all("tab")
    return click(_after(tabs, "selected"))


def click_collapsible(screen: Screen) -> Action:
    """Opens the section, then submits."""
    if screen.has("button", name="Submit"):
        return click(screen.one("button", name="Submit"))
    return click(screen.one("tab"))


def click_collapsible_2(screen: Screen) -> Action:
    """Clicks the link if the open section shows it, else opens the section after the open one."""
    (name,) = screen.wanted(r'link "(.*)"\.$')
    targets = [element for element in screen.all(name=name) if element.key.role != "tab"]
    if targets:
        return click(targets[0])
    return click(_after(screen.all("tab"), "expanded"))


def click_widget(screen: Screen) -> Action:
    (kind,) = screen.wanted(r'^Click on a "(\w+)" widget\.$')
    for element in screen.all(*WIDGET_ROLES[kind]):
        if kind not in ("text", "textarea") or (element.tag == "textarea") == (kind == "textarea"):
            return click(element)
    raise Unsolvable(f"no {kind} on the page")


def click_menu(screen: Screen) -> Action:
    """`Select A>B>C`: opens each level in turn and clicks the last."""
    (path,) = screen.wanted(r"^Select (.*)$")
    names = path.split(">")
    for name in reversed(names):
        if screen.has(name=name):
            return click(screen.one(name=name))
    raise Unsolvable(f"no item of {path!r} on the page")


def click_menu_2(screen: Screen) -> Action:
    """Opens the menu, opens its only sub-menu if the item is in there, clicks the item."""
    (name,) = screen.wanted(r'item labeled "(.*)"\.$')
    if screen.has("menuitem", name=name):
        return click(screen.one("menuitem", name=name))
    if screen.has("menuitem", name="Playback"):
        return Hover(ref=screen.one("menuitem", name="Playback").ref)
    return click(screen.one("button", name="Menu"))


def navigate_tree(screen: Screen) -> Action:
    """Clicks the item if it is shown, else unfolds the first folder not tried yet."""
    (name,) = screen.wanted(r'named "(.*)"\.$')
    if screen.has(name=name):
        return click(screen.one(name=name))
    tried = {past.target for past in screen.past}
    for element in screen.elements:
        if element.key not in tried and "collapsed" in element.states:
            return click(element)
    raise Unsolvable("every folder was opened")


def sign_agreement(screen: Screen) -> Action:
    from envs.actions import Scroll
    from envs.miniwob.solvers.screen import fill

    if "Click the cancel" in screen.instruction:
        return click(screen.one("button", name="Cancel"))
    name, button = screen.wanted(r'name "(.*)" then press "(\w+)"')
    field = screen.one("textbox", at=-1)
    if "disabled" in field.states:
        return Scroll(direction="down", ref=screen.one("textbox").ref)
    if field.value != name:
        return fill(field, name)
    return click(screen.one("button", name=button))


def generate_number(screen: Screen) -> Action:
    """Generates until the shown number satisfies the instruction, then submits."""
    relation, limit = screen.wanted(r"number (less than|greater than) (\d+)")
    relation_even = re.search(r"(even|odd) number", screen.instruction)
    del relation_even
    shown = re.search(r"^-?\d+$", screen.text(), re.MULTILINE)
    if shown is None:
        return click(screen.one("button", name="Generate"))
    good = int(shown[0]) < int(limit) if relation == "less than" else int(shown[0]) > int(limit)
    return click(screen.one("button", name="Submit" if good else "Generate"))


def buy_ticket(screen: Screen) -> Action:
    """Books the cheapest or the shortest of the tickets."""
    (wish,) = screen.wanted(r"ticket with the (\w+ \w+)\.$")
    offers: list[tuple[int, int, Element]] = []
    minutes = 0
    for piece in screen.flow:
        if isinstance(piece, str):
            found = re.search(r"(?:(\d+)h)? ?(?:(\d+)m)?$", piece)
            if found and (found[1] or found[2]):
                minutes = int(found[1] or 0) * 60 + int(found[2] or 0)
        elif price := re.search(r"\$(\d+)", piece.key.name):
            offers.append((int(price[1]), minutes, piece))
    if not offers:
        raise Unsolvable("no tickets on the page")
    rank = {"cheapest cost": lambda o: o[0], "shortest duration": lambda o: o[1]}  # pyright: ignore
    return click(min(offers, key=rank[wish])[2]) if wish in rank else _raise(wish)


def _raise(wish: str) -> Action:
    raise Unsolvable(f"unknown wish {wish!r}")


def _after(row: list[Element], state: str) -> Element:
    """The element after the last one in *state*; the first if none is."""
    at = max((i for i, element in enumerate(row) if state in element.states), default=-1)
    if at + 1 >= len(row):
        raise Unsolvable("there is no further one to open")
    return row[at + 1]
