"""Tasks solved by filling fields and choosing options, then submitting."""

from __future__ import annotations

import re

from envs.core.actions import Action, Press, Wait
from envs.core.observation import TEXT_ROLES, Element
from envs.suites.miniwob.solvers.screen import Screen, Unsolvable, choose, click, fill, fill_all


def _submit(screen: Screen, name: str = "Submit") -> Action:
    return click(screen.find("button", name=name))


def _field(screen: Screen, at: int = 0) -> Element:
    return screen.find(*TEXT_ROLES, at=at)


def ordinal(word: str) -> int:
    """`3rd` → 2: a 0-based position."""
    return int("".join(letter for letter in word if letter.isdigit())) - 1


def enter_text(screen: Screen) -> Action:
    (text,) = screen.parse(r'^Enter "(.*)" into the text field')
    return fill_all([(_field(screen), text)]) or _submit(screen)


def enter_text_2(screen: Screen) -> Action:
    text, case = screen.parse(r'^Type "(.*)" in all (upper|lower) case')
    return fill_all([(_field(screen), text.upper() if case == "upper" else text.lower())]) or _submit(screen)


def enter_password(screen: Screen) -> Action:
    """A password's value is never shown, so past actions decide which fields are filled."""
    (text,) = screen.parse(r'^Enter the password "(.*)" into both')
    filled = {past.target for past in screen.past if past.action.kind == "type"}
    for element in screen.all(*TEXT_ROLES):
        if element.key not in filled:
            return fill(element, text)
    return _submit(screen)


def enter_date(screen: Screen) -> Action:
    month, day, year = screen.parse(r"^Enter (\d\d)/(\d\d)/(\d{4}) as the date")
    field = screen.elements[0]
    return fill_all([(field, f"{year}-{month}-{day}")]) or _submit(screen)


def enter_time(screen: Screen) -> Action:
    hour, minute, half = screen.parse(r"^Enter (\d+):(\d+) (AM|PM) as the time")
    field = screen.elements[0]
    return fill_all([(field, f"{int(hour) % 12 + 12 * (half == 'PM'):02}:{minute}")]) or _submit(screen)


def focus_text(screen: Screen) -> Action:
    return click(_field(screen))


def focus_text_2(screen: Screen) -> Action:
    (which,) = screen.parse(r"the (\d\w\w) input textbox")
    return click(_field(screen, ordinal(which)))


def login_user(screen: Screen) -> Action:
    """Types the name, then the password (its value is never shown, so past actions decide), then logs in."""
    user, password = screen.parse(r'username "(.*)" and the password "(.*)" into')
    name_field, password_field = screen.all(*TEXT_ROLES)[:2]
    if name_field.value != user:
        return fill(name_field, user)
    if not any(past.target == password_field.key and past.action.kind == "type" for past in screen.past):
        return fill(password_field, password)
    return click(screen.find("button", at=-1))


def login_user_popup(screen: Screen) -> Action:
    """Like login-user, but cancels a pop-up that asks whether to leave."""
    if screen.has("button", name="Cancel"):
        return click(screen.find("button", name="Cancel"))
    return login_user(screen)


def choose_list(screen: Screen) -> Action:
    (option,) = screen.parse(r"^Select (.*) from the list")
    field = screen.find("combobox", "listbox")
    return _submit(screen) if field.value == option else choose(field, option)


def click_scroll_list(screen: Screen) -> Action:
    """Selects each option (a multiple-choice list keeps earlier options), then submits."""
    (listed,) = screen.parse(r"^Select (.*) from the scroll list")
    field = screen.find("listbox", "combobox")
    chosen = (field.value or "").split(", ")
    for option in listed.split(", "):
        if option not in chosen:
            return choose(field, option)
    return _submit(screen)


def click_option(screen: Screen) -> Action:
    (name,) = screen.parse(r"^Select (.*) and click Submit")
    box = screen.find("radio", name=name)
    return _submit(screen) if "checked" in box.states else click(box)


def click_checkboxes(screen: Screen) -> Action:
    """Checks each named box and unchecks each other one, in page order, then submits."""
    (listed,) = screen.parse(r"^Select (.*) and click Submit")
    names = set() if listed == "nothing" else set(listed.split(", "))
    for box in screen.all("checkbox"):
        if (box.key.name in names) != ("checked" in box.states):
            return click(box)
    return _submit(screen)


def labelled(screen: Screen) -> list[tuple[str, Element]]:
    """Every text field with its name, else the text before it, or after it if the page begins with a field."""
    pieces = [p for p in screen.flow if isinstance(p, str) or p.key.role in TEXT_ROLES]
    below = bool(pieces) and not isinstance(pieces[0], str)
    texts = [pieces[i + 1 if below else i - 1] for i in range(len(pieces) - below) if not isinstance(pieces[i], str)]
    fields = [piece for piece in pieces if not isinstance(piece, str)]
    return [(field.key.name or str(text), field) for field, text in zip(fields, texts, strict=False)]


def search_movies(screen: Screen) -> Action:
    """multi-layouts and multi-orderings: genre, director and year by label, in any order and layout."""
    genre, director, year = screen.parse(r"^Search for (.*) movies directed by (.*) from year (\d+)")
    keys = {"genre": genre, "director": director, "year": year, "date": year}
    for label, field in labelled(screen):
        for key, text in keys.items():
            if key in label.lower() and field.value != text:
                return fill(field, text)
    buttons = [element for element in screen.elements if element.key.role not in TEXT_ROLES]
    if not buttons:
        raise Unsolvable("nothing to submit with")
    return click(buttons[-1])


