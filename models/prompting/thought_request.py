"""The line of a step's prompt that asks for a thought before the answer: in training and in play alike."""

from __future__ import annotations

from typing import Final

THOUGHT_REQUEST: Final = "Think first, between <think> and </think>; then answer between <answer> and </answer>."


def asks_for_thought(text: str) -> bool:
    """Whether a prompt's *text* ends with the request."""
    return text.endswith(THOUGHT_REQUEST)


def with_thought_request(text: str) -> str:
    """*text* with the request as its last line, once."""
    return text if asks_for_thought(text) else f"{text}\n{THOUGHT_REQUEST}"


def without_thought_request(text: str) -> str:
    """*text* without the request at its end."""
    return text.removesuffix(THOUGHT_REQUEST).rstrip() if asks_for_thought(text) else text
