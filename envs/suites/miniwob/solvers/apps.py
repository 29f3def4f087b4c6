"""Tasks in small applications: mail, social media, shop, phone book, calendar."""

from __future__ import annotations

import re
from itertools import pairwise

from envs.core.actions import Action, Wait
from envs.core.observation import TEXT_ROLES, Element
from envs.suites.miniwob.milestones.apps import MONTHS
from envs.suites.miniwob.solvers.screen import Screen, Unsolvable, click, fill

ICONS = ("reply", "retweet", "like", "share")
"""Order of the unnamed icons below a post, left to right."""


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
        field = screen.find("textbox")
        return fill(field, text) if field.value != text else click(screen.find(name="send-reply"))
    if screen.has(name="Reply"):
        return click(screen.find(name="Reply"))
    return click(_mail_row(screen, sender))


def _forward(screen: Screen, sender: str, to: str) -> Action:
    if screen.has("textbox"):
        field = screen.find("textbox")
        return fill(field, to) if field.value != to else click(screen.find(name="send-forward"))
    if screen.has(name="Forward"):
        return click(screen.find(name="Forward"))
    return click(_mail_row(screen, sender))


def email_inbox(screen: Screen) -> Action:
    """All direct instructions of the inbox: reply, forward, delete, mark as important."""
    (sender,) = screen.parse(r"email by (\w+)")
    if "reply to them" in screen.instruction:
        return _reply(screen, sender, *screen.parse(r'text "(.*)"\.$'))
    if "forward that email" in screen.instruction:
        return _forward(screen, sender, *screen.parse(r"to (\w+)\.$"))
    return click(_icon_after(screen, _mail_row(screen, sender), 1 if "trash" in screen.instruction else 2))


def _posts(screen: Screen) -> list[tuple[str, list[Element]]]:
    """Each post's user and its controls."""
    posts: list[tuple[str, list[Element]]] = []
    for piece in screen.flow:
        if isinstance(piece, str):
            match = re.search(r"(@\w+)", piece)
            if match:
                posts.append((match[1], []))
        elif posts:
            posts[-1][1].append(piece)
    return posts


def social_media_some(screen: Screen) -> Action:
    """Presses the icon on the required number of the user's posts (or all), from the top, then submits."""
    icon, user = screen.parse(r'the "(\w+)" button .*by (@\w+)')
    count = re.search(r"on (\d+) posts?", screen.instruction)
    posts = [controls for name, controls in _posts(screen) if name == user]
    pressed = len(screen.past)
    if pressed < (int(count[1]) if count else len(posts)):
        at = ICONS.index(icon.lower())
        if len(posts) <= pressed or len(posts[pressed]) <= at:
            raise Unsolvable(f"no icon {icon!r} on post {pressed + 1} by {user}")
        return click(posts[pressed][at])
    return click(screen.find("button", name="Submit"))


def social_media(screen: Screen) -> Action:
    """Presses an icon of the user's post, or opens its menu and presses the item."""
    user, choice = screen.parse(r'For the user (@\w+), click on the "(.*)" button')
    controls = next((controls for name, controls in _posts(screen) if name == user), None)
    if controls is None:
        raise Unsolvable(f"no post by {user}")
    if choice.lower() in ICONS[:3]:
        return click(controls[ICONS.index(choice.lower())])
    for control in controls:
        if control.key.name in (choice, f"{choice} {user}"):
            return click(control)
    return click(controls[3])


def phone_book(screen: Screen) -> Action:
    """Turns the pages until the contact is shown, then clicks the required line."""
    name, choice = screen.parse(r"^Find (\w+) in the contact book and click on their (.*)\.$")
    if not re.search(rf"^#? ?{name}$", screen.text(), re.MULTILINE):
        return click(screen.find("link", name=">"))
    label = ""
    for piece in screen.flow:
        if isinstance(piece, str):
            label = piece.lower()
        elif {"phone number": "phone"}.get(choice, choice.split()[0]) in label:
            return click(piece)
    raise Unsolvable(f"no {choice} on the page")


