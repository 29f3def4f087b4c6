"""Messages as token ids: the same for the model that answers and for the one that learns from its answers.

* A prompt that is longer than there is room loses its middle: the head (instruction) and the tail (the newest part of
  the page) stay, a line in between says how many tokens were left out, and `cut` counts it.
* Text of a message never becomes a special token: `<|im_start|>` on a page is broken up before the chat template.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from models.base import Message

HEAD_SHARE = 0.35
"""Share of a cut prompt that its beginning keeps; the end keeps the rest."""


def prompt_room(context: int, answer: int) -> int:
    """Tokens of a prompt that leave room for *answer* of them, or a quarter of the *context* where that is less."""
    return context - min(answer, context // 4)


class PromptTokens:
    """Encodes prompts with a transformers tokenizer."""

    def __init__(self, tokenizer: Any) -> None:
        self.cut = 0
        """Prompts that were too long, so far."""
        self._tokenizer = tokenizer
        self._special = tuple(token for token in tokenizer.all_special_tokens if token)

    def encode(self, messages: Sequence[Message], room: int) -> tuple[int, ...]:
        """At most *room* token ids, the generation prompt included."""
        ids = self._encode(messages)
        if len(ids) <= room:
            return ids
        self.cut += 1
        marker = self.plain(f"\n… {len(ids) - room} tokens left out …\n")
        head = int((room - len(marker)) * HEAD_SHARE)
        tail = room - len(marker) - head
        return (*ids[:head], *marker, *ids[len(ids) - tail :])

    def plain(self, text: str) -> tuple[int, ...]:
        """*text* alone, without special tokens around it."""
        return tuple(self._tokenizer.encode(text, add_special_tokens=False))

    def defused(self, text: str) -> str:
        """*text* in which nothing is a special token of this tokenizer any more."""
        for token in self._special:
            if token in text:
                text = text.replace(token, f"{token[0]} {token[1:]}")
        return text

    def _encode(self, messages: Sequence[Message]) -> tuple[int, ...]:
        turns = [{"role": message.role, "content": self.defused(message.text)} for message in messages]
        if self._tokenizer.chat_template is None:
            return self.plain("\n\n".join(turn["content"] for turn in turns) + "\n\n")
        text: str = self._tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
        return self.plain(text)
