"""Made-up pages in the shapes that the MiniWoB++ tasks take, drawn and answered without a browser.

A real demonstration costs a second, one of these a tenth of a millisecond, and the words on them never repeat. Layouts
follow what the observer shows of the real pages; what is asked and how it is solved follow the scripted solvers. The
real demonstrations stay the measure: they are mixed in, and success is only ever counted on real pages.
"""

from __future__ import annotations

import random

from training.embedded.synthetic import ORDINALS, Example, Family, Sketch, click_answer, select_answer, type_answer
from training.embedded.words import WordBag

BUTTONS = "submit yes ok okay no previous next cancel Submit Yes Ok Okay No Previous Next Cancel".split()
TABLE_LABELS = ["First name", "Last name", "Gender", "Language", "Color", "Country", "Religion", "Year"]
SUBMITTED = "The form is submitted and accepted"


def lorem(page: Sketch, count: int) -> list[str]:
    """Running text as the benchmark writes it: lower-case words, some sentences and commas."""
    rng, words, start = page.rng, [], True
    for i in range(count):
        word = page.words.filler_word()
        word = word.capitalize() if start else word.lower()
        ends = rng.random() < 0.2 or i == count - 1
        start = ends
        words.append(word + ("." if ends else "," if rng.random() < 0.12 else ""))
    return words


