"""Tasks solved by clicking what the instruction names: buttons, links, tabs, sections, dialogs, menus, trees."""

from __future__ import annotations

import re
from itertools import pairwise

from envs.core.actions import Action, Hover, Scroll
from envs.core.observation import Element
from envs.suites.miniwob.solvers.screen import Screen, Unsolvable, click, fill

WIDGET_ROLES = {
    "radio": ("radio",),
    "checkbox": ("checkbox",),
    "text": ("textbox",),
    "textarea": ("textbox",),
    "button": ("button",),
}


def click_test(screen: Screen) -> Action:
    return click(screen.find("button"))


def click_button_named(screen: Screen) -> Action:
    """`Click button ONE.`"""
    (name,) = screen.parse(r"^Click button (\w+)\.$")
    return click(screen.find("button", name=name))


def click_button(screen: Screen) -> Action:
    """`Click on the "okay" button.` (also click-link's and unicode-test's form)"""
    (name,) = screen.parse(r'"(.*)" button\.$')
    return click(screen.find("button", name=name))


def click_button_sequence(screen: Screen) -> Action:
    """`Click button ONE, then click button TWO.`: the page does not change, so past actions decide."""
    first, second = screen.parse(r"button (\w+), then click button (\w+)\.$")
    return click(screen.find("button", name=second if screen.did("click", first) else first))


def click_link(screen: Screen) -> Action:
    (name,) = screen.parse(r'link "(.*)"\.?$')
    return click(screen.find(name=name))


def click_dialog(screen: Screen) -> Action:
    return click(screen.find("button", name="Close"))


def click_dialog_2(screen: Screen) -> Action:
    (name,) = screen.parse(r'labeled "(.*)"\.$')
    return click(screen.find("button", name="Close" if name == "x" else name))


def click_tab(screen: Screen) -> Action:
    (name,) = screen.parse(r"^Click on (Tab #\d+)\.$")
    return click(screen.find("tab", name=name))


def click_tab_2(screen: Screen) -> Action:
    """Clicks the link if this tab shows it, else opens the next tab to the right."""
    (name,) = screen.parse(r'link "(.*)"\.$')
    targets = [element for element in screen.all(name=name) if element.key.role != "tab"]
    if targets:
        return click(targets[0])
    tabs = screen.all("tab")
    return click(_after(tabs, "selected"))


def click_collapsible(screen: Screen) -> Action:
    """Opens the section, then submits."""
    section = screen.find("tab")
    return click(screen.find("button", name="Submit") if "expanded" in section.states else section)


def click_collapsible_2(screen: Screen) -> Action:
    """Clicks the link if the open section shows it, else opens the section after the open one."""
    (name,) = screen.parse(r'link "(.*)"\.$')
    targets = [element for element in screen.all(name=name) if element.key.role != "tab"]
    if targets:
        return click(targets[0])
    return click(_after(screen.all("tab"), "expanded"))


def click_widget(screen: Screen) -> Action:
    (kind,) = screen.parse(r'^Click on a "(\w+)" widget\.$')
    for element in screen.all(*WIDGET_ROLES[kind]):
        if kind not in ("text", "textarea") or (element.tag == "textarea") == (kind == "textarea"):
            return click(element)
    raise Unsolvable(f"no {kind} on the page")


def click_menu(screen: Screen) -> Action:
    """`Select A>B>C`: hovers over each level, which opens the next, and clicks the last."""
    (path,) = screen.parse(r"^Select (.*)$")
    names = path.split(">")
    for name in reversed(names):
        if screen.has("menuitem", name=name):
            item = screen.find("menuitem", name=name)
            return click(item) if name == names[-1] else Hover(ref=item.ref)
    raise Unsolvable(f"no item of {path!r} on the page")


def click_menu_2(screen: Screen) -> Action:
    """Opens the menu, opens its only sub-menu if the item is in it, clicks the item; icons are not supported."""
    (name,) = screen.parse(r'item labeled "(.*)"\.$')
    if screen.has("menuitem", name=name):
        return click(screen.find("menuitem", name=name))
    if screen.has("menuitem", name="Playback"):
        return Hover(ref=screen.find("menuitem", name="Playback").ref)
    return click(screen.find("button", name="Menu"))


