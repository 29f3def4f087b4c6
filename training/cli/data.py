"""`mira data`: the commands of :mod:`agent.cli.data`, and those that make or import examples for training.

A module with another command defines a function and is added to the list at the end of this one.
"""

from __future__ import annotations

from agent.cli.data import app
from training.cli.data_import import import_examples

app.command("import")(import_examples)

__all__ = ["app"]
