"""Tasks in small applications: mail, social media, shop, phone book, calendar."""

from __future__ import annotations

import re
from itertools import pairwise

from envs.core.actions import Action
from envs.core.observation import Element
from envs.suites.miniwob.solvers.forms import FIELD_ROLES
from envs.suites.miniwob.solvers.screen import Screen, Unsolvable, click, fill

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
ICONS = ("reply", "retweet", "like", "share")
"""Order of the nameless icons under a post, left to right."""


def _mail_row(screen: Screen, sender: str) -> Element:
    """The row of the inbox that begins with the sender's name."""
    for element in screen.elements:
        if element.key.name.split(" ")[0] == sender:
            return element
    raise Unsolvable(f"no e-mail by {sender}")


def _icon_after(screen: Screen, element: Element, steps: int) -> Element:
    return screen.elements[screen.elements.index(element) + steps]


def _reply(screen: Screen, sender: str, text: str) -> Action:
    if screen.has("textbox"):
        field = screen.one("textbox")
        return fill(field, text) if field.value != text else click(screen.one(name="send-reply"))
    if screen.has(name="Reply"):
        return click(screen.one(name="Reply"))
    return click(_mail_row(screen, sender))


def _forward(screen: Screen, sender: str, to: str) -> Action:
    if screen.has("textbox"):
        field = screen.one("textbox")
        return fill(field, to) if field.value != to else click(screen.one(name="send-forward"))
    if screen.has(name="Forward"):
        return click(screen.one(name="Forward"))
    return click(_mail_row(screen, sender))


def email_inbox(screen: Screen) -> Action:
    """Every plainly worded instruction of the inbox: reply, forward, delete, mark as important."""
    (sender,) = screen.wanted(r"email by (\w+)")
    if "reply to them" in screen.instruction:
        return _reply(screen, sender, *screen.wanted(r'text "(.*)"\.$'))
    if "forward that email" in screen.instruction:
        return _forward(screen, sender, *screen.wanted(r"to (\w+)\.$"))
    return click(_icon_after(screen, _mail_row(screen, sender), 1 if "trash" in screen.instruction else 2))


def _posts(screen: Screen) -> list[tuple[str, list[Element]]]:
    """Each post's user and its controls."""
    posts: list[tuple[str, list[Element]]] = []
    for piece in screen.flow:
        if isinstance(piece, str):
            found = re.search(r"(@\w+)", piece)
            if found:
                posts.append((found[1], []))
        elif posts:
            posts[-1][1].append(piece)
    return posts


def social_media_some(screen: Screen) -> Action:
    """Presses the icon on as many posts of the user as asked (or all), from the top, then submits."""
    icon, user = screen.wanted(r'the "(\w+)" button .*by (@\w+)')
    count = re.search(r"on (\d+) posts?", screen.instruction)
    posts = [controls for name, controls in _posts(screen) if name == user]
    pressed = len(screen.past)
    if pressed < (int(count[1]) if count else len(posts)):
        at = ICONS.index(icon.lower())
        if len(posts) <= pressed or len(posts[pressed]) <= at:
            raise Unsolvable(f"no icon {icon!r} on post {pressed + 1} by {user}")
        return click(posts[pressed][at])
    return click(screen.one("button", name="Submit"))


def social_media(screen: Screen) -> Action:
    """Presses an icon of the user's post, or opens its menu and presses the item."""
    user, what = screen.wanted(r'For the user (@\w+), click on the "(.*)" button')
    controls = next((controls for name, controls in _posts(screen) if name == user), None)
    if controls is None:
        raise Unsolvable(f"no post by {user}")
    if what.lower() in ICONS[:3]:
        return click(controls[ICONS.index(what.lower())])
    for control in controls:
        if control.key.name in (what, f"{what} {user}"):
            return click(control)
    return click(controls[3])


def phone_book(screen: Screen) -> Action:
    """Turns the pages until the contact is shown, then clicks the wanted line."""
    name, what = screen.wanted(r"^Find (\w+) in the contact book and click on their (.*)\.$")
    if not re.search(rf"^#? ?{name}$", screen.text(), re.MULTILINE):
        return click(screen.one("link", name=">"))
    label = ""
    for piece in screen.flow:
        if isinstance(piece, str):
            label = piece.lower()
        elif {"phone number": "phone"}.get(what, what.split()[0]) in label:
            return click(piece)
    raise Unsolvable(f"no {what} on the page")


def order_food(screen: Screen) -> Action:
    """Adds each named item once, or the first item of a kind as often as asked, then orders."""
    listed = re.search(r"^Order one of each item: (.*)$", screen.instruction)
    added = screen.did("click", "+")
    if listed:
        names = listed[1].split(", ")
        wanted = [plus for name in names for item, _, plus in _menu(screen) if item == name]
        count = len(names)
    else:
        number, kind = screen.wanted(r"^Order (\d+) items that are (.*)$")
        count = int(number)
        wanted = [plus for _, kinds, plus in _menu(screen) if f'"{kind}"' in kinds][:1] * count
    if len(wanted) < count:
        raise Unsolvable("the menu lacks what is asked for")
    return click(wanted[added] if added < count else screen.one("button", name="Order!"))


def _menu(screen: Screen) -> list[tuple[str, str, Element]]:
    """Each dish of the menu: its name, the line of pictures that says its kinds, its plus."""
    dishes: list[tuple[str, str, Element]] = []
    item = kinds = ""
    for piece in screen.flow:
        if not isinstance(piece, str):
            dishes += [(item, kinds, piece)] if piece.key.name == "+" else []
        elif piece.startswith("image "):
            kinds = piece
        elif not piece.isdigit():
            item, kinds = piece, ""
    return dishes


def choose_date(screen: Screen) -> Action:
    """Opens the calendar, turns to the month, picks the day, submits."""
    month, day, year = screen.wanted(r"^Select (\d\d)/(\d\d)/(\d{4}) as the date")
    field = screen.one("textbox")
    if field.value == f"{month}/{day}/{year}":
        return click(screen.one("button", name="Submit"))
    found = re.search(rf"({'|'.join(MONTHS)}) ?(\d{{4}})?", screen.text())
    if found is None:
        return click(field)
    ahead = int(month) - 1 - MONTHS.index(found[1])
    if ahead:
        return click(screen.one(name="Next" if ahead > 0 else "Prev"))
    return click(screen.one("link", name=str(int(day))))


def guess_number(screen: Screen) -> Action:
    """Halves what the answers so far leave open."""
    low, high = 0, 9
    guesses = [int(past.action.text) for past in screen.past if past.action.kind == "type"]
    for guess, later in pairwise(guesses):
        low, high = (guess + 1, high) if later > guess else (low, guess - 1)
    if guesses and screen.past[-1].action.kind == "type":
        return click(screen.one("button"))
    if guesses:
        low, high = (low, guesses[-1] - 1) if "lower than" in screen.text() else (guesses[-1] + 1, high)
    return fill(screen.one(*FIELD_ROLES), str((low + high) // 2))
