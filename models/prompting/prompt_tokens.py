"""Messages as token ids: the same for the model that answers and for the one that learns from its answers.

* A prompt that is longer than there is room loses its middle: the head (instruction) and the tail (the newest part of
  the page) stay, a line in between says how many tokens were left out, and `cut` counts it. Where the cut falls into
  data, the line in between closes and opens its fence.
* Text of a message never becomes a control token: `<|im_start|>` on a page is broken up before the chat template. This
  holds for every added token of the tokenizer, special or not, and for role markers that its template writes as text.
  The tokenizer itself is asked: what it still reads as a control token (after its normalisation, with blanks around it)
  is broken up where it stands, and a prompt holds as many control tokens as the template writes for its roles, or is
  refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from models.base import Message, ModelRejected
from models.prompting.fence import CLOSE, OPEN, defuse, open_at_end, open_at_start

HEAD_SHARE = 0.35
"""Share of a cut prompt that its beginning keeps; the end keeps the rest."""
MIN_ROOM = 64
"""Tokens of a cut prompt below which its fences are not closed and opened again: too few to hold page text."""
BREAKS = 4
"""Places at which a control token is broken before it is spelled out, one for each round."""


def prompt_room(context: int, answer: int) -> int:
    """Tokens of a prompt that leave room for *answer* of them, or a quarter of the *context* where that is less."""
    return context - min(answer, context // 4)


class PromptTokens:
    """Encodes prompts with a transformers tokenizer."""

    def __init__(self, tokenizer: Any, written: Iterable[str] = ()) -> None:
        """*written*: further texts with a meaning, such as those that an image processor replaces."""
        self.cut = 0
        """Prompts that were too long, so far."""
        self._tokenizer = tokenizer
        controls = sorted({*control_tokens(tokenizer), *written}, key=lambda token: (-len(token), token))
        byte = [r"<0x[0-9A-Fa-f]{2}>"] if _has_byte_tokens(tokenizer) else []
        self._literal = re.compile("|".join([*map(re.escape, controls), *byte]) or r"(?!)")
        self._ids = _control_ids(tokenizer)
        self._templates: dict[tuple[tuple[str, str], ...], int] = {}

    def encode(self, messages: Sequence[Message], room: int) -> tuple[int, ...]:
        """At most *room* token ids, the generation prompt included. Raises ModelRejected where a template makes control
        tokens of the messages' texts."""
        ids = self._encode(messages)
        if len(ids) <= room:
            return ids
        self.cut += 1
        return self._shortened(ids, room)

    def plain(self, text: str) -> tuple[int, ...]:
        """*text* alone, without special tokens around it."""
        return tuple(self._tokenizer.encode(text, add_special_tokens=False))

    def defused(self, text: str) -> str:
        """*text* in which nothing is a control token of this tokenizer any more."""
        text = defuse(text)
        for place in range(1, BREAKS + 2):
            while (broken := self._literal.sub(lambda found, at=place: _broken(found[0], at), text)) != text:
                text = broken
            if not (spans := self._control_spans(text)):
                return text
            for start, end in reversed(spans):
                text = text[:start] + _broken(text[start:end], place) + text[end:]
        return text

    def _control_spans(self, text: str) -> list[tuple[int, int]]:
        """Where the tokenizer reads control tokens in *text*. A tokenizer in Python does not say where: it is all."""
        if not self._tokenizer.is_fast:
            return [(0, len(text))] if self._ids.intersection(self.plain(text)) else []
        read = self._tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        pairs = zip(read["input_ids"], read["offset_mapping"], strict=True)
        return [(start, end) for token, (start, end) in pairs if token in self._ids and start < end]

    def _shortened(self, ids: tuple[int, ...], room: int) -> tuple[int, ...]:
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
        head = int((room - len(marker)) * HEAD_SHARE)
        tail = room - len(marker) - head
        return ids[:head], marker, ids[len(ids) - tail :]

    def _at_cut(self, head: tuple[int, ...], tail: tuple[int, ...]) -> tuple[str, str]:
        """What closes the data that *head* ends in, and opens those that *tail* begins in; nothing for the same."""
        ends, begins = open_at_end(self._tokenizer.decode(head)), open_at_start(self._tokenizer.decode(tail))
        if ends == begins:
            return "", ""
        closed = f"\n{OPEN}END {ends}{CLOSE}" if ends else ""
        return closed, f"{OPEN}DATA {begins}{CLOSE}\n" if begins else ""

    def _encode(self, messages: Sequence[Message]) -> tuple[int, ...]:
        turns = [{"role": message.role, "content": self.defused(message.text)} for message in messages]
        ids = self._templated(turns)
        if (made := self._controls(ids)) != (own := self._written(turns)):
            raise ModelRejected(
                f"the chat template makes {made} control tokens of this prompt, and {own} of a harmless one with the "
                "same roles: text of a page may have become one of them"
            )
        return ids

    def _written(self, turns: Sequence[Mapping[str, str]]) -> int:
        """Control tokens that the template writes around *turns*; some write others around an empty one."""
        harmless = [{**turn, "content": "x" if turn["content"].strip() else ""} for turn in turns]
        shape = tuple((turn["role"], turn["content"]) for turn in harmless)
        if shape not in self._templates:
            self._templates[shape] = self._controls(self._templated(harmless))
        return self._templates[shape]

    def _templated(self, turns: list[dict[str, str]]) -> tuple[int, ...]:
        if self._tokenizer.chat_template is None:
            return self.plain("\n\n".join(turn["content"] for turn in turns) + "\n\n")
        text: str = self._tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
        return self.plain(text)

    def _controls(self, ids: Iterable[int]) -> int:
        return sum(one in self._ids for one in ids)


