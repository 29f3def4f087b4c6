"""`acme`: a tool that knows the code of each account."""

from __future__ import annotations

from agent import Tool


def code(account: str) -> str:
    """Returns the one-time code of an account."""
    return f"4711-{account}"


TOOL = Tool(code, name="acme")
