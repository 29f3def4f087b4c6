"""What a completion says: its thought and its answer. Any text can be read; nothing is evaluated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from training.grpo.rewards.coordinates import Place, numbers_in, places_in

TokenCount = Callable[[str], int]
"""How many tokens the policy's tokenizer makes of a text."""
OPEN, CLOSE = "<think>", "</think>"


@dataclass(frozen=True, slots=True)
class ParsedCompletion:
    """A completion, taken apart."""

    text: str
    """Whole."""
    thought: str
    """What stands inside `<think>…</think>`, all of such blocks. One that is not closed goes on to the end; one that is
    not opened, as where a chat template opens it, begins at the start."""
    answer: str
    """What follows the last thought: the inside of its first `<answer>…</answer>`, or all of it."""
    outside: str = ""
    """The rest: text outside all tags, where there is an `<answer>…</answer>`, and text between thoughts."""

    @property
    def numbers(self) -> tuple[float, ...]:
        """Those of the answer, in their order."""
        return numbers_in(self.answer)

    @property
    def places(self) -> tuple[Place, ...]:
        """The points and boxes that the answer names, see :func:`training.grpo.rewards.coordinates.places_in`."""
        return places_in(self.answer)


def read_completion(text: str) -> ParsedCompletion:
    """Takes *text* apart. An answer that was only thought of is none."""
    thoughts: list[str] = []
    outside: list[str] = []
    rest = text
    while OPEN in rest or CLOSE in rest:
        before, opened, inner = rest.partition(OPEN)
        if CLOSE in before or not opened:  # closed without being opened
            thought, _, rest = rest.partition(CLOSE)
        else:
            outside.append(before)
            thought, _, rest = inner.partition(CLOSE)
        thoughts.append(thought)
    answer = tag_content(rest, "answer")
    if answer is not None:
        before, _, after = rest.partition(f"<answer>{answer}</answer>")
        outside += [before, after]
    return ParsedCompletion(text, _lines(thoughts), (rest if answer is None else answer).strip(), _lines(outside))


def _lines(parts: list[str]) -> str:
    return "\n".join(filter(None, (part.strip() for part in parts)))


def tag_content(text: str, tag: str) -> str | None:
    """What the first whole `<tag>…</tag>` of *text* holds; None where there is none."""
    begin = text.find(f"<{tag}>")
    end = text.find(f"</{tag}>", begin) if begin >= 0 else -1
    return text[begin + len(tag) + 2 : end] if end >= 0 else None