def navigate_tree(screen: Screen) -> Action:
    """Clicks the item if it is shown, else opens the first untried folder (its handle precedes its name)."""
    (name,) = screen.parse(r'named "(.*)"\.$')
    if screen.has(name=name):
        return click(screen.find(name=name))
    tried = {past.target.name for past in screen.past if past.target}
    for handle, item in pairwise(screen.elements):
        if not handle.key.name and item.key.name and item.key.name not in tried:
            return click(item)
    raise Unsolvable("every folder was opened")


def sign_agreement(screen: Screen) -> Action:
    if "Click the cancel" in screen.instruction:
        return click(screen.find("button", name="Cancel"))
    name, button = screen.parse(r'name "(.*)" then press "(\w+)"')
    field = screen.find("textbox", at=-1)
    if "disabled" in field.states:
        return Scroll(direction="down", ref=screen.find("textbox").ref)
    if field.value != name:
        return fill(field, name)
    return click(screen.find("button", name=button))


def click_color(screen: Screen) -> Action:
    (color,) = screen.parse(r"^Click on the (\w+) colored box")
    return click(screen.find(name=color))


def click_shades(screen: Screen) -> Action:
    """Clicks each box whose strongest channel is the required colour, once, then submits."""
    (color,) = screen.parse(r"^Select all the shades of (red|green|blue)")
    done = {past.target for past in screen.past}
    for element in screen.elements:
        channels = [int(number) for number in re.findall(r"\d+", element.key.name)]
        if len(channels) == 3 and element.key not in done and ("red", "green", "blue")[_strongest(channels)] == color:
            return click(element)
    return click(screen.find("button", name="Submit"))


def _strongest(channels: list[int]) -> int:
    return channels.index(max(channels))


def find_greatest(screen: Screen) -> Action:
    """Picks the card with the greatest number, then submits."""
    cards = [element for element in screen.elements if element.key.name.isdigit()]
    if screen.past or not cards:
        return click(screen.find("button", name="Submit"))
    return click(max(cards, key=lambda card: int(card.key.name)))


def generate_number(screen: Screen) -> Action:
    """Generates until the shown number satisfies the instruction, then submits."""
    shown = re.search(r"^-?\d+$", screen.text(), re.MULTILINE)
    good = shown is not None and _satisfies(int(shown[0]), screen.instruction)
    return click(screen.find("button", name="Submit" if good else "Generate"))


def _satisfies(number: int, instruction: str) -> bool:
    bound = re.search(r"(less|greater) than (\d+)", instruction)
    if bound is None:
        return number % 2 == (1 if "odd" in instruction else 0)
    return number < int(bound[2]) if bound[1] == "less" else number > int(bound[2])


def odd_or_even(screen: Screen) -> Action:
    """Presses Odd or Even in each row once, then submits."""
    numbers = [int(number) for number in re.findall(r"-?\d+", screen.text())]
    done = {past.target for past in screen.past}
    for row, number in enumerate(numbers):
        button = screen.find("button", name="Odd" if number % 2 else "Even", at=row)
        if button.key not in done:
            return click(button)
    return click(screen.find("button", name="Submit"))


def buy_ticket(screen: Screen) -> Action:
    """Books the cheapest, dearest, shortest or longest of the tickets."""
    extreme, choice = screen.parse(r"ticket with the (\w+|most expensive) (cost|duration)\.$")
    offers: list[tuple[int, Element]] = []
    minutes = 0
    for piece in screen.flow:
        if isinstance(piece, str):
            match = re.search(r"(?:(\d+)h)? ?(?:(\d+)m)?$", piece)
            minutes = int(match[1] or 0) * 60 + int(match[2] or 0) if match and match[0] else minutes
        elif price := re.search(r"\$(\d+)", piece.key.name):
            offers.append((int(price[1]) if choice == "cost" else minutes, piece))
    if not offers:
        raise Unsolvable("no tickets on the page")
    pick = min if extreme in ("cheapest", "shortest") else max
    return click(pick(offers, key=lambda offer: offer[0])[1])


def _after(row: list[Element], state: str) -> Element:
    """The element after the last one in *state*, cyclically; the first if none is in *state*."""
    if not row:
        raise Unsolvable("there is nothing to open")
    at = max((i for i, element in enumerate(row) if state in element.states), default=-1)
    return row[(at + 1) % len(row)]