def order_food(screen: Screen) -> Action:
    """Adds each named item once, or the first item of a kind the required number of times, then orders."""
    listed = re.search(r"^Order one of each item: (.*)$", screen.instruction)
    added = screen.did("click", "+")
    if listed:
        names = listed[1].split(", ")
        buttons = [plus for name in names for item, _, plus in _menu(screen) if item == name]
        count = len(names)
    else:
        number, kind = screen.parse(r"^Order (\d+) items that are (.*)$")
        count = int(number)
        buttons = [plus for _, kinds, plus in _menu(screen) if f'"{kind}"' in kinds][:1] * count
    if len(buttons) < count:
        raise Unsolvable("the menu lacks a requested item")
    return click(buttons[added] if added < count else screen.find("button", name="Order!"))


def _menu(screen: Screen) -> list[tuple[str, str, Element]]:
    """Each dish of the menu: its name, the line of icons with its kinds, its plus button."""
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
    month, day, year = screen.parse(r"^Select (\d\d)/(\d\d)/(\d{4}) as the date")
    field = screen.find("textbox")
    if field.value == f"{month}/{day}/{year}":
        return click(screen.find("button", name="Submit"))
    return _pick_date(screen, field, month, day)


def _pick_date(screen: Screen, field: Element, month: str, day: str) -> Action:
    """Opens the calendar of *field*, turns to the month, picks the day."""
    match = re.search(rf"({'|'.join(MONTHS)}) ?(\d{{4}})?", screen.text())
    if match is None:
        return click(field)
    ahead = int(month) - 1 - MONTHS.index(match[1])
    if ahead:
        return click(screen.find(name="Next" if ahead > 0 else "Prev"))
    return click(screen.find("link", name=str(int(day))))


def book_flight(screen: Screen) -> Action:
    """Completes both airports from their suggestions, picks the date, searches, books the flight."""
    which, origin, destination, month, day, year = screen.parse(
        r"^Book the (cheapest|shortest) one-way flight from: (.*) to: (.*) on (\d\d)/(\d\d)/(\d{4})\.$"
    )
    flights = _flights(screen)
    if flights:
        return click(min(flights, key=lambda flight: flight[1] if which == "shortest" else flight[0])[2])
    *airports, date = screen.all(*TEXT_ROLES)
    for field, place in zip(airports, (origin, destination), strict=True):
        if not _is_airport(field.value or "", place):
            offers = [one for one in screen.all("clickable", "menuitem", "option") if _is_airport(one.key.name, place)]
            if offers:
                return click(offers[0])
            return fill(field, place) if field.value != place else Wait()
    if date.value == f"{month}/{day}/{year}":
        return click(screen.find("button", name="Search"))
    return _pick_date(screen, date, month, day)


def _is_airport(text: str, place: str) -> bool:
    """Whether *text* is an airport, such as `Akron, OH (CAK)`, and *place* its city or its code."""
    return bool(re.search(r" \(\w+\)$", text)) and (text.startswith(place) or f"({place})" in text)


def _flights(screen: Screen) -> list[tuple[int, int, Element]]:
    """(dollars, minutes, button) of each flight in the list."""
    flights: list[tuple[int, int, Element]] = []
    minutes = 0
    for piece in screen.flow:
        if isinstance(piece, str):
            if duration := re.search(r"(\d+)h (\d+)m", piece):
                minutes = 60 * int(duration[1]) + int(duration[2])
        elif price := re.fullmatch(r"Book flight for \$(\d+)", piece.key.name):
            flights.append((int(price[1]), minutes, piece))
    return flights


def guess_number(screen: Screen) -> Action:
    """Guesses the middle of the range that earlier answers leave."""
    low, high = 0, 9
    guesses = [int(past.action.text) for past in screen.past if past.action.kind == "type"]
    for guess, later in pairwise(guesses):
        low, high = (guess + 1, high) if later > guess else (low, guess - 1)
    if guesses and screen.past[-1].action.kind == "type":
        return click(screen.find("button"))
    if guesses:
        low, high = (low, guesses[-1] - 1) if "lower than" in screen.text() else (guesses[-1] + 1, high)
    return fill(screen.find(*TEXT_ROLES), str((low + high) // 2))