def paragraph(page: Sketch, wanted: str | None, chance: float = 0.2, count: int = 20) -> int:
    """Text with links in it on one line; returns the number of the link called *wanted*, 0 if None."""
    words = lorem(page, page.rng.randint(max(4, count // 2), count))
    place = page.rng.randrange(len(words)) if wanted else -1
    parts: list[str] = []
    text: list[str] = []
    found = 0
    for i, word in enumerate(words):
        if i != place and (page.rng.random() >= chance or word == wanted):
            text.append(word)
            continue
        if text:
            parts.append(" ".join(text))
            text = []
        page.refs += 1
        parts.append(f'[{page.refs}] clickable "{wanted if i == place else word}"')
        found = page.refs if i == place else found
    if text:
        parts.append(" ".join(text))
    page.text("  ".join(parts))
    return found


def link_word(page: Sketch) -> str:
    return page.rng.choice(lorem(page, 4)) if page.rng.random() < 0.7 else page.words.word()


def click_link(page: Sketch) -> tuple[str, str]:
    wanted = link_word(page)
    return f'Click on the link "{wanted}".', click_answer(paragraph(page, wanted))


def sections(page: Sketch) -> tuple[str, str]:
    """click-collapsible-2: open one section after the other until the link is there."""
    rng, wanted, count = page.rng, link_word(page), page.rng.randint(2, 5)
    at = rng.randint(-1, count - 1)
    found = at >= 0 and (at == count - 1 or rng.random() < 0.5)
    shown = f'link "{wanted}"'
    page.next = _maybe(page, f"The {shown} is clicked" if found else f"A section that shows the {shown} is expanded")
    page.done += [f'click tab "Section #{i + 1}"' for i in range(at + 1)]
    first = rng.randint(1, 40) if rng.random() < 0.3 else 1
    tabs: list[int] = []
    target = 0
    for i in range(count):
        page.refs += 1
        state = ("expanded selected" + rng.choice((" focused", ""))) if i == at else "collapsed"
        page.text(f'# [{page.refs}] tab "Section #{i + first}" {state}')
        tabs.append(page.refs)
        if i == at:
            target = paragraph(page, wanted if found else None)
        elif at == i + 1 and rng.random() < 0.25:
            page.text("  ".join(_clickables(page, rng.randint(1, 4))))
    goal = f'Expand the sections below, to find and click on the link "{wanted}".'
    return goal, click_answer(target if found else tabs[at + 1])


def _clickables(page: Sketch, count: int) -> list[str]:
    parts: list[str] = []
    for word in lorem(page, count):
        page.refs += 1
        parts.append(f'[{page.refs}] clickable "{word}"')
    return parts


def _tabs(page: Sketch, count: int, at: int) -> list[int]:
    """The tab list: each tab and the link in it; returns the tabs' numbers."""
    doubled, refs = page.rng.random() < 0.7, list[int]()
    clicked = page.rng.random() < 0.5
    for i in range(count):
        refs.append(page.control("tab", f"Tab #{i + 1}", states="expanded selected" if i == at else "collapsed"))
        if doubled:
            page.control("link", f"Tab #{i + 1}", states="focused" if clicked and i == at else "")
    return refs


def tabs(page: Sketch) -> tuple[str, str]:
    """click-tab-2: open one tab after the other until the link is there."""
    rng, wanted, count = page.rng, link_word(page), page.rng.choice((2, 3, 3, 3, 4, 6))
    at = rng.randrange(count)
    found = at == count - 1 or rng.random() < 0.5
    shown = f'link "{wanted}"'
    page.next = _maybe(page, f"The {shown} is clicked" if found else f"A tab that shows the {shown} is open")
    page.done += [f'click tab "Tab #{i + 1}"' for i in range(1, at + 1)]
    refs = _tabs(page, count, at)
    target = paragraph(page, wanted if found else None)
    goal = f'Switch between the tabs to find and click on the link "{wanted}".'
    return goal, click_answer(target if found else refs[at + 1])


def tab(page: Sketch) -> tuple[str, str]:
    count = page.rng.choice((3, 3, 2, 5))
    refs = _tabs(page, count, page.rng.randrange(count))
    page.text(" ".join(lorem(page, page.rng.randint(5, 20))))
    at = page.rng.randrange(count)
    return f"Click on Tab #{at + 1}.", click_answer(refs[at])


def collapsible(page: Sketch) -> tuple[str, str]:
    """click-collapsible: open the section, then submit."""
    rng, opened = page.rng, page.rng.random() < 0.5
    section = f"Section #{rng.randint(1, 99)}"
    page.refs += 1
    page.text(f'# [1] tab "{section}" {"expanded selected focused" if opened else "collapsed"}')
    page.next = _maybe(page, "The submit button is clicked" if opened else "The section is expanded")
    if opened:
        page.done.append(f'click tab "{section}"')
        page.text(" ".join(lorem(page, rng.randint(5, 25))))
    if rng.random() < 0.8:
        page.control("tab", "Submit", states="collapsed")
    submit = page.control("button", "Submit") if opened or rng.random() < 0.7 else 0
    return "Expand the section below and click submit.", click_answer(submit if opened else 1)


def click_button(page: Sketch) -> tuple[str, str]:
    """Buttons with everyday names, often twice, among text fields and text."""
    rng = page.rng
    names = [rng.choice(BUTTONS) if rng.random() < 0.75 else page.words.name() for _ in range(rng.randint(1, 6))]
    wanted, target = rng.choice(names), 0
    for name in names:
        for _ in range(rng.randint(0, 2)):
            _filler(page)
        if rng.random() < 0.2:
            page.refs += 1
            ref = page.refs
            page.text(f'[{ref}] button "{name}"  {" ".join(lorem(page, 3)).lower()}')
        else:
            ref = page.control("button", name)
        target = target or (ref if name == wanted else 0)
    return f'Click on the "{wanted}" button.', click_answer(target)


def _filler(page: Sketch) -> None:
    label = " ".join(lorem(page, page.rng.randint(2, 4))).lower().rstrip(".")
    kind = page.rng.random()
    if kind < 0.35:
        page.refs += 1
        page.text(f'{label}:  [{page.refs}] textbox ""')
    elif kind < 0.55:
        page.control("textbox", "")
    else:
        page.text(label)


def test_buttons(page: Sketch) -> tuple[str, str]:
    """click-test and its relatives."""
    rng = page.rng
    if rng.random() < 0.25:
        page.control("button", "Click Me!")
        return "Click the button.", click_answer(1)
    names = rng.sample(["ONE", "TWO", "THREE", "FOUR"], rng.randint(2, 3)) if rng.random() < 0.6 else ["ONE", "TWO"]
    refs = {name: page.control("button", name, joined=rng.random() < 0.3) for name in names}
    first = rng.choice(names)
    if rng.random() < 0.4:
        return f"Click button {first}.", click_answer(refs[first])
    second = rng.choice([name for name in names if name != first])
    done = rng.random() < 0.6
    if done:
        page.done.append(f'click button "{first}"')
        page.lines = [line + (" focused" if f'"{first}"' in line and line.endswith('"') else "") for line in page.lines]
    return f"Click button {first}, then click button {second}.", click_answer(refs[second if done else first])


def dialog(page: Sketch) -> tuple[str, str]:
    rng = page.rng
    text = " ".join(lorem(page, rng.randint(2, 10)))
    buttons = rng.choice(([], ["Cancel", "OK"], ["Cancel", "OK"], ["OK", "Cancel"]))
    if rng.random() < 0.7:
        page.control("clickable", _cut(" ".join(["Close", text, *buttons]), 60))
        page.control("clickable", "Close")
    close = page.control("button", "Close", states="" if buttons else rng.choice(("focused", "")))
    page.text(text)
    refs = {name: page.control("button", name, joined=i > 0) for i, name in enumerate(buttons)}
    if not buttons:
        return 'Close the dialog box by clicking the "x".', click_answer(close)
    wanted = rng.choice([*buttons, "x"])
    return f'Click the button in the dialog box labeled "{wanted}".', click_answer(refs.get(wanted, close))


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def checkboxes(page: Sketch) -> tuple[str, str]:
    rng = page.rng
    count = rng.randint(2, 6) if rng.random() < 0.7 else rng.randint(7, 12)
    names = list(dict.fromkeys(_label(page) for _ in range(count)))
    wanted = rng.sample(names, rng.randint(0, len(names)) if rng.random() < 0.5 else rng.randint(1, min(3, len(names))))
    order = [n for n in names if n in wanted]
    ticked = order[: rng.randint(0, len(order))]
    wrong = (
        rng.choice([n for n in names if n not in wanted]) if rng.random() < 0.08 and len(order) < len(names) else None
    )
    last = ticked[-1] if ticked else None
    refs: dict[str, int] = {}
    for name in names:
        states = ["checked"] * (name in ticked or name == wrong) + ["focused"] * (name == last)
        refs[name] = page.control("checkbox", name, states=" ".join(states))
    submit = page.control("button", "Submit")
    page.done += [f'click checkbox "{n}"' for n in ticked]
    todo = [n for n in names if (n in wanted and n not in ticked) or n == wrong]
    listed = ", ".join(wanted) or "nothing"
    step = f"Exactly the boxes {listed} are checked" if ticked else f"At least one of the boxes {listed} is checked"
    page.next = _maybe(page, step if todo else SUBMITTED)
    return f"Select {listed} and click Submit.", click_answer(refs[todo[0]] if todo else submit)


def _label(page: Sketch) -> str:
    rng = page.rng
    return page.words.word() if rng.random() < 0.35 else page.words.string(2, 7)


def option(page: Sketch) -> tuple[str, str]:
    rng = page.rng
    names = list(dict.fromkeys(_label(page) for _ in range(rng.randint(2, 7))))
    wanted, done = rng.choice(names), rng.random() < 0.35
    refs = {n: page.control("radio", n, states="checked focused" if done and n == wanted else "") for n in names}
    submit = page.control("button", "Submit")
    if done:
        page.done.append(f'click radio "{wanted}"')
    page.next = _maybe(page, SUBMITTED if done else f"The option {wanted} is chosen")
    return f"Select {wanted} and click Submit.", click_answer(submit if done else refs[wanted])


def drop_down(page: Sketch) -> tuple[str, str]:
    """choose-list; half of the time its option is two or three words."""
    rng = page.rng
    names = page.words.distinct(rng.randint(2, 10))
    wanted = rng.choice(names)
    done = rng.random() < 0.3 or names[0] == wanted
    shown = " ".join(f'"{n}"' for n in names)
    focus = "focused " if done and names[0] != wanted else ""
    page.control("combobox", "options", value=wanted if done else names[0], states=f"{focus}options: {shown}")
    submit = page.control("button", "Submit", joined=True)
    if focus:
        page.done.append(f'select "{wanted}" in combobox "options"')
    page.next = _maybe(page, SUBMITTED if done else f"The option {wanted} is chosen")
    goal = f"Select {wanted} from the list and click Submit."
    return goal, click_answer(submit) if done else select_answer(1, wanted)


def scroll_list(page: Sketch) -> tuple[str, str]:
    """click-scroll-list: several options, chosen one by one in the order of the goal."""
    rng = page.rng
    names = page.words.distinct(rng.randint(3, 10))
    wanted = rng.sample(names, rng.randint(1, min(3, len(names))))
    chosen = wanted[: rng.randint(0, len(wanted))]
    value = ", ".join(n for n in names if n in chosen)
    shown = " ".join(f'"{n}"' for n in names)
    page.control("listbox", "options", value=value, states=f"{'focused ' if chosen else ''}options: {shown}")
    submit = page.control("button", "Submit", joined=True)
    page.done += [f'select "{n}" in listbox "options"' for n in chosen]
    listed = ", ".join(wanted)
    step = f"Exactly {listed} are chosen" if chosen else f"At least one of {listed} is chosen"
    finished = len(chosen) == len(wanted)
    page.next = _maybe(page, SUBMITTED if finished else step)
    goal = f"Select {listed} from the scroll list and click Submit."
    return goal, click_answer(submit) if finished else select_answer(1, wanted[len(chosen)])


def widget(page: Sketch) -> tuple[str, str]:
    rng = page.rng
    shapes = {"radio": "radio", "checkbox": "checkbox", "text": "textbox", "textarea": "textbox", "button": "button"}
    kinds = [rng.choice(["radio", "checkbox", "text", "button"]) for _ in range(rng.randint(2, 5))]
    target, wanted = 0, rng.choice(kinds)
    for kind in kinds:
        text = page.words.string(1, 6)
        if kind == "text":
            ref = page.control("textbox", "", value=text)
        else:
            ref = page.control(shapes[kind], text)
        target = target or (ref if kind == wanted else 0)
    return f'Click on a "{wanted}" widget.', click_answer(target)


def enter_text(page: Sketch) -> tuple[str, str]:
    rng, words = page.rng, page.words
    text = words.string(1, 6) if rng.random() < 0.4 else words.word() if rng.random() < 0.7 else words.text()
    state = rng.choice(("empty", "empty", "filled", "filled", "wrong"))
    value = {"empty": "", "filled": text, "wrong": text[: len(text) // 2]}[state]
    states = "focused" if state != "empty" else ""
    box = page.control("textbox", rng.choice(("tt", "tt", "", "answer")), value=value, states=states)
    submit = page.control("button", "Submit", joined=rng.random() < 0.7)
    if state != "empty":
        page.done.append(f'type "{value}" into textbox "tt"')
    page.next = _maybe(page, SUBMITTED if state == "filled" else f'The text field holds "{text}"')
    goal = f'Enter "{text}" into the text field and press Submit.'
    return goal, click_answer(submit) if state == "filled" else type_answer(box, text)


def password(page: Sketch) -> tuple[str, str]:
    rng, text, stage = page.rng, page.words.string(1, 6), page.rng.randint(0, 2)
    refs: list[int] = []
    for i, (label, name) in enumerate((("Password", "password"), ("Verify password", "verify"))):
        page.refs += 1
        value = ' = "•••"' if i < stage else ""
        page.text(f'{label}  [{page.refs}] textbox "{name}"{value}{" focused" if i == stage - 1 else ""} password')
        refs.append(page.refs)
    button = page.control("button", "Submit")
    page.done += [f'type "{text}" into textbox "{name}"' for name in ("password", "verify")[:stage]]
    steps = ("One password field holds the password", "Both password fields hold the password", SUBMITTED)
    page.next = _maybe(page, steps[stage])
    goal = f'Enter the password "{text}" into both text fields and press submit.'
    return goal, type_answer(refs[stage], text) if stage < 2 else click_answer(button)


def login(page: Sketch) -> tuple[str, str]:
    rng, words = page.rng, page.words
    user, secret, stage = (
        words.word().lower() if rng.random() < 0.7 else words.string(2, 8),
        words.string(1, 5),
        rng.randint(0, 2),
    )
    popup = rng.random() < 0.08
    name_value = f' = "{user}"' if stage else ""
    focus = [" focused" if stage == i else "" for i in range(3)]
    page.text(f'Username  [1] textbox "username"{name_value}{focus[1]}')
    secret_value = ' = "•••"' if stage == 2 else ""
    page.text(f'Password  [2] textbox "password"{secret_value}{focus[2]} password')
    page.refs = 2
    button = page.control("button", rng.choice(("Login", "Login", "OK", "Submit")))
    typed = [f'type "{user}" into textbox "username"', f'type "{secret}" into textbox "password"']
    page.done += typed[:stage]
    steps = (
        f'The username field holds "{user}"',
        "The password field holds the password",
        "The login is submitted and accepted",
    )
    page.next = _maybe(page, steps[stage])
    goal = f'Enter the username "{user}" and the password "{secret}" into the text fields and press login.'
    if popup:
        page.text("Exit to home page? This will end the episode.")
        page.control("button", "OK")
        return goal, click_answer(page.control("button", "Cancel", joined=True))
    return goal, (type_answer(1, user), type_answer(2, secret), click_answer(button))[stage]


def focus(page: Sketch) -> tuple[str, str]:
    rng, count = page.rng, page.rng.choice((1, 2, 3, 3, 4))
    named = rng.choice(("tt{}", "text{}", ""))
    refs = [
        page.control("textbox", named.format(i + 1) if count > 1 else "tt", joined=rng.random() < 0.2)
        for i in range(count)
    ]
    if count == 1:
        return "Focus into the textbox.", click_answer(1)
    at = rng.randrange(count)
    return f"Focus into the {ORDINALS[at]} input textbox.", click_answer(refs[at])


def read_table(page: Sketch) -> tuple[str, str]:
    rng, words = page.rng, page.words
    labels = rng.sample(TABLE_LABELS, rng.randint(3, 6)) if rng.random() < 0.6 else words.distinct(rng.randint(2, 6))
    values = {label: words.name() for label in labels}
    wanted, done = rng.choice(labels), rng.random() < 0.35
    for label in labels:
        page.text(f"{label} | {values[label]}")
    box = page.control("textbox", "tt", value=values[wanted] if done else "", states="focused" if done else "")
    submit = page.control("button", "Submit", joined=True)
    if done:
        page.done.append(f'type "{values[wanted]}" into textbox "tt"')
    page.next = _maybe(page, SUBMITTED if done else f"The field holds the table's value of {wanted}")
    goal = f"Enter the value of {wanted} into the text field and press Submit."
    return goal, click_answer(submit) if done else type_answer(box, values[wanted])


def copy_paste(page: Sketch) -> tuple[str, str]:
    """Copied with the keyboard: click, select all, copy, click the other field, paste, submit."""
    rng = page.rng
    text = " ".join(lorem(page, rng.randint(2, 10))).rstrip(".")
    first = rng.random() < 0.5
    names = ("answer-input", "to-copy") if first else ("to-copy", "answer-input")
    answer, source = (1, 2) if first else (2, 1)
    stage = rng.randint(0, 5)
    focused = source if stage in (1, 2, 3) else answer if stage > 3 else 0
    for i, name in enumerate(names, 1):
        value = text if name == "to-copy" or stage == 5 else ""
        page.control("textbox", name, value=value, states="focused" if i == focused else "", joined=rng.random() < 0.8)
    submit = page.control("button", "Submit")
    told = [
        'click textbox "to-copy"',
        "press Control+A",
        "press Control+C",
        'click textbox "answer-input"',
        "press Control+V",
    ]
    page.done += told[:stage]
    page.next = _maybe(page, SUBMITTED)
    keys = [f'do(action="Press Key", argument="Control+{key}")' for key in "ACV"]
    steps = [click_answer(source), keys[0], keys[1], click_answer(answer), keys[2], click_answer(submit)]
    return "Copy the text in the textarea below, paste it into the textbox and press Submit.", steps[stage]


def form_sequence(page: Sketch) -> tuple[str, str]:
    rng = page.rng
    count, number, stage = rng.choice((3, 3, 4)), str(rng.randint(0, 50)), rng.randint(0, 2)
    radio, box = rng.randrange(count), rng.randrange(count)
    refs: list[list[int]] = [[], []]
    for row, (role, name) in enumerate((("radio", "radio"), ("textbox", ""))):
        page.text("")
        for i in range(count):
            chosen = (row == 0 and stage > 0 and i == radio) or (row == 1 and stage > 1 and i == box)
            states = (
                ""
                if not chosen
                else "checked focused"
                if row == 0 and stage == 1
                else "checked"
                if row == 0
                else "focused"
            )
            page.refs += 1
            value = f' = "{number}"' if chosen and row else ""
            page.lines[-1] += f'{"  " if i else ""}[{page.refs}] {role} "{name}"{value}{" " + states if states else ""}'
            refs[row].append(page.refs)
    submit = page.control("button", "Submit")
    page.done += ['click radio "radio"', f'type "{number}" into textbox ""'][:stage]
    steps = (
        f"The {ORDINALS[radio]} radio button is checked",
        f'The {ORDINALS[box]} textbox holds "{number}"',
        SUBMITTED,
    )
    page.next = _maybe(page, steps[stage])
    goal = f'Check the {ORDINALS[radio]} radio button and enter the number "{number}" into the {ORDINALS[box]} textbox.'
    return goal, (click_answer(refs[0][radio]), type_answer(refs[1][box], number), click_answer(submit))[stage]


def enter_date(page: Sketch) -> tuple[str, str]:
    rng, done = page.rng, page.rng.random() < 0.35
    month, day, year = f"{rng.randint(1, 12):02}", f"{rng.randint(1, 28):02}", str(rng.randint(2010, 2019))
    iso = f"{year}-{month}-{day}"
    box = page.control("date", "tt", value=iso if done else "", states="focused" if done else "")
    submit = page.control("button", "Submit", joined=True)
    if done:
        page.done.append(f'type "{iso}" into date "tt"')
    page.next = _maybe(page, SUBMITTED if done else f"The date field holds {month}/{day}/{year}")
    goal = f"Enter {month}/{day}/{year} as the date and hit submit."
    return goal, click_answer(submit) if done else type_answer(box, iso)


def spinner(page: Sketch) -> tuple[str, str]:
    """Up or down by one until the number is right."""
    rng = page.rng
    wanted = rng.randint(-10, 10)
    now = wanted if rng.random() < 0.3 else rng.randint(min(0, wanted), max(0, wanted))
    clicks = abs(now)
    page.control("clickable", "white")
    page.control("spinbutton", "Select a value:", value=str(now), states="focused" if clicks else "", joined=True)
    up, down = page.control("button", ""), page.control("button", "")
    submit = page.control("button", "Submit")
    page.done += ['click button ""'] * min(clicks, 3)
    page.next = _maybe(page, SUBMITTED if now == wanted else f'The spinner holds "{wanted}"')
    goal = f"Select {wanted} with the spinner and hit Submit."
    return goal, click_answer(submit if now == wanted else up if now < wanted else down)


def mail(page: Sketch) -> tuple[str, str]:
    """One mark of the mail of one sender: the bin comes first, then the star."""
    rng = page.rng
    names = list(dict.fromkeys(page.words.word().capitalize() for _ in range(rng.randint(2, 6))))
    who, star = rng.choice(names), rng.random() < 0.5
    page.text("Primary")
    page.control("clickable", "open-search")
    target = 0
    for name in names:
        subject, body = " ".join(lorem(page, rng.randint(1, 3))), " ".join(lorem(page, rng.randint(2, 4))) + "."
        page.control("clickable", f"{name} {subject} {body}")
        for line in (name, subject, body):
            page.text(line)
        marks = (page.control("clickable", ""), page.control("clickable", ""))
        target = marks[star] if name == who else target
    what = "click the star icon to mark it as important" if star else "click the trash icon to delete it"
    return f"Find the email by {who} and {what}.", click_answer(target)


def _maybe(page: Sketch, step: str) -> str:
    """The milestone half of the time: both planner `reference` and `none` must work."""
    return step if page.rng.random() < 0.5 else ""


def shorten_history(page: Sketch) -> None:
    """Now and then the history is missing, so that the page decides where it can."""
    if page.done and page.rng.random() < 0.1:
        page.done = page.done[1:]


LOOKALIKES: tuple[tuple[Family, float], ...] = (
    (click_link, 1.5),
    (sections, 1.5),
    (tabs, 2.0),
    (tab, 0.5),
    (collapsible, 0.6),
    (click_button, 1.5),
    (test_buttons, 0.7),
    (dialog, 0.8),
    (checkboxes, 2.5),
    (option, 1.2),
    (drop_down, 1.2),
    (scroll_list, 1.2),
    (widget, 0.8),
    (enter_text, 1.5),
    (password, 1.0),
    (login, 1.8),
    (focus, 0.6),
    (read_table, 1.2),
    (copy_paste, 0.7),
    (form_sequence, 0.8),
    (enter_date, 0.7),
    (spinner, 0.7),
    (mail, 0.8),
)


def draw(rng: random.Random) -> Family:
    return rng.choices([family for family, _ in LOOKALIKES], [weight for _, weight in LOOKALIKES])[0]


def make_lookalike(rng: random.Random, words: WordBag) -> Example:
    """One example of a family drawn by weight."""
    family = draw(rng)
    page = Sketch(rng, words)
    goal, answer = family(page)
    shorten_history(page)
    return Example(family.__name__, page.prompt(goal), answer)
