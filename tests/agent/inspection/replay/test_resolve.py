"""Finds elements of recorded pages on changed pages, or reports them missing."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from agent.inspection.replay.page import Page
from agent.inspection.replay.resolve import How, plain, resolve
from envs.core.observation import ElementKey

_CONTROL = re.compile(r'(?<!\\)\[(\d+)\] ([\w-]+) "((?:\\.|[^"\\])*)"(?:#(\w+))?')
_FRAME = re.compile(r"^--- frame (\d+)")


def page(text: str, hidden: tuple[ElementKey, ...] = ()) -> Page:
    """A page in the observer's grammar; `[1] link "Name"#digest` gives a digest, else all have the same."""
    ranks: Counter[tuple[str, str, str]] = Counter()
    keys: list[tuple[int, ElementKey]] = []
    frame = ""
    for line in text.splitlines():
        if opened := _FRAME.match(line):
            frame = str(int(opened[1]) - 1)
        elif line.startswith("--- end"):
            frame = ""
        for ref, role, name, digest in _CONTROL.findall(line):
            place = (frame, role, name)
            keys.append((int(ref), ElementKey(frame, role, name, ranks[place], digest or "d")))
            ranks[place] += 1
    keys += [(len(keys) + 1 + n, key) for n, key in enumerate(hidden)]
    return Page.of(re.sub(r'(?<=")#\w+', "", text).strip("\n"), keys)


TABLE = """
# Orders
order | customer | total
17 | Bob | 20.00 | [1] button "Edit" | [2] button "Delete"
18 | Ann | 35.00 | [3] button "Edit" | [4] button "Delete"
19 | Bob | 12.50 | [5] button "Edit" | [6] button "Delete"
"""
REORDERED = """
# Orders
order | customer | total
19 | Bob | 12.50 | [1] button "Edit" | [2] button "Delete"
17 | Bob | 20.00 | [3] button "Edit" | [4] button "Delete"
18 | Ann | 35.00 | [5] button "Edit" | [6] button "Delete"
"""
WITHOUT_17 = """
# Orders
order | customer | total
18 | Ann | 35.00 | [1] button "Edit" | [2] button "Delete"
19 | Bob | 12.50 | [3] button "Edit" | [4] button "Delete"
"""
WITH_ANOTHER = """
# Orders
order | customer | total
16 | Eve | 99.00 | [1] button "Edit" | [2] button "Delete"
17 | Bob | 20.00 | [3] button "Edit" | [4] button "Delete"
18 | Ann | 35.00 | [5] button "Edit" | [6] button "Delete"
19 | Bob | 12.50 | [7] button "Edit" | [8] button "Delete"
"""
CARDS = """
# Shop
Red scarf
19.00
[1] button "Add to basket"
Blue hat
24.00
[2] button "Add to basket"
Green gloves
9.50
[3] button "Add to basket"
"""
CARDS_REORDERED = """
# Shop
Green gloves
9.50
[1] button "Add to basket"
Red scarf
19.00
[2] button "Add to basket"
Blue hat
24.00
[3] button "Add to basket"
"""
MAILS = """
[1] clickable "Audrey Ridiculus eget"
Audrey
Ridiculus eget
[2] clickable ""
[3] clickable ""
[4] clickable "Cora In id"
Cora
In id
[5] clickable ""
[6] clickable ""
"""
MAILS_REORDERED = """
[1] clickable "Cora In id"
Cora
In id
[2] clickable ""
[3] clickable ""
[4] clickable "Audrey Ridiculus eget"
Audrey
Ridiculus eget
[5] clickable ""
[6] clickable ""
"""
PAY = """
--- frame 1 "Pay" https://pay.test
[1] button "Pay"
--- end frame 1
"""
PAY_AFTER_AD = """
--- frame 1 "Ad" https://ad.test
Buy!
--- end frame 1
--- frame 2 "Pay" https://pay.test
[1] button "Pay"
--- end frame 2
"""
LINKS = '[1] link "Home"#a  [2] link "Basket (1)"#b  [3] button "Search"#c'
ICONS = '[1] clickable "close-reply"\n[2] clickable "send-reply"\nto: Bob\n[3] textbox ""'
LOGIN = """
Username  [1] textbox "username"#u
Password  [2] textbox "password" password
[3] button "Login"
"""

