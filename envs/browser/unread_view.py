"""Builds the observation of a page that cannot be called."""

from __future__ import annotations

import hashlib

from envs.core.actions import DialogReport
from envs.core.observation import Observation
from envs.core.settings import Viewport


def unread_view(url: str, dialog: DialogReport | None, note: str, viewport: Viewport) -> Observation:
    """Returns an observation of which only *url* is known, and *dialog* if a dialog blocks the page."""
    dialog_text = f"{url}\n{dialog.type}\n{dialog.message}" if dialog else url
    return Observation(
        url=url,
        title="",
        text="",
        elements=(),
        tabs=(),
        digest=hashlib.sha256(dialog_text.encode()).hexdigest()[:16],
        viewport=(viewport.width, viewport.height),
        scroll=(0, 0),
        controls_total=0,
        dialog=dialog,
        note=note,
    )
