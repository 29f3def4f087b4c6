"""The MCP server of `mira mcp`: other agents give it tasks on websites as tool calls."""
