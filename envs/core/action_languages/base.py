"""Errors and value parsers that both action languages share.

    EnvError
    └── BadAction           the policy's answer cannot be executed as written
        └── ParseError      it contains no action, or a malformed one

The message of a :class:`ParseError` is one line for the model: the error and the expected form.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

from envs.core.actions import Action
from envs.core.errors import EnvError
from envs.core.grounding import Description, Grounding
from envs.core.record import storable

Button = Literal["left", "right", "middle"]
Direction = Literal["up", "down", "left", "right"]


class BadAction(EnvError):
    """The policy's answer cannot be executed as written; the message tells the model why."""


class ParseError(BadAction):
    """The text contains no valid action. The one-line message gives the error, then the expected form."""

    def __init__(self, message: str, form: str = "") -> None:
        """*form*: name of the form whose values are wrong; empty where none was recognised."""
        super().__init__(message)
        self.form = form


@dataclass(frozen=True, slots=True)
class Parsed:
    """One action with the policy's notes."""

    action: Action
    notes: tuple[str, ...] = ()
    """The `# Element: …` and `# Note: …` comments before the action, without the `#`."""
    rationale: str = ""
    """The other text before the action, on one line; see :mod:`envs.core.action_languages.rationale`."""
    described: tuple[Description, ...] = ()
    """Controls that the action describes in words; its fields hold UNGROUNDED."""
    groundings: tuple[Grounding, ...] = ()
    """How a grounder found them; the action's fields then hold numbers."""


class Fault(Exception):
    """An invalid value; each language converts it into a ParseError with its own example."""


_THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_ANSWER = re.compile(r"^[ \t]*<answer>(.*?)(?:</answer>|\Z)", re.DOTALL | re.MULTILINE)
_NOTE = re.compile(r"^[ \t]*#[ \t]*((?:Element|Note)[ \t]*:[^\n]*)$", re.MULTILINE | re.IGNORECASE)
_REF = re.compile(r"\s*\[?\s*(\d{1,9})\s*\]?\s*")
_NUMBER = re.compile(r"[+-]?(?:\d{1,30}\.?\d{0,30}|\.\d{1,30})(?:[eE][+-]?\d{1,3})?")
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[\s\S])")
_PLAIN_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": ""}
_LITERAL_ESCAPES = frozenset("\\\"'/[]`")


def without_thoughts(text: str) -> str:
    """Makes *text* storable and removes `<think>` blocks: an action in a thought does not count. The tags of an
    `<answer>` block at the beginning of a line are removed, too; its content stays."""
    return _ANSWER.sub(r"\1", _THOUGHT.sub("", storable(text)), count=1)


def notes_in(text: str) -> tuple[str, ...]:
    return tuple(match.group(1).strip() for match in _NOTE.finditer(text))


def unescape(text: str) -> str:
    r"""Replaces backslash escapes; unknown ones stay, so most of `\d` and `C:\Temp\x` is unchanged."""
    return storable(_ESCAPE.sub(_unescaped, text)) if "\\" in text else text


def _unescaped(match: re.Match[str]) -> str:
    code = match.group(1)
    if len(code) > 1:
        point = int(code[1:], 16)
        return chr(point) if point <= 0x10FFFF else match.group()
    if code in _PLAIN_ESCAPES:
        return _PLAIN_ESCAPES[code]
    return code if code in _LITERAL_ESCAPES else match.group()


def read_ref(text: str, field: str = "element") -> int:
    """Parses the number of an element, written `7` or `[7]`."""
    match = _REF.fullmatch(text)
    if match is None:
        raise Fault(f"{field} must be a number shown in brackets on the page, not {quoted(text)}")
    return int(match.group(1))


def read_count(text: str, field: str, low: int, high: int) -> int:
    value = int(text) if re.fullmatch(r"[0-9]{1,9}", text.strip()) else None
    if value is None or not low <= value <= high:
        raise Fault(f"{field} must be a whole number from {low} to {high}, not {quoted(text)}")
    return value


def read_number(text: str, field: str) -> float:
    value = float(text) if _NUMBER.fullmatch(text.strip()) else math.nan
    if not math.isfinite(value):
        raise Fault(f"{field} must be a number of CSS pixels, not {quoted(text)}")
    return value


def read_flag(text: str, field: str) -> bool:
    match text.strip().lower():
        case "1" | "true" | "yes":
            return True
        case "0" | "false" | "no":
            return False
        case _:
            raise Fault(f"{field} must be 0 or 1, not {quoted(text)}")


def read_button(text: str) -> Button:
    match text.strip().lower():
        case "left":
            return "left"
        case "right":
            return "right"
        case "middle":
            return "middle"
        case _:
            raise Fault(f"button must be left, right or middle, not {quoted(text)}")


def read_direction(text: str) -> Direction:
    match text.strip().lower().removeprefix("direction=").strip():
        case "up":
            return "up"
        case "down":
            return "down"
        case "left":
            return "left"
        case "right":
            return "right"
        case _:
            raise Fault(f"direction must be up, down, left or right, not {quoted(text)}")


def read_answer(text: str) -> bool:
    """Parses the answer to a dialog: True accepts it."""
    match text.strip().lower():
        case "accept" | "ok" | "yes" | "true" | "1":
            return True
        case "dismiss" | "cancel" | "no" | "false" | "0":
            return False
        case _:
            raise Fault(f"a dialog is answered accept or dismiss, not {quoted(text)}")


def show_number(value: float) -> str:
    """Formats a float with the fewest digits that parse back to it; whole numbers without `.0`."""
    return repr(float(value)).removesuffix(".0")


def quoted(text: str) -> str:
    """Quotes *text* for a message: one line, at most 40 characters."""
    return repr(text if len(text) <= 40 else text[:39] + "…")
