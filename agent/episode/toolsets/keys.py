"""Names of keys as the vendors' models write them, in Playwright's notation."""

from __future__ import annotations

from collections.abc import Sequence

from envs.core.key_names import KEY_NAMES


def chord(names: Sequence[str]) -> str | None:
    """`["ctrl", "a"]` as `Control+a`; None if a name is not known."""
    keys = [_key(name) for name in names]
    return "+".join(key for key in keys if key) if keys and all(keys) else None


def chords(text: str) -> list[str] | None:
    """`BackSpace BackSpace` and `ctrl+a` as a list of chords, in order; None if a name is not known."""
    if text.strip() == "" and text:
        return ["Space"] * len(text)
    found = [chord(_split(word)) for word in text.split()]
    return [each for each in found if each is not None] if found and None not in found else None


def _split(word: str) -> list[str]:
    """The keys of one chord; a `+` at its end is a key itself."""
    if word.endswith("+") and len(word) > 1:
        return [*filter(None, word[:-1].split("+")), "+"]
    return word.split("+") if word != "+" else ["+"]


def _key(name: str) -> str | None:
    if len(name) == 1 and name.isprintable():
        return "Space" if name == " " else name
    return KEY_NAMES.get(name.strip().lower())
