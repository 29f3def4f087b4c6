"""An observation as one text: address, title, tabs, dialog and note, then what the page shows. All of it is data."""

from __future__ import annotations

from envs.observation import Observation

LINE_CHARS = 300
"""Longest line of the head; a cut is marked with `…`."""


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


def one_line(text: str, limit: int = LINE_CHARS) -> str:
    """*text* with all white space folded to single spaces, cut to *limit* characters."""
    folded = " ".join(text.split())
    return folded if len(folded) <= limit else folded[: limit - 1] + "…"