def form_sequence_2(screen: Screen) -> Action:
    radio, number, box = screen.parse(r'the (\d\w\w) radio button and enter the number "(.*)" into the (\d\w\w)')
    button = screen.find("radio", at=ordinal(radio))
    if "checked" not in button.states:
        return click(button)
    return fill_all([(_field(screen, ordinal(box)), number)]) or _submit(screen)


def read_table(screen: Screen) -> Action:
    (label,) = screen.parse(r"^Enter the value of (.*) into the text field")
    return fill_all([(_field(screen), _cell(screen, label))]) or _submit(screen)


def read_table_2(screen: Screen) -> Action:
    pairs = [(field, _cell(screen, label.rstrip(":"))) for label, field in labelled(screen)]
    return fill_all(pairs) or _submit(screen)


def _cell(screen: Screen, label: str) -> str:
    """The cell beside *label* in the table."""
    for line in screen.text().splitlines():
        cells = [cell.strip() for cell in line.split(" | ")]
        if len(cells) == 2 and cells[0] == label:
            return cells[1]
    raise Unsolvable(f"no row {label!r} in the table")


def find_word(screen: Screen) -> Action:
    (which,) = screen.parse(r"^Find the (\d+\w\w) word")
    words = screen.text().split()
    word = words[ordinal(which)].strip(",.")
    return fill_all([(_field(screen), word)]) or _submit(screen)


def text_transform(screen: Screen) -> Action:
    text = screen.text().replace("\n", "").replace(" ", "")
    return fill_all([(_field(screen), text)]) or _submit(screen)


def copy_paste(screen: Screen) -> Action:
    """Copies with the keyboard, because observations collapse the spaces that the benchmark compares."""
    areas = [element for element in screen.all(*TEXT_ROLES) if element.tag == "textarea"]
    field = next((element for element in screen.all(*TEXT_ROLES) if element.tag != "textarea"), None)
    if field is None:
        raise Unsolvable("no field to paste into")
    at = ordinal(screen.parse(r"from the (\d\w\w) text area")[0]) if "text area below" in screen.instruction else 0
    if len(screen.past) < len(COPYING):
        return COPYING[len(screen.past)] or click(areas[at])
    if not field.value:
        return Press(keys="Control+V") if "focused" in field.states else click(field)
    return _submit(screen)


COPYING: tuple[Press | None, ...] = (None, Press(keys="Control+A"), Press(keys="Control+C"))
"""Keys that copy a text area; None stands for a click into it."""


def use_spinner(screen: Screen) -> Action:
    """Clicks the arrows beside the field (first up, then down), which step by one; the field accepts no keys."""
    (number,) = screen.parse(r"^Select (-?\d+) with the spinner")
    missing = int(number) - int(_field(screen).value or "0")
    if missing == 0:
        return _submit(screen)
    arrows = [element for element in screen.all("button") if element.key.name != "Submit"]
    return click(arrows[0 if missing > 0 else 1])


def use_autocomplete(screen: Screen) -> Action:
    """Types the beginning, selects the suggestion with the right ending, submits."""
    (start,) = screen.parse(r'starts with "([^"]*)"')
    end = screen.parse(r'ends with "([^"]*)"')[0] if "ends with" in screen.instruction else ""
    field = _field(screen)
    value = field.value or ""
    if len(value) > len(start) and value.startswith(start) and value.endswith(end):
        return _submit(screen)
    offers = [
        element for element in screen.all("clickable", "menuitem", "option") if _fits(element.key.name, start, end)
    ]
    if offers:
        return click(min(offers, key=lambda offer: len(offer.key.name)))
    return fill(field, start) if value != start else Wait()


def _fits(name: str, start: str, end: str) -> bool:
    return name.startswith(start) and name.endswith(end)


def search_engine(screen: Screen) -> Action:
    """Searches, opens the page with the required result (three per page), clicks the result."""
    words, which = screen.parse(r'enter "(.*)" and press "Search", then find and click the (\d\w\w)')
    page, row = divmod(ordinal(which), 3)
    field = _field(screen)
    if field.value != words:
        return fill(field, words)
    links = screen.all("link")
    pagers = ("First", "<", "1", "2", "3", ">", "Last")
    results = [link for link in links if link.key.name not in pagers]
    if len(results) < 3:
        return click(screen.find("button", name="Search"))
    shown = max(
        (past.target.name for past in screen.past[-1:] if past.target and past.target.name in "123"), default="1"
    )
    if shown != str(page + 1):
        return click(screen.find("link", name=str(page + 1)))
    return click(results[row])


def simple_arithmetic(screen: Screen) -> Action:
    a, operator, b = _numbers(screen, r"(-?\d+) ([+\-x*×/÷]) (-?\d+) =")
    result = {"+": int(a) + int(b), "-": int(a) - int(b)}.get(operator, int(a) * int(b))
    return fill_all([(_field(screen), str(result))]) or _submit(screen)


def simple_algebra(screen: Screen) -> Action:
    """Parses one unknown in `a ± x = c` or `x ± b = c`."""
    left, operator, right, total = _numbers(screen, r"(-?\d+|x) ([+-]) (-?\d+|x) = (-?\d+)")
    sign = 1 if operator == "+" else -1
    x = int(total) - sign * int(right) if left == "x" else sign * (int(total) - int(left))
    return fill_all([(_field(screen), str(x))]) or _submit(screen)


def _numbers(screen: Screen, pattern: str) -> tuple[str, ...]:
    match = re.search(pattern, screen.text())
    if match is None:
        raise Unsolvable("no problem on the page")
    return match.groups()
