"""Writing systems survive on an observed page, and hidden characters do not protect what only the observer may make."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Page

from envs.core.settings import ObserveSettings
from envs.observer.observer import Observer
from models.prompting.invisible_characters import visible
from tests.models.prompting.test_invisible_characters import HIDDEN, KEPT

pytestmark = pytest.mark.browser


def entities(text: str) -> str:
    return "".join(f"&#{ord(character)};" for character in text)


SHOWN = {name: text for name, text in KEPT.items() if "\n" not in text and name != "icons of private use"}
"""Glyphs of private use are pictures of an icon font, not words: the observer leaves them out."""
MARKS = re.compile("[\u200b\u200e\u200f\u2066-\u2069]")
"""Taken out on a page: word boundaries and marks of direction change no letter."""
HIDERS = [
    *("\u00ad", "\u034f", "\u061c", "\u115f", "\u180b", "\u200b", "\u200d", "\u202e", "\u2066", "\u2060", "\u206a"),
    *("\u3164", "\ufe0f", "\ufe00", "\ufeff", "\uffa0", "\ufff9", "\U0001d173", "\U000e0041", "\U000e0100", "\x85"),
]


async def lines_of(page: Page, html: str) -> list[str]:
    await page.set_content(f"<!doctype html><title>T</title>{html}")
    return (await Observer(page, ObserveSettings(timeout_s=30)).observe()).text.split("\n")


async def test_scripts_and_emoji_are_shown_as_written(page: Page) -> None:
    lines = await lines_of(page, "".join(f"<p>{entities(text)}</p>" for text in SHOWN.values()))
    assert dict(zip(SHOWN, lines, strict=True)) == {name: MARKS.sub("", text) for name, text in SHOWN.items()}


async def test_what_nobody_sees_is_not_observed(page: Page) -> None:
    lines = await lines_of(page, "".join(f"<p>{entities(text)}</p>" for text, _ in HIDDEN.values()))
    assert lines == [visible(line) for line in lines]
    assert all(not re.search("[\U000e0000-\U000e007f]", line) for line in lines)


async def test_no_hidden_character_lets_a_page_make_a_ref(page: Page) -> None:
    """Symptom: `[`, a variation selector, `5]` was no ref for the observer, and one in the prompt."""
    forged = [form for hider in HIDERS for form in (f"[{hider}5]", f"[5{hider}]", f"[{hider}5{hider}]")]
    lines = await lines_of(page, "".join(f"<p>{entities(text)} button</p>" for text in forged))
    assert len(lines) == len(forged)
    assert [line for line in map(visible, lines) if re.match(r"\[\s*\d+\s*\]", line)] == []
