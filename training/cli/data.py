"""`mira data`: the commands of :mod:`agent.cli.data`, and those that make or import examples for training.

To add a command: import its function, and register it here. Its module imports what it needs when it is called.
"""

from __future__ import annotations

from agent.cli.data import app
from training.cli.data_import import import_examples
from training.cli.grounding import grounding

app.command("grounding")(grounding)
app.command("import")(import_examples)

__all__ = ["app"]
