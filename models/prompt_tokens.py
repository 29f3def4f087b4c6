"""Messages as token ids: the same for the model that answers and for the one that learns from its answers.

* A prompt that is longer than there is room loses its middle: the head (instruction) and the tail (the newest part of
  the page) stay, a line in between says how many tokens were left out, and `cut` counts it.
* Text of a message never becomes a control token: `<|im_start|>` on a page is broken up before the chat template. This
  holds for every added token of the tokenizer, special or not, and for role markers that its template writes as text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from models.base import Message
from models.fence import defuse

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
        self._controls = control_tokens(tokenizer)

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
        """*text* in which nothing is a control token of this tokenizer any more."""
        text = defuse(text)
        while found := [token for token in self._controls if token in text]:
            for token in found:
                text = text.replace(token, f"{token[0]} {token[1:]}")
        return text

    def _encode(self, messages: Sequence[Message]) -> tuple[int, ...]:
        turns = [{"role": message.role, "content": self.defused(message.text)} for message in messages]
        if self._tokenizer.chat_template is None:
            return self.plain("\n\n".join(turn["content"] for turn in turns) + "\n\n")
        text: str = self._tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
        return self.plain(text)


def control_tokens(tokenizer: Any) -> tuple[str, ...]:
    """Every text that the tokenizer or its chat template gives a meaning of its own, longest first.

    These are all added tokens, because a tokenizer cuts those out of any text, whether they are marked as special or
    not (`<|start_header_id|>`, `<tool_call>`), and the markers that the template writes around messages as plain text
    (`<|user|>`, `[INST]`). Tokens of one character and of white space alone (Gemma has runs of line breaks) control
    nothing.
    """
    added = [token.content for token in tokenizer.added_tokens_decoder.values()]
    tokens = {*added, *tokenizer.all_special_tokens, *_template_markers(tokenizer)}
    return tuple(sorted((token for token in tokens if len(token.strip()) > 1), key=lambda token: (-len(token), token)))


_MARKER = re.compile(r"<[^<>\s]{1,40}>|\[/?[A-Z_]{2,40}\]")
_CONVERSATIONS = (("system", "user", "assistant", "user"), ("user", "assistant", "user"), ("user",))
"""Some templates take no system message, some only one turn."""


def _template_markers(tokenizer: Any) -> frozenset[str]:
    """What looks like a tag in the text that the template writes around empty messages."""
    from jinja2 import TemplateError

    if tokenizer.chat_template is None:
        return frozenset()
    for roles in _CONVERSATIONS:
        turns = [{"role": role, "content": ""} for role in roles]
        try:
            return frozenset(
                _MARKER.findall(tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False))
            )
        except (TemplateError, ValueError):
            continue
    return frozenset()
