"""`python -m agent.cli` is `mira`."""

from agent.cli.app import main

main()