CASES: list[tuple[str, str, int, str, int | None, How]] = [
    # id, page then, ref then, page now, ref now, how
    ("nothing changed", LINKS, 1, LINKS, 1, How.SAME),
    ("something before it", LINKS, 3, '[1] link "News"\n[2] button "Search"#c', 2, How.SAME),
    ("id renamed", LINKS, 3, '[1] button "Search"#zz', 1, How.MOVED),
    ("case and blanks", LINKS, 3, '[1] button "SEARCH "#zz', 1, How.MOVED),
    ("counter", LINKS, 2, '[1] link "Basket (3)"#zz', 1, How.MOVED),
    ("counter gone", LINKS, 2, '[1] link "Basket"#b', 1, How.MOVED),
    ("number inside, same address", '[1] link "3 new mails"#b', 1, '[1] link "4 new mails"#b', 1, How.MOVED),
    ("number inside, other address", '[1] link "Order 17"#b', 1, '[1] link "Order 18"#c', None, How.MISSING),
    ("reworded, same address", '[1] link "Your account"#b', 1, '[1] link "Account"#b', 1, How.MOVED),
    ("another name, same markup", '[1] button "Delete"#b', 1, '[1] button "Buy"#b', None, How.MISSING),
    ("gone", LINKS, 3, '[1] link "Home"#a', None, How.MISSING),
    ("link became button", LINKS, 1, '[1] button "Home"', 1, How.MOVED),
    ("link became one of two buttons", LINKS, 1, '[1] button "Home"  [2] tab "Home"', None, How.MISSING),
    ("field is no button", LOGIN, 1, '[1] button "username"', None, How.MISSING),
    ("rows the same", TABLE, 3, TABLE, 3, How.SAME),
    ("rows reordered, first", TABLE, 1, REORDERED, 3, How.MOVED),
    ("rows reordered, middle", TABLE, 3, REORDERED, 5, How.MOVED),
    ("rows reordered, last", TABLE, 6, REORDERED, 2, How.MOVED),
    ("its row is gone", TABLE, 1, WITHOUT_17, None, How.MISSING),
    ("another's row is gone", TABLE, 3, WITHOUT_17, 1, How.MOVED),
    ("a row was added before", TABLE, 1, WITH_ANOTHER, 3, How.MOVED),
    ("one row, another one", "17 | Bob | [1] button 'Edit'".replace("'", '"'), 1, WITHOUT_17, None, How.MISSING),
    (
        "only row, and it changed",
        '17 | Bob | 20 | [1] button "Edit"',
        1,
        '18 | Ann | 9 | [1] button "Edit"#x',
        None,
        How.MISSING,
    ),
    (
        "only row, a cell changed",
        '17 | Bob | 20 | [1] button "Edit"',
        1,
        '17 | Bob | 25 | [1] button "Edit"#x',
        1,
        How.MOVED,
    ),
    ("cards reordered", CARDS, 1, CARDS_REORDERED, 2, How.MOVED),
    ("cards reordered, last", CARDS, 3, CARDS_REORDERED, 1, How.MOVED),
    ("cards the same", CARDS, 2, CARDS, 2, How.SAME),
    ("nameless icons of a mail", MAILS, 2, MAILS_REORDERED, 5, How.MOVED),
    ("nameless icons, the second", MAILS, 3, MAILS_REORDERED, 6, How.MOVED),
    ("nameless icons, the same", MAILS, 6, MAILS, 6, How.SAME),
    ("twins of one line", '[1] button "ok"  [2] button "ok"', 2, 'News\n[1] button "ok"  [2] button "ok"', 2, How.SAME),
    (
        "twins that became three",
        '[1] button "ok"\n[2] button "ok"',
        2,
        '[1] button "ok"\n[2] button "ok"\n[3] button "ok"',
        None,
        How.MISSING,
    ),
    ("one that became two", '[1] button "ok"', 1, '[1] button "ok"\n[2] button "ok"', None, How.MISSING),
    ("one that became two, by digest", '[1] button "ok"#a', 1, '[1] button "ok"#b\n[2] button "ok"#a', 2, How.MOVED),
    (
        "one that became two, by its line",
        'Terms  [1] button "ok"',
        1,
        '[1] button "ok"\nTerms  [2] button "ok"',
        2,
        How.MOVED,
    ),
    (
        "addresses tell them apart",
        '[1] link "more"#a\n[2] link "more"#b',
        2,
        '[1] link "more"#b\n[2] link "more"#a',
        1,
        How.MOVED,
    ),
    (
        "ids that count rows do not mislead",
        '17 | [1] button "Edit"#r0\n18 | [2] button "Edit"#r1',
        1,
        '18 | [1] button "Edit"#r0\n17 | [2] button "Edit"#r1',
        2,
        How.MOVED,
    ),
    (
        "ids that count rows, its row gone",
        '17 | [1] button "Edit"#r0\n18 | [2] button "Edit"#r1\n19 | [3] button "Edit"#r2',
        1,
        '18 | [1] button "Edit"#r0\n19 | [2] button "Edit"#r1',
        None,
        How.MISSING,
    ),
    ("field named by its id", LOGIN, 1, LOGIN.replace('"username"#u', '"x-username"#y'), 1, How.MOVED),
    (
        "field without label",
        '[1] textbox "tt"  [2] button "Go"',
        1,
        '[1] textbox "x-tt"#z  [2] button "Go"',
        1,
        How.MOVED,
    ),
    (
        "icons, all ids renamed",
        ICONS,
        2,
        ICONS.replace("close-reply", "qwe").replace("send-reply", "asd"),
        2,
        How.MOVED,
    ),
    ("icons, one of them replaced", ICONS, 2, ICONS.replace("send-reply", "delete-mail"), None, How.MISSING),
    ("an icon alone", '[1] clickable "send-reply"', 1, '[1] clickable "asd"', None, How.MISSING),
    ("field among more fields", '[1] textbox "tt"', 1, '[1] textbox "a"#y\n[2] textbox "b"#z', None, How.MISSING),
    (
        "another field of that name is not it",
        'From  [1] textbox "from"\nTo  [2] textbox "to"',
        1,
        'To  [1] textbox "to"\nCc  [2] textbox "cc"#z',
        None,
        How.MISSING,
    ),
    (
        "frame moved",
        PAY,
        1,
        PAY_AFTER_AD,
        1,
        How.MOVED,
    ),
    (
        "times that pass do not count",
        'a | 3 min ago | [1] button "x"\nb | [2] button "x"',
        1,
        'b | [1] button "x"\na | 9 min ago | [2] button "x"',
        2,
        How.MOVED,
    ),
    (
        "text that imitates an element",
        'a \\[2] button "x"\n[1] button "x"',
        1,
        'b \\[1] button "x"\n[1] button "x"',
        1,
        How.SAME,
    ),
    (
        "a banner above",
        LOGIN,
        3,
        'Cookies!  [1] button "Accept"' + LOGIN.replace("[3]", "[4]").replace("[2]", "[3]").replace("[1]", "[2]"),
        4,
        How.SAME,
    ),
]


