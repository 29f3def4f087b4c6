"""What was seen and done, as text: an observation with its address, title, tabs, dialog and note, and a log of actions.

All of it is data: whoever puts it into a prompt fences it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from envs.core.observation import Observation

LINE_CHARS = 300
"""Longest line of the head; a cut is marked with `…`."""
LOG_LINES = 30
"""Latest actions shown; older ones are counted."""
LOG_LINE_CHARS = 600
ADDRESS_CHARS = 120
"""Longest address within a site."""


def page_text(observation: Observation) -> str:
    """Head and page text; equal observations give equal text."""
    lines = [f"URL: {one_line(observation.url)}", f"Title: {one_line(observation.title)}"]
    if len(observation.tabs) > 1:
        lines += [f"Tab {t.index}{' (front)' * t.active}: {one_line(f'{t.title} {t.url}')}" for t in observation.tabs]
    if observation.dialog is not None:
        lines.append(f"Open {observation.dialog.type} dialog: {one_line(observation.dialog.message)}")
    if observation.note:
        lines.append(f"Note: {one_line(observation.note)}")
    return "\n".join([*lines, "", observation.text])


def short_head(observation: Observation) -> list[str]:
    """The lines above the page text for a small model: the tabs where there are several, and an open dialog."""
    lines = [f"Tab {tab.index}: {one_line(tab.title, 80)}" for tab in observation.tabs if len(observation.tabs) > 1]
    if observation.dialog is not None:
        lines.append(f'Dialog: {observation.dialog.type} "{one_line(observation.dialog.message, 240)}"')
    return lines


def within_site(url: str) -> str:
    """Path and query, by which one page of a site is told from another; `/` where there is neither."""
    within = re.sub(r"^[a-z][a-z0-9+.-]*://[^/?#]*", "", url.partition("#")[0])
    return one_line(within, ADDRESS_CHARS) or "/"


def log_text(history: Sequence[str]) -> str:
    """The latest actions, one line each, oldest first, and how many came before them."""
    if not history:
        return "(no action yet)"
    shown = [one_line(line, LOG_LINE_CHARS) for line in history[-LOG_LINES:]]
    left_out = len(history) - len(shown)
    return "\n".join([f"({left_out} earlier)"] * bool(left_out) + shown)


def one_line(text: str, limit: int = LINE_CHARS) -> str:
    """*text* with all white space folded to single spaces, cut to *limit* characters."""
    folded = " ".join(text.split())
    return folded if len(folded) <= limit else folded[: limit - 1] + "…"
