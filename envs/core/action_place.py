"""What an action meant, in words that its element's role and name do not give."""

from __future__ import annotations

from collections.abc import Callable

from envs.core.record import Record


class ActionPlace(Record):
    """Recorded when the action was chosen, because a later page may not show it any more.

    All texts hold words of the page in quotes, at most some hundred characters: they are data."""

    where: str = ""
    """Where the element is, if its name is empty or not unique on the page: `in row "Invoice 17 · Ana"`."""
    at: str = ""
    """What lies at the action's coordinates: `button "Zoom in"`."""
    onto: str = ""
    """What a drag ended on, by number or coordinates: `listitem "Done"`."""

    def with_texts(self, change: Callable[[str], str]) -> ActionPlace:
        """The same with *change* applied to every text."""
        return ActionPlace(where=change(self.where), at=change(self.at), onto=change(self.onto))
