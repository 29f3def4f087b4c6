"""A type for the text of prompts, which untrusted text can enter only through a fence.

A :class:`PromptText` is made of

* :func:`words`: literals of this program. The type checker refuses other strings (`LiteralString`), including f-strings
  with values.
* :func:`number`: an integer.
* :func:`fenced`: untrusted text as data, see :mod:`models.prompting.fence`.
* :func:`on_one_line`: untrusted text on one line after a constant label. In compact prompts, which have no fences, the
  line is the fence: the text cannot start another line. In full prompts only the goal has this form, because it is the
  model's instruction.
* :func:`own`: text that this program computed without untrusted text, such as the reference of an action language.
  `tests/models/prompting/test_prompt_text.py` lists its callers.

It is not a string and cannot be formatted: `f"{text}"` raises TypeError. :func:`message` makes the message.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, LiteralString, NoReturn, Protocol

from models.base import Image, Message
from models.prompting.fence import escape, fence
from models.prompting.invisible_characters import visible


@dataclass(frozen=True, slots=True)
class PromptText:
    """Text that is safe in a prompt."""

    text: str

    def __add__(self, other: PromptText) -> PromptText:
        return PromptText(self.text + other.text)

    def __bool__(self) -> bool:
        return bool(self.text)

    def __str__(self) -> NoReturn:
        raise TypeError("the text of a prompt is joined by models.prompting.prompt_text, never formatted")

    def __format__(self, spec: str) -> NoReturn:
        raise TypeError("the text of a prompt is joined by models.prompting.prompt_text, never formatted")


NOTHING = PromptText("")


def words(text: LiteralString) -> PromptText:
    return PromptText(text)


def number(value: int) -> PromptText:
    return PromptText(str(int(value)))


def own(text: str) -> PromptText:
    """Computed text of this program. Never use it for text of a page, a model, a file or a person."""
    return PromptText(text)


def fenced(label: LiteralString, text: str) -> PromptText:
    """Any *text* as data."""
    return PromptText(fence(label, text))


def fenced_lines(label: LiteralString, lines: Iterable[str]) -> PromptText:
    """*lines* as data, each on one line."""
    return fenced(label, "\n".join(folded(line) for line in lines))


def on_one_line(text: str, limit: int) -> PromptText:
    """*text* on one line, truncated with `…` at *limit* characters."""
    return PromptText(escape(cut(folded(text), limit)))


def page(lines: Iterable[str]) -> PromptText:
    """The end of a compact prompt: everything after `Page:` is data, so nothing else may follow."""
    return PromptText("\n".join(escape(visible(line)) for line in lines))


def joined(separator: LiteralString, parts: Iterable[PromptText]) -> PromptText:
    return PromptText(separator.join(part.text for part in parts))


def message(role: Literal["system", "user"], text: PromptText, images: Sequence[Image] = ()) -> Message:
    return Message(role, text.text, tuple(images))


def folded(text: str) -> str:
    """*text* as a person would see it, with white space folded to single blanks."""
    return " ".join(visible(text).split())


def cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


class LogEntry(Protocol):
    """What a log of actions is made of."""

    def log_line(self) -> str: ...


def log_lines(entries: Iterable[LogEntry], limit: int) -> list[str]:
    """The log of *entries*, one line each, cut openly at *limit* characters. It is data."""
    return [cut(folded(entry.log_line()), limit) for entry in entries]


def quoted(text: str) -> str:
    """*text* in double quotes on one line, with quotes and backslashes escaped as on a page."""
    return json.dumps(folded(text), ensure_ascii=False)