def _broken(text: str, place: int) -> str:
    """*text* with a blank after *place* characters; in the last round, or where it is too short, spelled out."""
    if place > BREAKS:
        return " ".join(f"u{ord(character):04x}" for character in text.strip())
    if len(text) <= place:
        return f"u{ord(text):04x}" if len(text) == 1 else f"{text[0]} {text[1:]}"
    return f"{text[:place]} {text[place:]}"


def control_tokens(tokenizer: Any) -> tuple[str, ...]:
    """Every text that the tokenizer or its chat template gives a meaning of its own, longest first.

    These are all added tokens, because a tokenizer cuts those out of any text, whether they are marked as special or
    not (`<|start_header_id|>`, `<tool_call>`), and the markers that the template writes around messages as plain text
    (`<|user|>`, `[INST]`, `USER:`). Tokens of white space alone control nothing (Gemma has runs of line breaks), and of
    tokens of one character only special ones do.
    """
    added = [token.content for token in tokenizer.added_tokens_decoder.values() if _controls(token)]
    special = [token for token in tokenizer.all_special_tokens if token.strip()]
    tokens = {*added, *special, *_template_markers(tokenizer)}
    return tuple(sorted(tokens, key=lambda token: (-len(token), token)))


def processor_markers(processor: Any) -> tuple[str, ...]:
    """The texts that an image processor replaces by its own: `image_token`, `video_token`, `boi_token` and the like."""
    found: set[str] = set()
    for name in dir(processor):
        if name.endswith("_token"):
            value: Any = getattr(processor, name, None)
            text = value if isinstance(value, str) else getattr(value, "content", None)
            if isinstance(text, str) and len(text.strip()) > 1:
                found.add(text)
    return tuple(sorted(found))


def _controls(token: Any) -> bool:
    return len(token.content.strip()) > (0 if token.special else 1)


def _control_ids(tokenizer: Any) -> frozenset[int]:
    """All but that of the unknown token: it also stands for a character that the vocabulary lacks."""
    added = {number for number, token in tokenizer.added_tokens_decoder.items() if _controls(token)}
    return frozenset(added - {tokenizer.unk_token_id})


def _has_byte_tokens(tokenizer: Any) -> bool:
    """Whether the vocabulary spells bytes as `<0x0A>`: a text that says so might be read as the byte itself."""
    return tokenizer.convert_tokens_to_ids("<0x0A>") not in (None, tokenizer.unk_token_id)


_MARKER = re.compile(r"<[^<>\s]{1,40}>|\[/?[A-Z_]{2,40}\]")
_ROLE = re.compile(
    r"(?:#{2,3} ?)?\b(?:user|assistant|human|system|bot|model|gpt|instruction|response|input)\b ?:", re.IGNORECASE
)
"""Roles that a template writes as words, as those of Vicuna and Alpaca do."""
_CONVERSATIONS = (("system", "user", "assistant", "user"), ("user", "assistant", "user"), ("user",))
"""Some templates take no system message, some only one turn."""


def _template_markers(tokenizer: Any) -> frozenset[str]:
    """What looks like a tag or a role in the text that the template writes around empty messages."""
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
