"""Runs the `mira` command as `python -m agent.cli`."""

from agent.cli.app import main

main()
