"""Generates synthetic pages like the MiniWoB++ tasks with forms, options and a mailbox."""

from __future__ import annotations

from training.embedded.synthetic import ORDINALS, Sketch, click_answer, select_answer, type_answer

TABLE_LABELS = ["First name", "Last name", "Gender", "Language", "Color", "Country", "Religion", "Year"]
SUBMITTED = "The form is submitted and accepted"


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
    page.next = page.maybe(step if todo else SUBMITTED)
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
    page.next = page.maybe(SUBMITTED if done else f"The option {wanted} is chosen")
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
    page.next = page.maybe(SUBMITTED if done else f"The option {wanted} is chosen")
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
    page.next = page.maybe(SUBMITTED if finished else step)
    goal = f"Select {listed} from the scroll list and click Submit."
    return goal, click_answer(submit) if finished else select_answer(1, wanted[len(chosen)])


def widget(page: Sketch) -> tuple[str, str]:
    rng = page.rng
    shapes = {"radio": "radio", "checkbox": "checkbox", "text": "textbox", "textarea": "textbox", "button": "button"}
    kinds = [rng.choice(["radio", "checkbox", "text", "button"]) for _ in range(rng.randint(2, 5))]
    target, wanted = 0, rng.choice(kinds)
    for kind in kinds:
        text = page.words.string(1, 6)
        typed = kind == "text"
        ref = page.control(shapes[kind], "" if typed else text, value=text if typed else "")
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
    page.next = page.maybe(SUBMITTED if state == "filled" else f'The text field holds "{text}"')
    goal = f'Enter "{text}" into the text field and press Submit.'
    return goal, click_answer(submit) if state == "filled" else type_answer(box, text)


def password(page: Sketch) -> tuple[str, str]:
    text, stage = page.words.string(1, 6), page.rng.randint(0, 2)
    refs: list[int] = []
    for i, (label, name) in enumerate((("Password", "password"), ("Verify password", "verify"))):
        page.refs += 1
        value = ' = "•••"' if i < stage else ""
        page.text(f'{label}  [{page.refs}] textbox "{name}"{value}{" focused" if i == stage - 1 else ""} password')
        refs.append(page.refs)
    button = page.control("button", "Submit")
    page.done += [f'type "{text}" into textbox "{name}"' for name in ("password", "verify")[:stage]]
    steps = ("One password field holds the password", "Both password fields hold the password", SUBMITTED)
    page.next = page.maybe(steps[stage])
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
    page.next = page.maybe(steps[stage])
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
    page.next = page.maybe(SUBMITTED if done else f"The field holds the table's value of {wanted}")
    goal = f"Enter the value of {wanted} into the text field and press Submit."
    return goal, click_answer(submit) if done else type_answer(box, values[wanted])


def copy_paste(page: Sketch) -> tuple[str, str]:
    """Copied with the keyboard: click, select all, copy, click the other field, paste, submit."""
    rng = page.rng
    text = " ".join(page.lorem(rng.randint(2, 10))).rstrip(".")
    first = rng.random() < 0.5
    names = ("answer-input", "to-copy") if first else ("to-copy", "answer-input")
    answer, source = (1, 2) if first else (2, 1)
    stage = rng.randint(0, 5)
    focused = source if stage in (1, 2, 3) else answer if stage > 3 else 0
    for i, name in enumerate(names, 1):
        value = text if name == "to-copy" or stage == 5 else ""
        page.control("textbox", name, value=value, states="focused" if i == focused else "", joined=rng.random() < 0.8)
    submit = page.control("button", "Submit")
    sentences = [
        'click textbox "to-copy"',
        "press Control+A",
        "press Control+C",
        'click textbox "answer-input"',
        "press Control+V",
    ]
    page.done += sentences[:stage]
    page.next = page.maybe(SUBMITTED)
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
    page.next = page.maybe(steps[stage])
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
    page.next = page.maybe(SUBMITTED if done else f"The date field holds {month}/{day}/{year}")
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
    page.next = page.maybe(SUBMITTED if now == wanted else f'The spinner holds "{wanted}"')
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
        subject, body = " ".join(page.lorem(rng.randint(1, 3))), " ".join(page.lorem(rng.randint(2, 4))) + "."
        page.control("clickable", f"{name} {subject} {body}")
        for line in (name, subject, body):
            page.text(line)
        marks = (page.control("clickable", ""), page.control("clickable", ""))
        target = marks[star] if name == who else target
    what = "click the star icon to mark it as important" if star else "click the trash icon to delete it"
    return f"Find the email by {who} and {what}.", click_answer(target)
