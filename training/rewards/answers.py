"""What a completion says: its thought, its answer, the numbers in it. Any text can be read; nothing is evaluated."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

TokenCount = Callable[[str], int]
"""How many tokens the policy's tokenizer makes of a text."""

_THOUGHT = re.compile(r"<think>(.*?)</think>", re.DOTALL)
_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
_NUMBER = re.compile(r"-?\d{1,30}(?:\.\d{1,30})?")


@dataclass(frozen=True, slots=True)
class Said:
    """A completion, taken apart."""

    text: str
    """Whole."""
    thought: str
    """Inside the first `<think>…</think>`, without blanks around it; empty where there is none."""
    answer: str
    """Inside the first `<answer>…</answer>` after the thought; without such a block, all that is not the thought."""

    @property
    def numbers(self) -> tuple[float, ...]:
        """Those of the answer, in their order."""
        return numbers_in(self.answer)


def read_completion(text: str) -> Said:
    """Takes *text* apart. An answer that was only thought of is none."""
    thought = _THOUGHT.search(text)
    rest = text if thought is None else text[: thought.start()] + text[thought.end() :]
    answer = _ANSWER.search(rest)
    return Said(
        text=text,
        thought="" if thought is None else thought.group(1).strip(),
        answer=(rest if answer is None else answer.group(1)).strip(),
    )


def numbers_in(text: str) -> tuple[float, ...]:
    """The finite numbers that *text* writes as digits, in their order."""
    found = (float(match) for match in _NUMBER.findall(text))
    return tuple(number for number in found if math.isfinite(number))
