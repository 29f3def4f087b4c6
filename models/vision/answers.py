"""Parses completions into thought and answer. Every text can be parsed; nothing is evaluated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from models.vision.places import Place, numbers_in, places_in

TokenCount = Callable[[str], int]
"""Counts the tokens of a text with the policy's tokenizer."""
OPEN, CLOSE = "<think>", "</think>"
Scale = tuple[float, float]
"""Pixels of the image per unit of an answer's coordinates, across and down."""
UNSCALED: Scale = (1.0, 1.0)


@dataclass(frozen=True, slots=True)
class ParsedCompletion:
    """A completion, parsed into thought and answer."""

    text: str
    """The full text."""
    thought: str
    """Text inside all `<think>…</think>` blocks. An unclosed block extends to the end. A block without an opening tag,
    as when the chat template opened it, begins at the start."""
    answer: str
    """The text after the last thought: the content of its first `<answer>…</answer>`, or all of it."""
    outside: str = ""
    """All other text: between thoughts and, if there is an `<answer>…</answer>`, outside of it."""
    scale: Scale = UNSCALED

    @property
    def numbers(self) -> tuple[float, ...]:
        """The numbers in the answer as written, in order."""
        return numbers_in(self.answer)

    @property
    def places(self) -> tuple[Place, ...]:
        """The points and boxes in the answer in pixels of the image, see :func:`models.vision.places.places_in`."""
        return tuple(self.in_pixels(place) for place in places_in(self.answer))

    def in_pixels(self, place: Place) -> Place:
        """Converts a point or box of the answer to pixels of the image."""
        return tuple(value * self.scale[index % 2] for index, value in enumerate(place))

    @property
    def box(self) -> tuple[float, float, float, float] | None:
        """Left, top, right and bottom of the answer's box; None if there is no box or more than one."""
        match [place for place in self.places if len(place) == 4]:
            case [(left, top, right, bottom)]:
                return left, top, right, bottom
            case _:
                return None

    @property
    def point(self) -> tuple[float, float] | None:
        """x and y of the answer's point, or the centre of its box; None if there is no point or more than one."""
        points = [place for place in self.places if len(place) == 2]
        match points, self.box:
            case [(x, y)], _:
                return x, y
            case [], (left, top, right, bottom):
                return (left + right) / 2, (top + bottom) / 2
            case _:
                return None


def read_completion(text: str, scale: Scale = UNSCALED) -> ParsedCompletion:
    """Parses *text*. Text inside a thought is never the answer. *scale* converts its coordinates to pixels."""
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
    answer = (rest if answer is None else answer).strip()
    return ParsedCompletion(text, _lines(thoughts), answer, _lines(outside), scale)


def _lines(parts: list[str]) -> str:
    return "\n".join(filter(None, (part.strip() for part in parts)))


def tag_content(text: str, tag: str) -> str | None:
    """Returns the content of the first complete `<tag>…</tag>` in *text*; None without one."""
    begin = text.find(f"<{tag}>")
    end = text.find(f"</{tag}>", begin) if begin >= 0 else -1
    return text[begin + len(tag) + 2 : end] if end >= 0 else None