@pytest.mark.parametrize(
    ("then", "ref", "now", "expected", "how"), [pytest.param(*case[1:], id=case[0]) for case in CASES]
)
def test_an_element_is_found_or_missing(then: str, ref: int, now: str, expected: int | None, how: How) -> None:
    before = page(then)
    match = resolve(before.by_ref[ref], before, page(now))
    assert (match.element.ref if match.element else None, match.how) == (expected, how), match.reason
    assert (match.reason == "") == (how is How.SAME)


def test_an_element_behind_a_collapsed_group_is_found() -> None:
    before = page(LINKS)
    now = page('[1] link "Home"#a', hidden=(ElementKey("", "button", "Search", 0, "c"),))
    match = resolve(before.by_ref[3], before, now)
    assert (match.how, match.element and match.element.ref) == (How.SAME, 2)


def test_a_target_with_only_a_key_is_found_by_it() -> None:
    alone = Page.of("", [(7, ElementKey("", "button", "Search", 0, "c"))])
    assert resolve(alone.by_ref[7], alone, page(LINKS)).how is How.SAME
    assert resolve(alone.by_ref[7], alone, page('[1] button "Search"#x\n[2] button "Search"#y')).how is How.MISSING


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Basket (1)", "basket"),
        (" Inbox [12+] ", "inbox"),
        ("Add  to\nbasket", "add to basket"),
        ("A very long na…", "a very long na"),
        ("(1)", ""),
        ("Order 17", "order 17"),
    ],
)
def test_plain_names(name: str, expected: str) -> None:
    assert plain(name) == expected
