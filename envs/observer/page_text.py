"""Formats observations (address, title, tabs, dialog, note and page text) as text.

The text is untrusted data: prompts must fence it.
"""

from __future__ import annotations

import re

from envs.core.observation import Observation
from envs.observer.page_lines import without_refs, without_repeated_areas

LINE_CHARS = 300
"""Longest line of the head; a longer one is cut and ends with `…`."""
LOG_LINE_CHARS = 600
ADDRESS_CHARS = 120
"""Longest address within a site."""


def page_text(observation: Observation) -> str:
    """Formats head and page text; equal observations give equal text."""
    lines = [f"URL: {one_line(observation.url)}", f"Title: {one_line(observation.title)}"]
    if len(observation.tabs) > 1:
        lines += [f"Tab {t.index}{' (front)' * t.active}: {one_line(f'{t.title} {t.url}')}" for t in observation.tabs]
    if observation.dialog is not None:
        lines.append(f"Open {observation.dialog.type} dialog: {one_line(observation.dialog.message)}")
    if observation.note:
        lines.append(f"Note: {one_line(observation.note)}")
    return "\n".join([*lines, "", observation.text])


def plain_page_text(observation: Observation) -> str:
    """Formats head and page text for readers that choose no control: without numbers, and each row's words once."""
    return without_refs(without_repeated_areas(page_text(observation)))


def short_head(observation: Observation) -> list[str]:
    """Returns the lines above the page text for a small model: several tabs, and an open dialog."""
    lines = [f"Tab {tab.index}: {one_line(tab.title, 80)}" for tab in observation.tabs if len(observation.tabs) > 1]
    if observation.dialog is not None:
        lines.append(f'Dialog: {observation.dialog.type} "{one_line(observation.dialog.message, 240)}"')
    return lines


def within_site(url: str) -> str:
    """Returns path and query, which identify a page within its site; `/` if both are empty."""
    within = re.sub(r"^[a-z][a-z0-9+.-]*://[^/?#]*", "", url.partition("#")[0])
    return one_line(within, ADDRESS_CHARS) or "/"


def one_line(text: str, limit: int = LINE_CHARS) -> str:
    """Folds white space in *text* to single spaces and cuts it to *limit* characters."""
    folded = " ".join(text.split())
    return folded if len(folded) <= limit else folded[: limit - 1] + "…"
