"""What a completion says: its thought, its answer, the numbers in it. Any text can be read; nothing is evaluated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from training.rewards.coordinates import Place, numbers_in, places_in

TokenCount = Callable[[str], int]
"""How many tokens the policy's tokenizer makes of a text."""


@dataclass(frozen=True, slots=True)
class Said:
    """A completion, taken apart."""

    text: str
    """Whole."""
    thought: str
    """What stands inside `<think>…</think>`, all of such blocks; one that is not closed goes on to the end."""
    answer: str
    """What follows the last thought: the inside of its first `<answer>…</answer>`, or all of it."""

    @property
    def numbers(self) -> tuple[float, ...]:
        """Those of the answer, in their order."""
        return numbers_in(self.answer)

    @property
    def places(self) -> tuple[Place, ...]:
        """The points and boxes that the answer names, see :func:`training.rewards.coordinates.places_in`."""
        return places_in(self.answer)


def read_completion(text: str) -> Said:
    """Takes *text* apart. An answer that was only thought of is none."""
    thoughts: list[str] = []
    at = 0
    while (opened := text.find("<think>", at)) >= 0:
        begin = opened + len("<think>")
        closed = text.find("</think>", begin)
        thoughts.append(text[begin : closed if closed >= 0 else len(text)].strip())
        at = closed + len("</think>") if closed >= 0 else len(text)
    rest = text[at:]
    answer = inside(rest, "answer")
    return Said(text, "\n".join(filter(None, thoughts)), (rest if answer is None else answer).strip())


def inside(text: str, tag: str) -> str | None:
    """What the first whole `<tag>…</tag>` of *text* holds; None where there is none."""
    begin = text.find(f"<{tag}>")
    end = text.find(f"</{tag}>", begin) if begin >= 0 else -1
    return text[begin + len(tag) + 2 : end] if end >= 0 else None
