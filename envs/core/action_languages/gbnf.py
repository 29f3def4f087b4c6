"""Writes GBNF, the grammar notation of llama.cpp."""

from __future__ import annotations

from collections.abc import Iterable


def literal(text: str) -> str:
    """*text* as a GBNF string."""
    return '"' + "".join(_escaped(character) for character in text) + '"'


def one_of(texts: Iterable[str]) -> str:
    """One of *texts*."""
    return f"({' | '.join(map(literal, texts))})"


def maybe(rule: str, *, optional: bool) -> str:
    """*rule*, which may be left out if *optional*."""
    return f"({rule})?" if optional else rule


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
