"""The `mira` command. Wrong input ends with one line on stderr and exit code 2; see :func:`main`."""

from agent.cli.app import main

__all__ = ["main"]
