"""Takes observations whose screenshots show no declared secret.

A screenshot is returned only if everything that the tab draws was searched, immediately before and after the screenshot
was taken, and no secret was found. After a secret was typed, it is also withheld if the tab draws content that cannot
be searched. It is withheld completely, never painted over: shadows, reflections and overflow draw text outside its box.
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
"""Time limit of one search."""
UNSEARCHED: Final = "screenshot left out: the page could not be searched for secrets"
OPAQUE: Final = "screenshot left out: a secret was typed, and the page shows what cannot be searched: "


async def observe_without_secrets(
    observer: Observer, guard: SecretGuard, *, screenshot: bool, tabs: tuple[Tab, ...]
) -> Observation:
    """Like :meth:`envs.observer.observer.Observer.observe`; a note gives the reason if a screenshot was withheld."""
    if not (screenshot and guard.vault):
        return await observer.observe(screenshot=screenshot, tabs=tabs)
    reason = await _reason_to_withhold(observer, guard)
    seen = await observer.observe(screenshot=not reason, boxes=True, tabs=tabs)
    reason = reason or await _reason_to_withhold(observer, guard)
    if not reason:
        return seen
    return dataclasses.replace(seen, screenshot=None, note="; ".join(filter(None, (seen.note, reason))))


async def _reason_to_withhold(observer: Observer, guard: SecretGuard) -> str:
    try:
        drawn = await observer.drawn(SEARCH_S)
    except (EnvError, PlaywrightError):  # a page that is gone or hangs: the observation itself reports that
        return UNSEARCHED
    if any(guard.vault.names_in(text) for text in dict.fromkeys(drawn.texts)):
        return HIDDEN
    if any("data:" in text and guard.vault.names_in(text, deep=True) for text in drawn.texts):
        return HIDDEN
    return OPAQUE + ", ".join(drawn.opaque) if guard.typed and drawn.opaque else ""
