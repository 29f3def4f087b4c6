"""A look whose screenshot shows no declared secret.

A picture is handed up only where all that the tab draws was searched, immediately before and after the picture was
made, and no secret was found. Once a secret was typed it is also withheld where the tab draws what cannot be searched.
It is withheld as a whole and never painted over: shadows, reflections and overflow draw a text outside its box.
"""

from __future__ import annotations

import dataclasses
from typing import Final

from playwright.async_api import Error as PlaywrightError

from envs.core.errors import EnvError
from envs.core.observation import Observation, Tab
from envs.observer.observer import Observer
from envs.security.masking import HIDDEN
from envs.security.secret_guard import SecretGuard

SEARCH_S: Final = 2.0
"""Bound on one search."""
UNSEARCHED: Final = "screenshot left out: the page could not be searched for secrets"
OPAQUE: Final = "screenshot left out: a secret was typed, and the page shows what cannot be searched: "


async def look_without_secrets(
    observer: Observer, guard: SecretGuard, *, screenshot: bool, tabs: tuple[Tab, ...]
) -> Observation:
    """As :meth:`envs.observer.observer.Observer.observe`; a note says why a screenshot was withheld."""
    if not (screenshot and guard.vault):
        return await observer.observe(screenshot=screenshot, tabs=tabs)
    why = await _why_withheld(observer, guard)
    seen = await observer.observe(screenshot=not why, boxes=True, tabs=tabs)
    why = why or await _why_withheld(observer, guard)
    if not why:
        return seen
    return dataclasses.replace(seen, screenshot=None, note="; ".join(filter(None, (seen.note, why))))


async def _why_withheld(observer: Observer, guard: SecretGuard) -> str:
    try:
        found = await observer.drawn(SEARCH_S)
    except (EnvError, PlaywrightError):  # a page that is gone or hangs: the look itself reports that
        return UNSEARCHED
    if any(guard.vault.names_in(text) for text in dict.fromkeys(found.texts)):
        return HIDDEN
    if any("data:" in text and guard.vault.names_in(text, deep=True) for text in found.texts):
        return HIDDEN
    return OPAQUE + ", ".join(found.opaque) if guard.typed and found.opaque else ""
