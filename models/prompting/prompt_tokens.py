"""Encodes messages as token ids, identically for playing and training.

* The middle of a prompt that is too long is removed: the head (instruction) and the tail (the newest part of the page)
  stay, a line in between states the number of removed tokens, and `cut` counts the prompt. If the cut is inside data,
  the line closes and reopens the fence.
* Text of a message never becomes a control token: `<|im_start|>` on a page is broken up before the chat template. This
  holds for every added token of the tokenizer, special or not, and for role markers that its template writes as text.
  Text that the tokenizer still encodes as a control token (after its normalisation, with blanks around it) is broken up
  as well. A prompt with more control tokens than the template writes for its roles is refused.
* Where the chat template refuses or drops system messages (Gemma 2, Mistral 0.1, Phi-3), the first message of the user
  begins with their text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

from models.base import Message, ModelRejected
from models.prompting.fence import CLOSE, OPEN, defuse, open_at_end, open_at_start

HEAD_SHARE = 0.35
"""Share of a shortened prompt for its head; the rest is for its tail."""
MIN_ROOM = 64
"""Tokens of a shortened prompt below which fences are not closed and reopened: too few for page text."""
BREAKS = 4
"""Number of positions at which a control token is broken, one in each round, before it is spelled out."""
_PROBE = "Text of a probe"
"""A message that shows what a chat template makes of it."""


def prompt_room(context: int, answer: int) -> int:
    """Maximum prompt tokens that leave *answer* tokens, or a quarter of the *context* if that is less."""
    return context - min(answer, context // 4)


class Turn(NamedTuple):
    """A message whose text has no control tokens."""

    role: str
    text: str
    images: int = 0
    """Number of its pictures."""


class PromptTokens:
    """Encodes prompts with a transformers tokenizer."""

    def __init__(self, tokenizer: Any, written: Iterable[str] = ()) -> None:
        """*written*: further control texts, such as those that an image processor replaces."""
        self.cut = 0
        """Number of prompts that were too long."""
        self._tokenizer = tokenizer
        controls = sorted({*control_tokens(tokenizer), *written}, key=lambda token: (-len(token), token))
        byte = [r"<0x[0-9A-Fa-f]{2}>"] if _has_byte_tokens(tokenizer) else []
        self._literal = re.compile("|".join([*map(re.escape, controls), *byte]) or r"(?!)")
        self._ids = _control_ids(tokenizer)
        self._templates: dict[tuple[Turn, ...], int] = {}

    def encode(self, messages: Sequence[Message], room: int) -> tuple[int, ...]:
        """At most *room* token ids, including the generation prompt. Raises ModelRejected if text of a message became a
        control token."""
        ids = self.checked(messages)
        return ids if len(ids) <= room else self.shortened(ids, room)

    def plain(self, text: str) -> tuple[int, ...]:
        """*text* alone, without special tokens around it."""
        return tuple(self._tokenizer.encode(text, add_special_tokens=False))

    def defused(self, text: str) -> str:
        """*text* without control tokens of this tokenizer."""
        text = defuse(text)
        for place in range(1, BREAKS + 2):
            while (broken := self._literal.sub(lambda match, at=place: _broken(match[0], at), text)) != text:
                text = broken
            if not (spans := self._control_spans(text)):
                return text
            for start, end in reversed(spans):
                text = text[:start] + _broken(text[start:end], place) + text[end:]
        return text

    def _control_spans(self, text: str) -> list[tuple[int, int]]:
        """Spans of *text* that become control tokens. A slow tokenizer has no offsets: the span is the whole text."""
        if not self._tokenizer.is_fast:
            return [(0, len(text))] if self._ids.intersection(self.plain(text)) else []
        read = self._tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        pairs = zip(read["input_ids"], read["offset_mapping"], strict=True)
        return [(start, end) for token, (start, end) in pairs if token in self._ids and start < end]

    def shortened(self, ids: tuple[int, ...], room: int) -> tuple[int, ...]:
        """*ids* without their middle, *room* tokens with the line in its place; counts the prompt as cut."""
        self.cut += 1
        notice = f"\n… {len(ids) - room} tokens left out …\n"
        before = after = ""
        head, marker, tail = self._parts(ids, notice, room)
        while room >= MIN_ROOM:
            closed, opened = self._at_cut(head, tail)
            if len(closed) + len(opened) <= len(before) + len(after):
                break
            before, after = closed, opened
            head, marker, tail = self._parts(ids, f"{before}{notice}{after}", room)
        return (*head, *marker, *tail)

    def _parts(self, ids: tuple[int, ...], notice: str, room: int) -> tuple[tuple[int, ...], ...]:
        marker = self.plain(notice)
        marker = marker if len(marker) < room else ()  # too little room even for the notice
        head = int((room - len(marker)) * HEAD_SHARE)
        tail = room - len(marker) - head
        return ids[:head], marker, ids[len(ids) - tail :]

    def _at_cut(self, head: tuple[int, ...], tail: tuple[int, ...]) -> tuple[str, str]:
        """Delimiters that close the fence at the end of *head* and reopen the one at the start of *tail*; empty if both
        are the same."""
        ends, begins = open_at_end(self._tokenizer.decode(head)), open_at_start(self._tokenizer.decode(tail))
        if ends == begins:
            return "", ""
        closed = f"\n{OPEN}END {ends}{CLOSE}" if ends else ""
        return closed, f"{OPEN}DATA {begins}{CLOSE}\n" if begins else ""

    def for_template(self, messages: Sequence[Message]) -> Sequence[Message]:
        """*messages* in roles that the chat template writes: where it writes no system message, the next message begins
        with its text, as a message of the user."""
        if not messages or messages[0].role != "system" or self.writes_system:
            return messages
        system, *others = messages
        if not others or others[0].role == "assistant":
            return (replace(system, role="user"), *others)
        first, *rest = others
        return (replace(first, text=f"{system.text}\n\n{first.text}", images=(*system.images, *first.images)), *rest)

    @cached_property
    def writes_system(self) -> bool:
        """Whether the chat template writes the text of a system message; some refuse it, some leave it out."""
        from jinja2 import TemplateError

        try:
            return _PROBE in self.template_text((Turn("system", _PROBE), Turn("user", "x")))
        except (TemplateError, ValueError):
            return False

    def turns(self, messages: Sequence[Message]) -> list[Turn]:
        """The messages without control tokens in their texts."""
        return [Turn(message.role, self.defused(message.text), len(message.images)) for message in messages]

    def checked(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """The token ids of the whole prompt. Raises ModelRejected if text of a message became a control token."""
        turns = self.turns(self.for_template(messages))
        ids = self._templated(turns)
        if (count := self._controls(ids)) != (own := self._written(turns)):
            raise ModelRejected(
                f"the chat template makes {count} control tokens of this prompt, and {own} of a harmless one with the "
                "same roles: text of a page may have become one of them"
            )
        return ids

    def _written(self, turns: Sequence[Turn]) -> int:
        """Number of control tokens that the template writes around *turns*; empty turns may have others."""
        harmless = [turn._replace(text="x" if turn.text.strip() else "") for turn in turns]
        shape = tuple(harmless)
        if shape not in self._templates:
            self._templates[shape] = self._controls(self._templated(harmless))
        return self._templates[shape]

    def _templated(self, turns: Sequence[Turn]) -> tuple[int, ...]:
        return self.plain(self.template_text(turns))

    def template_text(self, turns: Sequence[Turn]) -> str:
        """The prompt as text. Pictures are left out."""
        if self._tokenizer.chat_template is None:
            return "\n\n".join(turn.text for turn in turns) + "\n\n"
        texts = [{"role": turn.role, "content": turn.text} for turn in turns]
        return self._tokenizer.apply_chat_template(texts, add_generation_prompt=True, tokenize=False)

    def _controls(self, ids: Iterable[int]) -> int:
        return sum(token in self._ids for token in ids)


def _broken(text: str, place: int) -> str:
    """*text* with a blank after *place* characters; spelled out in the last round or if it is too short."""
    if place > BREAKS:
        return " ".join(f"u{ord(character):04x}" for character in text.strip())
    if len(text) <= place:
        return f"u{ord(text):04x}" if len(text) == 1 else f"{text[0]} {text[1:]}"
    return f"{text[:place]} {text[place:]}"


def control_tokens(tokenizer: Any) -> tuple[str, ...]:
    """All control texts of the tokenizer and its chat template, longest first.

    These are all added tokens, special or not (`<|start_header_id|>`, `<tool_call>`), because a tokenizer recognizes
    them in any text, and the markers that the template writes as plain text (`<|user|>`, `[INST]`, `USER:`). Excluded
    are tokens of white space (Gemma has runs of line breaks) and ordinary tokens of one character.
    """
    added = [token.content for token in tokenizer.added_tokens_decoder.values() if _controls(token)]
    special = [token for token in tokenizer.all_special_tokens if token.strip()]
    tokens = {*added, *special, *_template_markers(tokenizer)}
    return tuple(sorted(tokens, key=lambda token: (-len(token), token)))


def processor_markers(processor: Any) -> tuple[str, ...]:
    """Texts that an image processor replaces: `image_token`, `video_token`, `boi_token` and the like."""
    markers: set[str] = set()
    for name in dir(processor):
        if name.endswith("_token"):
            value: Any = getattr(processor, name, None)
            text = value if isinstance(value, str) else getattr(value, "content", None)
            if isinstance(text, str) and len(text.strip()) > 1:
                markers.add(text)
    return tuple(sorted(markers))


def _controls(token: Any) -> bool:
    return len(token.content.strip()) > (0 if token.special else 1)


def _control_ids(tokenizer: Any) -> frozenset[int]:
    """Ids of all control tokens except the unknown token, which also encodes ordinary characters."""
    added = {number for number, token in tokenizer.added_tokens_decoder.items() if _controls(token)}
    return frozenset(added - {tokenizer.unk_token_id})


def turn_end(tokenizer: Any) -> int | None:
    """The control token that the chat template writes after an answer; None without one."""
    from jinja2 import TemplateError

    if tokenizer.chat_template is None:
        return None
    turns = [{"role": "user", "content": "x"}, {"role": "assistant", "content": _PROBE}]
    try:
        _, found, after = tokenizer.apply_chat_template(turns, tokenize=False).rpartition(_PROBE)
    except (TemplateError, ValueError):
        return None
    ids = tokenizer.encode(after, add_special_tokens=False) if found else []
    return ids[0] if ids and ids[0] in _control_ids(tokenizer) else None


def _has_byte_tokens(tokenizer: Any) -> bool:
    """Whether the vocabulary writes bytes as `<0x0A>`, which could be read from text."""
    return tokenizer.convert_tokens_to_ids("<0x0A>") not in (None, tokenizer.unk_token_id)


_MARKER = re.compile(r"<[^<>\s]{1,40}>|\[/?[A-Z_]{2,40}\]")
_ROLE = re.compile(
    r"(?:#{2,3} ?)?\b(?:user|assistant|human|system|bot|model|gpt|instruction|response|input)\b ?:", re.IGNORECASE
)
"""Roles that templates such as those of Vicuna and Alpaca write as words."""
_CONVERSATIONS = (("system", "user", "assistant", "user"), ("user", "assistant", "user"), ("user",))
"""Some templates allow no system message, some only one turn."""


def _template_markers(tokenizer: Any) -> frozenset[str]:
    """Tags and roles in the text that the template writes around empty messages."""
    from jinja2 import TemplateError

    if tokenizer.chat_template is None:
        return frozenset()
    for roles in _CONVERSATIONS:
        turns = [{"role": role, "content": ""} for role in roles]
        try:
            text = tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
        except (TemplateError, ValueError):
            continue
        return frozenset((*_MARKER.findall(text), *_ROLE.findall(text)))
    return frozenset()
