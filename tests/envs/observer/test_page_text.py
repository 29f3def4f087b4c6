"""The text format of an observation."""

from __future__ import annotations

from typing import Any

from envs.core.actions import DialogReport
from envs.core.observation import Observation, Tab
from envs.observer.page_text import LINE_CHARS, one_line, page_text


def page(**fields: Any) -> Observation:
    blank: dict[str, Any] = {
        "url": "http://x/", "title": "X", "text": "# Body", "elements": (), "tabs": (), "digest": "0" * 16,
        "viewport": (1280, 800), "scroll": (0, 0), "controls_total": 0,
    }  # fmt: skip
    return Observation(**(blank | fields))


def test_a_plain_page_is_address_title_and_text():
    assert page_text(page()) == "URL: http://x/\nTitle: X\n\n# Body"


def test_tabs_dialog_and_note_are_shown():
    tabs = (Tab(0, "A", "http://a/", False), Tab(1, "B", "http://b/", True))
    dialog = DialogReport(type="confirm", message="Sure?", answer="open")
    head = page_text(page(tabs=tabs, dialog=dialog, note="frame 1 did not answer")).split("\n\n")[0]
    assert head.splitlines()[2:] == [
        "Tab 0: A http://a/",
        "Tab 1 (front): B http://b/",
        "Open confirm dialog: Sure?",
        "Note: frame 1 did not answer",
    ]


def test_a_title_cannot_start_a_line_of_its_own():
    assert page_text(page(title="X\nURL: http://bank/")).splitlines()[1] == "Title: X URL: http://bank/"


def test_one_line_cuts_visibly():
    assert one_line("a \n\t b") == "a b"
    assert len(one_line("x" * 999)) == LINE_CHARS and one_line("x" * 999).endswith("…")
