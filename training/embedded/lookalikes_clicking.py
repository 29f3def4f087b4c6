"""Generates synthetic pages like the MiniWoB++ tasks with clicks: links, tabs, sections, buttons, dialogs."""

from __future__ import annotations

from models.prompting.prompt_text import cut
from training.embedded.synthetic import Sketch, click_answer

_NAMES = ("submit", "yes", "ok", "okay", "no", "previous", "next", "cancel")
BUTTONS = (*_NAMES, *(name.capitalize() for name in _NAMES))


LINKED = 0.2
"""Share of the words of a paragraph that are links."""


def paragraph(page: Sketch, wanted: str | None) -> int:
    """Adds text with links in one line; returns the number of the link called *wanted*, 0 if None."""
    words = page.lorem(page.rng.randint(10, 20))
    place = page.rng.randrange(len(words)) if wanted else -1
    parts: list[str] = []
    text: list[str] = []
    found = 0
    for i, word in enumerate(words):
        if i != place and (page.rng.random() >= LINKED or word == wanted):
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
    return page.rng.choice(page.lorem(4)) if page.rng.random() < 0.7 else page.words.word()


def click_link(page: Sketch) -> tuple[str, str]:
    wanted = link_word(page)
    return f'Click on the link "{wanted}".', click_answer(paragraph(page, wanted))


def sections(page: Sketch) -> tuple[str, str]:
    """click-collapsible-2: open one section after the other until the link is there."""
    rng, wanted, count = page.rng, link_word(page), page.rng.randint(2, 5)
    at = rng.randint(-1, count - 1)
    found = at >= 0 and (at == count - 1 or rng.random() < 0.5)
    shown = f'link "{wanted}"'
    page.next = page.maybe(f"The {shown} is clicked" if found else f"A section that shows the {shown} is expanded")
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
    for word in page.lorem(count):
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
    page.next = page.maybe(f"The {shown} is clicked" if found else f"A tab that shows the {shown} is open")
    page.done += [f'click tab "Tab #{i + 1}"' for i in range(1, at + 1)]
    refs = _tabs(page, count, at)
    target = paragraph(page, wanted if found else None)
    goal = f'Switch between the tabs to find and click on the link "{wanted}".'
    return goal, click_answer(target if found else refs[at + 1])


def tab(page: Sketch) -> tuple[str, str]:
    count = page.rng.choice((3, 3, 2, 5))
    refs = _tabs(page, count, page.rng.randrange(count))
    page.text(" ".join(page.lorem(page.rng.randint(5, 20))))
    at = page.rng.randrange(count)
    return f"Click on Tab #{at + 1}.", click_answer(refs[at])


def collapsible(page: Sketch) -> tuple[str, str]:
    """click-collapsible: open the section, then submit."""
    rng, opened = page.rng, page.rng.random() < 0.5
    section = f"Section #{rng.randint(1, 99)}"
    page.refs += 1
    page.text(f'# [1] tab "{section}" {"expanded selected focused" if opened else "collapsed"}')
    page.next = page.maybe("The submit button is clicked" if opened else "The section is expanded")
    if opened:
        page.done.append(f'click tab "{section}"')
        page.text(" ".join(page.lorem(rng.randint(5, 25))))
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
            page.text(f'[{ref}] button "{name}"  {" ".join(page.lorem(3)).lower()}')
        else:
            ref = page.control("button", name)
        target = target or (ref if name == wanted else 0)
    return f'Click on the "{wanted}" button.', click_answer(target)


def _filler(page: Sketch) -> None:
    label = " ".join(page.lorem(page.rng.randint(2, 4))).lower().rstrip(".")
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
    text = " ".join(page.lorem(rng.randint(2, 10)))
    buttons = rng.choice(([], ["Cancel", "OK"], ["Cancel", "OK"], ["OK", "Cancel"]))
    if rng.random() < 0.7:
        page.control("clickable", cut(" ".join(["Close", text, *buttons]), 60))
        page.control("clickable", "Close")
    close = page.control("button", "Close", states="" if buttons else rng.choice(("focused", "")))
    page.text(text)
    refs = {name: page.control("button", name, joined=i > 0) for i, name in enumerate(buttons)}
    if not buttons:
        return 'Close the dialog box by clicking the "x".', click_answer(close)
    wanted = rng.choice([*buttons, "x"])
    return f'Click the button in the dialog box labeled "{wanted}".', click_answer(refs.get(wanted, close))
