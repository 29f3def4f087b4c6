"""Splits JSON Lines text."""

from __future__ import annotations


def json_lines(text: str) -> list[str]:
    """The lines of *text* that are not blank. Only a newline ends a line: a JSON string may hold the other characters
    at which `str.splitlines` splits (U+0085, U+2028, U+2029)."""
    return [line for line in text.split("\n") if line.strip()]
