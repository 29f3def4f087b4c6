"""Extracts the thought of a completion: all text but its answer, inside or outside `<think>` tags."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from envs.core.action_languages.ids import PHRASE
from models.vision.answers import ParsedCompletion
from training.grpo.rewards.targets import PointTarget, StepTarget, Target, parse_action, parse_point

_WORD = re.compile(r"\S+")
_LABEL = r"[\"'](?:label|action|type)[\"']\s*:\s*(?:\"[^\"]{0,80}\"|'[^']{0,80}')"
_KEY = r"[\"']\w+[\"']\s*:"
_FORMAT = re.compile(rf"```\w*|<[/|]?\w[^<>]{{0,80}}>|{_LABEL}|{_KEY}|{re.escape(PHRASE)}", re.IGNORECASE)
"""Formatting that is not part of a thought: code fences, tags, JSON keys with short labels, the phrase before an action
in id style."""


def extract_thought(target: Target, completion: ParsedCompletion) -> str:
    """Returns all text of a completion but its answer: inside `<think>` tags, outside `<answer>` tags, and in the
    answer around its point or action. Empty if the completion is only an answer."""
    outside = _FORMAT.sub(" ", completion.outside)
    parts = (completion.thought, *(_words(part) for part in (outside, _around(target, completion))))
    return "\n".join(filter(None, parts))


def _words(text: str) -> str:
    """Returns *text*, or nothing if it has no word and no number."""
    return text.strip() if re.search(r"\w", text) else ""


def _around(target: Target, completion: ParsedCompletion) -> str:
    """Returns the answer without its point or action; empty if it has none, or for puzzles."""
    match target:
        case PointTarget():
            point = parse_point(completion)
            return (
                ""
                if point is None
                else _without(completion.answer, lambda text: parse_point(_answer(completion, text)) == point)
            )
        case StepTarget():
            action = parse_action(target, completion)
            if action is None:
                return ""
            return _without(completion.answer, lambda text: parse_action(target, _answer(completion, text)) == action)
        case _:
            return ""


def _answer(completion: ParsedCompletion, text: str) -> ParsedCompletion:
    return replace(completion, answer=text)


def _without(text: str, matches: Callable[[str], bool]) -> str:
    """Returns *text* without its last, shortest run of words that *matches*, and without formatting."""
    words = [match.span() for match in _WORD.finditer(text)]
    begin = next(start for start, _ in reversed(words) if matches(text[start:]))
    end = next(stop for _, stop in words if stop > begin and matches(text[begin:stop]))
    return _FORMAT.sub(" ", f"{text[:begin]} {text[end:]}")
