"""What a completion says beside its answer, in tags or not: a thought outside `<think>` counts as one inside."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from envs.core.action_languages.ids import PHRASE
from training.grpo.rewards.answers import ParsedCompletion
from training.grpo.rewards.targets import PointTarget, StepTarget, Target, parse_action, parse_point

_WORD = re.compile(r"\S+")
_LABEL = r"[\"'](?:label|action|type)[\"']\s*:\s*(?:\"[^\"]{0,80}\"|'[^']{0,80}')"
_KEY = r"[\"']\w+[\"']\s*:"
_FORMAT = re.compile(rf"```\w*|<[/|]?\w[^<>]{{0,80}}>|{_LABEL}|{_KEY}|{re.escape(PHRASE)}", re.IGNORECASE)
"""Fences, tags, keys of JSON with short labels, the phrase before an action in id style: form, not thought."""


def extract_thought(target: Target, completion: ParsedCompletion) -> str:
    """All text of a completion but its answer: inside `<think>` tags, outside `<answer>` tags, and in the answer around
    the point or the action that it gives. Empty where the completion is its answer."""
    outside = _FORMAT.sub(" ", completion.outside)
    parts = (completion.thought, *(_words(part) for part in (outside, _around(target, completion))))
    return "\n".join(filter(None, parts))


def _words(text: str) -> str:
    """*text*, or nothing where it has no word and no number."""
    return text.strip() if re.search(r"\w", text) else ""


def _around(target: Target, completion: ParsedCompletion) -> str:
    """The answer without the point or the action; empty where it gives none, or leaves no room for words (puzzles)."""
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


def _without(text: str, gives_it: Callable[[str], bool]) -> str:
    """*text* without its last and shortest run of words that *gives_it*, and without its form."""
    words = [match.span() for match in _WORD.finditer(text)]
    begin = next(start for start, _ in reversed(words) if gives_it(text[start:]))
    end = next(stop for _, stop in words if stop > begin and gives_it(text[begin:stop]))
    return _FORMAT.sub(" ", f"{text[:begin]} {text[end:]}")
