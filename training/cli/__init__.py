"""The training commands of `mira`, which `agent.cli.app.COMMANDS` lists by module name."""
