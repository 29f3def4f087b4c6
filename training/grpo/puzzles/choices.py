"""Reads an option that names one of several choices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from envs.core.errors import BadInput

C = TypeVar("C", bound=str)


def parse_choice(name: str, choices: Iterable[C], problem: str) -> C:
    """Returns *name* as one of *choices*. Raises BadInput with the message *problem* if it is none of them."""
    for choice in choices:
        if choice == name:
            return choice
    raise BadInput(problem)
