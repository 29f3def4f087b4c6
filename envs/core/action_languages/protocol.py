"""The interface of an action language."""

from __future__ import annotations

from typing import Literal, Protocol

from envs.core.action_languages.base import Parsed
from envs.core.action_languages.forms import FormTable
from envs.core.actions import Action


class Language(Protocol):
    """A text format for actions. Stateless and safe: text is parsed, never evaluated."""

    @property
    def name(self) -> Literal["program", "id"]: ...

    @property
    def forms(self) -> FormTable:
        """The table of its forms."""
        ...

    @property
    def reference(self) -> str:
        """A compact list of the actions and their arguments, for a prompt, without those of `pixels`."""
        ...

    @property
    def pixels(self) -> str:
        """The same for the actions at points of the view, which a prompt offers only with the boxes of the page."""
        ...

    def parse(self, text: str) -> Parsed:
        """Parses the first action of *text*. Raises ParseError and nothing else."""
        ...

    def parse_all(self, text: str) -> tuple[Parsed, ...]:
        """Parses the first action of *text* and those that follow it, see :mod:`envs.core.action_languages.several`.
        Raises ParseError if one of them is malformed, and nothing else."""
        ...

    def show(self, action: Action) -> str:
        """Formats *action* as one line that parses back to it, if its texts are storable and its numbers finite."""
        ...
