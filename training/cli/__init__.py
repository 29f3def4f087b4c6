"""Commands of this room; `agent.cli.app.COMMANDS` names their places and imports the one that is asked for."""
